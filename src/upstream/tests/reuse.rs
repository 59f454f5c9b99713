//! When a connection is reused, and when it must not be.

use super::*;
use crate::clock::{ManualClock, Timestamp};

#[tokio::test(flavor = "local")]
async fn one_connection_serves_one_request_after_another() {
    let origin = Origin::answering(OK).await;
    let bed = Bed::to(&[origin.address]);
    for _ in 0..20 {
        assert_eq!(bed.get().await.unwrap().1, "ok");
    }
    assert_eq!((origin.accepted.get(), bed.pool.idle()), (1, 1));
}

#[tokio::test(flavor = "local")]
async fn chunked_and_posted_exchanges_are_reused_too() {
    let bytes = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n";
    let origin = Origin::playing(move |_, mut stream| async move {
        while !until(&mut stream, "0\r\n\r\n").await.is_empty() {
            stream.write_all(bytes.as_bytes()).await.unwrap();
        }
    })
    .await;
    let bed = Bed::to(&[origin.address]);
    for _ in 0..5 {
        let answer = bed.send(post(chunks(&["a", "b"]))).await.unwrap();
        assert_eq!(text(answer).await, "ok");
        settle().await;
    }
    assert_eq!(origin.accepted.get(), 1);
}

#[tokio::test(flavor = "local")]
async fn concurrent_requests_have_separate_connections() {
    let gate = Rc::new(tokio::sync::Semaphore::new(0));
    let origin = Origin::holding_back(&gate).await;
    let bed = Bed::to(&[origin.address]);
    let one = bed.send(get("/")).await.unwrap();
    let two = bed.send(get("/")).await.unwrap();
    assert_eq!(bed.server(0).in_flight(), 2);
    gate.add_permits(2);
    assert_eq!(
        (text(one).await, text(two).await),
        ("ok".into(), "ok".into())
    );
    assert_eq!((origin.accepted.get(), bed.pool.idle()), (2, 2));
    assert_eq!(bed.server(0).in_flight(), 0);
}

#[tokio::test(flavor = "local")]
async fn a_complete_response_frees_its_connection_before_it_is_read() {
    let origin = Origin::answering(OK).await;
    let bed = Bed::to(&[origin.address]);
    let one = bed.send(get("/")).await.unwrap();
    assert_eq!((bed.pool.idle(), bed.server(0).in_flight()), (1, 0));
    let two = bed.send(get("/")).await.unwrap();
    assert_eq!(
        (text(one).await, text(two).await),
        ("ok".into(), "ok".into())
    );
    assert_eq!(origin.accepted.get(), 1);
}

#[tokio::test(flavor = "local")]
async fn a_response_dropped_half_way_closes_its_connection() {
    let (sender, closed) = tokio::sync::oneshot::channel();
    let sender = Cell::new(Some(sender));
    let origin = Origin::playing(move |number, mut stream| {
        let sender = sender.take();
        async move {
            head(&mut stream).await;
            let head = b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n12345";
            stream.write_all(head).await.unwrap();
            if number == 0 {
                assert_eq!(rest(&mut stream).await, "");
                sender.unwrap().send(()).unwrap();
            }
        }
    })
    .await;
    let bed = Bed::to(&[origin.address]);
    let answer = bed.send(get("/")).await.unwrap();
    let mut body = answer.response.into_body();
    body.frame().await.unwrap().unwrap();
    assert_eq!(bed.server(0).in_flight(), 1);
    drop(body);
    closed.await.unwrap();
    assert_eq!((bed.pool.idle(), bed.server(0).in_flight()), (0, 0));
    bed.send(get("/")).await.unwrap();
    assert_eq!(origin.accepted.get(), 2);
}

#[tokio::test(flavor = "local")]
async fn unexpected_bytes_close_an_idle_connection() {
    for pause in [true, false] {
        let origin = Origin::playing(move |number, mut stream| async move {
            head(&mut stream).await;
            stream.write_all(OK.as_bytes()).await.unwrap();
            if number == 0 {
                if pause {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
                let evil = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil";
                let _ = stream.write_all(evil).await;
            }
            rest(&mut stream).await;
        })
        .await;
        let bed = Bed::to(&[origin.address]);
        assert_eq!(bed.get().await.unwrap().1, "ok");
        settle().await;
        assert_eq!(bed.get().await.unwrap().1, "ok");
        assert_eq!(origin.accepted.get(), 2);
    }
}

#[tokio::test(flavor = "local")]
async fn bytes_behind_a_response_never_become_the_next_response() {
    let evil = "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil";
    let origin = Origin::playing(move |_, mut stream| async move {
        head(&mut stream).await;
        let both = format!("{OK}{evil}");
        stream.write_all(both.as_bytes()).await.unwrap();
        rest(&mut stream).await;
    })
    .await;
    let bed = Bed::to(&[origin.address]);
    for _ in 0..5 {
        assert_eq!(bed.get().await.unwrap().1, "ok");
    }
    assert_eq!(origin.accepted.get(), 5);
}

#[tokio::test(flavor = "local")]
async fn a_connection_closed_while_idle_is_skipped() {
    let origin = Origin::closing_after(&[OK, OK, OK]).await;
    let bed = Bed::to(&[origin.address]);
    for _ in 0..3 {
        let answer = bed.send(post(Body::Empty)).await.unwrap();
        assert_eq!(text(answer).await, "ok");
        settle().await;
    }
    assert_eq!(origin.accepted.get(), 3);
}

/// The first connection responds once, reads another head and closes.
async fn closing_on_the_second_request() -> Origin {
    Origin::playing(|number, mut stream| async move {
        head(&mut stream).await;
        stream.write_all(OK.as_bytes()).await.unwrap();
        head(&mut stream).await;
        if number > 0 {
            stream.write_all(OK.as_bytes()).await.unwrap();
            rest(&mut stream).await;
        }
    })
    .await
}

#[tokio::test(flavor = "local")]
async fn a_get_on_a_closing_connection_is_retried() {
    let origin = closing_on_the_second_request().await;
    let bed = Bed::to(&[origin.address]);
    for _ in 0..2 {
        assert_eq!(bed.get().await.unwrap().1, "ok");
    }
    assert_eq!(origin.accepted.get(), 2);
}

#[tokio::test(flavor = "local")]
async fn a_post_that_was_sent_is_not_retried() {
    for body in [Body::Empty, Body::from("hello"), chunks(&["hello"])] {
        let origin = closing_on_the_second_request().await;
        let bed = Bed::to(&[origin.address]);
        assert_eq!(bed.get().await.unwrap().1, "ok");
        let error = bed.send(post(body)).await.err().unwrap();
        assert_eq!((error.reason(), error.status().as_u16()), ("closed", 502));
        assert_eq!(origin.accepted.get(), 1);
    }
}

#[tokio::test(flavor = "local")]
async fn a_put_with_a_body_is_not_retried() {
    let origin = closing_on_the_second_request().await;
    let bed = Bed::to(&[origin.address]);
    assert_eq!(bed.get().await.unwrap().1, "ok");
    let mut request = post(Body::from("hello"));
    *request.method_mut() = http::Method::PUT;
    assert_eq!(bed.send(request).await.err().unwrap().reason(), "closed");
    assert_eq!(origin.accepted.get(), 1);
}

/// The origin server has its own thread: while this thread waits for it, no task here can notice that the
/// connection was closed.
#[tokio::test(flavor = "local")]
async fn an_unsent_post_uses_a_new_connection() {
    use std::io::{Read, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (close, told) = std::sync::mpsc::channel::<()>();
    let (tell, closed) = std::sync::mpsc::channel::<()>();
    let origin = std::thread::spawn(move || {
        let mut first = listener.accept().unwrap().0;
        let mut buffer = [0; 4096];
        assert!(first.read(&mut buffer).unwrap() > 0);
        first.write_all(OK.as_bytes()).unwrap();
        told.recv().unwrap();
        drop(first);
        tell.send(()).unwrap();
        let mut second = listener.accept().unwrap().0;
        let mut said = Vec::new();
        while !said.ends_with(b"0\r\n\r\n") {
            let n = second.read(&mut buffer).unwrap();
            said.extend_from_slice(&buffer[..n]);
        }
        second.write_all(OK.as_bytes()).unwrap();
        said
    });
    let bed = Bed::to(&[address]);
    assert_eq!(bed.get().await.unwrap().1, "ok");
    settle().await;
    close.send(()).unwrap();
    closed.recv().unwrap();
    assert_eq!(bed.pool.idle(), 1);
    let answer = bed.send(post(chunks(&["hello"]))).await.unwrap();
    assert_eq!(text(answer).await, "ok");
    let said = String::from_utf8(origin.join().unwrap()).unwrap();
    assert!(said.ends_with("5\r\nhello\r\n0\r\n\r\n"), "{said}");
}

#[tokio::test(flavor = "local")]
async fn a_new_connection_that_closes_is_an_error() {
    let origin = Origin::closing_after(&["", "HTTP/1.1 200"]).await;
    let mut bed = Bed::to(&[origin.address]);
    bed.upstream.retries = 0;
    assert_eq!(bed.reason().await, "closed");
    assert_eq!(bed.reason().await, "closed");
    assert_eq!((origin.accepted.get(), bed.server(0).in_flight()), (2, 0));
}

#[tokio::test(flavor = "local")]
async fn a_connection_close_of_the_origin_is_respected() {
    let origin =
        Origin::answering("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok")
            .await;
    let bed = Bed::to(&[origin.address]);
    for _ in 0..3 {
        assert_eq!(bed.get().await.unwrap().1, "ok");
    }
    assert_eq!(origin.accepted.get(), 3);
}

#[tokio::test(flavor = "local")]
async fn a_204_that_declares_a_body_closes_its_connection() {
    for field in ["content-length: 2", "transfer-encoding: chunked"] {
        let bytes = format!("HTTP/1.1 204 No Content\r\n{field}\r\n\r\n");
        let origin = Origin::answering(bytes).await;
        let bed = Bed::to(&[origin.address]);
        assert_eq!(bed.get().await.unwrap().0, 204);
        assert_eq!(bed.pool.idle(), 0);
    }
}

#[tokio::test(flavor = "local")]
async fn a_response_before_the_whole_request_closes_the_connection() {
    let (sender, body) = channel();
    let origin = Origin::answering(OK).await;
    let bed = Bed::to(&[origin.address]);
    let answer = bed.send(post(body)).await.unwrap();
    assert_eq!(text(answer).await, "ok");
    assert_eq!((bed.pool.idle(), bed.server(0).in_flight()), (0, 0));
    sender.closed().await;
    assert_eq!(bed.get().await.unwrap().1, "ok");
    assert_eq!(origin.accepted.get(), 2);
}

#[tokio::test(flavor = "local")]
async fn the_number_of_idle_connections_is_limited() {
    let gate = Rc::new(tokio::sync::Semaphore::new(0));
    let origin = Origin::holding_back(&gate).await;
    let mut bed = Bed::to(&[origin.address]);
    for max in [2, 0] {
        bed.upstream.max_idle_per_server = max;
        let mut answers = Vec::new();
        for _ in 0..4 {
            answers.push(bed.send(get("/")).await.unwrap());
        }
        gate.add_permits(4);
        for answer in answers {
            assert_eq!(text(answer).await, "ok");
        }
        assert_eq!(bed.pool.idle(), max);
    }
}

#[tokio::test(flavor = "local")]
async fn idle_connections_expire() {
    let clock = ManualClock::at(Timestamp::from_secs(1_000));
    let origin = Origin::answering(OK).await;
    let bed = Bed::with_clock(&[origin.address], Clock::Manual(clock.clone()));
    assert_eq!(bed.get().await.unwrap().1, "ok");
    clock.advance(Duration::from_secs(59));
    bed.pool.prune();
    assert_eq!(bed.pool.idle(), 1);
    clock.advance(Duration::from_secs(1));
    bed.pool.prune();
    assert_eq!(bed.pool.idle(), 0);
    assert_eq!(bed.get().await.unwrap().1, "ok");
    assert_eq!(origin.accepted.get(), 2);
}

#[tokio::test(flavor = "local")]
async fn the_connection_used_last_is_used_next() {
    let clock = ManualClock::at(Timestamp::from_secs(1_000));
    let gate = Rc::new(tokio::sync::Semaphore::new(0));
    let origin = Origin::holding_back(&gate).await;
    let bed = Bed::with_clock(&[origin.address], Clock::Manual(clock.clone()));
    let answers = (bed.send(get("/")).await, bed.send(get("/")).await);
    gate.add_permits(6);
    text(answers.0.unwrap()).await;
    text(answers.1.unwrap()).await;
    for _ in 0..4 {
        clock.advance(Duration::from_secs(20));
        bed.pool.prune();
        assert_eq!(bed.get().await.unwrap().1, "ok");
    }
    assert_eq!((origin.accepted.get(), bed.pool.idle()), (2, 1));
}

#[tokio::test(flavor = "local")]
async fn pruning_removes_connections_closed_by_the_origin() {
    let origin = Origin::closing_after(&[OK]).await;
    let bed = Bed::to(&[origin.address]);
    assert_eq!(bed.get().await.unwrap().1, "ok");
    settle().await;
    bed.pool.prune();
    assert_eq!(bed.pool.idle(), 0);
}

#[tokio::test(flavor = "local")]
async fn the_connections_of_a_removed_server_are_closed() {
    let gate = Rc::new(tokio::sync::Semaphore::new(1));
    let origin = Origin::holding_back(&gate).await;
    let bed = Bed::to(&[origin.address]);
    assert_eq!(bed.get().await.unwrap().1, "ok");
    bed.pool.retain(&bed.upstream.servers());
    assert_eq!(bed.pool.idle(), 1);
    let late = bed.send(get("/")).await.unwrap();
    bed.pool.retain(&[]);
    gate.add_permits(1);
    assert_eq!(text(late).await, "ok");
    assert_eq!(bed.pool.idle(), 0);
}

#[tokio::test(flavor = "local")]
async fn a_client_disconnect_closes_the_connection() {
    let (sender, closed) = tokio::sync::oneshot::channel();
    let sender = Cell::new(Some(sender));
    let origin = Origin::playing(move |_, mut stream| {
        let sender = sender.take().unwrap();
        async move {
            head(&mut stream).await;
            assert_eq!(rest(&mut stream).await, "");
            sender.send(()).unwrap();
        }
    })
    .await;
    let bed = Bed::to(&[origin.address]);
    let waiting = tokio::time::timeout(Duration::from_millis(50), bed.send(get("/"))).await;
    assert!(waiting.is_err());
    closed.await.unwrap();
    assert_eq!((bed.pool.idle(), bed.server(0).in_flight()), (0, 0));
}
