//! The state of one client connection: its phase, when it began, and when it is too slow.
//!
//! It is a state machine without I/O and without a clock: the connection and its requests report events,
//! [`super::timers`] sweeps it, and the connection requests a [`ConnectionDirective`] at each poll.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use tokio::time::Instant;

use super::accept::ConnectionPermit;
use super::client_socket::SocketMarks;
use super::http2::SendWindow;
use super::min_rate::{Direction, RateRule, RateTracker, TransferHandle};
use super::timers::{ConnectionTimers, RequestInFlight, TICK};
use super::{ConnectionLimits, HttpVersion, LingerLimits, SlowPhase};

/// How long a closed connection is still read, so that a reset does not destroy its last response.
const LINGER: Duration = Duration::from_secs(2);

/// The maximum age of a handshake once the drain has started: a client that preconnected and sends nothing must
/// not delay the drain.
const LAST_HANDSHAKE: Duration = Duration::from_secs(1);

/// How long an idle connection may still send a request once the drain has started. A request in transit gets a
/// response, which announces the end of the connection.
const LAST_REQUEST: Duration = Duration::from_secs(1);

/// One connection, shared by its timer, its requests and its bodies.
pub(super) struct ConnectionState {
    pub(super) timers: Rc<ConnectionTimers>,
    /// The flags that the socket and the stream set for the sweeper.
    pub(super) marks: Arc<SocketMarks>,
    /// The HTTP/2 flow-control window that the client has granted.
    pub(super) window: SendWindow,
    limits: ConnectionLimits,
    phase: Cell<ConnectionPhase>,
    /// When the phase began, up to one tick too early.
    since: Cell<Instant>,
    /// HTTP/2: the number of the incomplete preface or head, and when it began. The client can send nothing else
    /// until it is complete (RFC 9113, 4.3).
    open_head: Cell<Option<(u32, Instant)>>,
    in_flight: Cell<u32>,
    /// The number of requests in flight that are tunnels.
    tunnels: Cell<u32>,
    /// Whether the last request has a body.
    has_body: Cell<bool>,
    expired: Cell<Option<SlowPhase>>,
    /// Whether [`ConnectionDirective::Finish`] was returned.
    closing: Cell<bool>,
    /// Whether the connection has noticed the drain.
    drain_noticed: Cell<bool>,
    /// Whether a poll of the response was deferred because the socket was blocked.
    pub(super) held_back: Cell<bool>,
    /// HTTP/2: the received bytes of an incomplete DATA frame.
    pub(super) unread: Cell<u64>,
    write_rate: Cell<RateTracker>,
    waker: Cell<Option<Waker>>,
}

/// The phase of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConnectionPhase {
    /// Before HTTP: a PROXY header or a handshake.
    Handshake,
    /// No byte was read yet. The first byte begins a head, or ends the wait for a preface.
    Fresh(HttpVersion),
    /// From the first byte of an HTTP/1 head to its end.
    Head,
    /// No request is in flight. HTTP/2 does not show where a head begins: frames without a complete request do
    /// not end this phase.
    Idle(HttpVersion),
    /// Requests are in flight; their bodies and responses have separate timers.
    Busy(HttpVersion),
    /// The connection has received `Finish`.
    Closing,
    /// The connection has ended. Further bytes of the client are read and dropped.
    Linger,
}

/// What a connection must do before it continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionDirective {
    /// Continue.
    Continue,
    /// Respond to the requests in flight, accept no more, then close.
    Finish,
    /// Close immediately.
    Abort(SlowPhase),
}

// === impl ConnectionState ===

impl ConnectionState {
    /// Creates a connection in its handshake.
    pub(super) fn new(
        timers: Rc<ConnectionTimers>,
        limits: &ConnectionLimits,
        permit: ConnectionPermit,
    ) -> Self {
        Self {
            marks: Arc::new(SocketMarks::new(permit)),
            window: SendWindow::new(),
            limits: *limits,
            phase: Cell::new(ConnectionPhase::Handshake),
            since: Cell::new(timers.now.get()),
            open_head: Cell::new(None),
            in_flight: Cell::new(0),
            tunnels: Cell::new(0),
            has_body: Cell::new(false),
            expired: Cell::new(None),
            closing: Cell::new(false),
            drain_noticed: Cell::new(false),
            held_back: Cell::new(false),
            unread: Cell::new(0),
            write_rate: Cell::default(),
            waker: Cell::new(None),
            timers,
        }
    }

    /// Starts HTTP.
    pub(super) fn start(&self, protocol: HttpVersion) {
        self.marks.received.take();
        self.enter(ConnectionPhase::Fresh(protocol));
    }

    /// Records a complete request head. `has_body` is whether a body follows it.
    pub(super) fn begin_request(
        self: &Rc<Self>,
        protocol: HttpVersion,
        has_body: bool,
    ) -> RequestInFlight {
        self.in_flight.set(self.in_flight.get().saturating_add(1));
        self.phase.set(ConnectionPhase::Busy(protocol));
        self.expired.set(None);
        self.has_body.set(has_body);
        self.marks.busy.set(true);
        RequestInFlight(self.clone())
    }

    /// Records that the response to a request has ended or was cancelled.
    pub(super) fn end_request(&self) {
        let left = self.in_flight.get().saturating_sub(1);
        self.in_flight.set(left);
        if left > 0 {
            return;
        }
        self.marks.busy.set(false);
        let ConnectionPhase::Busy(protocol) = self.phase.get() else {
            return;
        };
        // Bytes read until now belong to this request; those of the next one are read from now on.
        self.marks.received.take();
        if self.marks.behind.get() {
            self.wake();
        }
        self.enter(if self.closing.get() {
            ConnectionPhase::Closing
        } else {
            ConnectionPhase::Idle(protocol)
        });
    }

    /// Keeps a request in flight beyond its response.
    pub(super) fn stay_busy(self: &Rc<Self>) -> RequestInFlight {
        self.in_flight.set(self.in_flight.get().saturating_add(1));
        RequestInFlight(self.clone())
    }

    /// Returns how much of a request body that nothing needs is read.
    pub(super) fn linger_limits(&self) -> LingerLimits {
        self.limits.linger
    }

    /// Records that a request in flight may become a tunnel, which outlives its response.
    pub(super) fn begin_tunnel(&self) {
        self.in_flight.set(self.in_flight.get().saturating_add(1));
        self.tunnels.set(self.tunnels.get().saturating_add(1));
        self.window.close();
    }

    /// Records the end of a tunnel; the end of its request follows.
    pub(super) fn end_tunnel(&self) {
        self.tunnels.set(self.tunnels.get().saturating_sub(1));
    }

    /// Starts the linger phase after HTTP has ended. Returns whether there are bytes to wait for.
    pub(super) fn linger(&self) -> bool {
        self.closing.set(true);
        self.enter(ConnectionPhase::Linger);
        self.has_body.get()
    }

    /// Records the incomplete HTTP/2 preface or head after each read. `None` if there is none.
    pub(super) fn set_open_head(&self, head: Option<u32>) {
        let since = match (self.open_head.get(), head) {
            (Some((before, since)), Some(head)) if before == head => since,
            _ => self.timers.now.get(),
        };
        self.open_head.set(head.map(|head| (head, since)));
    }

    /// Returns whether a response was deferred and the socket accepts bytes again.
    pub(super) fn can_go_on(&self) -> bool {
        !self.marks.blocked.get() && self.held_back.take()
    }

    /// Starts a message in `direction`.
    pub(super) fn transfer(self: &Rc<Self>, direction: Direction) -> TransferHandle {
        TransferHandle::begin(self, direction)
    }

    /// Returns what to do next. Call it at each poll of the connection: it also stores the waker of its task.
    pub(super) fn directive(&self, cx: &Context<'_>) -> ConnectionDirective {
        match self.poll_expired(cx) {
            Some(SlowPhase::Idle) => self.close(),
            Some(slow) => ConnectionDirective::Abort(slow),
            None if self.is_draining() && !self.closing.get() && !self.may_send_request() => {
                self.close()
            }
            None => ConnectionDirective::Continue,
        }
    }

    /// Returns the phase that took too long. If `None`, the task of `cx` is woken once a phase takes too long.
    pub(super) fn poll_expired(&self, cx: &Context<'_>) -> Option<SlowPhase> {
        let waker = self.waker.take();
        self.waker.set(match waker {
            Some(waker) if waker.will_wake(cx.waker()) => Some(waker),
            _ => Some(cx.waker().clone()),
        });
        self.expired.get()
    }

    /// Checks whether the drain has started. The time for a last request begins with it.
    pub(super) fn notice_drain(&self) {
        if self.is_draining() && !self.drain_noticed.replace(true) {
            if matches!(
                self.phase.get(),
                ConnectionPhase::Fresh(_) | ConnectionPhase::Idle(_)
            ) {
                self.since.set(self.timers.now.get());
            }
            self.wake();
        }
    }

    /// Marks the connection and wakes its task if it is late. `elapsed` is the time since the last sweep.
    pub(super) fn sweep(&self, now: Instant, elapsed: Duration) {
        let writes_late = self.is_write_late(now, elapsed);
        if writes_late {
            self.marks.given_up.set(true);
        }
        let late = if writes_late {
            Some(SlowPhase::Reading)
        } else {
            self.late(now)
        };
        if late.is_some() {
            self.expired.set(late);
            self.wake();
        }
    }

    /// Returns the minimum rate and timeouts for the client in `direction`.
    pub(super) fn rate_rule(&self, direction: Direction) -> RateRule {
        RateRule {
            silence: match direction {
                Direction::FromClient => self.limits.request_body_timeout,
                Direction::ToClient => self.limits.response_write_timeout,
            },
            rate: self.limits.min_rate,
            window: self.limits.rate_window,
        }
    }

    fn enter(&self, phase: ConnectionPhase) {
        self.phase.set(phase);
        self.since.set(self.timers.now.get());
        self.expired.set(None);
    }

    fn wake(&self) {
        if let Some(waker) = self.waker.take() {
            waker.wake_by_ref();
            self.waker.set(Some(waker));
        }
    }

    /// Aborts a connection that received [`ConnectionDirective::Finish`] before and has not finished.
    fn close(&self) -> ConnectionDirective {
        if self.closing.replace(true) {
            return ConnectionDirective::Abort(SlowPhase::Closing);
        }
        if self.in_flight.get() == 0 && self.phase.get() != ConnectionPhase::Head {
            self.enter(ConnectionPhase::Closing);
        }
        ConnectionDirective::Finish
    }

    /// Returns whether the client was too slow to read its responses.
    pub(super) fn is_write_expired(&self) -> bool {
        self.expired.get() == Some(SlowPhase::Reading)
    }

    /// Returns whether the whole gateway or the listener drains.
    pub(super) fn is_draining(&self) -> bool {
        self.timers.draining.get() || self.marks.permit.is_leaving()
    }

    /// Returns whether the client may have sent a request that hyper would not read after `Finish`. Not needed
    /// for HTTP/2: GOAWAY names the last request that is served.
    fn may_send_request(&self) -> bool {
        use ConnectionPhase::{Fresh, Head, Idle};
        matches!(
            self.phase.get(),
            Fresh(HttpVersion::Http1) | Idle(HttpVersion::Http1) | Head
        )
    }

    /// Returns whether all requests in flight are tunnels, which have no minimum rate.
    fn has_only_tunnels(&self) -> bool {
        self.tunnels.get() > 0 && self.tunnels.get() == self.in_flight.get()
    }

    /// Returns whether the client is too slow to read its responses.
    fn is_write_late(&self, now: Instant, elapsed: Duration) -> bool {
        let blocked = self.marks.blocked.get();
        // A connection that still sends the rest of a response to a slow client is not idle.
        if blocked && matches!(self.phase.get(), ConnectionPhase::Idle(_)) {
            self.since.set(now);
        }
        let rule = self.rate_rule(Direction::ToClient);
        let waits = blocked && !self.has_only_tunnels();
        let mut rate = self.write_rate.get();
        let slow = rate.is_slow(elapsed, self.marks.written(), waits, &rule);
        self.write_rate.set(rate);
        slow
    }

    /// Returns the phase that has taken too long. `None` if there is none.
    fn late(&self, now: Instant) -> Option<SlowPhase> {
        self.notice_first_bytes(now);
        // The recorded beginning may be one tick too early.
        let is_over = |since, limit| now.duration_since(since) > limit + TICK;
        let header_timeout = self.limits.header_timeout;
        let head = self.open_head.get();
        if head.is_some_and(|(_, since)| is_over(since, header_timeout)) {
            return Some(SlowPhase::Head);
        }
        let (limit, slow) = match self.phase.get() {
            ConnectionPhase::Busy(_) => return None,
            ConnectionPhase::Fresh(_) if self.is_draining() => (LAST_REQUEST, SlowPhase::Closing),
            ConnectionPhase::Idle(_) if self.is_draining() => (LAST_REQUEST, SlowPhase::Idle),
            ConnectionPhase::Idle(_) => (self.limits.idle_timeout, SlowPhase::Idle),
            ConnectionPhase::Linger => (LINGER.min(header_timeout), SlowPhase::Closing),
            ConnectionPhase::Closing => (header_timeout, SlowPhase::Closing),
            ConnectionPhase::Handshake if self.is_draining() => {
                (LAST_HANDSHAKE.min(header_timeout), SlowPhase::Handshake)
            }
            ConnectionPhase::Handshake => (header_timeout, SlowPhase::Handshake),
            ConnectionPhase::Fresh(_) | ConnectionPhase::Head => (header_timeout, SlowPhase::Head),
        };
        is_over(self.since.get(), limit).then_some(slow)
    }

    /// Updates the phase if the client has begun to send since the last sweep.
    fn notice_first_bytes(&self, now: Instant) {
        let next = match self.phase.get() {
            ConnectionPhase::Fresh(HttpVersion::Http1)
            | ConnectionPhase::Idle(HttpVersion::Http1) => ConnectionPhase::Head,
            ConnectionPhase::Fresh(HttpVersion::Http2) => ConnectionPhase::Idle(HttpVersion::Http2),
            _ => return,
        };
        if self.marks.received.take() {
            self.phase.set(next);
            self.since.set(now);
        }
    }
}
