//! WebSockets.

use super::*;

const SWITCH: &str = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n\
     Upgrade: WebSocket\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";

fn handshake() -> Request<Body> {
    let mut request = get("/chat");
    for (name, value) in [("connection", "upgrade"), ("upgrade", "websocket")] {
        request.headers_mut().insert(name, value.parse().unwrap());
    }
    request
}

#[tokio::test(flavor = "local")]
async fn bytes_flow_in_both_directions_after_a_101() {
    let origin = Origin::playing(|_, mut stream| async move {
        let head = head(&mut stream).await;
        assert!(head.contains("upgrade: websocket\r\n"), "{head}");
        let early = format!("{SWITCH}early ");
        stream.write_all(early.as_bytes()).await.unwrap();
        let (mut read, mut write) = stream.split();
        tokio::io::copy(&mut read, &mut write).await.unwrap();
    })
    .await;
    let bed = Bed::to(&[origin.address]);
    let answer = bed.send(handshake()).await.unwrap();
    assert_eq!(answer.response.status(), 101);
    assert_eq!(answer.response.headers()["connection"], "upgrade");
    assert_eq!(answer.response.headers()["upgrade"], "websocket");
    assert!(
        answer
            .response
            .headers()
            .contains_key("sec-websocket-accept")
    );

    let mut tunnel = answer.upgraded.unwrap();
    assert_eq!(bed.server(0).in_flight(), 1);
    tunnel.io.write_all(b"and echo").await.unwrap();
    tunnel.io.shutdown().await.unwrap();
    let mut all = String::new();
    tunnel.io.read_to_string(&mut all).await.unwrap();
    assert_eq!(all, "early and echo");
    drop(tunnel);
    assert_eq!((bed.pool.idle(), bed.server(0).in_flight()), (0, 0));
}

#[tokio::test(flavor = "local")]
async fn an_origin_may_decline() {
    let origin = Origin::answering(OK).await;
    let bed = Bed::to(&[origin.address]);
    let answer = bed.send(handshake()).await.unwrap();
    assert!(answer.upgraded.is_none());
    assert_eq!(text(answer).await, "ok");
    assert_eq!(bed.pool.idle(), 1);
}

#[tokio::test(flavor = "local")]
async fn another_protocol_is_refused() {
    for bytes in [
        "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\n\r\n",
    ] {
        let origin = Origin::answering(bytes).await;
        let bed = Bed::to(&[origin.address]);
        let error = bed.send(handshake()).await.err();
        assert_eq!(error.unwrap().reason(), "bad_response");
    }
}
