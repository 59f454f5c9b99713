//! Tests of listeners and connections on real sockets.

mod accepting;
mod bodies;
mod draining;
mod http1;
mod http2;
mod pace;
mod slow;

use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::time::timeout;

use super::*;
use crate::body::Body;

/// Ends a wait that would last for ever; nothing is measured with it.
const LONG: Duration = Duration::from_secs(20);

/// More than the kernel holds for a connection.
const HUGE: usize = 16 << 20;

/// A listener with a small application behind it.
#[derive(Clone)]
struct Site {
    address: SocketAddr,
    gate: ConnectionLimit,
    trigger: DrainTrigger,
    drain: CoreDrain,
    timers: Rc<ConnectionTimers>,
    /// HTTP/2 streams that were ended because their clients did not read the responses.
    slow_streams: Rc<Cell<usize>>,
    /// Responses of `/held` are sent when this is notified.
    release: Rc<Notify>,
    /// Requests that reached the application.
    seen: Rc<Cell<usize>>,
    /// MiB of `/stream` that were made.
    made: Rc<Cell<usize>>,
    ends: Rc<std::cell::RefCell<Vec<Result<(), ServeError>>>>,
}

/// Runs a test on a runtime like that of a core.
fn run(test: impl Future<Output = ()>) {
    tokio::runtime::LocalRuntime::new()
        .unwrap()
        .block_on(async { timeout(3 * LONG, test).await.unwrap() });
}

/// ConnectionTimers that no test waits for.
fn limits() -> ConnectionLimits {
    ConnectionLimits {
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
            bytes: 1 << 20,
            time: Duration::from_millis(500),
        },
    }
}

// === impl Site ===

impl Site {
    async fn open(limits: ConnectionLimits) -> Self {
        Self::with_gate(limits, ConnectionLimit::new(1000)).await
    }

    async fn with_gate(limits: ConnectionLimits, gate: ConnectionLimit) -> Self {
        let listener = bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let trigger = DrainTrigger::default();
        let drain = trigger.core();
        let slow_streams = Rc::<Cell<usize>>::default();
        let site = Self {
            address: listener.local_addr().unwrap(),
            gate,
            trigger,
            timers: ConnectionTimers::spawn(drain.clone(), {
                let slow = slow_streams.clone();
                move |fault| slow.set(slow.get() + usize::from(fault == ClientFault::Timeout))
            }),
            slow_streams,
            drain,
            release: Rc::default(),
            seen: Rc::default(),
            made: Rc::default(),
            ends: Rc::default(),
        };
        let listener = TcpListener::from_std(listener).unwrap();
        let (me, gate, drain) = (site.clone(), site.gate.clone(), site.drain.clone());
        tokio::task::spawn_local(accept_loop(
            listener,
            true,
            gate,
            drain,
            move |stream, _, permit| {
                let timer = me.timers.start(&limits, permit);
                tokio::task::spawn_local(me.clone().connection(stream, limits, timer));
            },
        ));
        site
    }

    async fn connection(self, stream: TcpStream, limits: ConnectionLimits, timer: ConnectionTimer) {
        let ended = match timer.guard(sniff(&stream)).await {
            Ok(Ok(protocol)) => {
                let me = self.clone();
                let app = move |request, _| me.clone().answer(request);
                let socket = timer.socket(stream);
                serve(socket, protocol, &limits, timer, app).await
            }
            Ok(Err(e)) => Err(ServeError::Io(e)),
            Err(slow) => Err(slow.into()),
        };
        self.ends.borrow_mut().push(ended);
    }

    async fn answer(self, request: Request<RequestBody>) -> Option<Response<Body>> {
        self.seen.set(self.seen.get() + 1);
        match request.uri().path() {
            "/silence" => None,
            _ => Some(self.respond(request).await),
        }
    }

    async fn respond(self, request: Request<RequestBody>) -> Response<Body> {
        let path = request.uri().path().to_owned();
        let mut body = request.into_body();
        match path.as_str() {
            "/held" => self.release.notified().await,
            "/panic" => panic!("a handler's own"),
            "/echo" => return Response::new(Body::stream(body)),
            "/stream" => return Response::new(Body::stream(self.flood())),
            "/events" => return Response::new(Body::stream(Quiet)),
            "/kib" => return Response::new(Body::from(vec![b'k'; 1024])),
            "/huge" => return Response::new(Body::from(vec![b'h'; HUGE])),
            "/big" => return Response::new(Body::from(vec![b'b'; 3 << 20])),
            "/size" => {
                let size = match body.collect().await {
                    Ok(whole) => whole.to_bytes().len().to_string(),
                    Err(error) => error.to_string(),
                };
                return Response::new(Body::from(size));
            }
            "/drain" => {
                let wait = Duration::from_millis(300);
                let drained = drain_body(&mut body, 1024, wait, &Cell::default()).await;
                return Response::new(Body::from(format!("{drained:?}")));
            }
            "/ignore" => drop(body),
            "/upgrade" => return self.upgrade(),
            _ => {}
        }
        Response::new(Body::from("hello"))
    }

    fn flood(&self) -> Flood {
        Flood {
            left: 64,
            made: self.made.clone(),
        }
    }

    fn upgrade(&self) -> Response<Body> {
        Response::builder()
            .status(StatusCode::SWITCHING_PROTOCOLS)
            .header("connection", "upgrade")
            .header("upgrade", "echo")
            .body(Body::Empty)
            .unwrap()
    }

    async fn connect(&self) -> Client {
        Client(TcpStream::connect(self.address).await.unwrap())
    }

    /// Waits until the first connection has ended, and takes how it did.
    async fn end(&self) -> Result<(), ServeError> {
        loop {
            if let Some(end) = self.ends.borrow_mut().pop() {
                return end;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    async fn until(&self, done: impl Fn(&Self) -> bool) {
        while !done(self) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// A body of this many MiB, generated on demand.
struct Flood {
    left: usize,
    made: Rc<Cell<usize>>,
}

impl http_body::Body for Flood {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<Bytes>, Self::Error>>> {
        static MIB: [u8; 1 << 20] = [b'f'; 1 << 20];
        std::task::Poll::Ready(self.left.checked_sub(1).map(|left| {
            self.left = left;
            self.made.set(self.made.get() + 1);
            Ok(http_body::Frame::data(Bytes::from_static(&MIB)))
        }))
    }
}

/// A body of which nothing ever comes.
struct Quiet;

impl http_body::Body for Quiet {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<Bytes>, Self::Error>>> {
        std::task::Poll::Pending
    }
}

/// A client that sends given bytes unchanged.
struct Client(TcpStream);

impl Client {
    async fn send(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        self.0.write_all(bytes.as_ref()).await.unwrap();
        self
    }

    /// Reads until `end` has come, or panics with what came instead.
    async fn until(&mut self, end: &str) -> String {
        let mut text = String::new();
        while !text.ends_with(end) {
            let byte = timeout(LONG, self.0.read_u8()).await.unwrap();
            text.push(byte.unwrap_or_else(|e| panic!("{e} after {text:?}")).into());
        }
        text
    }

    /// Reads to the end of the connection; a reset is an end too.
    async fn rest(&mut self) -> String {
        self.read_out().await.0
    }

    /// Reads to the end of the connection, which must not be a reset.
    async fn rest_in_peace(&mut self) -> String {
        let (text, end) = self.read_out().await;
        end.unwrap();
        text
    }

    async fn read_out(&mut self) -> (String, std::io::Result<usize>) {
        let mut bytes = Vec::new();
        let end = timeout(LONG, self.0.read_to_end(&mut bytes)).await.unwrap();
        (String::from_utf8_lossy(&bytes).into_owned(), end)
    }
}
