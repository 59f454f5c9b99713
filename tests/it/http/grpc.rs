//! gRPC through the gateway: messages in both directions, and a status in trailers.

use bytes::Bytes;
use http::HeaderMap;

use super::before;
use crate::harness::{Call, Stage, Told, fields, run};

const H2: &str = r#"protocol = "h2""#;

/// A gRPC server: `/unary` answers a message with itself, `/chat` each message, `/fail` with a
/// status alone.
async fn serve(mut call: Call) {
    assert_eq!(call.header("te"), "trailers");
    assert_eq!(call.header("content-type"), "application/grpc");
    assert_eq!(call.header("grpc-timeout"), "1S");
    let grpc = ("content-type", "application/grpc");
    let status = |code| fields(&[("grpc-status", code), ("grpc-message", "as asked")]);
    match call.request.uri().path() {
        "/unary" => {
            let (message, _) = call.body().await;
            let mut stream = call.head(200, &[grpc], false);
            stream.send_data(message.into(), false).unwrap();
            stream.send_trailers(status("0")).unwrap();
        }
        "/chat" => {
            let mut stream = call.head(200, &[grpc], false);
            let messages = call.request.body_mut();
            while let Some(message) = messages.data().await {
                let message = message.unwrap();
                let room = messages.flow_control();
                room.release_capacity(message.len()).unwrap();
                stream.send_data(message, false).unwrap();
            }
            stream.send_trailers(status("0")).unwrap();
        }
        _ => {
            call.head(
                200,
                &[grpc, ("grpc-status", "5"), ("grpc-message", "nothing here")],
                true,
            );
        }
    }
}

fn message(talk: &crate::harness::Talk, path: &str) -> http::request::Builder {
    talk.request("POST", path)
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .header("grpc-timeout", "1S")
}

#[test]
fn a_unary_call_is_forwarded() {
    let gateway = before(Stage::default().play(serve), H2);
    run(async {
        for client in [gateway.client(), gateway.tls_client()] {
            let mut talk = client.talk().await;
            let frame: &[&[u8]] = &[b"\0\0\0\0\x05hello"];
            let told = talk
                .send_all(message(&talk, "/unary"), frame, HeaderMap::new())
                .await;
            assert_eq!((told.status, told.body.as_slice()), (200, frame[0]));
            let status = fields(&[("grpc-status", "0"), ("grpc-message", "as asked")]);
            assert_eq!(told.trailers, status);
        }
    });
}

#[test]
fn bidirectional_messages_are_forwarded() {
    let gateway = before(Stage::default().play(serve), H2);
    run(async {
        let mut talk = gateway.client().talk().await;
        let (answer, mut stream) = talk.open(message(&talk, "/chat"), false).await;
        let (head, mut body) = answer.await.unwrap().into_parts();
        assert_eq!(head.status, 200);
        for number in 0..50u8 {
            let sent = Bytes::copy_from_slice(&[0, 0, 0, 0, 1, number]);
            stream.send_data(sent.clone(), false).unwrap();
            // The next is sent only when this one came back.
            let got = body.data().await.unwrap().unwrap();
            body.flow_control().release_capacity(got.len()).unwrap();
            assert_eq!(got, sent);
        }
        stream.send_data(Bytes::new(), true).unwrap();
        assert!(body.data().await.is_none());
        let trailers = body.trailers().await.unwrap().unwrap();
        assert_eq!(trailers["grpc-status"], "0");
    });
}

/// Many times what any window on the way holds, both ways at once.
#[test]
fn more_data_than_the_windows_hold_is_forwarded() {
    const MESSAGE: usize = 1 << 20;
    const MESSAGES: usize = 12;
    let gateway = before(Stage::default().play(serve), H2);
    for client in [gateway.client(), gateway.tls_client()] {
        run(async {
            let mut talk = client.talk().await;
            let (answer, mut stream) = talk.open(message(&talk, "/chat"), false).await;
            let mut sent = Vec::new();
            for number in 0..MESSAGES {
                let mut part = vec![0, 0, 0x10, 0, 0];
                part.extend((0..MESSAGE).map(|byte| (byte % 251 + number) as u8));
                sent.extend_from_slice(&part);
                stream
                    .send_data(part.into(), number + 1 == MESSAGES)
                    .unwrap();
            }
            let told = Told::hear(answer).await;
            assert!(told.error.is_none(), "{:?}", told.error);
            assert!(told.body == sent, "{} of {}", told.body.len(), sent.len());
            assert_eq!(told.trailers["grpc-status"], "0");
        });
    }
}

#[test]
fn a_trailers_only_response_is_forwarded() {
    let gateway = before(Stage::default().play(serve), H2);
    run(async {
        let mut talk = gateway.client().talk().await;
        let told = talk
            .send_all(message(&talk, "/fail"), &[b"\0\0\0\0\0"], HeaderMap::new())
            .await;
        assert_eq!(told.headers["grpc-status"], "5");
        assert_eq!(told.headers["grpc-message"], "nothing here");
        assert!(told.body.is_empty() && told.trailers.is_empty());
        assert!(told.error.is_none(), "{:?}", told.error);
    });
}

#[test]
fn a_cancelled_call_is_reset_for_the_origin() {
    let (tell, told) = std::sync::mpsc::channel();
    let origin = Stage::default().play(move |mut call| {
        let tell = tell.clone();
        async move {
            let mut stream = call.head(200, &[], false);
            let reason = std::future::poll_fn(|cx| stream.poll_reset(cx)).await;
            tell.send(reason.unwrap()).unwrap();
        }
    });
    let gateway = before(origin, H2);
    run(async {
        let mut talk = gateway.client().talk().await;
        let (answer, mut stream) = talk.open(message(&talk, "/"), false).await;
        let answer = answer.await.unwrap();
        stream.send_reset(h2::Reason::CANCEL);
        drop(answer);
        let mut talk = gateway.client().talk().await;
        let (answer, _stream) = talk.open(message(&talk, "/"), false).await;
        drop(answer.await.unwrap());
        drop(_stream);
        tokio::task::spawn_blocking(move || {
            for _ in 0..2 {
                assert_eq!(told.recv().unwrap(), h2::Reason::CANCEL);
            }
        })
        .await
        .unwrap();
    });
}
