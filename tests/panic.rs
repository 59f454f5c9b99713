//! A panic in the handler of a request costs that connection at the most, in HTTP/2 that stream,
//! and is told. In a program of its own: what hears of panics is one for a whole program.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

use std::fs::File;
use std::io::Read;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use lockgate::clock::Clock;
use lockgate::listen::{
    self, ConnectionLimit, ConnectionLimits, ConnectionTimers, CoreDrain, DrainTrigger,
    HttpVersion, LingerLimits, RequestBody, ResponseHandle, accept_loop, bind,
};
use lockgate::observe::{LineSink, LogHandle, LogOutput, Metrics, install_panic_hook};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tracing::Level;

/// ConnectionTimers that nobody waits for.
const LIMITS: ConnectionLimits = ConnectionLimits {
    header_timeout: Duration::from_secs(60),
    idle_timeout: Duration::from_secs(60),
    request_body_timeout: Duration::from_secs(60),
    response_write_timeout: Duration::from_secs(60),
    min_rate: 0,
    rate_window: Duration::from_secs(60),
    max_header_bytes: 16 * 1024,
    max_headers: 20,
    h2_max_concurrent_streams: 128,
    h2_max_resets: 100,
    linger: LingerLimits {
        bytes: 0,
        time: Duration::ZERO,
    },
};

async fn handler(
    request: Request<RequestBody>,
    _: ResponseHandle,
) -> Option<Response<Full<Bytes>>> {
    assert!(
        request.uri().path() != "/panic",
        "a fault with `s3cret` in it"
    );
    Some(Response::new(Full::from("hello")))
}

/// A way in, as a core opens it.
fn open(gate: &ConnectionLimit, drain: &CoreDrain) -> SocketAddr {
    let listener = bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = listener.local_addr().unwrap();
    let listener = TcpListener::from_std(listener).unwrap();
    let timers = ConnectionTimers::spawn(drain.clone(), |_| {});
    let accept = accept_loop(
        listener,
        true,
        gate.clone(),
        drain.clone(),
        move |tcp, _, permit| {
            let timer = timers.start(&LIMITS, permit);
            listen::spawn(async move {
                let protocol = listen::sniff(&tcp).await.unwrap_or(HttpVersion::Http1);
                let _ = listen::serve(timer.socket(tcp), protocol, &LIMITS, timer, handler).await;
            });
        },
    );
    tokio::task::spawn_local(accept);
    address
}

/// What comes back for `path` until the connection ends.
async fn ask(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    // One that is cut off may be reset.
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8(answer).unwrap()
}

async fn over_http1(address: SocketAddr, gate: &ConnectionLimit) {
    let mut other = TcpStream::connect(address).await.unwrap();
    other
        .write_all(b"GET / HTTP/1.1\r\nhost: a\r\n")
        .await
        .unwrap();
    assert_eq!(ask(address, "/panic").await, "", "its connection ends");
    assert!(
        ask(address, "/").await.ends_with("hello"),
        "the next is served"
    );
    other.write_all(b"connection: close\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    other.read_to_string(&mut answer).await.unwrap();
    assert!(answer.ends_with("hello"), "one that was open is served too");
    drop(other);
    while gate.open() > 0 {
        tokio::task::yield_now().await;
    }
}

async fn over_http2(address: SocketAddr) {
    let tcp = TcpStream::connect(address).await.unwrap();
    let (mut sender, connection) = h2::client::handshake(tcp).await.unwrap();
    tokio::task::spawn_local(connection);
    let mut get = |path: &str| {
        let request = Request::get(format!("http://a{path}")).body(()).unwrap();
        sender.send_request(request, true).unwrap().0
    };
    let (first, fails) = (get("/"), get("/panic"));
    assert!(fails.await.unwrap_err().is_reset(), "its stream ends");
    assert_eq!(first.await.unwrap().status(), 200);
    assert_eq!(
        get("/").await.unwrap().status(),
        200,
        "its connection lives"
    );
}

#[test]
fn a_panic_ends_one_connection_or_stream_and_is_logged() {
    let (mut reader, writer) = std::io::pipe().unwrap();
    let sink = LineSink::stream(File::from(OwnedFd::from(writer))).unwrap();
    let (log, dispatch) = LogHandle::to(sink, Clock::System, "");
    log.configure(Level::INFO, LogOutput::Text);
    let metrics = Metrics::new();
    assert!(metrics.encode().contains("lockgate_panics_total 0\n"));
    install_panic_hook(&metrics.panics);
    let work = async {
        let (gate, trigger) = (ConnectionLimit::new(100), DrainTrigger::default());
        let address = open(&gate, &trigger.core());
        over_http1(address, &gate).await;
        over_http2(address).await;
    };
    let runtime = tokio::runtime::LocalRuntime::new().unwrap();
    // The handlers run on this thread.
    tracing::dispatcher::with_default(&dispatch, || {
        runtime.block_on(async {
            let patience = Duration::from_secs(60);
            tokio::time::timeout(patience, work).await.unwrap();
        });
    });
    drop((log, dispatch));
    let mut said = String::new();
    reader.read_to_string(&mut said).unwrap();
    assert!(metrics.encode().contains("lockgate_panics_total 2\n"));
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 2, "{said}");
    for line in lines {
        assert!(line.contains(" ERROR panic "), "{line}");
        assert!(line.contains("at=tests/panic.rs:"), "{line}");
        assert!(line.contains("a fault with"), "{line}");
        assert!(!line.contains("s3cret"), "{line}");
    }
}
