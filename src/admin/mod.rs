//! The admin port: health, metrics, the admin API and the dashboard.
//!
//! It has its own address, connection limit, timeouts and reserved file descriptors, so that it responds
//! when the gateway is at its limits. Its requests never count in metrics or decisions. Expensive work runs on
//! blocking threads, never on a thread that serves requests of clients.

mod access;
mod api_error;
mod attention;
mod audit;
mod ban_changes;
mod ban_listing;
mod body_members;
mod certificates;
mod clients;
mod dashboard;
mod endpoints;
mod event_stream;
mod events;
mod exemptions;
mod explain;
mod history;
mod key_views;
mod known_keys;
mod mitigations;
pub mod objects;
mod openapi;
mod query;
mod recent_total;
mod reply;
mod request_body;
mod router;
mod rules;
mod sampler;
mod server_rates;
mod slots;
mod state;
mod status;
mod store_watch;
mod top_keys;
mod upstreams;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use socket2::SockRef;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use self::endpoints::respond;
use self::event_stream::StreamControl;
use self::slots::{ConnectionSlots, RequestSeen, ReservedFds};
use self::state::AdminState;
use crate::gateway::{AdminListener, Gateway};

/// The timeout for a request head.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// The timeout for a whole connection: a client that does not read cannot keep its slot. Streams have none.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(30);
/// The pause after a failed accept, so that a lack of descriptors does not cause a busy loop.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// The size of hyper's buffers and the kernel's send buffer, in bytes. A stream that its client does not read fills
/// them soon, so that it is noticed.
const BUFFER: usize = 64 << 10;

/// The admin server, which also follows reloads. It stops when this is dropped.
pub struct AdminServer {
    state: Arc<AdminState>,
    tasks: [JoinHandle<()>; 2],
}

/// Starts the admin server of a gateway. It serves whenever the configuration has an admin port.
pub fn start(gateway: &Gateway) -> AdminServer {
    let state = Arc::new(AdminState::new(gateway));
    AdminServer {
        tasks: [
            tokio::spawn(follow(gateway.admin(), state.clone())),
            tokio::spawn(sampler::sample_forever(state.clone())),
        ],
        state,
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
            Ok((stream, peer)) => slots.take(|seen| connection(stream, peer, state.clone(), seen)),
            Err(_) => sleep(ACCEPT_PAUSE).await,
        }
    }
}

/// Serves one request and closes the connection, so that an idle client holds no slot.
async fn connection(
    stream: TcpStream,
    peer: SocketAddr,
    state: Arc<AdminState>,
    seen: RequestSeen,
) {
    // The default size serves too.
    let _ = SockRef::from(&stream).set_send_buffer_size(BUFFER);
    let control = Arc::new(StreamControl::default());
    let shared = control.clone();
    let service = service_fn(move |request: Request<Incoming>| {
        seen.store(true, Ordering::Relaxed);
        let (state, control) = (state.clone(), shared.clone());
        async move { Ok::<_, Infallible>(respond(&state, request, peer, control).await) }
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(BUFFER)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    tokio::select! {
        // Disconnects and protocol errors of a client are ignored.
        _ = serving => {}
        () = end_of_time(&control) => {}
    }
}

/// Waits until the connection has used up its time: [`CONNECTION_TIMEOUT`], or for a stream, until it is closed.
async fn end_of_time(control: &StreamControl) {
    if timeout(CONNECTION_TIMEOUT, control.started()).await.is_ok() {
        control.closed().await;
    }
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
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}
