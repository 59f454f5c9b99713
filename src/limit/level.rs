//! A level that rises with every unit and falls evenly, `limit` per `period`. `token_bucket`,
//! `gcra` and `leaky_bucket` share it.
//!
//! The state is a whole number of units and the time from which they drain. The level at `now` is
//! `used − (now − at) × limit / period`. Units are added to `used`; `at` moves only by whole
//! periods, in which a whole number of units drains. So the state has no fractions, no rounding
//! favours or harms a client, and the numbers stay valid if a reload changes `limit` or `burst`.
//!
//! The words: the low half of `used`; the low half of `at`; 31 more bits of `at` below the highest
//! bit of `used`, because a 32-bit limit plus a 32-bit burst can need 33 bits. In the words, `at`
//! is in nanoseconds and a multiple of 1,000, the unit of counter snapshots.

use super::math::{ratio_down, ratio_up};
use super::{Limiter, State, was_set};
use crate::clock::Timestamp;

/// The largest `used`: 33 bits.
const MOST: u64 = (1 << 33) - 1;
/// The latest time that the words can hold, in microseconds: the year 2262.
const LAST: u64 = ((1 << 63) - 1) / NANOS;
/// Nanoseconds per microsecond.
const NANOS: u64 = 1_000;

/// The level at one point in time.
#[derive(Clone, Copy)]
pub(super) struct BucketLevel {
    /// The units that drain per period.
    limit: u64,
    /// The period in microseconds, never zero.
    period: u64,
    /// The units at the time `at`.
    used: u64,
    at: u64,
    /// Microseconds since `at`, always less than `period`.
    elapsed: u64,
    /// Whole units that have drained since `at`; less than `used` unless that is zero.
    drained: u64,
    /// Microseconds until `at`: not zero only if the clock went back.
    ahead: u64,
    rebased: bool,
}

// === impl BucketLevel ===

impl BucketLevel {
    /// The level at `now`. If the clock went back behind `at`, the level is that of `at`; if the
    /// clock was set back, the units drain from `now`.
    #[inline(always)]
    pub(super) fn at(limiter: &Limiter, state: &State, now: Timestamp) -> Self {
        let now = now.as_micros().min(LAST);
        let level = Self::kept(limiter, state);
        if level.used == 0 {
            return level.empty(now);
        }
        match now.checked_sub(level.at) {
            Some(elapsed) if elapsed < level.period => level.after(elapsed),
            Some(elapsed) => level.after_periods(elapsed),
            None => level.back_at(now),
        }
    }

    /// The units that have not drained, rounded up.
    #[inline]
    pub(super) fn used(&self) -> u64 {
        self.used - self.drained
    }

    #[inline]
    pub(super) fn add(&mut self, cost: u64) {
        self.used = self.used.saturating_add(cost).min(MOST);
    }

    #[inline]
    pub(super) fn state(&self) -> State {
        state(self.used, self.at)
    }

    pub(super) fn rebased(&self) -> bool {
        self.rebased
    }

    /// Microseconds until at most `room` units are left, rounded up. `None` if that never happens.
    #[inline]
    pub(super) fn drains_to(&self, room: u64) -> Option<u64> {
        let surplus = self.used.saturating_sub(room);
        if surplus == 0 {
            return Some(0);
        }
        let whole = ratio_up(surplus, self.period, self.limit);
        (self.limit > 0).then_some(whole.saturating_sub(self.elapsed))
    }

    /// [`BucketLevel::drains_to`] plus the time that the clock needs to catch up with `at`.
    #[inline]
    pub(super) fn falls_to(&self, room: u64) -> Option<u64> {
        let wait = self.drains_to(room)?;
        Some(if wait == 0 {
            0
        } else {
            wait.saturating_add(self.ahead)
        })
    }

    /// The number of single units that fit before one would wait longer than `longest` microseconds
    /// for the earlier ones to drain.
    pub(super) fn capacity_within(&self, longest: u64) -> u64 {
        let longest = longest.saturating_add(self.elapsed);
        let drains = ratio_down(longest, self.limit, self.period);
        drains.saturating_add(1).saturating_sub(self.used)
    }

    /// Microseconds until the clock has caught up with `at`.
    pub(super) fn ahead(&self) -> u64 {
        self.ahead
    }

    #[inline]
    fn kept(limiter: &Limiter, state: &State) -> Self {
        let [used, at, top] = *state;
        BucketLevel {
            limit: limiter.capped(),
            period: limiter.micros(),
            used: u64::from(top >> 31) << 32 | u64::from(used),
            at: (u64::from(top & (u32::MAX >> 1)) << 32 | u64::from(at)) / NANOS,
            elapsed: 0,
            drained: 0,
            ahead: 0,
            rebased: false,
        }
    }

    #[inline]
    fn empty(self, now: u64) -> Self {
        BucketLevel {
            used: 0,
            at: now,
            elapsed: 0,
            ..self
        }
    }

    /// The level `elapsed` microseconds after `at`, less than a period.
    #[inline]
    fn after(self, elapsed: u64) -> Self {
        let drained = ratio_down(elapsed, self.limit, self.period);
        if drained >= self.used {
            return self.empty(self.at + elapsed);
        }
        BucketLevel {
            elapsed,
            drained,
            ..self
        }
    }

    /// The level `elapsed` microseconds after `at`; `at` moves by the whole periods in that time.
    #[inline]
    fn after_periods(self, elapsed: u64) -> Self {
        let periods = elapsed / self.period;
        let moved = BucketLevel {
            used: (self.used).saturating_sub(periods.saturating_mul(self.limit)),
            at: self.at + periods * self.period,
            ..self
        };
        moved.after(elapsed % self.period)
    }

    #[inline]
    fn back_at(self, now: u64) -> Self {
        let ahead = self.at - now;
        if was_set(ahead, self.period) {
            let (at, rebased) = (now, true);
            return BucketLevel {
                at,
                rebased,
                ..self
            };
        }
        BucketLevel { ahead, ..self }
    }
}

/// The words of a level of `used` at `at`, in microseconds.
#[inline]
pub(super) fn state(used: u64, at: u64) -> State {
    let (used, at) = (used.min(MOST), at.min(LAST) * NANOS);
    let top = (used >> 32) << 31 | at >> 32;
    [used as u32, at as u32, top as u32]
}
