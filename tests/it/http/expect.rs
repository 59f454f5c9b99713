//! `Expect: 100-continue` (RFC 9110, section 10.1.1): a client that waits is asked for its body
//! when somebody wants it, and never otherwise.

use std::sync::mpsc;

use crate::harness::{Folder, Origin, Running, Wire, upload_with_curl};

const WAITING: &[u8] = b"POST / HTTP/1.1\r\nhost: example.com\r\nexpect: 100-continue\r\n\
    content-length: 5\r\n\r\n";

const NO_POSTS: &str = r#"
    [[rules]]
    name = "no-posts"
    mitigate = 'http.request.method eq "POST"'
    action = "block"
"#;

#[test]
fn expect_is_not_forwarded_and_an_origins_100_is_dropped() {
    let (tell, told) = mpsc::channel();
    let origin = Origin::scripted(move |stream| {
        let mut wire = Wire::new(stream);
        let head = wire.try_head().unwrap();
        tell.send(String::from_utf8(head).unwrap()).unwrap();
        wire.send(b"HTTP/1.1 100 Continue\r\n\r\n");
        assert_eq!(wire.exactly(5), b"hello");
        wire.send(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
        wire.rest();
    });
    let gateway = Running::with_origin(origin, "");
    let mut wire = gateway.client().connect();
    wire.send(WAITING);
    assert_eq!(wire.head(), b"HTTP/1.1 100 Continue\r\n\r\n");
    wire.send(b"hello");
    // One interim answer, then the answer.
    let answer = wire.answer();
    assert_eq!((answer.status, answer.text().as_str()), (200, "ok"));
    assert!(!told.recv().unwrap().contains("expect"));
}

#[test]
fn no_100_continue_is_sent_if_no_origin_is_available() {
    let config = |more: &str| {
        format!(
            r#"
            [log]
            access = "off"
            [[listeners]]
            address = "127.0.0.1:0"
            [[upstreams]]
            name = "down"
            servers = ["127.0.0.1:1"]
            [[routes]]
            path = "/own"
            respond = {{ status = 200, body = "own" }}
            [[routes]]
            {more}
            "#
        )
    };
    for (more, path, status) in [
        ("upstream = \"down\"", "/", 502),
        ("path = \"/elsewhere\"\nupstream = \"down\"", "/", 404),
        ("upstream = \"down\"", "/own", 200),
        ("redirect = \"https://{host}{uri}\"", "/", 308),
    ] {
        let gateway = Running::on(&config(more));
        let mut wire = gateway.client().connect();
        let waiting = String::from_utf8(WAITING.to_vec()).unwrap();
        wire.send(
            waiting
                .replace("POST /", &format!("POST {path}"))
                .as_bytes(),
        );
        let answer = wire.answer();
        assert_eq!(answer.status, status, "{more}");
        assert_eq!(answer.header("connection"), Some("close"), "{more}");
        assert_eq!(wire.rest(), b"");
    }
}

#[test]
fn a_shadow_sends_100_continue_like_an_origin() {
    let gateway = Running::with(&NO_POSTS.replace("block", "shadow"));
    let mut wire = gateway.client().connect();
    wire.send(WAITING);
    assert_eq!(wire.head(), b"HTTP/1.1 100 Continue\r\n\r\n");
    wire.send(b"hello");
    assert_eq!(wire.answer().status, 200);
    assert_eq!(wire.get("/").status, 200);
    assert_eq!(gateway.origin.count(), 1);
}

#[test]
fn a_client_that_does_not_wait_is_served_too() {
    let gateway = Running::with("");
    let mut wire = gateway.client().connect();
    wire.send(&[WAITING, b"hello"].concat());
    let first = wire.head();
    // A server may leave it out where the body is there already.
    if first.starts_with(b"HTTP/1.1 100") {
        wire.head();
    }
    assert_eq!(wire.exactly(5), b"hello");
}

#[test]
fn a_shadow_sends_100_continue_for_a_large_body_and_reads_it_all() {
    let gateway = Running::with(&NO_POSTS.replace("block", "shadow"));
    let mut wire = gateway.client().connect();
    let large = String::from_utf8(WAITING.to_vec()).unwrap();
    let length = 17 << 20;
    wire.send(
        large
            .replace("length: 5", &format!("length: {length}"))
            .as_bytes(),
    );
    assert_eq!(wire.head(), b"HTTP/1.1 100 Continue\r\n\r\n");
    wire.send(&vec![b'x'; length]);
    let answer = wire.answer();
    assert_eq!((answer.status, answer.header("connection")), (200, None));
    // The connection goes on.
    assert_eq!(wire.get("/").status, 200);
    assert_eq!(gateway.origin.count(), 1);
}

#[test]
fn an_http10_client_gets_no_interim_response() {
    let gateway = Running::with("");
    let mut wire = gateway.client().connect();
    let old = String::from_utf8(WAITING.to_vec()).unwrap();
    wire.send(old.replace("HTTP/1.1", "HTTP/1.0").as_bytes());
    wire.send(b"hello");
    let answer = wire.answer();
    assert_eq!((answer.status, answer.text().as_str()), (200, "hello"));
}

#[test]
fn curl_sends_its_body_only_after_100_continue() {
    let folder = Folder::new();
    let body = folder.write("body", vec![b'x'; 3 << 20]);
    let forwards = Running::with("");
    let refuses = Running::with(NO_POSTS);
    let plain = |gateway: &Running| format!("http://{}/", gateway.address(0));
    let tls = |gateway: &Running| format!("https://{}/", gateway.address(1));
    for url in [plain(&forwards), tls(&forwards)] {
        assert_eq!(upload_with_curl(&url, &body), format!("200 {}", 3 << 20));
    }
    for url in [plain(&refuses), tls(&refuses)] {
        assert_eq!(upload_with_curl(&url, &body), "429 0");
    }
    assert_eq!(refuses.origin.count(), 0);
}
