//! The minimum rate at which a client sends a request body or reads a response.
//!
//! The code that moves bytes records them and whether it waits for the client; only the sweeper measures time.
//! The time that an origin server takes to respond or to read is never counted against a client.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::{Context, Waker};
use std::time::Duration;

use slab::Slab;
use tokio::task::AbortHandle;

use super::ClientFault;
use super::connection_state::ConnectionState;
use super::unread_body::UnreadBody;

/// Longer than a round trip to a client.
const LAG: Duration = Duration::from_millis(500);

/// The minimum rate and timeout of a client.
#[derive(Clone, Copy, Debug)]
pub(super) struct RateRule {
    /// The maximum time without a byte.
    pub(super) silence: Duration,
    /// The minimum rate in bytes per second; 0 for none.
    pub(super) rate: u64,
    /// The time over which the rate is averaged.
    pub(super) window: Duration,
}

/// The sweeper's state for one direction of a message.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RateTracker {
    /// The number of bytes at the last sweep.
    seen: u64,
    /// Whether the gateway was waiting for the client at the last sweep.
    waited: bool,
    /// The time spent waiting for the client since the last byte.
    silent: Duration,
    /// The time spent waiting for the client in this window, which began at `from` bytes.
    window: Duration,
    from: u64,
}

/// The messages in transit on a core.
#[derive(Default)]
pub(super) struct CoreTransfers(RefCell<Slab<Rc<Transfer>>>);

/// Registers a message in transit, until it is dropped.
pub(super) struct TransferHandle {
    pub(super) transfer: Rc<Transfer>,
    slot: usize,
}

/// The direction of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    /// A request body.
    FromClient,
    /// The response of an HTTP/2 stream.
    ToClient,
}

/// One message in transit. It holds no bytes.
pub(super) struct Transfer {
    direction: Direction,
    pub(super) connection: Rc<ConnectionState>,
    /// The number of bytes moved so far.
    pub(super) bytes: Cell<u64>,
    /// Whether the gateway waits for the client.
    pub(super) waits: Cell<bool>,
    /// Whether the minimum rate no longer applies.
    pub(super) rate_exempt: Cell<bool>,
    /// Whether bytes of the message wait for the next piece.
    pub(super) unsent: Cell<bool>,
    /// Whether the client was too slow.
    pub(super) slow: Cell<bool>,
    /// Of a request body: its rest, if its reader has dropped it.
    pub(super) unread: UnreadBody,
    rate: Cell<RateTracker>,
    waker: Cell<Option<Waker>>,
    task: Cell<Option<AbortHandle>>,
}

// === impl RateTracker ===

impl RateTracker {
    /// Records the time `elapsed` since the last sweep, the `bytes` moved so far, and whether the gateway waits
    /// for the client. Returns whether the client is slower than `rule` allows.
    pub(super) fn is_slow(
        &mut self,
        elapsed: Duration,
        bytes: u64,
        waits: bool,
        rule: &RateRule,
    ) -> bool {
        // A wait that began after the last sweep may be much shorter than `elapsed`.
        let waited = self.waited && waits;
        let time = if waited { elapsed } else { Duration::ZERO };
        self.waited = waits;
        self.window += time;
        self.silent += time;
        if self.seen != bytes {
            self.silent = Duration::ZERO;
        }
        self.seen = bytes;
        self.silent > rule.silence || self.is_below(rule)
    }

    /// Returns whether a window has passed with fewer bytes than required; the next one begins.
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

// === impl CoreTransfers ===

impl CoreTransfers {
    /// Ends the messages with a client that is too slow. Returns the number of aborted tasks.
    pub(super) fn sweep(&self, elapsed: Duration) -> usize {
        let in_transit = self.0.borrow();
        let aborted = in_transit.iter().filter(|(_, one)| one.sweep(elapsed));
        aborted.count()
    }
}

// === impl TransferHandle ===

impl TransferHandle {
    /// Starts a message. The gateway does not wait for the client yet.
    pub(super) fn begin(connection: &Rc<ConnectionState>, direction: Direction) -> Self {
        let transfer = Rc::new(Transfer {
            direction,
            connection: connection.clone(),
            bytes: Cell::new(0),
            waits: Cell::new(false),
            rate_exempt: Cell::new(false),
            unsent: Cell::new(false),
            slow: Cell::new(false),
            unread: UnreadBody::default(),
            rate: Cell::default(),
            waker: Cell::new(None),
            task: Cell::new(None),
        });
        let mut in_transit = connection.timers.transfers.0.borrow_mut();
        let slot = in_transit.insert(transfer.clone());
        Self { transfer, slot }
    }
}

impl std::ops::Deref for TransferHandle {
    type Target = Transfer;

    fn deref(&self) -> &Transfer {
        &self.transfer
    }
}

impl Drop for TransferHandle {
    fn drop(&mut self) {
        let mut in_transit = self.connection.timers.transfers.0.borrow_mut();
        in_transit.try_remove(self.slot);
    }
}

// === impl Transfer ===

impl Transfer {
    /// Records that `bytes` moved and that the gateway does not wait for the client.
    pub(super) fn moved(&self, bytes: usize) {
        self.bytes.set(self.bytes.get() + bytes as u64);
        self.waits.set(false);
    }

    /// Returns whether the gateway has waited for the client since the last byte for longer than a round trip
    /// takes.
    pub(super) fn lags(&self) -> bool {
        self.rate.get().silent >= LAG
    }

    /// Reports that the message is malformed.
    pub(super) fn report_malformed(&self) {
        self.connection.timers.report(ClientFault::Framing);
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

    /// Checks the rate. Returns whether this aborted the task.
    fn sweep(&self, elapsed: Duration) -> bool {
        let (connection, waits) = (
            &self.connection,
            self.waits.get() && !self.rate_exempt.get(),
        );
        // While the socket is blocked, only the socket's own rate counts.
        let (waits, unread) = match self.direction {
            Direction::FromClient => (waits, connection.unread.get()),
            Direction::ToClient => (waits && !connection.marks.blocked.get(), 0),
        };
        let rule = connection.rate_rule(self.direction);
        let mut rate = self.rate.get();
        let slow = rate.is_slow(elapsed, self.bytes.get() + unread, waits, &rule);
        self.rate.set(rate);
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
        let mut rate = RateTracker::default();
        (0..400)
            .map(|tick| tick / 4)
            .find(|second| rate.is_slow(TICK, bytes(*second), waits(*second), &rule))
    }

    #[test]
    fn a_silent_client_is_slow_exactly_after_its_timeout() {
        assert_eq!(slow_after(rule(0), |_| 5, |_| true), Some(10));
    }

    #[test]
    fn a_client_is_never_slow_while_the_gateway_does_not_wait_for_it() {
        assert_eq!(slow_after(rule(100), |_| 0, |_| false), None);
    }

    #[test]
    fn time_spent_waiting_for_the_origin_does_not_count() {
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
    fn bytes_of_one_window_do_not_count_for_the_next() {
        let stops = |second: u64| 100_000 + second;
        assert_eq!(slow_after(rule(100), stops, |_| true), Some(60));
    }
}
