//! The upstream module against real sockets. Most origin servers here are scripts that read and write exact
//! bytes.

mod balance;
mod bodies;
mod chunked;
mod early;
mod head;
mod headers;
mod names;
mod retry;
mod reuse;
mod shun;
mod speech;
mod timeouts;
mod unix;
mod upgrade;

use std::cell::Cell;
use std::future::Future;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request};
use http_body::Frame;
use http_body_util::BodyExt;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::{
    ForwardedHeaders, HeadLimits, OutboundRequest, Pool, ServerEndpoint, ServerLocation,
    ServerRegistry, ServerSpec, Upstream, UpstreamError, UpstreamResponse, UpstreamServer,
};
use crate::body::Body;
use crate::clock::Clock;

/// A pool and an upstream for a test.
struct Bed {
    pool: Pool,
    upstream: Upstream,
}

/// A scripted origin server.
struct Origin {
    address: SocketAddr,
    accepted: Rc<Cell<usize>>,
}

impl Upstream {
    fn new(name: &str, places: Vec<ServerSpec>, registry: &ServerRegistry) -> Self {
        Self::without_servers(name).with_servers(places, registry)
    }
}

impl Pool {
    /// The number of idle connections.
    fn idle(&self) -> usize {
        let http1: usize = self.http1.borrow().values().map(|idle| idle.len()).sum();
        let is_idle = |connection: &&Rc<_>| Rc::strong_count(connection) == 1;
        let pools = self.http2.borrow();
        let pools = pools.values().map(|pool| pool.open.borrow());
        http1
            + pools
                .map(|open| open.iter().filter(is_idle).count())
                .sum::<usize>()
    }
}

impl Bed {
    fn to(addresses: &[SocketAddr]) -> Self {
        Self::with_clock(addresses, Clock::System)
    }

    fn with_clock(addresses: &[SocketAddr], clock: Clock) -> Self {
        let places = addresses.iter().map(|&address| place(address)).collect();
        Self {
            pool: Pool::new(clock),
            upstream: Upstream::new("app", places, &ServerRegistry::default()),
        }
    }

    fn server(&self, i: usize) -> Arc<UpstreamServer> {
        self.upstream.servers()[i].clone()
    }

    async fn send(&self, request: Request<Body>) -> Result<UpstreamResponse, UpstreamError> {
        let (parts, body) = request.into_parts();
        let outbound = outbound(&parts, body);
        self.pool.forward(&self.upstream, outbound).await
    }

    /// Returns the status and the whole body of the response to a GET.
    async fn get(&self) -> Result<(u16, String), UpstreamError> {
        let answer = self.send(get("/")).await?;
        let status = answer.response.status().as_u16();
        Ok((status, text(answer).await))
    }

    async fn reason(&self) -> &'static str {
        self.send(get("/")).await.err().map_or("", |e| e.reason())
    }
}

impl Origin {
    /// Runs `script` on each connection, with its number from zero.
    async fn playing<F>(script: impl Fn(usize, TcpStream) -> F + 'static) -> Self
    where
        F: Future<Output = ()> + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let accepted = Rc::new(Cell::new(0));
        let count = Rc::clone(&accepted);
        tokio::task::spawn_local(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let number = count.replace(count.get() + 1);
                tokio::task::spawn_local(script(number, stream));
            }
        });
        Self { address, accepted }
    }

    /// Responds to every request head with these bytes and keeps the connection open.
    async fn answering(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        Self::playing(move |_, mut stream| {
            let bytes = bytes.clone();
            async move {
                while !head(&mut stream).await.is_empty() {
                    stream.write_all(&bytes).await.unwrap();
                }
            }
        })
        .await
    }

    /// Responds to every request immediately, except for the end of the body, which waits for the gate.
    async fn holding_back(gate: &Rc<tokio::sync::Semaphore>) -> Self {
        let gate = Rc::clone(gate);
        Self::playing(move |_, mut stream| {
            let gate = Rc::clone(&gate);
            async move {
                while !head(&mut stream).await.is_empty() {
                    let (first, last) = OK.split_at(OK.len() - 1);
                    stream.write_all(first.as_bytes()).await.unwrap();
                    gate.acquire().await.unwrap().forget();
                    stream.write_all(last.as_bytes()).await.unwrap();
                }
            }
        })
        .await
    }

    /// Responds to each connection's first request with the bytes at its number, then closes.
    async fn closing_after(answers: &'static [&'static str]) -> Self {
        Self::playing(move |number, mut stream| async move {
            head(&mut stream).await;
            stream.write_all(answers[number].as_bytes()).await.unwrap();
        })
        .await
    }
}

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/// A request of an untrusted client.
fn outbound(parts: &http::request::Parts, body: Body) -> OutboundRequest<'_> {
    OutboundRequest {
        method: &parts.method,
        target: parts
            .uri
            .path_and_query()
            .map_or("", |target| target.as_str()),
        headers: &parts.headers,
        edits: None,
        version: parts.version,
        host: None,
        forwarding: ForwardedHeaders {
            peer: IpAddr::V4(Ipv4Addr::LOCALHOST),
            client: IpAddr::V4(Ipv4Addr::LOCALHOST),
            trusted_peer: false,
            host: "a.test",
            https: false,
            request_id: "id-1",
            rules: "",
            credentials: None,
        },
        body,
        upgrade: parts.headers.contains_key("upgrade"),
        key: 0,
        response_timeout: None,
    }
}

/// A server with default settings.
fn place(endpoint: impl Into<ServerEndpoint>) -> ServerSpec {
    ServerSpec {
        at: ServerLocation::Endpoint(endpoint.into()),
        weight: 1,
        backup: false,
    }
}

fn get(path: &str) -> Request<Body> {
    let request = Request::get(path).header("host", "a.test");
    request.body(Body::Empty).unwrap()
}

fn post(body: Body) -> Request<Body> {
    let request = Request::post("/").header("host", "a.test");
    request.body(body).unwrap()
}

/// A body of the given frames with an unknown length.
fn frames(frames: Vec<Frame<Bytes>>) -> Body {
    let (sender, body) = channel();
    tokio::task::spawn_local(async move {
        for frame in frames {
            if sender.send(Ok(frame)).await.is_err() {
                return;
            }
        }
    });
    body
}

fn chunks(chunks: &[&'static str]) -> Body {
    let data = |text: &&'static str| Frame::data(Bytes::from_static(text.as_bytes()));
    frames(chunks.iter().map(data).collect())
}

type Chunk = Result<Frame<Bytes>, std::io::Error>;

/// A body fed by a sender, one frame at a time.
fn channel() -> (tokio::sync::mpsc::Sender<Chunk>, Body) {
    struct Fed(tokio::sync::mpsc::Receiver<Chunk>);
    impl http_body::Body for Fed {
        type Data = Bytes;
        type Error = std::io::Error;
        fn poll_frame(
            mut self: std::pin::Pin<&mut Self>,
            cx: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Option<Chunk>> {
            self.0.poll_recv(cx)
        }
    }
    let (sender, receiver) = tokio::sync::mpsc::channel(1);
    (sender, Body::stream(Fed(receiver)))
}

async fn text(answer: UpstreamResponse) -> String {
    let body = answer.response.into_body().collect().await.unwrap();
    String::from_utf8(body.to_bytes().to_vec()).unwrap()
}

async fn data_and_trailers(answer: UpstreamResponse) -> (String, HeaderMap) {
    let body = answer.response.into_body().collect().await.unwrap();
    let trailers = body.trailers().cloned().unwrap_or_default();
    let data = String::from_utf8(body.to_bytes().to_vec()).unwrap();
    (data, trailers)
}

/// Reads a request head. Empty at the end of the connection.
async fn head(stream: &mut (impl AsyncRead + Unpin)) -> String {
    until(stream, "\r\n\r\n").await
}

/// Reads up to and including `end`. Empty at the end of the connection.
async fn until(stream: &mut (impl AsyncRead + Unpin), end: &str) -> String {
    let mut read = Vec::new();
    while !read.ends_with(end.as_bytes()) {
        match stream.read_u8().await {
            Ok(byte) => read.push(byte),
            Err(_) => return String::new(),
        }
    }
    String::from_utf8(read).unwrap()
}

/// Reads until the other side closes.
async fn rest(stream: &mut TcpStream) -> String {
    let mut read = Vec::new();
    let _ = stream.read_to_end(&mut read).await;
    String::from_utf8(read).unwrap()
}

/// Lets the tasks of this thread and the loopback make progress.
async fn settle() {
    for _ in 0..15 {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}
