//! Responses that arrive before the request has ended, and large responses.

use super::*;

const EARLY: &str = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nearly\r\n";

#[tokio::test(flavor = "local")]
async fn a_request_body_continues_while_its_response_arrives() {
    let origin = Origin::playing(|_, mut stream| async move {
        head(&mut stream).await;
        stream.write_all(EARLY.as_bytes()).await.unwrap();
        let body = until(&mut stream, "0\r\n\r\n").await;
        let rest = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
        stream.write_all(rest.as_bytes()).await.unwrap();
        assert_eq!(until(&mut stream, "\r\n\r\n").await.get(..4), Some("GET "));
        stream.write_all(OK.as_bytes()).await.unwrap();
    })
    .await;
    let bed = Bed::to(&[origin.address]);
    let (sender, body) = channel();
    let mut body = bed.send(post(body)).await.unwrap().response.into_body();
    let first = body.frame().await.unwrap().unwrap();
    assert_eq!(first.into_data().unwrap(), "early");
    tokio::task::spawn_local(async move {
        for text in ["one", "two"] {
            let frame = Frame::data(Bytes::from_static(text.as_bytes()));
            sender.send(Ok(frame)).await.unwrap();
        }
    });
    let rest = body.collect().await.unwrap().to_bytes();
    assert_eq!(rest, "3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n");
    assert_eq!(bed.pool.idle(), 1);
    assert_eq!(bed.get().await.unwrap().1, "ok");
    assert_eq!(origin.accepted.get(), 1);
}

#[tokio::test(flavor = "local")]
async fn an_aborted_request_body_aborts_its_response() {
    let origin = Origin::playing(|_, mut stream| async move {
        head(&mut stream).await;
        stream.write_all(EARLY.as_bytes()).await.unwrap();
        rest(&mut stream).await;
    })
    .await;
    let bed = Bed::to(&[origin.address]);
    let (sender, body) = channel();
    let mut body = bed.send(post(body)).await.unwrap().response.into_body();
    body.frame().await.unwrap().unwrap();
    sender
        .send(Err(std::io::Error::other("gone")))
        .await
        .unwrap();
    let error = body.frame().await.unwrap().err().unwrap();
    let error = error
        .downcast_ref::<crate::upstream::UpstreamError>()
        .unwrap();
    assert!(error.is_bad_request(), "the client is to blame");
    assert_eq!(error.to_string(), "the request body ended early: gone");
    assert!(body.frame().await.is_none());
    assert_eq!((bed.pool.idle(), bed.server(0).in_flight()), (0, 0));
}

/// An origin server refuses a body without reading it, and keeps the connection or closes it. Its response
/// must not be lost because nothing more can be sent.
#[tokio::test(flavor = "local")]
async fn a_refusal_is_delivered_while_the_body_is_blocked() {
    for close in [false, true] {
        let origin = Origin::playing(move |_, mut stream| async move {
            head(&mut stream).await;
            stream.readable().await.unwrap();
            let refusal = "HTTP/1.1 413 Too Large\r\ncontent-length: 2\r\n\r\nno";
            stream.write_all(refusal.as_bytes()).await.unwrap();
            if !close {
                std::future::pending::<()>().await;
            }
        })
        .await;
        let bed = Bed::to(&[origin.address]);
        let (sender, body) = channel();
        tokio::task::spawn_local(async move {
            let chunk = Bytes::from(vec![0; 64 * 1024]);
            while sender.send(Ok(Frame::data(chunk.clone()))).await.is_ok() {}
        });
        let answer = bed.send(post(body)).await.unwrap();
        assert_eq!(answer.response.status(), 413);
        assert_eq!(text(answer).await, "no");
        assert_eq!((bed.pool.idle(), bed.server(0).in_flight()), (0, 0));
    }
}

#[tokio::test(flavor = "local")]
async fn large_responses_arrive_complete_in_any_framing() {
    let size: usize = 3 * 1024 * 1024 + 17;
    for framing in ["length", "chunks", "close"] {
        let origin = Origin::playing(move |_, mut stream| async move {
            let data: Vec<_> = (0..size).map(|i| (i % 251) as u8).collect();
            while !head(&mut stream).await.is_empty() {
                let head = match framing {
                    "length" => format!("content-length: {size}\r\n\r\n"),
                    "chunks" => "transfer-encoding: chunked\r\n\r\n".to_owned(),
                    _ => "\r\n".to_owned(),
                };
                let head = format!("HTTP/1.1 200 OK\r\n{head}");
                stream.write_all(head.as_bytes()).await.unwrap();
                for piece in data.chunks(99_991) {
                    if framing == "chunks" {
                        let size = format!("{:x}\r\n", piece.len());
                        stream.write_all(size.as_bytes()).await.unwrap();
                    }
                    stream.write_all(piece).await.unwrap();
                    if framing == "chunks" {
                        stream.write_all(b"\r\n").await.unwrap();
                    }
                }
                match framing {
                    "length" => {}
                    "chunks" => stream.write_all(b"0\r\n\r\n").await.unwrap(),
                    _ => return,
                }
            }
        })
        .await;
        let bed = Bed::to(&[origin.address]);
        for _ in 0..2 {
            let answer = bed.send(get("/")).await.unwrap();
            let body = answer.response.into_body().collect().await.unwrap();
            let body = body.to_bytes();
            assert_eq!(body.len(), size);
            assert!(body.iter().enumerate().all(|(i, &b)| b == (i % 251) as u8));
        }
        let connections = if framing == "close" { 2 } else { 1 };
        assert_eq!(origin.accepted.get(), connections, "{framing}");
    }
}

#[tokio::test(flavor = "local")]
async fn a_head_may_arrive_byte_by_byte() {
    let origin = Origin::playing(|_, mut stream| async move {
        head(&mut stream).await;
        let bytes = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nx: y\r\n\
                     transfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nx-sum: 7\r\n\r\n";
        for byte in bytes.bytes() {
            stream.write_all(&[byte]).await.unwrap();
            tokio::task::yield_now().await;
        }
        rest(&mut stream).await;
    })
    .await;
    let bed = Bed::to(&[origin.address]);
    let answer = bed.send(get("/")).await.unwrap();
    assert_eq!(answer.response.headers()["x"], "y");
    let (data, trailers) = data_and_trailers(answer).await;
    assert_eq!((data.as_str(), trailers.len()), ("ok", 1));
    assert_eq!(bed.pool.idle(), 1);
}

#[tokio::test(flavor = "local")]
async fn the_number_of_informational_responses_is_limited() {
    for (n, reason) in [(16, ""), (17, "bad_response")] {
        let bytes = format!("{}{OK}", "HTTP/1.1 102 Processing\r\n\r\n".repeat(n));
        let origin = Origin::answering(bytes).await;
        let bed = Bed::to(&[origin.address]);
        assert_eq!(bed.reason().await, reason, "{n}");
    }
}
