//! Whether a client keeps the pace that it owes while it is waited for.
//!
//! Whoever moves bytes notes them and says when it waits for the client; only the sweeper measures
//! time. What an origin takes to answer, or to read, is never counted against a client.

use std::cell::Cell;
use std::time::Duration;

/// More than the way to a client and back takes.
const LAG: Duration = Duration::from_millis(500);

/// What a client owes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Demand {
    /// The longest wait for any byte at all.
    pub(super) silence: Duration,
    /// Bytes a second; 0: as few as it likes.
    pub(super) rate: u64,
    /// What the rate is averaged over.
    pub(super) window: Duration,
}

/// What the sweeper remembers of one flow of bytes.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// The bytes so far, at the last sweep.
    seen: Cell<u64>,
    /// The client was waited for at the last sweep.
    waited: Cell<bool>,
    /// How long it has been waited for since the last byte.
    silent: Cell<Duration>,
    /// How long it has been waited for in this window, which began at so many bytes.
    window: Cell<Duration>,
    from: Cell<u64>,
}

// === impl Pace ===

impl Pace {
    /// Takes in that `elapsed` has passed since the last sweep: so many bytes have moved so far,
    /// and the client is or is not waited for. True: it does not keep the pace.
    pub(super) fn is_slow(
        &self,
        elapsed: Duration,
        bytes: u64,
        waits: bool,
        demand: &Demand,
    ) -> bool {
        let moved = self.seen.replace(bytes) != bytes;
        // A wait that began since the last sweep may be much shorter than the time since then.
        let waited = self.waited.replace(waits) && waits;
        let time = if waited { elapsed } else { Duration::ZERO };
        self.silent.set(match moved {
            true => Duration::ZERO,
            false => self.silent.get() + time,
        });
        self.window.set(self.window.get() + time);
        self.silent.get() > demand.silence || self.is_below(bytes, demand)
    }

    /// Whether the client has been waited for since the last byte, longer than a far one needs to
    /// answer.
    pub(super) fn lags(&self) -> bool {
        self.silent.get() >= LAG
    }

    /// Forgets everything.
    pub(super) fn reset(&self) {
        self.seen.set(0);
        self.waited.set(false);
        self.silent.set(Duration::ZERO);
        self.window.set(Duration::ZERO);
        self.from.set(0);
    }

    /// Whether a window has passed in which less came than is owed; the next one begins.
    fn is_below(&self, bytes: u64, demand: &Demand) -> bool {
        if self.window.get() < demand.window {
            return false;
        }
        let owed = demand.window.as_millis() * u128::from(demand.rate) / 1000;
        let came = bytes.saturating_sub(self.from.replace(bytes));
        self.window.set(Duration::ZERO);
        u128::from(came) < owed
    }
}

#[cfg(test)]
mod unit {
    use super::*;

    const TICK: Duration = Duration::from_millis(250);

    fn demand(rate: u64) -> Demand {
        Demand {
            silence: Duration::from_secs(10),
            rate,
            window: Duration::from_secs(30),
        }
    }

    /// The seconds after which a client is found slow that has moved `bytes(second)` so far and is
    /// waited for in the seconds that `waits` says.
    fn slow_after(
        demand: Demand,
        bytes: impl Fn(u64) -> u64,
        waits: impl Fn(u64) -> bool,
    ) -> Option<u64> {
        let pace = Pace::default();
        (0..400)
            .map(|tick| tick / 4)
            .find(|second| pace.is_slow(TICK, bytes(*second), waits(*second), &demand))
    }

    #[test]
    fn a_client_that_is_silent_is_slow_after_its_time_and_not_before() {
        assert_eq!(slow_after(demand(0), |_| 5, |_| true), Some(10));
    }

    #[test]
    fn a_client_that_is_not_waited_for_is_never_slow() {
        assert_eq!(slow_after(demand(100), |_| 0, |_| false), None);
    }

    #[test]
    fn waits_for_an_origin_do_not_add_up() {
        // Nine seconds for the client, nine for the origin, and so on; never a byte.
        let turns = |second: u64| (second / 9).is_multiple_of(2);
        assert_eq!(slow_after(demand(0), |_| 0, turns), Some(19));
        // The same, with a byte for each turn.
        assert_eq!(slow_after(demand(0), |second| second / 9, turns), None);
    }

    #[test]
    fn a_byte_a_second_is_below_the_rate_and_a_hundred_are_not() {
        assert_eq!(slow_after(demand(100), |second| second, |_| true), Some(30));
        assert_eq!(slow_after(demand(100), |s| (s + 1) * 100, |_| true), None);
        assert_eq!(slow_after(demand(0), |second| second, |_| true), None);
    }

    #[test]
    fn bytes_of_one_window_do_not_pay_for_the_next() {
        let stops = |second: u64| 100_000 + second;
        assert_eq!(slow_after(demand(100), stops, |_| true), Some(60));
    }
}
