//! All deadlines of a core, on one coarse timer.
//!
//! A sweeper walks the connections and the messages on their way every [`TICK`]. A deadline is
//! never early and late by two ticks at the most, and costs a request a few stores. The sweeper
//! only marks what is late and wakes its task; the task itself ends.

mod draining;
mod fate;
mod in_flight;
mod late;
mod lull;
mod owed;
mod room;
mod stay;

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::net::IpAddr;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::accept::Permit;
use super::drain::Drain;
use super::io::{Signal, Socket};
use super::pace::Pace;
use super::slots::Slots;
use super::transfer::{Carried, Transfers, Way};
use super::{Limits, Protocol, Slow};
use fate::Ending;
pub use fate::{Fate, Fates};
pub(super) use in_flight::InFlight;
pub use lull::Lull;
use lull::Quiet;
use owed::Owed;
use room::Room;
pub use stay::Stay;

/// The time between two sweeps.
const TICK: Duration = Duration::from_millis(250);

/// The most that one sweep counts against a client: where the core itself stood still, nobody else
/// was slow.
const LONGEST_TICK: Duration = Duration::from_secs(1);

/// How long a closed connection is read on, so that its last answer is not lost to a reset.
const LINGER: Duration = Duration::from_secs(2);

/// The connections of a core, with the time as of the last sweep.
pub struct Deadlines {
    now: Cell<Instant>,
    /// Bounded by the gate: a place needs a [`Permit`].
    slots: RefCell<Slots<Entry>>,
    transfers: Rc<Transfers>,
    /// Bounded likewise: a tunnel keeps its permit.
    lulls: RefCell<Slots<Quiet>>,
    filled: Notify,
    draining: Cell<bool>,
    stream_errors: Cell<u64>,
    malformed_bodies: Cell<u64>,
}

/// The deadline of one connection; it ends with this value.
pub struct Watch {
    entry: Rc<Entry>,
    slot: usize,
}

/// One connection.
pub(super) struct Entry {
    core: Rc<Deadlines>,
    signal: Arc<Signal>,
    phase: Cell<Phase>,
    since: Cell<Instant>,
    in_flight: Cell<u32>,
    /// How many of them stay beyond their answers.
    stays: Cell<u32>,
    expired: Cell<Option<Slow>>,
    ending: Ending,
    closing: Cell<bool>,
    told: Cell<bool>,
    bodied: Cell<bool>,
    writing: Pace,
    owed: Owed,
    room: Room,
    /// More of an answer was asked for while the socket was blocked, and not given.
    held: Cell<bool>,
    /// HTTP/2: bytes of the DATA frame that is not whole yet.
    unread: Cell<u64>,
    limits: Limits,
    waker: Cell<Option<Waker>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Before HTTP.
    Handshake,
    /// Nothing read yet; the first byte begins a head, or ends the wait for a preface.
    Fresh(Protocol),
    /// Since the first byte of an HTTP/1 head.
    Head,
    /// No request in flight. HTTP/2 hides where a head begins: frames that bring no whole request
    /// do not end this.
    Idle(Protocol),
    /// Requests in flight, which are the business of others.
    Busy(Protocol),
    /// Told to end.
    Closing,
    /// Ended; what the client still sends is read and dropped.
    Linger,
}

/// What a connection has to do before it goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// Nothing.
    Go,
    /// Answer what is in flight, take no more, close.
    Finish,
    /// Close at once.
    Cut(Slow),
}

// === impl Deadlines ===

impl Deadlines {
    /// The deadlines of this core, swept by a local task until the runtime ends. The same task
    /// tells the connections that `drain` has started. `on_slow_stream` is called for each HTTP/2
    /// stream that is ended because its client does not take its answer.
    pub fn spawn(drain: Drain, on_slow_stream: impl Fn() + 'static) -> Rc<Self> {
        let core = Rc::new(Self {
            now: Cell::new(Instant::now()),
            slots: RefCell::default(),
            transfers: Rc::default(),
            lulls: RefCell::default(),
            filled: Notify::new(),
            draining: Cell::new(false),
            stream_errors: Cell::new(0),
            malformed_bodies: Cell::new(0),
        });
        tokio::task::spawn_local(core.clone().sweep_forever(on_slow_stream));
        tokio::task::spawn_local(core.clone().tell_drain(drain));
        core
    }

    /// A deadline for a new connection, which is in its handshake from now on. The permit is
    /// held until the connection and, after an upgrade, its tunnel have ended.
    pub fn watch(self: &Rc<Self>, limits: &Limits, permit: Permit) -> Watch {
        self.now.set(Instant::now());
        let entry = Rc::new(Entry {
            core: self.clone(),
            signal: Arc::new(Signal::new(permit)),
            phase: Cell::new(Phase::Handshake),
            since: Cell::new(self.now.get()),
            in_flight: Cell::new(0),
            stays: Cell::new(0),
            expired: Cell::new(None),
            ending: Ending::default(),
            closing: Cell::new(false),
            told: Cell::new(false),
            bodied: Cell::new(false),
            writing: Pace::default(),
            owed: Owed::new(limits.header_timeout),
            room: Room::new(),
            held: Cell::new(false),
            unread: Cell::new(0),
            limits: *limits,
            waker: Cell::new(None),
        });
        let slot = self.slots.borrow_mut().insert(entry.clone());
        self.filled.notify_one();
        Watch { entry, slot }
    }

    /// How many connections are watched.
    pub fn len(&self) -> usize {
        self.slots.borrow().len()
    }

    /// Whether no connection is watched.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many HTTP/2 streams ended for an error of their client since the last call.
    pub fn take_stream_errors(&self) -> u64 {
        self.stream_errors.take()
    }

    /// How many HTTP/1 bodies could not be read to their end since the last call.
    pub fn take_malformed_bodies(&self) -> u64 {
        self.malformed_bodies.take()
    }

    async fn sweep_forever(self: Rc<Self>, on_slow_stream: impl Fn()) {
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut swept = self.now.get();
        loop {
            // An idle core sleeps.
            while self.is_empty() && self.lulls.borrow().len() == 0 {
                self.filled.notified().await;
            }
            // A core that slept is late: the time that it was due says nothing about now.
            tick.tick().await;
            let now = Instant::now();
            let elapsed = now.duration_since(swept).min(LONGEST_TICK);
            swept = now;
            self.now.set(now);
            self.each(|entry| entry.sweep(now, elapsed));
            self.lulls
                .borrow()
                .iter()
                .for_each(|quiet| quiet.sweep(now));
            (0..self.transfers.sweep(elapsed)).for_each(|_| on_slow_stream());
        }
    }

    async fn tell_drain(self: Rc<Self>, drain: Drain) {
        drain.started().await;
        self.draining.set(true);
        self.tell();
    }

    fn each(&self, act: impl Fn(&Entry)) {
        self.slots.borrow().iter().for_each(|entry| act(entry));
    }
}

// === impl Watch ===

impl Watch {
    /// Runs what comes before HTTP (a handshake, a PROXY header, [`super::sniff()`]) within
    /// `header_timeout`, counted from the accept.
    pub async fn guard<F: Future>(&self, before: F) -> Result<F::Output, Slow> {
        let mut before = pin!(before);
        poll_fn(|cx| {
            if self.entry.expired(cx).is_some() {
                return Poll::Ready(Err(Slow::Handshake));
            }
            before.as_mut().poll(cx).map(Ok)
        })
        .await
    }

    /// The connection's socket, under the deadline for those who do not read.
    pub fn socket(&self, tcp: TcpStream) -> Socket {
        Socket::new(tcp, self.signal())
    }

    /// Counts the connection as one of `network`; false: there are `limit` of them already.
    pub fn admit(&self, network: IpAddr, limit: usize) -> bool {
        self.entry.signal.permit().admit(network, limit)
    }

    pub(super) fn signal(&self) -> Arc<Signal> {
        self.entry.signal.clone()
    }

    /// The time, as of the last sweep.
    pub(super) fn now(&self) -> Instant {
        self.entry.core.now.get()
    }

    /// Counts HTTP/2 streams that ended for an error of their client.
    pub(super) fn stream_errors(&self, count: u32) {
        let errors = &self.entry.core.stream_errors;
        errors.set(errors.get() + u64::from(count));
    }

    /// HTTP begins.
    pub(super) fn start(&self, protocol: Protocol) {
        self.entry.signal.take_heard();
        self.entry.enter(Phase::Fresh(protocol));
    }

    /// A request head is complete. `bodied`: a body follows it.
    pub(super) fn request(&self, protocol: Protocol, bodied: bool) -> InFlight {
        let entry = &self.entry;
        entry.in_flight.set(entry.in_flight.get().saturating_add(1));
        entry.phase.set(Phase::Busy(protocol));
        entry.expired.set(None);
        entry.bodied.set(bodied);
        entry.signal.set_busy(true);
        InFlight(entry.clone())
    }

    /// Whether an answer was held back for a socket that takes more by now.
    pub(super) fn can_go_on(&self) -> bool {
        !self.entry.is_blocked() && self.entry.held.take()
    }

    /// A message that begins.
    pub(super) fn transfer(&self, way: Way) -> Carried {
        self.entry.core.transfers.begin(&self.entry, way)
    }

    /// To be asked at each poll of the connection; it also keeps the waker of its task.
    pub(super) fn turn(&self, cx: &mut Context<'_>) -> Turn {
        let entry = &self.entry;
        match entry.expired(cx) {
            Some(Slow::Idle) => entry.close(),
            Some(slow) => Turn::Cut(slow),
            None if entry.is_draining() && !entry.closing.get() && !entry.may_ask() => {
                entry.close()
            }
            None => Turn::Go,
        }
    }

    /// HTTP has ended; the time to read on begins. False: there is nothing to wait for.
    pub(super) fn linger(&self) -> bool {
        self.entry.closing.set(true);
        self.entry.enter(Phase::Linger);
        self.entry.bodied.get()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let entry = self.entry.core.slots.borrow_mut().remove(self.slot);
        // Outside of the borrow: the last drop of an entry runs code of others.
        drop(entry);
    }
}

// === impl Entry ===

impl Entry {
    fn enter(&self, phase: Phase) {
        self.phase.set(phase);
        self.since.set(self.core.now.get());
        self.expired.set(None);
    }

    fn expired(&self, cx: &mut Context<'_>) -> Option<Slow> {
        let waker = self.waker.take();
        self.waker.set(match waker {
            Some(waker) if waker.will_wake(cx.waker()) => Some(waker),
            _ => Some(cx.waker().clone()),
        });
        self.expired.get()
    }

    fn wake(&self) {
        if let Some(waker) = self.waker.take() {
            waker.wake_by_ref();
            self.waker.set(Some(waker));
        }
    }

    /// The second time a connection that was told to finish has not: it is cut.
    fn close(&self) -> Turn {
        if self.closing.replace(true) {
            return Turn::Cut(Slow::Closing);
        }
        if self.in_flight.get() == 0 && self.phase.get() != Phase::Head {
            self.enter(Phase::Closing);
        }
        Turn::Finish
    }
}
