//! A WebSocket after its handshake: copies bytes in both directions until one side ends, and then writes the access
//! log entry of its request. It holds no configuration.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http::header::{
    CONNECTION, CONTENT_LENGTH, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, UPGRADE,
};
use http::request::Parts;
use http::{HeaderMap, Method, Response, StatusCode};
use hyper::ext::Protocol;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf, copy_bidirectional};
use tokio::time::{Instant, Sleep, sleep};
use tracing::debug;

use super::request_context::RequestContext;
use crate::clock::Clock;
use crate::facts::{MalformedRequest, UpgradeProtocol};
use crate::listen::{RequestBody, TunnelGuard};
use crate::observe::TunnelSide;
use crate::observe::access::{AccessEnd, AccessLog};
use crate::upstream::{OriginTunnel, UpstreamError, UpstreamResponse, WebSocketKey};

/// A client that may open a tunnel.
pub struct TunnelClient {
    upgrade: OnUpgrade,
    /// Set if the connection carries other streams too.
    guard: Option<TunnelGuard>,
    /// The gateway's key for the handshake. `None` if the client's own is used.
    key: Option<WebSocketKey>,
}

/// The access log entry of a tunnel. The response that opens the tunnel leaves its line here.
#[derive(Default)]
pub struct TunnelEntry(Cell<Option<(AccessLog, Vec<u8>)>>);

/// Writes the access log entry when it is dropped: at the end of the tunnel, or with the runtime.
struct TunnelLog {
    entry: Rc<TunnelEntry>,
    clock: Clock,
    /// When the request head was complete.
    began: std::time::Instant,
    flow: Rc<Flow>,
}

/// The state of an open tunnel.
struct Flow {
    /// The number of bytes from the client.
    bytes_in: Cell<u64>,
    /// The number of bytes to the client.
    bytes_out: Cell<u64>,
    /// The side that ended first. `None` while both are open.
    ended_by: Cell<Option<TunnelSide>>,
    /// The idle timeout after one side has ended.
    idle_timeout: Duration,
    /// The idle timer. `None` until a side has ended: a tunnel with two open sides may stay idle.
    idle: RefCell<Option<Pin<Box<Sleep>>>>,
}

/// One side of a tunnel. hyper reports a stream reset as an ordinary end of the data, but after a reset the peer
/// no longer reads data from the other side.
struct Side<'f, S> {
    stream: S,
    side: TunnelSide,
    flow: &'f Flow,
}

// === impl TunnelClient ===

impl TunnelClient {
    /// Returns the client of a request that may open a tunnel, in any version of HTTP. `None` for other
    /// requests.
    pub fn of(
        parts: &mut Parts,
        incoming: &mut RequestBody,
    ) -> Result<Option<Self>, MalformedRequest> {
        let key = read_extended_connect(parts)?;
        let upgrade = parts.extensions.remove();
        Ok(upgrade.map(|upgrade| Self {
            upgrade,
            guard: incoming.tunnel_guard(),
            key,
        }))
    }
}

// === impl TunnelEntry ===

impl TunnelEntry {
    /// Keeps the started `line` until the tunnel ends.
    pub fn keep(&self, log: &AccessLog, line: Vec<u8>) {
        self.0.set(Some((log.clone(), line)));
    }
}

// === impl TunnelLog ===

impl Drop for TunnelLog {
    fn drop(&mut self) {
        let Some((log, mut line)) = self.entry.0.take() else {
            return;
        };
        let closing = AccessEnd {
            bytes_in: self.flow.bytes_in.get(),
            bytes_out: self.flow.bytes_out.get(),
            duration: self.clock.instant() - self.began,
            cut: None,
            ended_by: Some(self.flow.ended_by.get().unwrap_or(TunnelSide::Gateway)),
        };
        log.finish(&mut line, &closing);
    }
}

// === impl Flow ===

impl Flow {
    fn new(idle_timeout: Duration) -> Self {
        Self {
            bytes_in: Cell::new(0),
            bytes_out: Cell::new(0),
            ended_by: Cell::new(None),
            idle_timeout,
            idle: RefCell::default(),
        }
    }

    /// Copies bytes until both sides have ended, or one has ended and the other is idle.
    async fn join(&self, client: Upgraded, origin: OriginTunnel) {
        let mut client = Side::new(TokioIo::new(client), TunnelSide::Client, self);
        let mut server = Side::new(origin.io, TunnelSide::Server, self);
        let mut copied = pin!(copy_bidirectional(&mut client, &mut server));
        poll_fn(|cx| {
            let ended = copied.as_mut().poll(cx).is_ready();
            if ended || self.is_idle(cx) {
                return Poll::Ready(());
            }
            Poll::Pending
        })
        .await;
    }

    fn side_ended(&self, side: TunnelSide) {
        self.note_end(side);
        let mut idle = self.idle.borrow_mut();
        idle.get_or_insert_with(|| Box::pin(sleep(self.idle_timeout)));
    }

    /// Records that `side` has ended or failed.
    fn note_end(&self, side: TunnelSide) {
        let first = self.ended_by.get().unwrap_or(side);
        self.ended_by.set(Some(first));
    }

    fn moved(&self) {
        if let Some(idle) = &mut *self.idle.borrow_mut() {
            idle.as_mut().reset(Instant::now() + self.idle_timeout);
        }
    }

    fn is_idle(&self, cx: &mut Context<'_>) -> bool {
        let idle = &mut *self.idle.borrow_mut();
        idle.as_mut()
            .is_some_and(|idle| idle.as_mut().poll(cx).is_ready())
    }
}

// === impl Side ===

impl<'f, S> Side<'f, S> {
    fn new(stream: S, side: TunnelSide, flow: &'f Flow) -> Self {
        Self { stream, side, flow }
    }

    /// Records the bytes that moved between the gateway and this side.
    fn note<T>(&self, polled: &Poll<io::Result<T>>, counter: &Cell<u64>, bytes: usize) {
        if let Poll::Ready(Err(_)) = polled {
            self.flow.note_end(self.side);
        }
        if self.side == TunnelSide::Client {
            counter.set(counter.get() + bytes as u64);
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Side<'_, S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(cx, buf);
        let bytes = buf.filled().len() - before;
        self.note(&polled, &self.flow.bytes_in, bytes);
        ready!(polled)?;
        if bytes > 0 || buf.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        self.flow.side_ended(self.side);
        match Pin::new(&mut self.stream).poll_flush(cx) {
            Poll::Ready(Err(reset)) => Poll::Ready(Err(reset)),
            _ => Poll::Ready(Ok(())),
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Side<'_, S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, buf);
        let bytes = match &written {
            Poll::Ready(Ok(bytes)) => *bytes,
            _ => 0,
        };
        self.note(&written, &self.flow.bytes_out, bytes);
        if written.is_ready() {
            self.flow.moved();
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// Checks that a response that opens a tunnel matches the gateway's own key, which the client cannot check.
pub fn checked(
    answer: UpstreamResponse,
    client: Option<&TunnelClient>,
) -> Result<UpstreamResponse, UpstreamError> {
    let key = client.and_then(|client| client.key.as_ref());
    match key.filter(|_| answer.upgraded.is_some()) {
        Some(key) if !key.is_accepted_by(answer.response.headers()) => {
            Err(UpstreamError::of_handshake(&answer.server))
        }
        _ => Ok(answer),
    }
}

/// Connects a client and an origin server on this core. The request's leases are released when the tunnel ends.
/// After one side has ended, the other may be idle for `idle_timeout`.
pub fn spawn(request: &RequestContext<'_, '_>, client: TunnelClient, origin: OriginTunnel) {
    let state = request.state;
    let flow = Rc::new(Flow::new(state.snapshot.settings.limits.idle_timeout));
    let log = TunnelLog {
        entry: state.tunnel.get_or_init(Rc::default).clone(),
        clock: state.core.live.process.clock.clone(),
        began: state.began,
        flow: flow.clone(),
    };
    let held = (
        state.take_leases(),
        state.core.live.process.metrics.tunnel(),
    );
    debug!(id = request.info.id, "tunnel opened");
    tokio::task::spawn_local(async move {
        // A client that disconnected before the upgrade needs no tunnel; a later disconnect is an ordinary end.
        match client.upgrade.await {
            Ok(upgraded) => flow.join(upgraded, origin).await,
            Err(_) => flow.note_end(TunnelSide::Client),
        }
        drop((log, client.guard, held));
    });
}

/// Converts an extended CONNECT that opens a WebSocket on an HTTP/2 stream (RFC 8441) to the equivalent HTTP/1.1
/// GET: rules, routes and the origin server see one kind of request. Returns the key for the origin server.
/// `None` for any other request, which stays unchanged.
fn read_extended_connect(parts: &mut Parts) -> Result<Option<WebSocketKey>, MalformedRequest> {
    let Some(protocol) = parts.extensions.remove::<Protocol>() else {
        return Ok(None);
    };
    if parts.method != Method::CONNECT || has_connection_headers(&parts.headers) {
        return Err(MalformedRequest::ConnectionField);
    }
    // The names are case-insensitive (RFC 9220, section 3 and RFC 9110, section 16.7).
    if !protocol.as_str().eq_ignore_ascii_case("websocket") {
        return Err(MalformedRequest::Protocol);
    }
    let key = WebSocketKey::draw();
    parts.method = Method::GET;
    parts.extensions.insert(UpgradeProtocol::WebSocket);
    let headers = &mut parts.headers;
    headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    if let Some(value) = key.value() {
        headers.insert(SEC_WEBSOCKET_KEY, value);
    }
    Ok(Some(key))
}

/// h2 refuses such headers from clients, and those added here must not be mistaken for the client's.
fn has_connection_headers(headers: &HeaderMap) -> bool {
    headers.contains_key(CONNECTION) || headers.contains_key(UPGRADE)
}

/// Makes a response one to an extended CONNECT (RFC 8441, section 5). Any 2xx means that the stream is open and
/// has no body; if no tunnel was opened, hyper ends the stream immediately.
pub fn to_extended_connect<B>(response: &mut Response<B>) {
    let status = response.status();
    if status != StatusCode::SWITCHING_PROTOCOLS && !status.is_success() {
        return;
    }
    *response.status_mut() = StatusCode::OK;
    for name in [CONNECTION, UPGRADE, SEC_WEBSOCKET_ACCEPT, CONTENT_LENGTH] {
        response.headers_mut().remove(name);
    }
}
