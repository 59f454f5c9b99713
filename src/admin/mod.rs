//! The admin port: liveness, readiness and metrics.
//!
//! It has its own address, connection limit, timeouts and reserved file descriptors, so that it responds
//! when the gateway is at its limits. It is read-only.

#[cfg_attr(
    not(test),
    expect(
        dead_code,
        reason = "the routes of the admin port will serve these files"
    )
)]
mod dashboard;
mod slots;

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ALLOW, AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, WWW_AUTHENTICATE};
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::json;
use sha2::{Digest, Sha256};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use self::slots::{ConnectionSlots, RequestSeen, ReservedFds};
use crate::gateway::{AdminListener, Gateway};

/// The timeout for a request head.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// The timeout for a whole connection: a client that does not read cannot keep its slot.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(30);
/// The pause after a failed accept, so that a lack of descriptors does not cause a busy loop.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The state that the admin port serves.
pub struct AdminState {
    /// Returns the current token for `/metrics`. `None` if no token is required.
    pub token: Box<dyn Fn() -> Option<String> + Send + Sync>,
    /// Whether the gateway accepts requests: `false` before the start and while draining.
    pub ready: AtomicBool,
    /// Returns the metrics text.
    pub metrics: Box<dyn Fn() -> String + Send + Sync>,
}

type Answer = Response<Full<Bytes>>;

/// The admin server, which also follows reloads. It stops when this is dropped.
pub struct AdminServer {
    state: Arc<AdminState>,
    task: JoinHandle<()>,
}

/// Starts the admin server of a gateway. It serves whenever the configuration has an admin port.
pub fn start(gateway: &Gateway) -> AdminServer {
    let live = gateway.live().clone();
    let scraped = live.clone();
    let state = Arc::new(AdminState {
        token: Box::new(move || live.current.load().settings.admin_token.clone()),
        ready: AtomicBool::new(true),
        metrics: Box::new(move || scraped.scrape()),
    });
    AdminServer {
        state: state.clone(),
        task: tokio::spawn(follow(gateway.admin(), state)),
    }
}

/// Serves on the newest socket. Dropping this future closes the socket and all connections.
async fn follow(mut newest: watch::Receiver<Option<Arc<AdminListener>>>, state: Arc<AdminState>) {
    let mut slots = ConnectionSlots::default();
    loop {
        let admin = newest.borrow_and_update().clone();
        let listener = admin.and_then(|admin| admin.socket.try_clone().ok());
        let listener = listener.and_then(|socket| TcpListener::from_std(socket).ok());
        tokio::select! {
            changed = newest.changed() => if changed.is_err() {
                return;
            },
            () = accept(listener, &state, &mut slots) => {}
        }
    }
}

/// Accepts forever. Without a listener, waits forever.
async fn accept(
    listener: Option<TcpListener>,
    state: &Arc<AdminState>,
    slots: &mut ConnectionSlots,
) {
    let Some(listener) = listener else {
        return std::future::pending().await;
    };
    let mut reserved = ReservedFds::default();
    loop {
        reserved.fill(&listener);
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            // The descriptor of an ended connection is available now.
            Some(()) = slots.one_ended() => continue,
        };
        let accepted = match accepted {
            Err(_) if reserved.give() => listener.accept().await,
            accepted => accepted,
        };
        match accepted {
            Ok((stream, _)) => slots.take(|seen| connection(stream, state.clone(), seen)),
            Err(_) => sleep(ACCEPT_PAUSE).await,
        }
    }
}

/// Serves one request and closes the connection, so that an idle client holds no slot.
async fn connection(stream: TcpStream, state: Arc<AdminState>, seen: RequestSeen) {
    let service = service_fn(move |request| {
        seen.store(true, Ordering::Relaxed);
        let response = respond(&request, &state);
        async move { Ok::<_, Infallible>(response) }
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    // Disconnects and protocol errors of a client are ignored.
    let _ = timeout(CONNECTION_TIMEOUT, serving).await;
}

fn respond<B>(request: &Request<B>, state: &AdminState) -> Answer {
    let handler = match request.uri().path() {
        "/healthz" => health,
        "/readyz" => ready,
        "/metrics" => metrics,
        _ => return object(StatusCode::NOT_FOUND, "error", "no such page"),
    };
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let refusal = object(StatusCode::METHOD_NOT_ALLOWED, "error", "use GET or HEAD");
        return with(refusal, ALLOW, "GET, HEAD");
    }
    handler(state, request.headers().get(AUTHORIZATION))
}

fn health(_: &AdminState, _: Option<&HeaderValue>) -> Answer {
    object(StatusCode::OK, "status", "ok")
}

fn ready(state: &AdminState, _: Option<&HeaderValue>) -> Answer {
    if state.ready.load(Ordering::Acquire) {
        object(StatusCode::OK, "status", "ready")
    } else {
        object(StatusCode::SERVICE_UNAVAILABLE, "status", "not ready")
    }
}

fn metrics(state: &AdminState, credentials: Option<&HeaderValue>) -> Answer {
    if !state.admits(credentials) {
        let refusal = object(StatusCode::UNAUTHORIZED, "error", "a token is required");
        return with(refusal, WWW_AUTHENTICATE, "Bearer");
    }
    let text = (state.metrics)();
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    made(StatusCode::OK, kind, text)
}

// === impl AdminServer ===

impl AdminServer {
    /// Marks the gateway as not ready.
    pub fn not_ready(&self) {
        self.state.ready.store(false, Ordering::Release);
    }
}

impl Drop for AdminServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

// === impl AdminState ===

impl AdminState {
    fn admits(&self, credentials: Option<&HeaderValue>) -> bool {
        let Some(token) = (self.token)() else {
            return true;
        };
        credentials
            .and_then(|value| bearer(value.as_bytes()))
            .is_some_and(|given| !token.is_empty() && same(given, token.as_bytes()))
    }
}

/// Returns the token of a `Bearer` credential (RFC 6750, section 2.1). The scheme ignores case.
fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = value.split_at_checked(7)?;
    scheme
        .eq_ignore_ascii_case(b"Bearer ")
        .then(|| token.trim_ascii())
}

/// Compares digests in constant time, so that the duration reveals nothing about the token. A client
/// without the token cannot control the digest.
fn same(a: &[u8], b: &[u8]) -> bool {
    let (a, b) = (Sha256::digest(a), Sha256::digest(b));
    let differences = a.iter().zip(&b).fold(0, |seen, (x, y)| seen | (x ^ y));
    std::hint::black_box(differences) == 0
}

/// Returns a JSON object with one member.
fn object(code: StatusCode, name: &str, text: &str) -> Answer {
    let body = json!({ name: text }).to_string();
    made(code, "application/json", body)
}

fn made(code: StatusCode, kind: &'static str, body: String) -> Answer {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = code;
    let response = with(response, CONTENT_TYPE, kind);
    with(response, CACHE_CONTROL, "no-store")
}

fn with(mut response: Answer, name: HeaderName, value: &'static str) -> Answer {
    response
        .headers_mut()
        .insert(name, HeaderValue::from_static(value));
    response
}

#[cfg(test)]
mod tests;
