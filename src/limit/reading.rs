//! What a limiter says of a key, in few enough bytes that a store can hand it on at every step.
//!
//! Times are kept in microseconds and converted to durations on demand.

use std::time::Duration;

use super::micros_up;

/// No wait helps.
const NEVER: u64 = u64::MAX;

/// What an operation found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CounterReading {
    /// `admit`, `peek`: the cost fits (`admit` has charged it). `charge`: the count is not past
    /// the limit after it.
    pub fits: bool,
    /// Whole units left.
    pub remaining: u64,
    /// Until nothing is counted any more.
    pub(super) reset: u64,
    /// What fits: until its turn. What does not: until it would, or [`NEVER`].
    pub(super) delay: u64,
}

// === impl CounterReading ===

impl CounterReading {
    /// Of what fits, at once.
    pub fn fitting(remaining: u64, reset_after: Duration) -> Self {
        Self {
            fits: true,
            remaining,
            reset: micros_up(reset_after),
            delay: 0,
        }
    }

    /// Of what does not fit.
    pub fn refusing(remaining: u64, reset_after: Duration, retry_after: Option<Duration>) -> Self {
        Self {
            fits: false,
            remaining,
            reset: micros_up(reset_after),
            delay: until(retry_after.map(micros_up)),
        }
    }

    /// The same with another rest.
    pub fn leaving(self, remaining: u64, reset_after: Duration) -> Self {
        let reset = micros_up(reset_after);
        Self {
            remaining,
            reset,
            ..self
        }
    }

    /// Until nothing is counted any more, if nothing more comes. `concurrency`: longer than
    /// anything while something is in flight; for the store, not for a client.
    pub fn reset_after(&self) -> Duration {
        Duration::from_micros(self.reset)
    }

    /// [`CounterReading::reset_after`] in microseconds.
    #[inline]
    pub fn reset_micros(&self) -> u64 {
        self.reset
    }

    /// Until this cost would fit, if nothing more comes; zero if it fits now, `None` if it never
    /// can. Exact, but for `concurrency`, where it is a hint.
    pub fn retry_after(&self) -> Option<Duration> {
        let wait = if self.fits { 0 } else { self.delay };
        (wait != NEVER).then_some(Duration::from_micros(wait))
    }

    /// Whether it fits and must wait for its turn.
    #[inline]
    pub fn waits(&self) -> bool {
        self.fits && self.delay > 0
    }

    /// `leaky_bucket`: how long what fits must wait for its turn; zero for what does not.
    pub fn wait(&self) -> Duration {
        Duration::from_micros(if self.fits { self.delay } else { 0 })
    }
}

/// How to keep a wait that may never end.
pub(super) fn until(wait: Option<u64>) -> u64 {
    wait.map_or(NEVER, |wait| wait.min(NEVER - 1))
}
