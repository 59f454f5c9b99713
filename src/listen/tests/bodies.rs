//! Request bodies that are not read: the rest of one is never parsed as the next request.

use super::*;

/// A request that hides in the body of another.
const HIDDEN: &str = "GET /hidden HTTP/1.1\r\nhost: a\r\n\r\n";

/// The last request of a connection.
const LAST: &str = "GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";

fn post(path: &str, fields: &str) -> String {
    format!("POST {path} HTTP/1.1\r\nhost: a\r\n{fields}\r\n")
}

#[test]
fn an_unread_body_never_becomes_a_request() {
    for size in [HIDDEN.len(), 100 * HIDDEN.len(), 20_000 * HIDDEN.len()] {
        run(async move {
            let site = Site::open(limits()).await;
            let mut client = site.connect().await;
            let body = HIDDEN.repeat(size / HIDDEN.len());
            client
                .send(post("/ignore", &format!("content-length: {size}\r\n")))
                .await;
            // Part of the body is sent only after the response.
            client.until("hello").await;
            client.send(body).await.send(LAST).await;
            assert!(client.rest_in_peace().await.ends_with("hello"));
            assert_eq!(site.seen.get(), 2);
        });
    }
}

#[test]
fn an_unread_body_beyond_the_limit_ends_the_connection() {
    run(async {
        let site = Site::open(limits()).await;
        let mut client = site.connect().await;
        let size = 4 << 20;
        client
            .send(post("/ignore", &format!("content-length: {size}\r\n")))
            .await;
        client.until("hello").await;
        let body = HIDDEN.repeat(size / HIDDEN.len());
        let _ = client.0.write_all(body.as_bytes()).await;
        client.rest().await;
        assert_eq!(site.seen.get(), 1);
        site.drain.ended().await;
    });
}

#[test]
fn the_time_limit_ends_a_connection_with_an_unread_body() {
    run(async {
        let site = Site::open(limits()).await;
        let mut client = site.connect().await;
        client
            .send(post("/ignore", "content-length: 100\r\n"))
            .await;
        client.until("hello").await;
        assert_eq!(client.rest_in_peace().await, "");
    });
}

#[test]
fn a_runtime_may_end_while_a_body_is_unread() {
    run(async {
        let site = Site::open(limits()).await;
        let mut client = site.connect().await;
        client.send(post("/echo", "content-length: 100\r\n")).await;
        client.send("begin").await.until("begin").await;
    });
}

#[test]
fn a_body_received_with_its_head_never_becomes_a_request() {
    run(async {
        let site = Site::open(limits()).await;
        let mut client = site.connect().await;
        let fields = format!("content-length: {}\r\n", HIDDEN.len());
        client
            .send(post("/ignore", &fields) + HIDDEN)
            .await
            .until("hello")
            .await;
        client
            .send("GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
            .await;
        client.rest().await;
        assert!(site.seen.get() <= 2);
    });
}

#[test]
fn an_unread_chunked_body_never_becomes_a_request() {
    run(async {
        let site = Site::open(limits()).await;
        let mut client = site.connect().await;
        client
            .send(post("/ignore", "transfer-encoding: chunked\r\n"))
            .await;
        client.until("hello").await;
        let chunk = format!("{:x}\r\n{HIDDEN}\r\n0\r\n\r\n", HIDDEN.len());
        client.send(chunk).await.send(LAST).await;
        assert!(client.rest_in_peace().await.ends_with("hello"));
        assert_eq!(site.seen.get(), 2);
    });
}

#[test]
fn the_connection_closes_after_the_response_to_an_unread_body() {
    run(async {
        let site = Site::open(limits()).await;
        let mut client = site.connect().await;
        client
            .send(post("/ignore", "content-length: 1000000\r\n"))
            .await;
        assert!(client.rest().await.ends_with("hello"));
    });
}

#[test]
fn a_client_that_continues_sending_is_not_reset() {
    run(async {
        let site = Site::open(limits()).await;
        let mut client = site.connect().await;
        client
            .send(post("/ignore", "content-length: 500000\r\n"))
            .await;
        client.until("hello").await;
        for _ in 0..50 {
            client.send(vec![b'x'; 10_000]).await;
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        client.send(LAST).await;
        assert!(client.rest_in_peace().await.ends_with("hello"));
        drop(client);
        site.drain.ended().await;
    });
}

#[test]
fn no_100_continue_is_sent_for_a_body_that_is_not_read() {
    run(async {
        let site = Site::open(limits()).await;
        let mut client = site.connect().await;
        let fields = "content-length: 1000\r\nexpect: 100-continue\r\n";
        client.send(post("/ignore", fields)).await;
        let answer = client.until("hello").await;
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        let _ = client.0.write_all(HIDDEN.repeat(40).as_bytes()).await;
        client.rest().await;
        assert_eq!(site.seen.get(), 1);
    });
}

#[test]
fn a_100_continue_is_sent_when_an_expected_body_is_read() {
    run(async {
        let site = Site::open(limits()).await;
        let mut client = site.connect().await;
        client
            .send(post(
                "/size",
                "content-length: 4\r\nexpect: 100-continue\r\n",
            ))
            .await;
        assert_eq!(
            client.until("\r\n\r\n").await,
            "HTTP/1.1 100 Continue\r\n\r\n"
        );
        client.send("body").await.until("\r\n\r\n4").await;
    });
}

#[test]
fn a_drained_body_leaves_the_connection_usable() {
    run(async {
        let site = Site::open(limits()).await;
        let mut client = site.connect().await;
        for _ in 0..2 {
            client
                .send(post("/drain", "content-length: 1000\r\n"))
                .await;
            client.send(vec![b'x'; 1000]).await.until("Whole").await;
            client
                .send(post("/drain", "transfer-encoding: chunked\r\n"))
                .await;
            client
                .send("5\r\nhello\r\n0\r\n\r\n")
                .await
                .until("Whole")
                .await;
        }
        client
            .send("GET /drain HTTP/1.1\r\nhost: a\r\n\r\n")
            .await
            .until("Whole")
            .await;
    });
}

#[test]
fn draining_stops_at_a_body_that_is_too_long_or_too_slow() {
    for (fields, sent, why) in [
        ("content-length: 2000\r\n", 0, "TooLong"),
        ("content-length: 1000\r\n", 10, "TooSlow"),
        ("transfer-encoding: chunked\r\n", 2000, "TooLong"),
    ] {
        run(async move {
            let site = Site::open(limits()).await;
            let mut client = site.connect().await;
            client.send(post("/drain", fields)).await;
            client
                .send(format!("{sent:x}\r\n{}", "x".repeat(sent)))
                .await;
            client.until(why).await;
            let _ = client.0.write_all(HIDDEN.as_bytes()).await;
            client.rest().await;
            assert_eq!(site.seen.get(), 1);
        });
    }
}
