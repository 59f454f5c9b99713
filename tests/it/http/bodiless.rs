//! Answers that have no body whatever their fields say: RFC 9112, section 6.3.

use super::answering;
use crate::harness::{Answer, Running, run};

/// What an origin may say to HEAD or with a status that has no body, and the `content-length` that
/// reaches a client. hyper leaves that of a 304 out in HTTP/1, as RFC 9110, section 8.6 allows.
const CASES: &[(&str, &[u8], Option<&str>)] = &[
    (
        "HEAD",
        b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n",
        Some("10"),
    ),
    (
        "HEAD",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
        None,
    ),
    ("HEAD", b"HTTP/1.1 200 OK\r\n\r\n", None),
    (
        "HEAD",
        b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
        Some("0"),
    ),
    (
        "HEAD",
        b"HTTP/1.1 404 Not Found\r\ncontent-length: 10\r\n\r\n",
        Some("10"),
    ),
    ("GET", b"HTTP/1.1 204 No Content\r\n\r\n", None),
    (
        "GET",
        b"HTTP/1.1 304 Not Modified\r\ncontent-length: 10\r\n\r\n",
        Some("10"),
    ),
    ("GET", b"HTTP/1.1 304 Not Modified\r\n\r\n", None),
    (
        "GET",
        b"HTTP/1.1 304 Not Modified\r\ntransfer-encoding: chunked\r\n\r\n",
        None,
    ),
    ("HEAD", b"HTTP/1.1 204 No Content\r\n\r\n", None),
];

#[test]
fn bodiless_responses_end_with_their_head_and_connections_stay_open() {
    for (method, answer, length) in CASES {
        let case = format!("{method} {}", String::from_utf8_lossy(answer));
        let gateway = Running::with_origin(answering(answer), "");
        let mut wire = gateway.client().connect();
        let request = format!("{method} / HTTP/1.1\r\nhost: a\r\n\r\n");
        for _ in 0..3 {
            wire.send(request.as_bytes());
            let got = Answer::parse(&wire.head());
            let length = length.filter(|_| got.status != 304);
            assert_eq!(got.header("content-length"), length, "{case}");
            assert_eq!(got.header("transfer-encoding"), None, "{case}");
            assert_eq!(got.header("connection"), None, "{case}");
        }
        run(async {
            let mut talk = gateway.client().talk().await;
            for _ in 0..3 {
                let told = talk.send(talk.request(method, "/")).await;
                assert!(told.error.is_none(), "{case}: {:?}", told.error);
                let got = told.headers.get("content-length");
                assert_eq!(got.map(|v| v.to_str().unwrap()), *length, "{case}");
                assert_eq!(told.text(), "", "{case}");
            }
        });
    }
}
