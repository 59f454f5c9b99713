//! Bodies: streamed with back-pressure, never padded, never cut without an error.

use super::*;

const MIB: usize = 1024 * 1024;
const CHUNK: usize = 64 * 1024;

/// More than the sockets' and the codec's buffers hold, far less than 64 MiB.
const BUFFERED: usize = 24 * MIB;

/// A declared length, and a body of another length.
fn declared(length: u64, chunks_of_it: &[&'static str]) -> Request<Body> {
    let mut request = post(chunks(chunks_of_it));
    request
        .headers_mut()
        .insert("content-length", length.into());
    request
}

#[tokio::test(flavor = "local")]
async fn a_body_that_differs_from_its_declared_length_closes_the_connection() {
    for (length, parts, longest) in [
        (5, &["hel"][..], "hel"),
        (5, &["hel", "l"][..], "hell"),
        (5, &[][..], ""),
        (5, &["hello!"][..], ""),
        (5, &["hel", "lo!"][..], "hel"),
        (5, &["hello", "!"][..], ""),
    ] {
        let (sender, seen) = tokio::sync::oneshot::channel();
        let sender = Cell::new(Some(sender));
        let origin = Origin::playing(move |_, mut stream| {
            let sender = sender.take().unwrap();
            async move {
                sender.send(rest(&mut stream).await).unwrap();
            }
        })
        .await;
        let bed = Bed::to(&[origin.address]);
        let error = bed.send(declared(length, parts)).await.err().unwrap();
        assert_eq!(
            (error.reason(), error.status().as_u16()),
            ("request_body", 400)
        );
        assert!(error.is_bad_request());
        let seen = seen.await.unwrap();
        let body = seen.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        assert!(longest.starts_with(body), "{length} {parts:?}: {seen:?}");
        assert_eq!((bed.pool.idle(), bed.server(0).in_flight()), (0, 0));
    }
}

#[tokio::test(flavor = "local")]
async fn a_declared_but_missing_body_is_not_sent() {
    for (name, value) in [
        ("content-length", "5"),
        ("content-length", "+0"),
        ("content-length", ""),
        ("content-length", "0, 0"),
    ] {
        let origin = Origin::answering(OK).await;
        let bed = Bed::to(&[origin.address]);
        let mut request = post(Body::Empty);
        request.headers_mut().insert(name, value.parse().unwrap());
        let error = bed.send(request).await.err().unwrap();
        assert_eq!(error.reason(), "request_body");
        assert_eq!(origin.accepted.get(), 0);
    }
}

#[tokio::test(flavor = "local")]
async fn a_body_declared_as_empty_is_not_awaited() {
    let origin = Origin::answering(OK).await;
    let bed = Bed::to(&[origin.address]);
    for parts in [&[][..], &["!"][..]] {
        let answer = bed.send(declared(0, parts)).await.unwrap();
        assert_eq!(text(answer).await, "ok");
    }
    assert_eq!((origin.accepted.get(), bed.pool.idle()), (1, 1));
}

#[tokio::test(flavor = "local")]
async fn a_client_disconnect_closes_the_upstream_connection() {
    let (sender, seen) = tokio::sync::oneshot::channel();
    let sender = Cell::new(Some(sender));
    let origin = Origin::playing(move |_, mut stream| {
        let sender = sender.take().unwrap();
        async move {
            sender.send(rest(&mut stream).await).unwrap();
        }
    })
    .await;
    let bed = Bed::to(&[origin.address]);
    let (feed, body) = channel();
    tokio::task::spawn_local(async move {
        let frame = Frame::data(Bytes::from_static(b"hello"));
        feed.send(Ok(frame)).await.unwrap();
        feed.send(Err(std::io::Error::other("gone"))).await.unwrap();
    });
    let error = bed.send(post(body)).await.err().unwrap();
    assert_eq!(error.reason(), "request_body");
    let mut chain: &dyn std::error::Error = &error;
    while let Some(source) = chain.source() {
        chain = source;
    }
    assert_eq!(chain.to_string(), "gone");
    assert!(!seen.await.unwrap().ends_with("0\r\n\r\n"));
}

#[tokio::test(flavor = "local")]
async fn a_truncated_response_is_an_error() {
    for bytes in [
        "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhel",
        "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhel",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nx: y\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nx\r\nhello\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nhello\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
    ] {
        let origin = Origin::playing(move |_, mut stream| async move {
            head(&mut stream).await;
            stream.write_all(bytes.as_bytes()).await.unwrap();
        })
        .await;
        let bed = Bed::to(&[origin.address]);
        let answer = bed.send(get("/")).await.unwrap();
        let body = answer.response.into_body().collect().await;
        assert!(body.is_err(), "{bytes:?}");
        assert_eq!((bed.pool.idle(), bed.server(0).in_flight()), (0, 0));
    }
}

#[tokio::test(flavor = "local")]
async fn a_reset_does_not_end_a_response_normally() {
    let origin = Origin::playing(|_, mut stream| async move {
        head(&mut stream).await;
        let head = b"HTTP/1.1 200 OK\r\n\r\nhello";
        stream.write_all(head).await.unwrap();
        settle().await;
        let socket = socket2::SockRef::from(&stream);
        socket.set_linger(Some(Duration::ZERO)).unwrap();
    })
    .await;
    let bed = Bed::to(&[origin.address]);
    let answer = bed.send(get("/")).await.unwrap();
    assert!(answer.response.into_body().collect().await.is_err());
}

#[tokio::test(flavor = "local")]
async fn a_response_without_a_length_ends_with_its_connection() {
    let origin = Origin::closing_after(&["HTTP/1.1 200 OK\r\n\r\nhello"]).await;
    let bed = Bed::to(&[origin.address]);
    assert_eq!(bed.get().await.unwrap().1, "hello");
    settle().await;
    bed.pool.prune();
    assert_eq!(bed.pool.idle(), 0);
}

/// An origin server based on hyper that sends every body back as it arrives.
async fn echo() -> Origin {
    Origin::playing(|_, stream| async move {
        let service = hyper::service::service_fn(|request: Request<hyper::body::Incoming>| async {
            Ok::<_, hyper::Error>(http::Response::new(request.into_body()))
        });
        let io = hyper_util::rt::TokioIo::new(stream);
        let server = hyper::server::conn::http1::Builder::new();
        let _ = server.serve_connection(io, service).await;
    })
    .await
}

#[tokio::test(flavor = "local")]
async fn large_bodies_stream_in_both_directions_at_once() {
    let origin = echo().await;
    let bed = Bed::to(&[origin.address]);
    for length in [None, Some(64 * MIB as u64)] {
        let (sender, body) = channel();
        tokio::task::spawn_local(async move {
            for n in 0..64 * MIB / CHUNK {
                let chunk = Bytes::from(vec![n as u8; CHUNK]);
                sender.send(Ok(Frame::data(chunk))).await.unwrap();
            }
        });
        let mut request = post(body);
        if let Some(length) = length {
            request
                .headers_mut()
                .insert("content-length", length.into());
        }
        let mut body = bed.send(request).await.unwrap().response.into_body();
        let mut read = 0;
        while let Some(frame) = body.frame().await {
            let mut data = frame.unwrap().into_data().unwrap();
            while !data.is_empty() {
                let piece = data.split_to(data.len().min(CHUNK - read % CHUNK));
                assert!(
                    piece == vec![(read / CHUNK) as u8; piece.len()],
                    "at {read}"
                );
                read += piece.len();
            }
        }
        assert_eq!(read, 64 * MIB);
        settle().await;
    }
    assert_eq!((origin.accepted.get(), bed.server(0).in_flight()), (1, 0));
}

/// Waits until a count no longer changes.
async fn standstill(count: &Cell<usize>) -> usize {
    loop {
        let before = count.get();
        tokio::time::sleep(Duration::from_millis(100)).await;
        if count.get() == before && before > 0 {
            return before;
        }
    }
}

#[tokio::test(flavor = "local")]
async fn a_slow_client_applies_backpressure_to_the_origin() {
    let written = Rc::new(Cell::new(0));
    let count = Rc::clone(&written);
    let origin = Origin::playing(move |_, mut stream| {
        let count = Rc::clone(&count);
        async move {
            head(&mut stream).await;
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", 64 * MIB);
            stream.write_all(head.as_bytes()).await.unwrap();
            let chunk = vec![b'x'; CHUNK];
            while count.get() < 64 * MIB {
                stream.write_all(&chunk).await.unwrap();
                count.set(count.get() + CHUNK);
            }
        }
    })
    .await;
    let bed = Bed::to(&[origin.address]);
    let answer = bed.send(get("/")).await.unwrap();
    let stalled = standstill(&written).await;
    assert!(stalled < BUFFERED, "{stalled} bytes without a reader");
    let body = answer.response.into_body().collect().await.unwrap();
    assert_eq!(body.to_bytes().len(), 64 * MIB);
}

#[tokio::test(flavor = "local")]
async fn a_slow_origin_applies_backpressure_to_the_client() {
    let go = Rc::new(tokio::sync::Notify::new());
    let wait = Rc::clone(&go);
    let origin = Origin::playing(move |_, mut stream| {
        let wait = Rc::clone(&wait);
        async move {
            head(&mut stream).await;
            wait.notified().await;
            let mut body = vec![0; 64 * MIB];
            stream.read_exact(&mut body).await.unwrap();
            stream.write_all(OK.as_bytes()).await.unwrap();
        }
    })
    .await;
    let bed = Bed::to(&[origin.address]);
    let sent = Rc::new(Cell::new(0));
    let count = Rc::clone(&sent);
    let (sender, body) = channel();
    tokio::task::spawn_local(async move {
        let chunk = Bytes::from(vec![b'x'; CHUNK]);
        while count.get() < 64 * MIB {
            sender.send(Ok(Frame::data(chunk.clone()))).await.unwrap();
            count.set(count.get() + CHUNK);
        }
    });
    let mut request = post(body);
    let length = 64 * MIB as u64;
    request
        .headers_mut()
        .insert("content-length", length.into());
    let reader = async {
        let stalled = standstill(&sent).await;
        go.notify_one();
        stalled
    };
    let (answer, stalled) = tokio::join!(bed.send(request), reader);
    assert!(stalled < BUFFERED, "{stalled} bytes without a reader");
    assert_eq!(text(answer.unwrap()).await, "ok");
    assert_eq!(sent.get(), 64 * MIB);
}
