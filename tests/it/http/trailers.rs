//! Trailers, in both directions and between versions: RFC 9110, section 6.5.

use std::sync::mpsc::{self, Receiver};

use http::HeaderMap;

use super::{answering, config};
use crate::harness::{Call, Origin, Running, Stage, Wire, fields, run};

/// An answer with fields behind its body, some of which belong into a head.
const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\
    trailer: x-sum, content-length, set-cookie\r\n\r\n\
    3\r\nabc\r\n0\r\nx-sum: 7\r\nx-other: 8\r\ncontent-length: 9\r\nset-cookie: a=b\r\n\
    transfer-encoding: chunked\r\nx-request-id: mine\r\n\r\n";

/// An origin that tells what came with each chunked request, trailers too.
fn telling() -> (Origin, Receiver<String>) {
    let (tell, told) = mpsc::channel();
    let origin = Origin::scripted(move |stream| {
        let mut wire = Wire::new(stream);
        while let Some(mut all) = wire.try_head() {
            // The last chunk and the trailers end as a head does.
            all.extend(wire.try_head().unwrap());
            let text = String::from_utf8(all).unwrap();
            tell.send(text.to_ascii_lowercase()).unwrap();
            wire.send(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
        }
    });
    (origin, told)
}

#[test]
fn an_http2_client_gets_the_trailers_of_an_http1_response() {
    let gateway = Running::with_origin(answering(ANSWER), "");
    run(async {
        for client in [gateway.client(), gateway.tls_client()] {
            let mut talk = client.talk().await;
            let told = talk.send(talk.request("GET", "/")).await;
            assert_eq!((told.status, told.text().as_str()), (200, "abc"));
            let expected = fields(&[("x-sum", "7"), ("x-other", "8")]);
            assert_eq!(told.trailers, expected);
        }
    });
}

#[test]
fn an_http1_client_that_accepts_trailers_gets_the_announced_ones() {
    let gateway = Running::with_origin(answering(ANSWER), "");
    let mut wire = gateway.client().connect();
    wire.send(b"GET / HTTP/1.1\r\nhost: a\r\nte: trailers\r\nconnection: te\r\n\r\n");
    wire.head();
    let rest = String::from_utf8(wire.head()).unwrap();
    assert!(rest.ends_with("\r\n0\r\nx-sum: 7\r\n\r\n"), "{rest}");
    // The connection goes on, and one who does not ask gets none.
    wire.send(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n");
    wire.head();
    let rest = String::from_utf8(wire.head()).unwrap();
    assert!(rest.ends_with("\r\n0\r\n\r\n"), "{rest}");
    assert!(!rest.contains("x-sum"), "{rest}");
}

#[test]
fn an_http1_origin_gets_the_announced_trailers_of_an_http2_request() {
    let (origin, told) = telling();
    let gateway = Running::with_origin(origin, "");
    run(async {
        let mut talk = gateway.client().talk().await;
        let request = talk
            .request("POST", "/")
            .header("trailer", "x-sum, authorization, host")
            .header("te", "trailers");
        let trailers = fields(&[
            ("x-sum", "7"),
            ("x-unannounced", "8"),
            ("authorization", "Bearer x"),
            ("host", "elsewhere"),
        ]);
        let answer = talk.send_all(request, &[b"abc"], trailers).await;
        assert_eq!(answer.text(), "ok");
    });
    let seen = told.recv().unwrap();
    assert!(seen.contains("te: trailers\r\n"), "{seen}");
    assert!(seen.ends_with("\r\n0\r\nx-sum: 7\r\n\r\n"), "{seen}");
}

#[test]
fn forbidden_trailers_do_not_change_a_request() {
    let (origin, told) = telling();
    let gateway = Running::with_origin(origin, "");
    run(async {
        let mut talk = gateway.client().talk().await;
        let trailers = fields(&[("x-real-ip", "203.0.113.7"), ("x-forwarded-for", "1.2.3.4")]);
        let request = talk
            .request("POST", "/")
            .header("trailer", "x-real-ip, x-forwarded-for");
        let answer = talk.send_all(request, &[b"abc"], trailers).await;
        assert_eq!((answer.status, answer.trailers), (200, HeaderMap::new()));
    });
    let seen = told.recv().unwrap();
    assert!(seen.ends_with("\r\n3\r\nabc\r\n0\r\n\r\n"), "{seen}");
}

/// What a route changes in heads: `x-sum` and `x-other`, both ways.
const CHANGES: &str = "request_headers = { set = { \"x-sum\" = \"own\" }, remove = [\"x-other\"] }\n\
                       response_headers = { set = { \"x-sum\" = \"own\" }, remove = [\"x-other\"] }\n";

#[test]
fn headers_edited_by_a_route_are_removed_from_response_trailers() {
    let gateway = Running::with_origin(answering(ANSWER), CHANGES);
    run(async {
        let mut talk = gateway.client().talk().await;
        let told = talk.send(talk.request("GET", "/")).await;
        assert_eq!((told.status, told.text().as_str()), (200, "abc"));
        assert_eq!(told.headers["x-sum"], "own");
        assert_eq!(told.trailers, HeaderMap::new());
    });
    let mut wire = gateway.client().connect();
    for _ in 0..2 {
        wire.send(b"GET / HTTP/1.1\r\nhost: a\r\nte: trailers\r\nconnection: te\r\n\r\n");
        wire.head();
        let rest = String::from_utf8(wire.head()).unwrap();
        assert!(rest.ends_with("abc\r\n0\r\n\r\n"), "{rest}");
    }
}

#[test]
fn headers_edited_by_a_route_are_removed_from_request_trailers() {
    let (origin, told) = telling();
    let gateway = Running::with_origin(origin, CHANGES);
    let names = "x-sum, x-other, x-third";
    let sent = fields(&[("x-sum", "7"), ("x-other", "8"), ("x-third", "9")]);
    run(async {
        let mut talk = gateway.client().talk().await;
        let request = talk.request("POST", "/").header("trailer", names);
        talk.send_all(request, &[b"abc"], sent).await;
    });
    let seen = told.recv().unwrap();
    assert!(seen.contains("\r\nx-sum: own\r\n"), "{seen}");
    assert!(seen.ends_with("\r\n0\r\nx-third: 9\r\n\r\n"), "{seen}");

    let mut wire = gateway.client().connect();
    let head = format!("POST / HTTP/1.1\r\nhost: a\r\ntrailer: {names}\r\n");
    wire.send(head.as_bytes());
    wire.send(b"transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nx-other: 8\r\nx-sum: 7\r\n\r\n");
    assert_eq!(wire.answer().status, 200);
    let seen = told.recv().unwrap();
    assert!(seen.ends_with("\r\n3\r\nabc\r\n0\r\n\r\n"), "{seen}");
}

#[test]
fn headers_edited_by_a_route_are_removed_from_trailers_between_http2_peers() {
    let (tell, told) = mpsc::channel();
    let origin = Stage::default().play(move |mut call: Call| {
        let tell = tell.clone();
        async move {
            let (_, trailers) = call.body().await;
            tell.send(trailers).unwrap();
            let mut stream = call.head(200, &[], false);
            stream.send_data("abc".into(), false).unwrap();
            let trailers = [("x-sum", "7"), ("x-other", "8"), ("x-third", "9")];
            stream.send_trailers(fields(&trailers)).unwrap();
        }
    });
    let config = format!("{}{CHANGES}", config("protocol = \"h2\""));
    let gateway = Running::before(origin, &config);
    run(async {
        let mut talk = gateway.client().talk().await;
        let sent = fields(&[("x-sum", "7"), ("x-third", "9")]);
        let answer = talk
            .send_all(talk.request("POST", "/"), &[b"abc"], sent)
            .await;
        let third = fields(&[("x-third", "9")]);
        assert_eq!((answer.text().as_str(), &answer.trailers), ("abc", &third));
        assert_eq!(told.recv().unwrap(), third);
    });
}
