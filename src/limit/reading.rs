//! The result of a limiter operation, small enough to copy at every step.
//!
//! Times are kept in microseconds and converted to durations on demand.

use std::time::Duration;

use super::algorithm::RecoveryKind;
use super::share::{ChargeUnits, ShareCounts};
use super::{Counter, Limiter, micros_up};
use crate::clock::Timestamp;

/// No wait helps.
const NEVER: u64 = u64::MAX;

/// The result of a limiter operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CounterReading {
    /// For `admit` and `peek`: whether the cost fits (`admit` has then charged it). For `charge`:
    /// whether the count is still within the limit.
    pub fits: bool,
    /// The units left, rounded down.
    pub remaining: u64,
    /// Microseconds until the counter is empty.
    pub(super) reset: u64,
    /// If the cost fits: microseconds until its turn. Otherwise: microseconds until it fits, or [`NEVER`].
    pub(super) delay: u64,
    /// Both counts of a rule with a ratio. Zero for other rules.
    pub share: ShareCounts,
}

// === impl CounterReading ===

impl CounterReading {
    /// The reading for a cost that fits without a wait.
    pub fn fitting(remaining: u64, reset_after: Duration) -> Self {
        Self {
            fits: true,
            remaining,
            reset: micros_up(reset_after),
            delay: 0,
            share: ShareCounts::default(),
        }
    }

    /// The reading for a cost that does not fit.
    pub fn refusing(remaining: u64, reset_after: Duration, retry_after: Option<Duration>) -> Self {
        Self {
            fits: false,
            remaining,
            reset: micros_up(reset_after),
            delay: until(retry_after.map(micros_up)),
            share: ShareCounts::default(),
        }
    }

    /// The reading that another store has computed. `reset` and `delay` are in microseconds; a `delay` of
    /// `u64::MAX` means never.
    pub fn from_micros(fits: bool, remaining: u64, reset: u64, delay: u64) -> Self {
        Self {
            fits,
            remaining,
            reset,
            delay,
            share: ShareCounts::default(),
        }
    }

    /// The reading of a rule with a ratio. `reset` is in microseconds. If the cost does not fit, no wait is known after
    /// which it does.
    pub fn of_share(fits: bool, limit: u64, share: ShareCounts, reset: u64) -> Self {
        Self {
            fits,
            remaining: limit.saturating_sub(share.count.into()),
            reset,
            delay: if fits { 0 } else { NEVER },
            share,
        }
    }

    /// Adds both counts of a rule with a ratio.
    pub fn with_share(self, share: ShareCounts) -> Self {
        Self { share, ..self }
    }

    /// Returns what a counter that was only peeked at would read after a charge of `units`. Its reset can be late by a
    /// microsecond, because both parts of it are rounded up.
    pub fn after_charge(self, limiter: &Limiter, now: Timestamp, units: ChargeUnits) -> Self {
        let alone = Counter::new(limiter.shape(), limiter).charge(limiter, now, units, 0);
        let reset = match limiter.algorithm.row().recovery {
            RecoveryKind::Refills => self.reset.saturating_add(alone.reset),
            RecoveryKind::Expires | RecoveryKind::Released => self.reset.max(alone.reset),
        };
        let share = ShareCounts {
            count: self.share.count.saturating_add(alone.share.count),
            total: self.share.total.saturating_add(alone.share.total),
        };
        Self {
            remaining: self.remaining.saturating_sub(units.count),
            reset,
            share,
            ..self
        }
    }

    /// Replaces the units left and the time until the reset.
    pub fn leaving(self, remaining: u64, reset_after: Duration) -> Self {
        let reset = micros_up(reset_after);
        Self {
            remaining,
            reset,
            ..self
        }
    }

    /// The time until the counter is empty if nothing more is charged. For `concurrency`, a maximum
    /// while requests are in flight: meant for the store, not for clients.
    pub fn reset_after(&self) -> Duration {
        Duration::from_micros(self.reset)
    }

    /// [`CounterReading::reset_after`] in microseconds.
    #[inline]
    pub fn reset_micros(&self) -> u64 {
        self.reset
    }

    /// The time until this cost fits if nothing more is charged. Zero if it fits now, `None` if it
    /// never fits. Exact except for `concurrency`, where it is a hint.
    pub fn retry_after(&self) -> Option<Duration> {
        let wait = if self.fits { 0 } else { self.delay };
        (wait != NEVER).then_some(Duration::from_micros(wait))
    }

    /// Whether the cost fits but must wait for its turn.
    #[inline]
    pub fn waits(&self) -> bool {
        self.fits && self.delay > 0
    }

    /// `leaky_bucket`: the time that a cost that fits must wait for its turn. Zero if it does not fit.
    pub fn wait(&self) -> Duration {
        Duration::from_micros(if self.fits { self.delay } else { 0 })
    }
}

/// Encodes a wait, with [`NEVER`] for `None`.
pub(super) fn until(wait: Option<u64>) -> u64 {
    wait.map_or(NEVER, |wait| wait.min(NEVER - 1))
}
