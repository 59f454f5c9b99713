//! A WebSocket after its handshake: copies bytes in both directions until one side ends. It holds no
//! configuration.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
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

use crate::facts::{MalformedRequest, UpgradeProtocol};
use crate::listen::{RequestBody, TunnelGuard};
use crate::store::LeaseGuard;
use crate::upstream::{OriginTunnel, UpstreamError, UpstreamResponse, WebSocketKey};

/// A client that may open a tunnel.
pub struct TunnelClient {
    upgrade: OnUpgrade,
    /// Set if the connection carries other streams too.
    guard: Option<TunnelGuard>,
    /// The gateway's key for the handshake. `None` if the client's own is used.
    key: Option<WebSocketKey>,
}

/// The state of an open tunnel.
struct Flow {
    /// The idle timeout after one side has ended.
    idle_timeout: Duration,
    /// The idle timer. `None` until a side has ended: a tunnel with two open sides may stay idle.
    idle: RefCell<Option<Pin<Box<Sleep>>>>,
}

/// One side of a tunnel. hyper reports a stream reset as an ordinary end of the data, but after a reset the peer
/// no longer reads data from the other side.
struct Side<'f, S> {
    stream: S,
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

// === impl Flow ===

impl Flow {
    /// Copies bytes until both sides have ended, or one has ended and the other is idle.
    async fn join(&self, client: Upgraded, origin: OriginTunnel) {
        let mut client = Side::new(TokioIo::new(client), self);
        let mut server = Side::new(origin.io, self);
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

    fn side_ended(&self) {
        let mut idle = self.idle.borrow_mut();
        idle.get_or_insert_with(|| Box::pin(sleep(self.idle_timeout)));
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
    fn new(stream: S, flow: &'f Flow) -> Self {
        Self { stream, flow }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Side<'_, S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        if buf.filled().len() > before || buf.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        self.flow.side_ended();
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
pub fn spawn(
    idle_timeout: Duration,
    client: TunnelClient,
    origin: OriginTunnel,
    leases: Option<LeaseGuard>,
) {
    let flow = Flow {
        idle_timeout,
        idle: RefCell::default(),
    };
    tokio::task::spawn_local(async move {
        // A client that disconnected before the upgrade needs no tunnel; a later disconnect is an ordinary end.
        if let Ok(upgraded) = client.upgrade.await {
            flow.join(upgraded, origin).await;
        }
        drop((client.guard, leases));
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
