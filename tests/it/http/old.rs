//! HTTP/1.0 clients (RFC 9112, sections 2.5, 6.1 and 9.3), and spellings of HTTP/1 that are old or sloppy.

use std::process::Command;

use super::answering;
use crate::harness::{Answer, Folder, Running};

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

#[test]
fn a_response_that_closes_the_connection_says_only_that() {
    let answer = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
    let gateway = Running::with_origin(answering(answer), "");
    let request = b"GET / HTTP/1.0\r\nhost: a\r\nconnection: keep-alive\r\n\r\n";
    let all = String::from_utf8(gateway.client().raw(request)).unwrap();
    let head = all.to_ascii_lowercase();
    assert_eq!(head.matches("connection:").count(), 1, "{all}");
    assert!(head.contains("\r\nconnection: close\r\n"), "{all}");
}

/// ApacheBench speaks HTTP/1.0 and trusts `keep-alive`.
#[test]
fn apache_bench_counts_no_failures() {
    let chunked = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
    let sized = b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabc";
    for answer in [&chunked[..], sized] {
        let gateway = Running::with_origin(answering(answer), "");
        let url = format!("http://{}/", gateway.address(0));
        let ab = Command::new("ab")
            .args(["-q", "-k", "-s", "10", "-n", "40", "-c", "2", &url])
            .output()
            .unwrap();
        let report = String::from_utf8(ab.stdout).unwrap();
        let words = report.split_whitespace().collect::<Vec<_>>().join(" ");
        for line in ["Complete requests: 40", "Failed requests: 0"] {
            assert!(words.contains(line), "{report}");
        }
    }
}

#[test]
fn a_status_without_a_registered_reason_has_an_empty_one_or_the_origins() {
    for (answer, line) in [
        (
            &b"HTTP/1.1 999 Request denied\r\ncontent-length: 0\r\n\r\n"[..],
            "HTTP/1.1 999 Request denied\r\n",
        ),
        (
            b"HTTP/1.1 999 \r\ncontent-length: 0\r\n\r\n",
            "HTTP/1.1 999 \r\n",
        ),
        (
            b"HTTP/1.1 999\r\ncontent-length: 0\r\n\r\n",
            "HTTP/1.1 999 \r\n",
        ),
        (
            b"HTTP/1.1 404 Gone fishing\r\ncontent-length: 0\r\n\r\n",
            "HTTP/1.1 404 Not Found\r\n",
        ),
    ] {
        let gateway = Running::with_origin(answering(answer), "");
        let request = b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
        let all = String::from_utf8(gateway.client().raw(request)).unwrap();
        assert!(all.starts_with(line), "{all}");
    }
}

/// The client waits: nothing follows the bytes that are wrong.
#[test]
fn a_trailer_section_with_a_bare_line_end_is_refused_immediately() {
    let gateway = Running::with("[limits]\nrequest_body_timeout = \"1h\"\nmin_rate = \"0\"");
    for client in [gateway.client(), gateway.tls_client()] {
        for end in ["0\r\n\n", "0\r\nx: y\n", "0\r\nx: y\r\n\n"] {
            let mut wire = client.connect();
            let head = "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n";
            wire.send(format!("{head}5\r\nhello\r\n{end}").as_bytes());
            let answer = wire.answer();
            assert_eq!(
                (answer.status, answer.header("connection")),
                (400, Some("close"))
            );
        }
    }
}

const QUOTES: &str = r#"
    [[rules]]
    name = "quotes"
    mitigate = 'http.request.uri.query contains "%22b%22" and http.request.uri.args["q"][0] eq "\"b\""'
    action = "block"
"#;

/// Scripts write `?key="abc"`.
#[test]
fn quotes_and_angle_brackets_in_a_query_are_escaped() {
    let folder = Folder::new();
    let log = folder.path().join("access.log");
    let gateway = Running::with_access_log(&log, QUOTES);
    for client in [gateway.client(), gateway.tls_client()] {
        for (target, forwarded) in [
            ("/?q=\"a\"", "/?q=%22a%22"),
            ("/a//b?<x>=\"%22", "/a/b?%3Cx%3E=%22%22"),
            ("http://a/?\"", "/?%22"),
            ("/?q=é", "/?q=%C3%A9"),
        ] {
            let raw = format!("GET {target} HTTP/1.1\r\nhost: a\r\n\r\n");
            let mut whole = client.connect();
            whole.send(format!("{raw}{raw}").as_bytes());
            let mut torn = client.connect();
            for byte in raw.bytes() {
                torn.send(&[byte]);
            }
            for answer in [whole.answer(), whole.answer(), torn.answer()] {
                let line = format!("origin GET {forwarded} HTTP/1.1");
                assert_eq!((answer.status, answer.text()), (200, line));
            }
        }
        assert_eq!(client.connect().get("/?q=\"b\"").status, 429);
        assert_eq!(client.connect().get("/?q=%22b%22").status, 429);
        let mut latin1 = client.connect();
        latin1.send(b"GET /?b=\xe9t\xe9 HTTP/1.1\r\nhost: a\r\n\r\n");
        assert_eq!(latin1.answer().text(), "origin GET /?b=%E9t%E9 HTTP/1.1");
        // In a path they stay refused.
        assert_eq!(client.connect().get("/<a>").status, 400);
    }
    let text = std::fs::read_to_string(&log).unwrap();
    assert!(text.contains(r#""query":"q=%22a%22""#), "{text}");
}
