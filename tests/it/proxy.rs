//! What passes through a gateway, and what becomes of it, over real sockets.

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use crate::harness::{Answer, Folder, Frames, Heard, Origin, Running, Wire, wait_until};

/// More than the kernel holds for two connections.
const LARGE: usize = 32 << 20;

/// A gateway on `origins`, with more keys for the upstream and more sections.
fn gateway(origins: &[&Origin], upstream: &str, more: &str) -> Running {
    let servers: Vec<String> = origins
        .iter()
        .map(|o| format!("{:?}", address(o)))
        .collect();
    let servers = servers.join(", ");
    Running::on(&format!(
        r#"
        [server]
        workers = 2
        drain_timeout = "5s"
        [log]
        access = "off"
        [[listeners]]
        address = "127.0.0.1:0"
        [[listeners]]
        address = "127.0.0.1:0"
        [listeners.tls]
        [[upstreams]]
        name = "app"
        servers = [{servers}]
        {upstream}
        {more}
        [[routes]]
        upstream = "app"
        "#
    ))
}

fn address(origin: &Origin) -> String {
    origin.address.to_string()
}

/// An origin that reads a head and answers with these bytes, each time, on each connection.
fn answering(answer: &'static [u8]) -> Origin {
    Origin::scripted(move |stream| {
        let mut wire = Wire::new(stream);
        while wire.try_head().is_some() {
            if wire.try_send(answer).is_err() {
                return;
            }
        }
    })
}

/// An origin that answers its first request with these bytes and closes.
fn closing(answer: &'static [u8]) -> Origin {
    Origin::scripted(move |stream| {
        let mut wire = Wire::new(stream);
        wire.try_head();
        let _ = wire.try_send(answer);
    })
}

fn curl(arguments: &[&str]) -> Output {
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--insecure", "--max-time", "60"]);
    curl.args(arguments).output().unwrap()
}

fn noise(length: usize) -> Vec<u8> {
    let mut state = 1u32;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state.to_le_bytes()
    };
    (0..length / 4).flat_map(|_| next()).collect()
}

#[test]
fn large_bodies_are_forwarded_in_both_directions_in_every_protocol() {
    let gateway = Running::with("");
    let folder = Folder::new();
    let body = noise(LARGE);
    let upload = folder.write("upload", &body);
    let (plain, tls) = (gateway.address(0), gateway.address(1));
    for (url, flag, version) in [
        (format!("http://{plain}/"), "--http1.1", "1.1"),
        (format!("https://{tls}/"), "--http1.1", "1.1"),
        (format!("https://{tls}/"), "--http2", "2"),
        (format!("http://{plain}/"), "--http2-prior-knowledge", "2"),
    ] {
        let download = folder.path().join("download");
        let (from, to) = (upload.to_str().unwrap(), download.to_str().unwrap());
        let said = curl(&[
            flag,
            "-T",
            from,
            "-o",
            to,
            "-w",
            "%{http_code} %{http_version}",
            &url,
        ]);
        let said = String::from_utf8_lossy(&said.stdout).into_owned();
        assert_eq!(said, format!("200 {version}"), "{flag} {url}");
        let came = std::fs::read(&download).unwrap();
        assert!(came == body, "{flag} {url}: another body came back");
    }
    let seen = gateway.origin.seen();
    assert_eq!(seen.len(), 4);
    assert!(seen.iter().all(|seen| seen.body.len() == LARGE));
}

#[test]
fn an_origin_that_does_not_read_applies_backpressure_to_its_client() {
    let (go, wait) = mpsc::channel::<()>();
    let wait = std::sync::Mutex::new(wait);
    let origin = Origin::scripted(move |stream| {
        let mut wire = Wire::new(stream);
        let Some(_) = wire.try_head() else { return };
        wait.lock().unwrap().recv().unwrap();
        wire.exactly(4 * LARGE);
        wire.send(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nread");
    });
    let gateway = gateway(&[&origin], "", "");
    let mut tcp = TcpStream::connect(gateway.address(0)).unwrap();
    let head = format!(
        "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: {}\r\n\r\n",
        4 * LARGE
    );
    tcp.write_all(head.as_bytes()).unwrap();
    let sent = write_until_stuck(&mut tcp, 4 * LARGE);
    assert!(sent < 4 * LARGE, "the gateway took a body that nobody read");
    go.send(()).unwrap();
    tcp.set_write_timeout(None).unwrap();
    tcp.write_all(&vec![b'x'; 4 * LARGE - sent]).unwrap();
    let answer = Wire::new(tcp).answer();
    assert_eq!((answer.status, answer.text().as_str()), (200, "read"));
}

#[test]
fn a_client_that_does_not_read_applies_backpressure_to_its_origin() {
    let (tell, told) = mpsc::channel();
    let origin = Origin::scripted(move |mut stream| {
        let mut buffer = [0; 4096];
        let _ = stream.read(&mut buffer);
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", 4 * LARGE);
        stream.write_all(head.as_bytes()).unwrap();
        let sent = write_until_stuck(&mut stream, 4 * LARGE);
        tell.send(sent).unwrap();
        stream.set_write_timeout(None).unwrap();
        let _ = stream.write_all(&vec![b'x'; 4 * LARGE - sent]);
    });
    let gateway = gateway(&[&origin], "", "");
    let tcp = TcpStream::connect(gateway.address(0)).unwrap();
    let mut wire = Wire::new(tcp);
    wire.send(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n");
    assert!(told.recv().unwrap() < 4 * LARGE, "the gateway took it all");
    assert_eq!(wire.answer().body.len(), 4 * LARGE);
}

/// Writes until the other side takes no more for a while, or `most` are written.
fn write_until_stuck(stream: &mut TcpStream, most: usize) -> usize {
    let chunk = vec![b'x'; 64 * 1024];
    stream
        .set_write_timeout(Some(Duration::from_millis(500)))
        .unwrap();
    let mut sent = 0;
    while sent < most {
        match stream.write(&chunk[..chunk.len().min(most - sent)]) {
            Ok(n) => sent += n,
            Err(_) => break,
        }
    }
    sent
}

#[test]
fn a_websocket_carries_bytes_in_both_directions() {
    let origin = Origin::scripted(|stream| {
        let mut echo = stream.try_clone().unwrap();
        let mut wire = Wire::new(stream.try_clone().unwrap());
        let Some(head) = wire.try_head() else { return };
        let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
        assert!(head.contains("\r\nupgrade: websocket\r\n"), "{head}");
        assert!(head.contains("\r\nconnection: upgrade\r\n"), "{head}");
        assert!(head.contains("\r\nsec-websocket-key: abc\r\n"), "{head}");
        wire.send(
            b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\n\
              connection: upgrade\r\nsec-websocket-accept: xyz\r\n\r\nfirst",
        );
        let _ = std::io::copy(&mut &stream, &mut echo);
    });
    let gateway = gateway(&[&origin], "", "");
    for client in [gateway.client(), gateway.tls_client()] {
        let mut wire = client.connect();
        wire.send(
            b"GET /chat HTTP/1.1\r\nhost: example.com\r\nconnection: keep-alive, Upgrade\r\n\
              upgrade: websocket\r\nsec-websocket-key: abc\r\n\r\n",
        );
        let answer = wire.answer();
        assert_eq!(answer.status, 101);
        assert_eq!(answer.header("sec-websocket-accept"), Some("xyz"));
        assert_eq!(wire.exactly(5), b"first");
        // Bytes in a tunnel are nobody's head, whatever they look like.
        let head = b"GET / HTTP/1.1\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n";
        for message in [&b"one"[..], head, &noise(1 << 20)] {
            wire.send(message);
            assert!(wire.exactly(message.len()) == message);
            gateway
                .gateway()
                .reloader()
                .reload(lockgate::gateway::ReloadTrigger::Signal)
                .unwrap();
        }
    }
}

#[test]
fn a_refused_upgrade_is_an_ordinary_response() {
    let gateway = Running::with("");
    let mut wire = gateway.client().connect();
    wire.send(
        b"GET /chat HTTP/1.1\r\nhost: example.com\r\nconnection: upgrade\r\n\
          upgrade: websocket\r\nsec-websocket-key: abc\r\n\r\n",
    );
    assert_eq!(wire.answer().status, 200);
    assert_eq!(wire.get("/next").status, 200);
}

#[test]
fn a_mitigated_upgrade_gets_the_response_of_its_rule() {
    for (action, status) in [("block", 429), ("shadow", 200)] {
        let gateway = Running::with(&format!(
            "[[rules]]\nname = \"no-chat\"\nmitigate = 'http.request.uri.path eq \"/chat\"'\n\
             action = \"{action}\""
        ));
        let mut wire = gateway.client().connect();
        wire.send(
            b"GET /chat HTTP/1.1\r\nhost: example.com\r\nconnection: upgrade\r\n\
              upgrade: websocket\r\nsec-websocket-key: abc\r\n\r\n",
        );
        let answer = wire.answer();
        assert_eq!((answer.status, answer.header("upgrade")), (status, None));
        assert_eq!(gateway.origin.count(), 0);
        assert_eq!(wire.get("/next").status, 200);
    }
}

const CLAIMS: &[u8] = b"GET / HTTP/1.1\r\nhost: Example.COM:80\r\nconnection: close, x-hop\r\n\
    x-hop: 1\r\nkeep-alive: timeout=5\r\nproxy-connection: close\r\nproxy-authorization: x\r\n\
    te: trailers, gzip\r\nupgrade: h2c\r\nx-forwarded-for: 203.0.113.7\r\n\
    x-forwarded-proto: https\r\nx-forwarded-host: other.example\r\nx-real-ip: 203.0.113.9\r\n\
    true-client-ip: 203.0.113.9\r\ncf-connecting-ip: 203.0.113.9\r\nx-forwarded-port: 1\r\n\
    forwarded: for=203.0.113.7\r\nx-lockgate-rule: none\r\nx-request-id: mine\r\n\
    proxy: evil\r\ncookie: a=1\r\naccept: */*\r\n\r\n";

#[test]
fn forwarding_headers_of_an_untrusted_client_are_removed() {
    let seen_by = Origin::start();
    let gateway = gateway(&[&seen_by], "", "");
    assert_eq!(Answer::parse(&gateway.client().raw(CLAIMS)).status, 200);
    let seen = seen_by.seen().pop().unwrap();
    for gone in [
        "x-hop",
        "keep-alive",
        "proxy-connection",
        "proxy-authorization",
        "upgrade",
        "forwarded",
        "x-lockgate-rule",
        "proxy",
        "true-client-ip",
        "cf-connecting-ip",
        "x-forwarded-port",
    ] {
        assert_eq!(seen.header(gone), None, "{gone}");
    }
    for (name, value) in [
        ("host", "example.com"),
        ("x-forwarded-for", "127.0.0.1"),
        ("x-forwarded-host", "example.com"),
        ("x-forwarded-proto", "http"),
        ("x-real-ip", "127.0.0.1"),
        ("te", "trailers"),
        ("cookie", "a=1"),
        ("accept", "*/*"),
    ] {
        assert_eq!(seen.header(name), Some(value), "{name}");
    }
    let id = seen.header("x-request-id").unwrap();
    assert!(id.len() == 32 && id != "mine", "{id}");
}

#[test]
fn forwarding_headers_of_a_trusted_proxy_are_kept_and_extended() {
    let gateway = Running::with("");
    assert_eq!(Answer::parse(&gateway.client().raw(CLAIMS)).status, 200);
    let seen = gateway.origin.seen().pop().unwrap();
    for (name, value) in [
        ("x-forwarded-for", "203.0.113.7, 127.0.0.1"),
        ("x-forwarded-host", "other.example"),
        ("x-forwarded-proto", "https"),
        ("x-real-ip", "203.0.113.7"),
        ("x-request-id", "mine"),
        ("forwarded", "for=203.0.113.7"),
    ] {
        assert_eq!(seen.header(name), Some(value), "{name}");
    }
    assert_eq!(seen.header("x-lockgate-rule"), None);
}

#[test]
fn hop_by_hop_headers_are_removed_from_a_response() {
    let origin = answering(
        b"HTTP/1.1 200 OK\r\nconnection: x-hop\r\nx-hop: 1\r\nkeep-alive: timeout=5\r\n\
          proxy-authenticate: x\r\nset-cookie: a=1\r\nset-cookie: b=2\r\ncontent-length: 2\r\n\r\nok",
    );
    let gateway = gateway(&[&origin], "", "");
    let answer = gateway.client().connect().get("/");
    assert_eq!(answer.text(), "ok");
    for gone in ["x-hop", "keep-alive", "proxy-authenticate"] {
        assert_eq!(answer.header(gone), None, "{gone}");
    }
    let cookies = answer.headers.iter().filter(|(n, _)| n == "set-cookie");
    let cookies: Vec<&str> = cookies.map(|(_, v)| v.as_str()).collect();
    assert_eq!(cookies, ["a=1", "b=2"]);
}

#[test]
fn an_origin_that_is_down_is_502() {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut origin = Origin::start();
    origin.address = nobody.local_addr().unwrap();
    drop(nobody);
    let gateway = gateway(&[&origin], "", "");
    let mut wire = gateway.client().connect();
    assert_eq!(wire.get("/").status, 502);
    // A request without a body leaves the connection usable.
    assert_eq!(wire.get("/").status, 502);
    gateway.client().body(b"x").post("/").times(1).all_are(502);
}

#[test]
fn an_origin_with_an_invalid_response_is_502() {
    for answer in [
        &b""[..],
        b"garbage\r\n\r\n",
        b"HTTP/1.1 200",
        b"HTTP/1.1 999999 Huge\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
        b"HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\nab",
        b"HTTP/1.1 200 OK\r\nbad header\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n",
    ] {
        let origin = closing(answer);
        let gateway = gateway(&[&origin], "", "");
        let got = gateway.client().get("/").send();
        assert_eq!(got.status, 502, "{}", String::from_utf8_lossy(answer));
    }
}

#[test]
fn an_origin_that_is_silent_is_504() {
    let origin = Origin::scripted(|stream| drop(Wire::new(stream).rest()));
    let gateway = gateway(&[&origin], "response_timeout = \"200ms\"", "");
    assert_eq!(gateway.client().get("/").send().status, 504);
    gateway
        .tls_client()
        .body(b"x")
        .post("/")
        .times(1)
        .all_are(504);
}

#[test]
fn a_truncated_response_is_truncated_for_the_client() {
    for cut in [
        &b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nonly this"[..],
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n9\r\nonly this\r\n",
    ] {
        let origin = closing(cut);
        let gateway = gateway(&[&origin], "", "");
        let (plain, tls) = (gateway.address(0), gateway.address(1));
        // 18: partial file. 92: stream error. 56: failure in receiving.
        for (flag, url, codes) in [
            ("--http1.1", format!("http://{plain}/"), &[18, 56][..]),
            ("--http1.1", format!("https://{tls}/"), &[18, 56]),
            ("--http2", format!("https://{tls}/"), &[92]),
        ] {
            let got = curl(&[flag, &url]);
            let code = got.status.code().unwrap();
            assert!(
                codes.contains(&code),
                "{flag} {url}: curl ended with {code}"
            );
        }
    }
}

#[test]
fn responses_without_a_body_leave_the_connection_usable() {
    let origin =
        answering(b"HTTP/1.1 304 Not Modified\r\ncontent-length: 10\r\netag: \"a\"\r\n\r\n");
    let behind = gateway(&[&origin], "", "");
    let mut wire = behind.client().connect();
    for _ in 0..2 {
        let answer = wire.get("/");
        assert_eq!((answer.status, answer.header("etag")), (304, Some("\"a\"")));
    }
    let origin = answering(b"HTTP/1.1 204 No Content\r\n\r\n");
    let behind = gateway(&[&origin], "", "");
    let mut wire = behind.client().connect();
    for _ in 0..2 {
        let answer = wire.get("/");
        assert_eq!(
            (answer.status, answer.header("content-length")),
            (204, None)
        );
    }
    let behind = Running::with("");
    let mut wire = behind.client().connect();
    for _ in 0..2 {
        wire.send(b"HEAD /x HTTP/1.1\r\nhost: example.com\r\n\r\n");
        let answer = Answer::parse(&wire.head());
        let length = "origin HEAD /x HTTP/1.1".len().to_string();
        assert_eq!(answer.header("content-length"), Some(length.as_str()));
    }
    assert_eq!(wire.get("/y").text(), "origin GET /y HTTP/1.1");
}

#[test]
fn interim_responses_are_not_the_final_response() {
    let origin = answering(
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n\
          HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nlast",
    );
    let gateway = gateway(&[&origin], "", "");
    let mut wire = gateway.client().connect();
    for _ in 0..2 {
        let answer = wire.get("/");
        assert_eq!((answer.status, answer.text().as_str()), (200, "last"));
    }
}

#[test]
fn requests_are_distributed_over_servers() {
    let origins = [Origin::start(), Origin::start()];
    let both = [&origins[0], &origins[1]];
    let turns = gateway(&both, "balance = \"round_robin\"", "");
    turns.client().get("/").times(10).all_are(200);
    assert_eq!((origins[0].count(), origins[1].count()), (5, 5));
    let choice = gateway(&both, "balance = \"p2c\"", "");
    choice.client().get("/").times(60).all_are(200);
    let counts = (origins[0].count(), origins[1].count());
    assert_eq!(counts.0 + counts.1, 70);
    assert!(counts.0 > 5 && counts.1 > 5, "{counts:?}");
}

#[test]
fn a_server_that_is_down_is_skipped() {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut down = Origin::start();
    down.address = nobody.local_addr().unwrap();
    drop(nobody);
    let up = Origin::start();
    let gateway = gateway(&[&down, &up], "balance = \"round_robin\"", "");
    gateway.client().get("/").times(10).all_are(200);
    assert_eq!(up.count(), 10);
}

#[test]
fn connections_to_an_origin_are_reused() {
    let opened = Arc::new(AtomicUsize::new(0));
    let count = opened.clone();
    let origin = Origin::scripted(move |stream| {
        count.fetch_add(1, Ordering::SeqCst);
        let mut wire = Wire::new(stream);
        while wire.try_head().is_some() {
            wire.send(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
        }
    });
    let gateway = gateway(&[&origin], "", "");
    let mut wire = gateway.client().connect();
    for _ in 0..20 {
        assert_eq!(wire.get("/").status, 200);
    }
    assert_eq!(opened.load(Ordering::SeqCst), 1);
}

#[test]
fn a_client_that_expects_100_continue_gets_it() {
    let gateway = Running::with("");
    let mut wire = gateway.client().connect();
    wire.send(
        b"POST / HTTP/1.1\r\nhost: example.com\r\nexpect: 100-continue\r\n\
          content-length: 5\r\n\r\n",
    );
    assert_eq!(wire.answer().status, 100);
    wire.send(b"hello");
    let answer = wire.answer();
    assert_eq!((answer.status, answer.text().as_str()), (200, "hello"));
    let seen = gateway.origin.seen().pop().unwrap();
    assert_eq!(seen.header("expect"), None);
    assert_eq!(wire.get("/").status, 200);
}

#[test]
fn a_client_that_expects_100_continue_is_refused_before_it_sends() {
    let gateway = Running::with(
        r#"
        [[rules]]
        name = "no-posts"
        mitigate = 'http.request.method eq "POST"'
        "#,
    );
    let mut wire = gateway.client().connect();
    wire.send(
        b"POST / HTTP/1.1\r\nhost: example.com\r\nexpect: 100-continue\r\n\
          content-length: 5\r\n\r\n",
    );
    let answer = wire.answer();
    assert_eq!(answer.status, 429);
    assert_eq!(answer.header("connection"), Some("close"));
    assert_eq!(wire.rest(), b"");
    assert_eq!(gateway.origin.count(), 0);
}

#[test]
fn bodies_over_the_limit_are_413() {
    let origin = Origin::start();
    let gateway = gateway(&[&origin], "", "[limits]\nmax_body_bytes = \"1KiB\"");
    let body = vec![b'x'; 1024];
    gateway.client().body(&body).post("/").times(1).all_are(200);
    let body = vec![b'x'; 1025];
    for client in [gateway.client(), gateway.tls_client()] {
        client.body(&body).post("/").times(1).all_are(413);
    }
    let mut chunked = b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
    for _ in 0..2 {
        chunked.extend_from_slice(b"400\r\n");
        chunked.extend_from_slice(&[b'x'; 1024]);
        chunked.extend_from_slice(b"\r\n");
    }
    chunked.extend_from_slice(b"0\r\n\r\n");
    for client in [gateway.client(), gateway.tls_client()] {
        assert_eq!(Answer::parse(&client.raw(&chunked)).status, 413);
    }
    let folder = Folder::new();
    let file = folder.write("body", vec![b'x'; 4096]);
    let file = format!("@{}", file.display());
    let url = format!("https://{}/", gateway.address(1));
    for length in ["content-length: 4096", "content-length:"] {
        let got = curl(&[
            "--http2",
            "-H",
            length,
            "--data-binary",
            &file,
            "-o",
            "/dev/null",
            "-w",
            "%{http_code}",
            &url,
        ]);
        assert_eq!(String::from_utf8_lossy(&got.stdout), "413", "{length}");
    }
    assert_eq!(origin.count(), 1);
}

#[test]
fn responses_of_routes_are_sent_after_the_request_body() {
    let gateway = Running::on(
        r#"
        [server]
        workers = 1
        [log]
        access = "off"
        [[listeners]]
        address = "127.0.0.1:0"
        [[routes]]
        path = "/old/*"
        redirect = "https://{host}{uri}"
        [[routes]]
        path = "/hello"
        respond = { status = 201, content_type = "text/html", body = "<p>hello" }
        "#,
    );
    let mut wire = gateway.client().connect();
    for (path, status) in [("/hello", 201), ("/old/a?b=c", 308), ("/none", 404)] {
        for body in [
            "content-length: 5\r\n\r\nhello",
            "transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        ] {
            wire.send(format!("POST {path} HTTP/1.1\r\nhost: Example.com\r\n{body}").as_bytes());
            let answer = wire.answer();
            assert_eq!(answer.status, status, "{path}");
            if status == 308 {
                let location = answer.header("location");
                assert_eq!(location, Some("https://example.com/old/a?b=c"));
            }
            if status == 201 {
                assert_eq!(answer.text(), "<p>hello");
                assert_eq!(answer.header("content-type"), Some("text/html"));
            }
        }
    }
}

#[test]
fn trailers_are_forwarded_without_framing_headers() {
    let (tell, told) = mpsc::channel();
    let origin = Origin::scripted(move |stream| {
        let mut wire = Wire::new(stream);
        let Some(mut all) = wire.try_head() else {
            return;
        };
        // The last chunk and the trailers end as a head does.
        all.extend(wire.try_head().unwrap());
        tell.send(String::from_utf8(all).unwrap()).unwrap();
        wire.send(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
    });
    let gateway = gateway(&[&origin], "", "");
    let mut wire = gateway.client().connect();
    wire.send(
        b"POST / HTTP/1.1\r\nhost: a\r\nte: trailers\r\ntransfer-encoding: chunked\r\n\
          trailer: x-sum\r\n\r\n3\r\nabc\r\n0\r\ncontent-length: 9\r\nhost: b\r\n\
          x-forwarded-for: 203.0.113.7\r\nx-sum: 1\r\n\r\n",
    );
    assert_eq!(wire.answer().text(), "ok");
    let seen = told.recv().unwrap().to_ascii_lowercase();
    assert!(seen.contains("\r\n3\r\nabc\r\n0\r\n"), "{seen}");
    assert!(seen.contains("x-sum: 1\r\n"), "{seen}");
    for gone in ["content-length", "host: b", "203.0.113.7"] {
        assert!(!seen.contains(gone), "{gone} in {seen}");
    }
}

#[test]
fn a_response_before_the_end_of_the_request_arrives() {
    // It reads on, as a good origin does: a reset could overtake the answer.
    let origin = Origin::scripted(|stream| {
        let mut wire = Wire::new(stream.try_clone().unwrap());
        if wire.try_head().is_some() {
            wire.send(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 2\r\n\r\nno");
            let _ = stream.shutdown(std::net::Shutdown::Write);
            wire.rest();
        }
    });
    let gateway = gateway(&[&origin], "", "");
    let answer = gateway.client().body(&vec![b'x'; 8 << 20]).post("/").send();
    assert_eq!((answer.status, answer.text().as_str()), (403, "no"));
    let fields = [
        (":method", "POST"),
        (":scheme", "http"),
        (":authority", "a.example"),
        (":path", "/"),
        ("content-length", "9999"),
    ];
    let begun = Frames::default().headers(&fields, 0).data(b"begun", 0);
    assert_eq!(begun.heard(gateway.client().connect()), Heard::Status(403));
}

#[test]
fn connections_closed_by_an_origin_are_not_used() {
    let (tell, told) = mpsc::channel();
    let origin = Origin::scripted(move |stream| {
        let own = stream.try_clone().unwrap();
        let mut wire = Wire::new(stream);
        if wire.try_head().is_some() {
            wire.send(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
            own.shutdown(Shutdown::Write).unwrap();
            // Under load, the kernel takes its time to carry the end to the other side.
            wait_until("the end has arrived", || !has_unheard_end(&own));
            tell.send(()).unwrap();
        }
    });
    let gateway = gateway(&[&origin], "", "");
    let mut wire = gateway.client().connect();
    for _ in 0..10 {
        assert_eq!(wire.get("/").status, 200);
        told.recv().unwrap();
        wire.send(b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\n\r\n");
        assert_eq!(wire.answer().status, 200);
        told.recv().unwrap();
    }
}

/// Whether the other side's kernel has not yet confirmed that this one sends no more: Linux calls it
/// FIN_WAIT1, the fourth of its states.
fn has_unheard_end(stream: &TcpStream) -> bool {
    let port = |address: SocketAddr| format!(":{:04X}", address.port());
    let own = port(stream.local_addr().unwrap());
    let other = stream.peer_addr().map(port);
    let table = fs::read_to_string("/proc/net/tcp").unwrap();
    table.lines().any(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let is_ours = || {
            fields[1].ends_with(&own)
                && other.as_ref().is_ok_and(|other| fields[2].ends_with(other))
        };
        fields.len() > 3 && fields[3] == "04" && is_ours()
    })
}

#[test]
fn a_body_that_ends_with_its_connection_is_complete() {
    let origin = closing(b"HTTP/1.0 200 OK\r\ncontent-type: text/plain\r\n\r\nuntil the end");
    let gateway = gateway(&[&origin], "", "");
    for client in [gateway.client(), gateway.tls_client()] {
        assert_eq!(client.get("/").send().text(), "until the end");
    }
    let url = format!("https://{}/", gateway.address(1));
    let got = curl(&["--http2", &url]);
    assert_eq!(String::from_utf8_lossy(&got.stdout), "until the end");
}

#[test]
fn pipelined_requests_get_responses_in_order() {
    let gateway = Running::with("");
    let mut wire = gateway.client().connect();
    let requests: String = (0..50)
        .map(|n| format!("GET /{n} HTTP/1.1\r\nhost: example.com\r\n\r\n"))
        .collect();
    wire.send(requests.as_bytes());
    for number in 0..50 {
        let text = wire.answer().text();
        assert_eq!(text, format!("origin GET /{number} HTTP/1.1"));
    }
}
