//! The minimum rate at which a client sends a request body or takes a response.
//!
//! The code that moves bytes records them and when it waits for the client; only the sweeper
//! measures time. What an origin takes to respond, or to read, is never counted against a client.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::{Context, Waker};
use std::time::Duration;

use slab::Slab;
use tokio::task::AbortHandle;

use super::ClientFault;
use super::connection_state::ConnectionState;

/// More than a round trip to a client takes.
const LAG: Duration = Duration::from_millis(500);

/// Values that are kept for the next message.
const SPARE: usize = 256;

/// What a client owes.
#[derive(Clone, Copy, Debug)]
pub(super) struct RateRule {
    /// The longest wait for any byte at all.
    pub(super) silence: Duration,
    /// Bytes a second; 0 is no minimum.
    pub(super) rate: u64,
    /// What the rate is averaged over.
    pub(super) window: Duration,
}

/// What the sweeper remembers of one flow of bytes.
#[derive(Debug, Default)]
pub(super) struct RateTracker(Cell<Progress>);

#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    /// The bytes so far, at the last sweep.
    seen: u64,
    /// The client was waited for at the last sweep.
    waited: bool,
    /// How long the client has been waited for since the last byte.
    silent: Duration,
    /// How long the client has been waited for in this window, which began at `from` bytes.
    window: Duration,
    from: u64,
}

/// The messages of a core that are in transit.
#[derive(Default)]
pub(super) struct Transfers {
    in_transit: RefCell<Slab<Rc<Transfer>>>,
    spare: RefCell<Vec<Rc<Transfer>>>,
}

/// Owns a message in transit, until it is dropped.
pub(super) struct TransferHandle {
    pub(super) transfer: Rc<Transfer>,
    slot: usize,
    core: Rc<Transfers>,
}

/// Which way a message goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Direction {
    /// A request body.
    #[default]
    FromClient,
    /// The response of an HTTP/2 stream.
    ToClient,
}

/// One message in transit. It holds no bytes.
#[derive(Default)]
pub(super) struct Transfer {
    direction: Cell<Direction>,
    connection: RefCell<Option<Rc<ConnectionState>>>,
    /// How many bytes moved so far.
    pub(super) bytes: Cell<u64>,
    /// The client is waited for.
    pub(super) waits: Cell<bool>,
    /// The client may take its time from now on.
    pub(super) excused: Cell<bool>,
    /// Bytes of the message wait for the next piece.
    pub(super) unsent: Cell<bool>,
    /// The client was too slow.
    pub(super) slow: Cell<bool>,
    rate: RateTracker,
    waker: Cell<Option<Waker>>,
    task: Cell<Option<AbortHandle>>,
}

// === impl RateTracker ===

impl RateTracker {
    /// Records that `elapsed` has passed since the last sweep, that `bytes` have moved so far, and
    /// whether the client is waited for. Returns whether the client is slower than `rule` allows.
    pub(super) fn is_slow(
        &self,
        elapsed: Duration,
        bytes: u64,
        waits: bool,
        rule: &RateRule,
    ) -> bool {
        let mut progress = self.0.get();
        // A wait that began since the last sweep may be much shorter than the time since then.
        let waited = progress.waited && waits;
        let time = if waited { elapsed } else { Duration::ZERO };
        progress.waited = waits;
        progress.window += time;
        progress.silent += time;
        if progress.seen != bytes {
            progress.silent = Duration::ZERO;
        }
        progress.seen = bytes;
        let slow = progress.silent > rule.silence || progress.is_below(rule);
        self.0.set(progress);
        slow
    }

    /// Whether the client has been waited for since the last byte, longer than a distant client
    /// needs to react.
    fn lags(&self) -> bool {
        self.0.get().silent >= LAG
    }
}

// === impl Progress ===

impl Progress {
    /// Whether a window has passed in which less came than is owed; the next one begins.
    fn is_below(&mut self, rule: &RateRule) -> bool {
        if self.window < rule.window {
            return false;
        }
        let owed = rule.window.as_millis() * u128::from(rule.rate) / 1000;
        let came = self.seen.saturating_sub(self.from);
        (self.from, self.window) = (self.seen, Duration::ZERO);
        u128::from(came) < owed
    }
}

// === impl Transfers ===

impl Transfers {
    /// A message that begins. Its client is not waited for yet.
    pub(super) fn begin(
        self: &Rc<Self>,
        connection: &Rc<ConnectionState>,
        direction: Direction,
    ) -> TransferHandle {
        let transfer = self.spare.borrow_mut().pop().unwrap_or_default();
        transfer.direction.set(direction);
        transfer.connection.replace(Some(connection.clone()));
        TransferHandle {
            slot: self.in_transit.borrow_mut().insert(transfer.clone()),
            transfer,
            core: self.clone(),
        }
    }

    /// Ends the messages whose client is too slow. Returns how many tasks that aborted.
    pub(super) fn sweep(&self, elapsed: Duration) -> usize {
        let in_transit = self.in_transit.borrow();
        let aborted = in_transit.iter().filter(|(_, one)| one.sweep(elapsed));
        aborted.count()
    }

    fn end(&self, slot: usize) {
        let ended = self.in_transit.borrow_mut().try_remove(slot);
        let Some(transfer) = ended else { return };
        transfer.reset();
        let mut spare = self.spare.borrow_mut();
        // One that is shared beyond its handle is not free for the next message.
        if spare.len() < SPARE && Rc::strong_count(&transfer) == 2 {
            spare.push(transfer);
        }
    }
}

// === impl TransferHandle ===

impl std::ops::Deref for TransferHandle {
    type Target = Transfer;

    fn deref(&self) -> &Transfer {
        &self.transfer
    }
}

impl Drop for TransferHandle {
    fn drop(&mut self) {
        self.core.end(self.slot);
    }
}

// === impl Transfer ===

impl Transfer {
    /// Records that `bytes` moved. The client is not waited for.
    pub(super) fn moved(&self, bytes: usize) {
        self.bytes.set(self.bytes.get() + bytes as u64);
        self.waits.set(false);
    }

    /// Whether the client was waited for before it took the last bytes, as far as was seen.
    pub(super) fn lags(&self) -> bool {
        self.rate.lags()
    }

    /// Reports that the message cannot be read any further.
    pub(super) fn report_malformed(&self) {
        if let Some(connection) = self.connection.borrow().as_ref() {
            connection.timers.report(ClientFault::Framing);
        }
    }

    /// Wakes the task of `cx` when the client is too slow.
    pub(super) fn wake_when_slow(&self, cx: &Context<'_>) {
        let waker = self.waker.take();
        self.waker.set(match waker {
            Some(waker) if waker.will_wake(cx.waker()) => Some(waker),
            _ => Some(cx.waker().clone()),
        });
    }

    /// Aborts `task` when the client is too slow.
    pub(super) fn abort_when_slow(&self, task: AbortHandle) {
        self.task.set(Some(task));
    }

    /// Returns whether this aborted the task.
    fn sweep(&self, elapsed: Duration) -> bool {
        let waits = self.waits.get() && !self.excused.get();
        let slow = self.connection.borrow().as_ref().is_some_and(|connection| {
            let direction = self.direction.get();
            // While the socket is blocked, its own rate is what counts.
            let (waits, unread) = match direction {
                Direction::FromClient => (waits, connection.unread.get()),
                Direction::ToClient => (waits && !connection.marks.blocked.get(), 0),
            };
            let rule = connection.rate_rule(direction);
            (self.rate).is_slow(elapsed, self.bytes.get() + unread, waits, &rule)
        });
        if !slow {
            return false;
        }
        self.slow.set(true);
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
        let task = self.task.take();
        task.as_ref().inspect(|task| task.abort()).is_some()
    }

    fn reset(&self) {
        self.connection.take();
        self.bytes.set(0);
        self.waits.set(false);
        self.excused.set(false);
        self.unsent.set(false);
        self.slow.set(false);
        self.rate.0.take();
        self.waker.set(None);
        self.task.set(None);
    }
}

#[cfg(test)]
mod unit {
    use super::*;

    const TICK: Duration = Duration::from_millis(250);

    fn rule(rate: u64) -> RateRule {
        RateRule {
            silence: Duration::from_secs(10),
            rate,
            window: Duration::from_secs(30),
        }
    }

    /// The seconds after which a client is found slow that has moved `bytes(second)` so far and is
    /// waited for in the seconds that `waits` says.
    fn slow_after(
        rule: RateRule,
        bytes: impl Fn(u64) -> u64,
        waits: impl Fn(u64) -> bool,
    ) -> Option<u64> {
        let rate = RateTracker::default();
        (0..400)
            .map(|tick| tick / 4)
            .find(|second| rate.is_slow(TICK, bytes(*second), waits(*second), &rule))
    }

    #[test]
    fn a_client_that_is_silent_is_slow_after_its_time_and_not_before() {
        assert_eq!(slow_after(rule(0), |_| 5, |_| true), Some(10));
    }

    #[test]
    fn a_client_that_is_not_waited_for_is_never_slow() {
        assert_eq!(slow_after(rule(100), |_| 0, |_| false), None);
    }

    #[test]
    fn waits_for_an_origin_do_not_add_up() {
        // Nine seconds for the client, nine for the origin, and so on; never a byte.
        let turns = |second: u64| (second / 9).is_multiple_of(2);
        assert_eq!(slow_after(rule(0), |_| 0, turns), Some(19));
        // The same, with a byte for each turn.
        assert_eq!(slow_after(rule(0), |second| second / 9, turns), None);
    }

    #[test]
    fn a_byte_a_second_is_below_the_rate_and_a_hundred_are_not() {
        assert_eq!(slow_after(rule(100), |second| second, |_| true), Some(30));
        assert_eq!(slow_after(rule(100), |s| (s + 1) * 100, |_| true), None);
        assert_eq!(slow_after(rule(0), |second| second, |_| true), None);
    }

    #[test]
    fn bytes_of_one_window_do_not_pay_for_the_next() {
        let stops = |second: u64| 100_000 + second;
        assert_eq!(slow_after(rule(100), stops, |_| true), Some(60));
    }
}
