//! An answer that an origin cuts short never looks whole to a client, whatever the two speak.

use std::io::Write;
use std::net::Shutdown;
use std::sync::Arc;

use bytes::Bytes;
use rustls::{ServerConnection, StreamOwned};

use super::before;
use crate::harness::{Authority, Origin, Running, Stage, Wire, next_frame, run};

/// An origin that answers its first request with these bytes and closes.
fn closing(answer: &'static [u8]) -> Origin {
    Origin::scripted(move |stream| {
        let mut wire = Wire::new(stream);
        wire.try_head();
        let _ = wire.try_send(answer);
    })
}

/// The same behind TLS, without the alert that says it is the end.
fn cutting_tls(answer: &'static [u8]) -> Origin {
    let config = Authority::new().server("127.0.0.1", &["http/1.1"]);
    Origin::scripted(move |tcp| {
        let tls = ServerConnection::new(Arc::clone(&config)).unwrap();
        let raw = tcp.try_clone().unwrap();
        let mut wire = Wire::new(StreamOwned::new(tls, tcp));
        wire.try_head();
        wire.send(answer);
        let _ = raw.shutdown(Shutdown::Write);
        wire.rest();
    })
}

/// Begins an answer over HTTP/2, with or without a length, and resets it.
fn resetting(length: Option<&'static str>, reason: h2::Reason) -> Origin {
    Stage::default().play(move |mut call| async move {
        let length = length.map(|length| ("content-length", length));
        let mut stream = call.head(200, length.as_slice(), false);
        let sent = Bytes::from_static(b"only this");
        stream.send_data(sent, false).unwrap();
        // The reset must not overtake the data.
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        stream.send_reset(reason);
    })
}

/// Begins an answer over HTTP/2 and takes the connection away.
fn vanishing() -> Origin {
    Origin::scripted(|mut stream| {
        let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
        // HEADERS with `:status: 200`, then DATA, neither the last of its stream.
        let head = [0, 0, 1, 1, 4, 0, 0, 0, 1, 0x88];
        let data = b"\0\0\x09\0\0\0\0\0\x01only this";
        let mut wire = Wire::new(stream.try_clone().unwrap());
        wire.exactly(24);
        stream.write_all(&settings).unwrap();
        // Until its head has come.
        while next_frame(&mut wire).is_some_and(|(kind, ..)| kind != 1) {}
        stream.write_all(&head).unwrap();
        stream.write_all(data).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        wire.rest();
    })
}

#[track_caller]
fn is_cut(gateway: &Running, case: &str) {
    for client in [gateway.client(), gateway.tls_client()] {
        let all = client.raw(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n");
        let text = String::from_utf8_lossy(&all).to_ascii_lowercase();
        assert!(text.starts_with("http/1.1 200"), "{case}: {text}");
        assert!(text.contains("only this"), "{case}: {text}");
        let chunked = text.contains("transfer-encoding: chunked");
        let whole = text.ends_with("0\r\n\r\n");
        assert!(
            chunked || text.contains("content-length: 100"),
            "{case}: {text}"
        );
        assert!(!chunked || !whole, "{case}: {text}");
        run(async {
            let mut talk = client.talk().await;
            let told = talk.send(talk.request("GET", "/")).await;
            assert_eq!(
                (told.status, told.text().as_str()),
                (200, "only this"),
                "{case}"
            );
            assert!(told.error.is_some(), "{case}: a clean end");
        });
    }
}

#[test]
fn a_truncated_response_is_truncated_for_the_client_over_http1() {
    let length = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nonly this";
    let chunked = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n9\r\nonly this\r\n";
    is_cut(&before(closing(length), ""), "a length");
    is_cut(&before(closing(chunked), ""), "chunks");
    let tls = "tls = { verify = false }";
    is_cut(&before(cutting_tls(length), tls), "a length, TLS");
    is_cut(&before(cutting_tls(chunked), tls), "chunks, TLS");
    let open = b"HTTP/1.1 200 OK\r\n\r\nonly this";
    is_cut(&before(cutting_tls(open), tls), "no length, TLS");
}

#[test]
fn a_truncated_response_is_truncated_for_the_client_over_http2() {
    let h2 = r#"protocol = "h2""#;
    for reason in [
        h2::Reason::INTERNAL_ERROR,
        h2::Reason::CANCEL,
        h2::Reason::NO_ERROR,
        h2::Reason::REFUSED_STREAM,
    ] {
        for length in [None, Some("100")] {
            let case = format!("{reason:?} {length:?}");
            is_cut(&before(resetting(length, reason), h2), &case);
        }
    }
    is_cut(&before(vanishing(), h2), "the connection is gone");
}
