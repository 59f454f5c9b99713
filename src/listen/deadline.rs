//! All deadlines of a core, on one coarse timer.
//!
//! A sweeper walks the connections every [`TICK`]. A deadline is never early and late by two
//! ticks at the most, and costs a request two stores. The sweeper only marks a connection and
//! wakes its task; the connection itself ends.

mod draining;

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::accept::Permit;
use super::drain::Drain;
use super::io::Signal;
use super::{Limits, Protocol, Slow};
use draining::{LAST_HANDSHAKE, LAST_REQUEST};

/// The time between two sweeps.
const TICK: Duration = Duration::from_millis(250);

/// How long a closed connection is read on, so that its last answer is not lost to a reset.
const LINGER: Duration = Duration::from_secs(2);

/// The connections of a core, with the time as of the last sweep.
pub struct Deadlines {
    now: Cell<Instant>,
    slots: RefCell<Slots>,
    filled: Notify,
    draining: Cell<bool>,
    stream_errors: Cell<u64>,
}

/// Bounded by the gate: a place needs a [`Permit`].
#[derive(Default)]
struct Slots {
    entries: Vec<Option<Rc<Entry>>>,
    free: Vec<usize>,
}

/// The deadline of one connection; it ends with this value.
pub struct Watch {
    entry: Rc<Entry>,
    slot: usize,
}

struct Entry {
    core: Rc<Deadlines>,
    signal: Arc<Signal>,
    phase: Cell<Phase>,
    since: Cell<Instant>,
    in_flight: Cell<u32>,
    expired: Cell<bool>,
    closing: Cell<bool>,
    told: Cell<bool>,
    bodied: Cell<bool>,
    header_timeout: Duration,
    idle_timeout: Duration,
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

/// A request in flight, until its answer has ended or was given up.
pub(super) struct InFlight(Rc<Entry>);

// === impl Deadlines ===

impl Deadlines {
    /// The deadlines of this core, swept by a local task until the runtime ends. The same task
    /// tells the connections that `drain` has started.
    pub fn spawn(drain: Drain) -> Rc<Self> {
        let core = Rc::new(Self {
            now: Cell::new(Instant::now()),
            slots: RefCell::default(),
            filled: Notify::new(),
            draining: Cell::new(false),
            stream_errors: Cell::new(0),
        });
        tokio::task::spawn_local(core.clone().sweep_forever());
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
            expired: Cell::new(false),
            closing: Cell::new(false),
            told: Cell::new(false),
            bodied: Cell::new(false),
            header_timeout: limits.header_timeout,
            idle_timeout: limits.idle_timeout,
            waker: Cell::new(None),
        });
        let slot = self.slots.borrow_mut().insert(entry.clone());
        self.filled.notify_one();
        Watch { entry, slot }
    }

    /// How many connections are watched.
    pub fn len(&self) -> usize {
        let slots = self.slots.borrow();
        slots.entries.len() - slots.free.len()
    }

    /// Whether no connection is watched.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many HTTP/2 streams ended for an error of their client since the last call.
    pub fn take_stream_errors(&self) -> u64 {
        self.stream_errors.take()
    }

    async fn sweep_forever(self: Rc<Self>) {
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            // An idle core sleeps.
            while self.is_empty() {
                self.filled.notified().await;
            }
            // A core that slept is late: the time that it was due says nothing about now.
            tick.tick().await;
            self.now.set(Instant::now());
            self.each(|entry| entry.sweep(self.now.get()));
        }
    }

    async fn tell_drain(self: Rc<Self>, drain: Drain) {
        drain.started().await;
        self.draining.set(true);
        self.tell();
    }

    fn each(&self, act: impl Fn(&Entry)) {
        let slots = self.slots.borrow();
        slots.entries.iter().flatten().for_each(|entry| act(entry));
    }
}

// === impl Slots ===

impl Slots {
    fn insert(&mut self, entry: Rc<Entry>) -> usize {
        let slot = self.free.pop().unwrap_or(self.entries.len());
        match self.entries.get_mut(slot) {
            Some(place) => *place = Some(entry),
            None => self.entries.push(Some(entry)),
        }
        slot
    }

    fn remove(&mut self, slot: usize) -> Option<Rc<Entry>> {
        let entry = self.entries.get_mut(slot)?.take()?;
        self.free.push(slot);
        Some(entry)
    }
}

// === impl Watch ===

impl Watch {
    /// Runs what comes before HTTP (a handshake, a PROXY header, [`super::sniff()`]) within
    /// `header_timeout`, counted from the accept.
    pub async fn guard<F: Future>(&self, before: F) -> Result<F::Output, Slow> {
        let mut before = pin!(before);
        poll_fn(|cx| {
            if self.entry.is_expired(cx) {
                return Poll::Ready(Err(Slow::Handshake));
            }
            before.as_mut().poll(cx).map(Ok)
        })
        .await
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
        entry.expired.set(false);
        entry.bodied.set(bodied);
        InFlight(entry.clone())
    }

    /// To be asked at each poll of the connection; it also keeps the waker of its task.
    pub(super) fn turn(&self, cx: &mut Context<'_>) -> Turn {
        let entry = &self.entry;
        if entry.is_expired(cx) {
            return match entry.phase.get() {
                Phase::Idle(_) => entry.close(),
                Phase::Fresh(_) if entry.is_draining() => Turn::Cut(Slow::Closing),
                Phase::Handshake => Turn::Cut(Slow::Handshake),
                Phase::Closing | Phase::Linger => Turn::Cut(Slow::Closing),
                Phase::Fresh(_) | Phase::Head | Phase::Busy(_) => Turn::Cut(Slow::Head),
            };
        }
        match entry.is_draining() && !entry.closing.get() && !entry.may_ask() {
            true => entry.close(),
            false => Turn::Go,
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
        self.expired.set(false);
    }

    fn sweep(&self, now: Instant) {
        self.listen(now);
        // `since` may be a tick older than the event it stands for.
        let late = |limit: Duration| now.duration_since(self.since.get()) > limit + TICK;
        let expired = match self.phase.get() {
            Phase::Busy(_) => false,
            Phase::Fresh(_) | Phase::Idle(_) if self.is_draining() => late(LAST_REQUEST),
            Phase::Idle(_) => late(self.idle_timeout),
            Phase::Linger => late(LINGER.min(self.header_timeout)),
            Phase::Handshake if self.is_draining() => late(LAST_HANDSHAKE.min(self.header_timeout)),
            Phase::Handshake | Phase::Fresh(_) | Phase::Head | Phase::Closing => {
                late(self.header_timeout)
            }
        };
        if expired {
            self.expired.set(true);
            self.wake();
        }
    }

    /// Takes note of what the socket did since the last sweep.
    fn listen(&self, now: Instant) {
        // The rest of an answer that a slow client still takes is no idleness.
        if self.signal.take_progress() && matches!(self.phase.get(), Phase::Idle(_)) {
            self.since.set(now);
        }
        let next = match self.phase.get() {
            Phase::Fresh(Protocol::Http1) | Phase::Idle(Protocol::Http1) => Phase::Head,
            Phase::Fresh(Protocol::Http2) => Phase::Idle(Protocol::Http2),
            _ => return,
        };
        if self.signal.take_heard() {
            self.phase.set(next);
            self.since.set(now);
        }
    }

    fn is_expired(&self, cx: &mut Context<'_>) -> bool {
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

// === impl InFlight ===

impl InFlight {
    /// Says that what follows on the connection is no longer HTTP.
    pub(super) fn becomes_tunnel(&self) {
        self.0.signal.becomes_tunnel();
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let entry = &self.0;
        let left = entry.in_flight.get().saturating_sub(1);
        entry.in_flight.set(left);
        let Phase::Busy(protocol) = entry.phase.get() else {
            return;
        };
        if left == 0 {
            // Bytes heard until now were of this request; those of a next one that came with it
            // count as idle until more of it comes.
            entry.signal.take_heard();
            entry.enter(match entry.closing.get() {
                true => Phase::Closing,
                false => Phase::Idle(protocol),
            });
        }
    }
}
