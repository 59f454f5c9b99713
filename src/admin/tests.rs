//! The admin port over real sockets.

use super::slots::MAX_CONNECTIONS;
use super::*;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinSet;

/// A running admin port.
struct Port {
    address: SocketAddr,
    state: Arc<AdminState>,
    _serving: JoinSet<()>,
}

async fn port(token: Option<&'static str>) -> Port {
    let state = Arc::new(AdminState {
        token: Box::new(move || token.map(str::to_owned)),
        ready: AtomicBool::new(false),
        metrics: Box::new(|| "lockgate_up 1\n".into()),
    });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut serving = JoinSet::new();
    let served = state.clone();
    serving.spawn(async move {
        accept(Some(listener), &served, &mut ConnectionSlots::default()).await;
    });
    Port {
        address,
        state,
        _serving: serving,
    }
}

impl Port {
    /// Sends a head and returns the whole response.
    async fn ask(&self, head: &str) -> String {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let request = format!("{head}\r\nhost: x\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer.to_ascii_lowercase()
    }
}

#[tokio::test]
async fn health_is_ok_and_readiness_follows_the_gateway() {
    let port = port(Some("secret")).await;
    let answer = port.ask("GET /healthz HTTP/1.1").await;
    assert!(answer.starts_with("http/1.1 200 "), "{answer}");
    assert!(answer.ends_with("\r\n\r\n{\"status\":\"ok\"}"), "{answer}");
    let answer = port.ask("GET /readyz HTTP/1.1").await;
    assert!(answer.starts_with("http/1.1 503 "), "{answer}");
    port.state.ready.store(true, Ordering::Release);
    let answer = port.ask("GET /readyz HTTP/1.1").await;
    assert!(answer.starts_with("http/1.1 200 "), "{answer}");
}

#[tokio::test]
async fn metrics_are_prometheus_text() {
    let port = port(None).await;
    let answer = port.ask("GET /metrics HTTP/1.1").await;
    assert!(answer.starts_with("http/1.1 200 "), "{answer}");
    assert!(answer.contains("content-type: text/plain; version=0.0.4; charset=utf-8\r\n"));
    assert!(answer.ends_with("\r\n\r\nlockgate_up 1\n"));
}

#[tokio::test]
async fn metrics_require_the_token_if_one_is_configured() {
    let port = port(Some("secret")).await;
    for credentials in [
        "",
        "authorization: Bearer secre",
        "authorization: Bearer secrets",
        "authorization: Bearer ",
        "authorization: Basic secret",
        "authorization: secret",
        "authorization: B",
    ] {
        let head = format!("GET /metrics HTTP/1.1\r\n{credentials}");
        let answer = port.ask(head.trim_end_matches("\r\n")).await;
        assert!(answer.starts_with("http/1.1 401 "), "{head}: {answer}");
        assert!(answer.contains("www-authenticate: bearer\r\n"));
        assert!(!answer.contains("lockgate_up"));
    }
    for scheme in ["Bearer", "bearer"] {
        let head = format!("GET /metrics HTTP/1.1\r\nauthorization: {scheme} secret");
        let answer = port.ask(&head).await;
        assert!(answer.starts_with("http/1.1 200 "), "{answer}");
    }
}

#[tokio::test]
async fn an_empty_token_admits_no_request() {
    let port = port(Some("")).await;
    let empty = HeaderValue::from_static("Bearer ");
    assert!(!port.state.admits(Some(&empty)));
    let head = "GET /metrics HTTP/1.1\r\nauthorization: Bearer ";
    assert!(port.ask(head).await.starts_with("http/1.1 401 "));
}

#[tokio::test]
async fn an_unknown_path_is_a_json_404() {
    let port = port(None).await;
    for target in ["/", "/metrics/", "/healthz/../metrics", "/api/status"] {
        let answer = port.ask(&format!("GET {target} HTTP/1.1")).await;
        assert!(answer.starts_with("http/1.1 404 "), "{answer}");
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        let body: serde_json::Value = serde_json::from_str(body).unwrap();
        assert!(body["error"].is_string());
    }
}

#[tokio::test]
async fn only_get_and_head_are_allowed() {
    let port = port(None).await;
    for method in ["POST", "DELETE", "OPTIONS", "BREW"] {
        let answer = port.ask(&format!("{method} /metrics HTTP/1.1")).await;
        assert!(answer.starts_with("http/1.1 405 "), "{answer}");
        assert!(answer.contains("allow: get, head\r\n"));
    }
    let answer = port.ask("HEAD /metrics HTTP/1.1").await;
    assert!(answer.starts_with("http/1.1 200 "), "{answer}");
    assert!(answer.contains("content-length: 14\r\n"), "{answer}");
    assert!(answer.ends_with("\r\n\r\n"), "{answer}");
}

#[tokio::test]
async fn invalid_requests_do_not_stop_the_admin_port() {
    let port = port(None).await;
    for garbage in [&b"\x16\x03\x01\x02\x00"[..], b"GET\r\n\r\n", b"\0\0\0\0"] {
        let mut stream = TcpStream::connect(port.address).await.unwrap();
        stream.write_all(garbage).await.unwrap();
        stream.shutdown().await.unwrap();
        let _ = stream.read_to_end(&mut Vec::new()).await;
    }
    assert!(port.ask("GET /healthz HTTP/1.1").await.contains("200 ok"));
}

#[tokio::test]
async fn above_the_limit_the_oldest_silent_connection_is_closed() {
    let port = port(None).await;
    let mut held = Vec::new();
    for _ in 0..MAX_CONNECTIONS {
        held.push(TcpStream::connect(port.address).await.unwrap());
    }
    for _ in 0..3 {
        assert!(healthy(port.address).await);
    }
    assert_eq!(held[0].read(&mut [0]).await.unwrap_or_default(), 0);
    let mut newest = held.pop().unwrap();
    let request = b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n";
    newest.write_all(request).await.unwrap();
    let mut answer = String::new();
    newest.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
}

async fn healthy(address: SocketAddr) -> bool {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n";
    let sent = stream.write_all(request).await.is_ok();
    let mut answer = Vec::new();
    let read = stream.read_to_end(&mut answer).await.is_ok();
    sent && read && answer.starts_with(b"HTTP/1.1 200 ")
}
