//! Who may use the admin port: hostile pages, tokens, methods, and bodies that are too large or too slow.

use std::time::Duration;

use super::{CONFIG, Operated, json};
use crate::harness::{Client, Folder, wait_until};

/// The headers of every response.
const HEADERS: [(&str, &str); 5] = [
    ("cache-control", "no-store"),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
         trusted-types 'none'",
    ),
];

#[test]
fn every_response_protects_the_browser() {
    let gateway = Operated::run(CONFIG);
    for (method, path, status) in [
        ("GET", "/", 200),
        ("GET", "/app.js", 200),
        ("GET", "/app.css", 200),
        ("GET", "/healthz", 200),
        ("GET", "/metrics", 200),
        ("GET", "/api/status", 200),
        ("GET", "/api/openapi.json", 200),
        ("GET", "/api/nothing", 404),
        ("POST", "/api/status", 405),
        ("POST", "/api/explain", 422),
    ] {
        let answer = gateway.admin().method(method, path).send();
        assert_eq!(answer.status, status, "{path}");
        for (name, value) in HEADERS {
            assert_eq!(answer.header(name), Some(value), "{path}");
        }
        assert_eq!(answer.header("access-control-allow-origin"), None);
        if status >= 400 {
            assert!(json(&answer)["error"].is_string());
        }
    }
}

#[test]
fn a_page_that_rebinds_its_name_reads_nothing() {
    let gateway = Operated::run(CONFIG);
    let hosts = [
        "evil.example",
        "evil.example:9901",
        "127.0.0.1.evil.example",
        "192.0.2.1",
    ];
    for host in hosts {
        let page = Client::plain(gateway.admin).header("host", host);
        for path in [
            "/",
            "/app.js",
            "/metrics",
            "/api/status",
            "/api/events",
            "/nothing",
        ] {
            let answer = page.clone().get(path).send();
            assert_eq!(answer.status, 403, "{host} {path}");
            assert!(json(&answer)["error"].as_str().unwrap().contains("`Host`"));
        }
        for probe in ["/healthz", "/readyz"] {
            page.clone().get(probe).times(1).all_are(200);
        }
    }
    for host in ["localhost", "LOCALHOST:1", "[::1]:9901", "127.1.2.3"] {
        let local = Client::plain(gateway.admin).header("host", host);
        local.get("/api/status").times(1).all_are(200);
    }
    let absolute = b"GET http://evil.example/api/status HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let answer = Client::plain(gateway.admin).raw(absolute);
    assert!(answer.starts_with(b"HTTP/1.1 403 "));
    let none = Client::plain(gateway.admin).raw(b"GET /api/status HTTP/1.0\r\n\r\n");
    assert!(none.starts_with(b"HTTP/1.0 403 "));
}

#[test]
fn a_page_of_another_site_changes_nothing() {
    let gateway = Operated::run(CONFIG);
    let post = || gateway.admin().post("/api/reload");
    for (name, value) in [
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-site", "same-site"),
        ("origin", "https://evil.example"),
        ("origin", "null"),
        ("origin", "http://localhost:1"),
        ("content-type", "text/plain"),
        ("content-type", "application/x-www-form-urlencoded"),
    ] {
        post().header(name, value).times(1).all_are(403);
    }
    let untyped = post().body(b"{}").send();
    assert_eq!(untyped.status, 403);
    assert!(gateway.process.logged(" reloaded ").is_empty());
    let own = format!("http://{}", gateway.admin);
    let own = post()
        .header("origin", &own)
        .header("sec-fetch-site", "same-origin");
    own.times(1).all_are(200);
    wait_until("it has reloaded", || {
        gateway.process.logged(" reloaded ").len() == 1
    });
}

#[test]
fn a_token_protects_the_data_and_not_the_files() {
    let folder = Folder::new();
    let token = folder.write("admin.token", "open sesame\n");
    let guarded = format!("[admin]\ntoken_file = {token:?}");
    let gateway = Operated::run(&CONFIG.replace("[admin]", &guarded));
    // With a token, any name is allowed.
    let remote = || Client::plain(gateway.admin).header("host", "ops.example");
    for path in ["/healthz", "/readyz", "/", "/app.js", "/app.css"] {
        remote().get(path).times(1).all_are(200);
    }
    for path in [
        "/metrics",
        "/api/status",
        "/api/events",
        "/api/openapi.json",
        "/nothing",
    ] {
        let answer = remote().get(path).send();
        assert_eq!(answer.status, 401, "{path}");
        assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
    }
    let status = remote().get("/api/status");
    for wrong in [
        "Bearer open",
        "Bearer open sesam",
        "Bearer open sesame!",
        "Basic open sesame",
    ] {
        let wrong = status.clone().header("authorization", wrong);
        wrong.times(1).all_are(401);
    }
    let right = status.header("authorization", "Bearer open sesame");
    right.times(1).all_are(200);
    let in_url = remote().get("/api/status?token=open+sesame");
    in_url.times(1).all_are(401);
}

#[test]
fn a_wrong_method_names_the_right_ones() {
    let gateway = Operated::run(CONFIG);
    for (method, path, allow) in [
        ("POST", "/metrics", "GET, HEAD"),
        ("DELETE", "/api/status", "GET, HEAD"),
        ("PUT", "/api/mitigations", "GET, HEAD, POST, DELETE"),
        ("GET", "/api/reload", "POST"),
        ("OPTIONS", "/api/upstreams/a/b", "PUT"),
        ("BREW", "/healthz", "GET, HEAD"),
    ] {
        let answer = gateway.admin().method(method, path).send();
        assert_eq!(
            (answer.status, answer.header("allow")),
            (405, Some(allow)),
            "{path}"
        );
    }
    let head = gateway.admin().method("HEAD", "/api/status").send();
    assert_eq!((head.status, head.body.len()), (200, 0));
    assert!(head.header("content-length").unwrap() != "0");
}

#[test]
fn a_body_has_at_most_64_kib() {
    let gateway = Operated::run(CONFIG);
    let explain = |size: usize| {
        let url = "x".repeat(size);
        let body = format!("{{\"method\":\"GET\",\"url\":\"/{url}\"}}");
        gateway
            .admin()
            .post("/api/explain")
            .json(&body)
            .send()
            .status
    };
    assert_eq!(explain(60_000), 200);
    assert_eq!(explain(66_000), 413);
    assert_eq!(explain(1_000_000), 413);
    let chunked = "POST /api/explain HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
                   transfer-encoding: chunked\r\n\r\n";
    let chunk = format!("8000\r\n{}\r\n", "x".repeat(0x8000)).repeat(3);
    let answer = gateway
        .admin()
        .raw(format!("{chunked}{chunk}0\r\n\r\n").as_bytes());
    assert!(answer.starts_with(b"HTTP/1.1 413 "));
}

#[test]
fn a_slow_body_gets_408() {
    let gateway = Operated::run(CONFIG);
    let mut wire = gateway.admin().connect();
    wire.send(
        b"POST /api/explain HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
          content-length: 100\r\n\r\n{",
    );
    assert_eq!(wire.answer().status, 408);
    assert_eq!(wire.rest(), b"");
}

#[test]
fn invalid_requests_do_not_stop_the_admin_port() {
    let gateway = Operated::run(CONFIG);
    for garbage in [&b"\x16\x03\x01\x02\x00"[..], b"GET\r\n\r\n", b"\0\0\0\0"] {
        Client::plain(gateway.admin).raw(garbage);
    }
    gateway.admin().get("/healthz").times(1).all_are(200);
}

#[test]
fn above_the_limit_the_oldest_silent_connection_is_closed() {
    let gateway = Operated::run(CONFIG);
    let mut silent: Vec<_> = (0..64).map(|_| gateway.admin().connect()).collect();
    gateway.admin().get("/healthz").times(3).all_are(200);
    assert_eq!(silent[0].rest(), b"");
    let mut newest = silent.pop().unwrap();
    newest.send(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n");
    assert_eq!(newest.answer().status, 200);
}

#[test]
fn a_draining_gateway_changes_nothing() {
    let folder = Folder::new();
    let fifo = folder.pipe("hold");
    let gateway = Operated::run(CONFIG);
    let mut busy = gateway.client().connect();
    busy.send(b"GET / HTTP/1.1\r\nhost: example.com\r\n");
    std::thread::sleep(Duration::from_millis(50));
    gateway.process.signal("TERM");
    wait_until("it drains", || {
        !gateway.process.logged(" stopping").is_empty()
    });
    let answer = gateway.admin().post("/api/reload").send();
    assert_eq!(answer.status, 503);
    gateway.admin().get("/readyz").times(1).all_are(503);
    assert_eq!(gateway.read("/api/status")["state"], "draining");
    drop((busy, fifo));
}
