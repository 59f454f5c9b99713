//! All connection timers of a core, on one coarse tick, and the handles that keep them up to date.
//!
//! A sweeper checks the connections and the messages in transit every [`TICK`]. A deadline is never early and at
//! most two ticks late, and costs a request a few stores. The sweeper only marks late connections and wakes
//! their tasks; the task itself ends the connection.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::net::IpAddr;
use std::ops::Deref;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use slab::Slab;
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::accept::ConnectionPermit;
use super::client_socket::ClientSocket;
use super::connection_state::ConnectionState;
use super::drain::CoreDrain;
use super::min_rate::{CoreTransfers, Transfer, TransferHandle};
use super::{ClientFault, ConnectionLimits, SlowPhase};

/// The time between two sweeps.
pub(super) const TICK: Duration = Duration::from_millis(250);

/// The maximum time that one sweep counts against a client: if the core itself was stalled, no client was slow.
const LONGEST_TICK: Duration = Duration::from_secs(1);

/// The connections of a core, with the time as of the last sweep.
pub struct ConnectionTimers {
    pub(super) now: Cell<Instant>,
    /// Bounded by the connection limit: a connection needs a [`ConnectionPermit`].
    connections: RefCell<Slab<Rc<ConnectionState>>>,
    pub(super) transfers: CoreTransfers,
    added: Notify,
    /// Whether the drain of the whole gateway has started.
    pub(super) draining: Cell<bool>,
    on_fault: Box<dyn Fn(ClientFault)>,
}

/// The timer of one connection; it stops when this is dropped.
pub struct ConnectionTimer {
    state: Rc<ConnectionState>,
    slot: usize,
}

/// A request in flight, until its response has ended or was cancelled.
pub(super) struct RequestInFlight(pub(super) Rc<ConnectionState>);

/// Keeps an HTTP/2 connection busy for a tunnel, which outlives its response.
pub struct TunnelGuard(RequestInFlight);

/// How a response ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseEnd {
    /// Whether bytes were taken from the body and not passed to HTTP/2.
    pub unsent: bool,
    /// Whether the client did not read the response within `response_write_timeout` or at the minimum rate.
    pub slow: bool,
}

/// Reports how one response ended. The handler receives it with the request.
#[derive(Clone)]
pub struct ResponseHandle {
    connection: Rc<ConnectionState>,
    /// The HTTP/2 stream. `None` in HTTP/1.
    stream: Option<Rc<Transfer>>,
}

// === impl ConnectionTimers ===

impl ConnectionTimers {
    /// Creates the timers of this core, swept by a local task until the runtime ends. Another task records that
    /// `drain` has started. `on_fault` is called for a client's error in one request of a connection that
    /// continues.
    pub fn spawn(drain: CoreDrain, on_fault: impl Fn(ClientFault) + 'static) -> Rc<Self> {
        let timers = Rc::new(Self {
            now: Cell::new(Instant::now()),
            connections: RefCell::default(),
            transfers: CoreTransfers::default(),
            added: Notify::new(),
            draining: Cell::new(false),
            on_fault: Box::new(on_fault),
        });
        tokio::task::spawn_local(timers.clone().sweep_forever());
        tokio::task::spawn_local(timers.clone().await_drain(drain));
        timers
    }

    /// Starts the timer of a new connection, which is in its handshake. The permit is held until the connection
    /// and, after an upgrade, its tunnel have ended.
    pub fn start(
        self: &Rc<Self>,
        limits: &ConnectionLimits,
        permit: ConnectionPermit,
    ) -> ConnectionTimer {
        self.now.set(Instant::now());
        let state = Rc::new(ConnectionState::new(self.clone(), limits, permit));
        let slot = self.connections.borrow_mut().insert(state.clone());
        self.added.notify_one();
        ConnectionTimer { state, slot }
    }

    /// Returns the number of connections with a timer.
    pub fn count(&self) -> usize {
        self.connections.borrow().len()
    }

    /// Makes every connection check whether the gateway or its listener drains.
    pub fn notice_drain(&self) {
        self.now.set(Instant::now());
        self.each(ConnectionState::notice_drain);
    }

    /// Reports a client's error in one request.
    pub(super) fn report(&self, fault: ClientFault) {
        (self.on_fault)(fault);
    }

    async fn sweep_forever(self: Rc<Self>) {
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut swept = self.now.get();
        loop {
            // An idle core sleeps.
            while self.count() == 0 {
                self.added.notified().await;
            }
            tick.tick().await;
            // After a sleep the tick is late: use the current time, not the time at which the tick was due.
            let now = Instant::now();
            let elapsed = now.duration_since(swept).min(LONGEST_TICK);
            swept = now;
            self.now.set(now);
            self.each(|connection| connection.sweep(now, elapsed));
            (0..self.transfers.sweep(elapsed)).for_each(|_| self.report(ClientFault::Timeout));
        }
    }

    async fn await_drain(self: Rc<Self>, drain: CoreDrain) {
        drain.started().await;
        self.draining.set(true);
        self.notice_drain();
    }

    fn each(&self, act: impl Fn(&ConnectionState)) {
        let connections = self.connections.borrow();
        connections.iter().for_each(|(_, state)| act(state));
    }
}

// === impl ConnectionTimer ===

impl ConnectionTimer {
    /// Runs a step before HTTP (a handshake, a PROXY header, [`super::sniff()`]) within `header_timeout`,
    /// counted from the accept.
    pub async fn guard<F: Future>(&self, before: F) -> Result<F::Output, SlowPhase> {
        let mut before = pin!(before);
        poll_fn(|cx| match self.state.poll_expired(cx) {
            Some(_) => Poll::Ready(Err(SlowPhase::Handshake)),
            None => before.as_mut().poll(cx).map(Ok),
        })
        .await
    }

    /// Wraps the connection's socket with the timer for clients that do not read.
    pub fn socket(&self, tcp: TcpStream) -> ClientSocket {
        ClientSocket::new(tcp, self.state.marks.clone())
    }

    /// Counts the connection for `network`. Returns whether it is within `limit`.
    pub fn admit(&self, network: IpAddr, limit: usize) -> bool {
        self.state.marks.permit.admit(network, limit)
    }

    /// Creates a handle for the next response of an HTTP/1 connection.
    pub fn response_handle(&self) -> ResponseHandle {
        ResponseHandle::new(&self.state, None)
    }

    pub(super) fn state(&self) -> Rc<ConnectionState> {
        self.state.clone()
    }
}

impl Drop for ConnectionTimer {
    fn drop(&mut self) {
        let mut connections = self.state.timers.connections.borrow_mut();
        let state = connections.try_remove(self.slot);
        // Release the borrow first: the last drop of a state runs other code.
        drop(connections);
        drop(state);
    }
}

// === impl RequestInFlight ===

impl RequestInFlight {
    /// Creates a guard for a tunnel that this request may open.
    pub(super) fn tunnel_guard(&self) -> TunnelGuard {
        self.begin_tunnel();
        TunnelGuard(Self(self.0.clone()))
    }
}

impl Deref for RequestInFlight {
    type Target = ConnectionState;

    fn deref(&self) -> &ConnectionState {
        &self.0
    }
}

impl Drop for RequestInFlight {
    fn drop(&mut self) {
        self.end_request();
    }
}

// === impl TunnelGuard ===

impl Drop for TunnelGuard {
    fn drop(&mut self) {
        self.0.end_tunnel();
    }
}

// === impl ResponseHandle ===

impl ResponseHandle {
    /// Creates a handle for the response on `stream`, or for the next one of HTTP/1 without a stream.
    pub(super) fn new(connection: &Rc<ConnectionState>, stream: Option<&TransferHandle>) -> Self {
        Self {
            connection: connection.clone(),
            stream: stream.map(|stream| stream.transfer.clone()),
        }
    }

    /// Returns how the response ends. Call it while the response body is dropped: later the connection may be
    /// busy with another response.
    pub fn end(&self) -> ResponseEnd {
        let stream = self.stream.as_ref();
        ResponseEnd {
            unsent: stream.is_some_and(|stream| stream.unsent.get()),
            slow: stream.is_some_and(|stream| stream.slow.get())
                || self.connection.is_write_expired(),
        }
    }
}
