//! Responses that come before the end of an upload of 5 MB: real clients see them.

use std::path::Path;
use std::process::Command;

use super::before;
use crate::harness::{Folder, Origin, Running, Wire, run};

/// The size of each upload.
const SIZE: usize = 5_000_000;

/// How often each client uploads.
const ATTEMPTS: usize = 3;

/// An origin that responds to a head, and neither reads the body nor closes the connection.
fn impatient() -> Origin {
    Origin::scripted(|stream| {
        let mut wire = Wire::new(stream);
        wire.head();
        wire.send(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 2\r\n\r\nno");
        std::thread::sleep(std::time::Duration::from_secs(1));
    })
}

/// An origin that responds to a head and closes the connection, so that the gateway's writes fail.
fn closing() -> Origin {
    Origin::scripted(|stream| {
        let mut wire = Wire::new(stream);
        wire.head();
        wire.send(b"HTTP/1.1 403 Forbidden\r\nconnection: close\r\ncontent-length: 2\r\n\r\nno");
    })
}

const BLOCKS: &str = r#"
    [[rules]]
    name = "no-posts"
    mitigate = 'http.request.method eq "POST"'
    action = "block"
"#;

/// Gateways that do not want the body, with the status of their response.
fn refusing() -> Vec<(Running, &'static str)> {
    let no_route = r#"
        [log]
        access = "off"
        [[listeners]]
        address = "127.0.0.1:0"
        [[listeners]]
        address = "127.0.0.1:0"
        [listeners.tls]
        [[routes]]
        path = "/elsewhere"
        respond = { status = 200 }
    "#;
    vec![
        (Running::with(BLOCKS), "429"),
        (Running::on(no_route), "404"),
        (Running::with("[limits]\nmax_body_bytes = \"1MiB\""), "413"),
        (before(impatient(), ""), "403"),
        (before(closing(), ""), "403"),
    ]
}

fn lines(command: &mut Command) -> Vec<String> {
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.is_empty(), "{errors}");
    text.lines().map(str::to_owned).collect()
}

fn curl(url: &str, file: &Path, version: &str) -> Vec<String> {
    (0..ATTEMPTS)
        .flat_map(|_| {
            let mut curl = Command::new("curl");
            curl.args(["--silent", "--show-error", "--insecure", "--max-time", "30"]);
            curl.args([version, "--header", "expect:", "--output", "/dev/null"]);
            curl.args(["--write-out", "%{http_code}\n", "--data-binary"]);
            lines(curl.arg(format!("@{}", file.display())).arg(url))
        })
        .collect()
}

fn has(program: &str) -> bool {
    let version = Command::new(program).arg("--version").output();
    version.is_ok_and(|output| output.status.success())
}

fn all_see(client: &str, seen: Vec<String>, status: &str) {
    assert_eq!(seen, vec![status; ATTEMPTS], "{client}");
}

#[test]
fn curl_sees_an_early_response() {
    let folder = Folder::new();
    let file = folder.write("body", vec![b'x'; SIZE]);
    for (gateway, status) in refusing() {
        let plain = format!("http://{}/", gateway.address(0));
        let tls = format!("https://{}/", gateway.address(1));
        all_see("plain", curl(&plain, &file, "--http1.1"), status);
        all_see(
            "h2c",
            curl(&plain, &file, "--http2-prior-knowledge"),
            status,
        );
        all_see("tls", curl(&tls, &file, "--http1.1"), status);
        all_see("1.0", curl(&tls, &file, "--http1.0"), status);
        all_see("h2", curl(&tls, &file, "--http2"), status);
    }
}

#[test]
fn scripts_see_an_early_response() {
    let clients = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/clients");
    for (gateway, status) in refusing() {
        for (listener, scheme) in [(0, "plain"), (1, "tls")] {
            let port = gateway.address(listener).port().to_string();
            for (program, script) in [("python3", "upload.py"), ("node", "upload.js")] {
                if program == "python3" || has(program) {
                    let mut client = Command::new(program);
                    client.arg(clients.join(script)).args([&port, scheme]);
                    let seen = lines(client.arg(ATTEMPTS.to_string()));
                    all_see(script, seen, status);
                }
            }
        }
    }
}

#[test]
fn java_sees_an_early_response() {
    if !has("javac") {
        return;
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/clients/Upload.java");
    let classes = Folder::new();
    let compiled = Command::new("javac")
        .arg("-d")
        .args([classes.path(), &source])
        .status();
    assert!(compiled.unwrap().success());
    for (gateway, status) in refusing() {
        let port = gateway.address(1).port().to_string();
        let mut java = Command::new("java");
        java.arg("-Djdk.internal.httpclient.disableHostnameVerification=true");
        java.arg("-cp").arg(classes.path());
        let seen = lines(java.args(["Upload", &port, "plain", "3"]));
        assert_eq!(seen, vec![status; 2 * ATTEMPTS]);
    }
}

#[test]
fn an_early_error_announces_that_the_connection_closes() {
    for (gateway, status) in refusing() {
        for client in [gateway.client(), gateway.tls_client()] {
            let mut wire = client.connect();
            let head = format!("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: {SIZE}\r\n\r\n");
            wire.send(head.as_bytes());
            let response = wire.answer();
            assert_eq!(response.status.to_string(), status);
            assert_eq!(response.header("connection"), Some("close"), "{status}");
            wire.send(&vec![b'x'; SIZE]);
            assert_eq!(wire.rest(), b"");
        }
    }
}

/// The rest of the body is read, and the next request follows it.
#[test]
fn an_early_success_keeps_the_connection() {
    let origin = Origin::scripted(|stream| {
        let mut wire = Wire::new(stream);
        wire.head();
        wire.send(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
    });
    let gateway = before(origin, "");
    let mut wire = gateway.client().connect();
    for _ in 0..2 {
        let head = format!("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: {SIZE}\r\n\r\n");
        wire.send(head.as_bytes());
        let response = wire.answer();
        assert_eq!(
            (response.status, response.header("connection")),
            (200, None)
        );
        wire.send(&vec![b'x'; SIZE]);
    }
}

#[test]
fn the_limits_bound_what_is_read() {
    let limit = "[limits]\nlinger = { bytes = \"1MiB\", time = \"10s\" }\n";
    for limits in [limit, &limit.replace("1MiB", "0")] {
        let gateway = Running::with(&format!("{limits}{BLOCKS}"));
        let mut wire = gateway.client().connect();
        let size = 256 << 20;
        let head = format!("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: {size}\r\n\r\n");
        wire.send(head.as_bytes());
        assert_eq!(wire.answer().status, 429);
        // More than the limit and what the kernel holds.
        assert!(wire.try_send(&vec![b'x'; size]).is_err());
    }
}

/// A stream that sends no end is reset without an error, after the whole response (RFC 9113, 8.1).
#[test]
fn an_endless_http2_upload_is_reset_after_the_response() {
    let limits = "[limits]\nlinger = { bytes = \"1MiB\", time = \"1s\" }\n";
    let gateway = Running::with(&format!("{limits}{BLOCKS}"));
    run(async {
        let mut talk = gateway.tls_client().talk().await;
        let (response, mut body) = talk.open(talk.request("POST", "/"), false).await;
        body.send_data(vec![b'x'; 100].into(), false).unwrap();
        let response = response.await.unwrap();
        assert_eq!(response.status(), 429);
        let mut text = response.into_body();
        while let Some(data) = text.data().await {
            let length = data.unwrap().len();
            text.flow_control().release_capacity(length).unwrap();
        }
        let reset = std::future::poll_fn(|cx| body.poll_reset(cx))
            .await
            .unwrap();
        assert_eq!(reset, h2::Reason::NO_ERROR);
    });
}
