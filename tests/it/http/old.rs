//! HTTP/1.0 clients: RFC 9112, sections 2.5, 6.1 and 9.3.

use super::answering;
use crate::harness::{Answer, Running};

#[test]
fn a_connection_is_kept_open_only_on_request() {
    let gateway = Running::with("");
    let mut wire = gateway.client().connect();
    for _ in 0..2 {
        wire.send(b"GET / HTTP/1.0\r\nhost: a\r\nconnection: keep-alive\r\n\r\n");
        let answer = wire.answer();
        assert_eq!(answer.text(), "origin GET / HTTP/1.1");
        assert_eq!(answer.header("connection"), Some("keep-alive"));
    }
    wire.send(b"GET / HTTP/1.0\r\nhost: a\r\n\r\n");
    let last = wire.answer();
    assert_eq!(last.status, 200);
    assert_ne!(last.header("connection"), Some("keep-alive"));
    assert_eq!(wire.rest(), b"");
}

#[test]
fn a_host_is_not_required() {
    let gateway = Running::with("");
    let answer = Answer::parse(&gateway.client().raw(b"GET /x HTTP/1.0\r\n\r\n"));
    assert_eq!(answer.status, 200);
    let seen = gateway.origin.seen().pop().unwrap();
    assert_eq!(seen.header("host"), Some(""));
    // RFC 9112, section 3.2: two are too many in any version.
    let twice = b"GET /x HTTP/1.0\r\nhost: a\r\nhost: b\r\n\r\n";
    assert_eq!(Answer::parse(&gateway.client().raw(twice)).status, 400);
}

#[test]
fn a_response_without_a_length_ends_with_the_connection() {
    let answer =
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n3\r\ndef\r\n0\r\n\r\n";
    let gateway = Running::with_origin(answering(answer), "");
    let request = b"GET / HTTP/1.0\r\nhost: a\r\nconnection: keep-alive\r\n\r\n";
    let all = gateway.client().raw(request);
    let text = String::from_utf8(all.clone()).unwrap().to_ascii_lowercase();
    assert!(text.ends_with("\r\n\r\nabcdef"), "{text}");
    assert!(!text.contains("transfer-encoding"), "{text}");
    let answer = Answer::parse(&all);
    assert_ne!(answer.header("connection"), Some("keep-alive"));
}

#[test]
fn a_body_with_a_length_is_forwarded_and_a_chunked_one_refused() {
    let gateway = Running::with("");
    let client = gateway.client();
    let whole = b"POST / HTTP/1.0\r\nhost: a\r\ncontent-length: 5\r\n\r\nhello";
    assert_eq!(Answer::parse(&client.raw(whole)).text(), "hello");
    let chunked =
        b"POST / HTTP/1.0\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
    assert_eq!(Answer::parse(&client.raw(chunked)).status, 400);
    assert_eq!(gateway.origin.count(), 1);
}

#[test]
fn responses_of_rules_close_the_connection_like_others() {
    let gateway = Running::with(
        r#"
        [[rules]]
        name = "nobody"
        mitigate = 'http.request.method eq "GET"'
        "#,
    );
    let mut wire = gateway.client().connect();
    for _ in 0..2 {
        wire.send(b"GET / HTTP/1.0\r\nhost: a\r\nconnection: keep-alive\r\n\r\n");
        assert_eq!(wire.answer().status, 429);
    }
    wire.send(b"GET / HTTP/1.0\r\nhost: a\r\n\r\n");
    assert_eq!(wire.answer().status, 429);
    assert_eq!(wire.rest(), b"");
}
