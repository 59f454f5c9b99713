//! The drain.

use super::*;

#[test]
fn idle_and_silent_connections_close_and_busy_ones_finish() {
    run(async {
        let site = Site::open(limits()).await;
        let mut fresh = site.connect().await;
        let mut idle = site.connect().await;
        idle.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n")
            .await
            .until("hello")
            .await;
        let mut busy = site.connect().await;
        busy.send("GET /held HTTP/1.1\r\nhost: a\r\n\r\n").await;
        site.until(|site| site.seen.get() == 2 && site.gate.open() == 3)
            .await;

        site.trigger.start();
        assert_eq!(idle.rest().await, "");
        // Its HTTP version is unknown: it has sent nothing.
        assert_eq!(fresh.rest().await, "");
        site.until(|site| site.drain.open() == 1).await;
        site.release.notify_one();
        let answer = busy.rest().await;
        assert!(answer.contains("connection: close\r\n"), "{answer}");
        assert!(answer.ends_with("hello"), "{answer}");
        site.drain.ended().await;
    });
}

#[test]
fn no_connection_is_accepted_while_draining() {
    run(async {
        let site = Site::open(limits()).await;
        site.connect()
            .await
            .send("GET / HTTP/1.1\r\nhost: a\r\n\r\n")
            .await
            .until("hello")
            .await;
        site.trigger.start();
        site.drain.ended().await;
        // The listener is closed by its task, which may come after the last connection.
        while TcpStream::connect(site.address).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
}

#[test]
fn an_http2_connection_gets_goaway_and_its_streams_finish() {
    run(async {
        let site = Site::open(limits()).await;
        let mut client = http2::ask(&site, "/held", http2::NO_SETTINGS).await;
        site.until(|site| site.seen.get() == 1).await;
        site.trigger.start();
        told_to_go(&mut client).await;
        site.release.notify_one();
        let answer = client.rest().await;
        assert!(answer.contains("hello"), "{answer:?}");
        site.drain.ended().await;
    });
}

#[test]
fn an_idle_http2_connection_gets_goaway() {
    run(async {
        let site = Site::open(limits()).await;
        let mut client = site.connect().await;
        client.send(http2::PREFACE).await;
        client.send(http2::NO_SETTINGS).await;
        let (kind, _) = http2::frame(&mut client).await.unwrap();
        assert_eq!(kind, http2::SETTINGS);
        site.trigger.start();
        told_to_go(&mut client).await;
        client.rest().await;
        site.drain.ended().await;
    });
}

/// Reads up to GOAWAY and the PING that checks its arrival (RFC 9113, 6.8), and acknowledges it.
async fn told_to_go(client: &mut Client) {
    loop {
        let (kind, body) = http2::frame(client).await.unwrap();
        if kind == http2::GOAWAY {
            assert_eq!(body[4..8], [0; 4], "an error code");
            break;
        }
    }
    let (kind, body) = http2::frame(client).await.unwrap();
    assert_eq!(kind, http2::PING);
    client
        .send([&b"\0\0\x08\x06\x01\0\0\0\0"[..], &body].concat())
        .await;
}

#[test]
fn a_core_without_connections_ends_immediately() {
    run(async {
        let trigger = DrainTrigger::default();
        let drain = trigger.core();
        assert!(!drain.is_started());
        trigger.start();
        drain.started().await;
        drain.ended().await;
        assert!(drain.is_started());
    });
}

#[test]
fn one_listener_of_a_core_can_drain_alone() {
    run(async {
        let trigger = DrainTrigger::default();
        let core = trigger.core();
        let (one, other) = (core.apart(), core.apart());
        let gate = ConnectionLimit::new(2);
        let permits = (
            gate.try_enter(&one).unwrap(),
            gate.try_enter(&other).unwrap(),
        );
        one.leave();
        one.started().await;
        assert!(one.is_started() && !other.is_started() && !core.is_started());
        assert!(permits.0.is_leaving() && !permits.1.is_leaving());
        assert_eq!(core.open(), 2);
        trigger.start();
        other.started().await;
        drop(permits);
        core.ended().await;
    });
}

#[test]
fn a_request_in_transit_gets_a_response_with_connection_close() {
    run(async {
        let site = Site::open(limits()).await;
        let mut idle = site.connect().await;
        idle.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n")
            .await
            .until("hello")
            .await;
        let mut half = site.connect().await;
        half.send("GET / HTTP/1.1\r\nhost: a\r\n\r\nGET / HTTP/1.1\r\n")
            .await
            .until("hello")
            .await;
        site.trigger.start();
        site.drain.started().await;
        tokio::task::yield_now().await;
        idle.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
        half.send("host: a\r\n\r\n").await;
        for client in [&mut idle, &mut half] {
            let answer = client.rest().await;
            assert!(answer.contains("connection: close\r\n"), "{answer}");
            assert!(answer.ends_with("hello"), "{answer}");
        }
        site.drain.ended().await;
    });
}
