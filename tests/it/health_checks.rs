//! What health checks send, and which responses they accept.

use std::net::TcpStream;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};

use rustls::{ServerConnection, StreamOwned};

use crate::harness::{Authority, Folder, Origin, Process, Running, Seen, Wire, wait_until};

/// A gateway whose upstream `app` has these lines, with these routes.
fn config(upstream: &str, routes: &str) -> String {
    format!(
        "[server]\nworkers = 1\ndrain_timeout = \"5s\"\n[log]\naccess = \"off\"\n\
         [[listeners]]\naddress = \"127.0.0.1:0\"\n\
         [[upstreams]]\nname = \"app\"\n{upstream}\n{routes}"
    )
}

const ANY_HOST: &str = "[[routes]]\nupstream = \"app\"";

/// Routes of which the third has the first host that is one name.
const NAMED_HOSTS: &str = "
    [[routes]]
    hosts = [\"other.example\"]
    respond = {}
    [[routes]]
    hosts = [\"*.shop.example\"]
    upstream = \"app\"
    [[routes]]
    hosts = [\"*\", \"Shop.example\", \"www.shop.example\"]
    upstream = \"app\"";

/// The first health check that an origin gets.
fn first_check(upstream: &str, routes: &str) -> Seen {
    let origin = Origin::start();
    let port = origin.address.port().to_string();
    let upstream = upstream.replace("{port}", &port);
    let gateway = Running::before(origin, &config(&upstream, routes));
    wait_until("a health check", || gateway.origin.count() > 0);
    gateway.origin.seen().remove(0)
}

#[test]
fn the_host_is_the_most_specific_one_that_is_known() {
    let server = "servers = [\"127.0.0.1:{port}\"]";
    let named = "servers = [\"localhost:{port}\"]";
    let health = "health = { path = \"/well\", interval = \"100ms\" }";
    let with_host = "health = { path = \"/well\", interval = \"100ms\", host = \"check.example\" }";
    let host = "host = \"app.example:8000\"";
    for (lines, routes, expected) in [
        ([server, host, with_host], NAMED_HOSTS, "check.example"),
        ([server, host, health], NAMED_HOSTS, "app.example:8000"),
        ([server, "", health], NAMED_HOSTS, "Shop.example"),
        ([named, "", health], ANY_HOST, "localhost:{port}"),
        ([server, "", health], ANY_HOST, "127.0.0.1:{port}"),
    ] {
        let check = first_check(&lines.join("\n"), routes);
        let host = check.header("host").unwrap();
        let (name, port) = expected
            .split_once(":{port}")
            .map_or((expected, false), |(n, _)| (n, true));
        assert!(host.starts_with(name), "{host} is not {expected}");
        assert_eq!(host.len() > name.len(), port, "{host} is not {expected}");
        assert_eq!(check.line, "GET /well HTTP/1.1");
    }
}

#[test]
fn method_and_headers_are_those_of_the_configuration() {
    let check = first_check(
        "servers = [\"127.0.0.1:{port}\"]\n\
         health = { path = \"/well\", interval = \"100ms\", method = \"POST\", headers = { \
         authorization = \"Bearer x\", user-agent = \"mine\", x-forwarded-proto = \"https\" } }",
        ANY_HOST,
    );
    assert_eq!(check.line, "POST /well HTTP/1.1");
    for (name, value) in [
        ("authorization", "Bearer x"),
        ("user-agent", "mine"),
        ("x-forwarded-proto", "https"),
        ("content-length", "0"),
    ] {
        let values = check.headers.iter().filter(|(n, _)| n == name);
        let values: Vec<&str> = values.map(|(_, value)| value.as_str()).collect();
        assert_eq!(values, [value], "{name}");
    }
}

/// A site that answers only under its own name, as Django with ALLOWED_HOSTS does.
fn strict_site() -> Origin {
    Origin::answering(|request| {
        let is_ours = request.header("host") == Some("shop.example");
        let status = if is_ours { "200 OK" } else { "400 Bad Request" };
        format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n").into_bytes()
    })
}

#[test]
fn a_site_that_knows_only_its_own_host_is_healthy() {
    let routes = "[[routes]]\nhosts = [\"shop.example\"]\nupstream = \"app\"";
    let lines =
        "servers = [\"{origin}\"]\nhealth = { path = \"/\", interval = \"100ms\", unhealthy = 1 }";
    let gateway = Running::before(strict_site(), &config(lines, routes));
    wait_until("three health checks", || gateway.origin.count() >= 3);
    let client = gateway.client().header("host", "shop.example");
    assert_eq!(client.get("/").send().status, 200);
}

/// The log line of a server that becomes unhealthy.
fn unhealthy(origin: &Origin, health: &str) -> String {
    let lines = format!(
        "servers = [\"{}\"]\nhealth = {{ path = \"/well\", interval = \"100ms\", unhealthy = 1, \
         timeout = \"20s\", host = \"a.example\", {health} }}",
        origin.address
    );
    let process = Process::run(&config(&lines, ANY_HOST));
    let logged = || process.logged("server unhealthy");
    wait_until("it is unhealthy", || !logged().is_empty());
    logged().remove(0)
}

fn answering(answer: &'static str) -> Origin {
    Origin::answering(move |_| answer.as_bytes().to_vec())
}

#[test]
fn a_failed_check_says_what_was_expected_and_what_came() {
    let found = "HTTP/1.1 200 OK\r\ncontent-length: 11\r\n\r\nmaintenance";
    let short = "HTTP/1.1 200 OK\r\ncontent-length: 99\r\nconnection: close\r\n\r\nok";
    for (origin, health, reason, error) in [
        (
            strict_site(),
            "status = [\"200-299\", 304]",
            "\"status 400\"",
            "expected status 200-299, 304, got 400 for `GET /well` with host `a.example`",
        ),
        (
            answering(found),
            "status = [\"204\"]",
            "\"status 200\"",
            "expected status 204, got 200 for `GET /well` with host `a.example`",
        ),
        (
            answering(found),
            "body_contains = \"ready\"",
            "body",
            "expected a body that contains \\\"ready\\\", got one that starts with \\\"maintenance\\\"",
        ),
        (
            Origin::scripted(move |stream| {
                let mut wire = Wire::new(stream);
                if wire.try_head().is_some() {
                    wire.send(short.as_bytes());
                }
            }),
            "body_contains = \"ready\"",
            "body",
            "expected a body that contains \\\"ready\\\", but the body ended early: ",
        ),
    ] {
        let line = unhealthy(&origin, health);
        let expected = format!("reason={reason} error=\"{error}");
        assert!(line.contains(&expected), "{line}\nis not\n{expected}");
    }
}

#[test]
fn a_body_is_read_only_to_its_limit() {
    let endless = Origin::scripted(|stream| {
        let mut wire = Wire::new(stream);
        if wire.try_head().is_none() {
            return;
        }
        wire.send(b"HTTP/1.1 200 OK\r\n\r\n");
        while wire.try_send(&[b'x'; 4096]).is_ok() {}
    });
    let line = unhealthy(&endless, "body_contains = \"ready\"");
    assert!(line.contains("got one that starts with \\\"xxxx"), "{line}");
}

#[test]
fn a_text_may_span_two_reads_of_a_body() {
    let (tell, told) = mpsc::channel();
    let origin = Origin::scripted(move |stream| {
        let mut wire = Wire::new(stream);
        let Some(head) = wire.try_head() else {
            return;
        };
        wire.send(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n");
        for part in ["status: re", "a", "dy"] {
            wire.send(format!("{:x}\r\n{part}\r\n", part.len()).as_bytes());
        }
        // The gateway closes as soon as it has found the text.
        wire.rest();
        let _ = tell.send(head);
    });
    let health = "health = { path = \"/\", interval = \"100ms\", timeout = \"20s\", body_contains = \"ready\" }";
    let lines = format!("servers = [\"{{origin}}\"]\n{health}");
    let _gateway = Running::before(origin, &config(&lines, ANY_HOST));
    told.recv().unwrap();
    told.recv().unwrap();
}

/// An origin behind TLS. Sends the server name and the head of each request.
fn secure(authority: &Authority) -> (Origin, Receiver<(Option<String>, String)>) {
    let (tell, told) = mpsc::channel();
    let config = authority.server("shop.example", &["http/1.1"]);
    let origin = Origin::scripted(move |mut tcp: TcpStream| {
        let mut tls = ServerConnection::new(Arc::clone(&config)).unwrap();
        while tls.is_handshaking() {
            if tls.complete_io(&mut tcp).is_err() {
                return;
            }
        }
        let name = tls.server_name().map(str::to_owned);
        let mut wire = Wire::new(StreamOwned::new(tls, tcp));
        if let Some(head) = wire.try_head() {
            let _ = tell.send((name, String::from_utf8(head).unwrap()));
            wire.send(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
        }
    });
    (origin, told)
}

#[test]
fn a_check_over_tls_sends_the_server_name() {
    let authority = Authority::new();
    let folder = Folder::new();
    let ca = folder.write("ca.pem", authority.pem());
    let (origin, told) = secure(&authority);
    let lines = format!(
        "servers = [\"{{origin}}\"]\ntls = {{ server_name = \"shop.example\", ca = {ca:?} }}\n\
         host = \"www.shop.example\"\nhealth = {{ path = \"/\", interval = \"100ms\" }}"
    );
    let _gateway = Running::before(origin, &config(&lines, ANY_HOST));
    let (name, head) = told.recv().unwrap();
    assert_eq!(name.as_deref(), Some("shop.example"));
    assert!(head.contains("host: www.shop.example\r\n"), "{head}");
}
