//! A level that rises with every unit and falls evenly, `limit` in a `period`: what
//! `token_bucket`, `gcra` and `leaky_bucket` have in common.
//!
//! Kept is a whole number of units and the moment from which they drain. The level at `now` is
//! `used − (now − at) × limit / period`. Units are added to `used`; `at` moves by whole periods
//! only, in which a whole number drains. So no fraction is ever kept, nothing is rounded in
//! anyone's favour, and another `limit` or `burst` after a reload finds numbers that still mean
//! what they meant.
//!
//! The words: the low half of `used`; the low half of `at`; above 31 more bits of `at`, the
//! highest bit of `used`, which a limit and a burst of 32 bits each can need together. There, `at` is in
//! nanoseconds and a multiple of 1,000: counter snapshots hold it so.

use super::math::{ratio_down, ratio_up};
use super::{Limiter, State, was_set};
use crate::clock::Timestamp;

/// The largest `used`: 33 bits.
const MOST: u64 = (1 << 33) - 1;
/// The last time that is told from a later one, in the year 2262.
const LAST: u64 = ((1 << 63) - 1) / NANOS;
/// How many nanoseconds a microsecond has.
const NANOS: u64 = 1_000;

/// The level at one moment.
#[derive(Clone, Copy)]
pub(super) struct BucketLevel {
    /// How much drains in a period.
    limit: u64,
    /// In microseconds, never zero.
    period: u64,
    /// Units above empty, as of `at`.
    used: u64,
    at: u64,
    /// Since `at`, always less than `period`.
    elapsed: u64,
    /// Whole units that have drained since `at`; less than `used`, if that is not zero.
    drained: u64,
    /// How long until `at`: not zero only after the clock went back.
    ahead: u64,
    rebased: bool,
}

// === impl BucketLevel ===

impl BucketLevel {
    /// The level at `now`. When the clock went back behind `at`, that moment is taken instead;
    /// when it was set back, all drains from `now`.
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

    /// The units, rounded up.
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
        let at = self.at * NANOS;
        let top = (self.used >> 32) << 31 | at >> 32;
        [self.used as u32, at as u32, top as u32]
    }

    pub(super) fn rebased(&self) -> bool {
        self.rebased
    }

    /// How many microseconds it takes until no more than `room` is left, rounded up; none if that
    /// never comes.
    #[inline]
    pub(super) fn drains_to(&self, room: u64) -> Option<u64> {
        let surplus = self.used.saturating_sub(room);
        if surplus == 0 {
            return Some(0);
        }
        let whole = ratio_up(surplus, self.period, self.limit);
        (self.limit > 0).then_some(whole.saturating_sub(self.elapsed))
    }

    /// [`BucketLevel::drains_to`], as the clock will show it, which may have to catch up first.
    #[inline]
    pub(super) fn falls_to(&self, room: u64) -> Option<u64> {
        let wait = self.drains_to(room)?;
        Some(if wait == 0 {
            0
        } else {
            wait.saturating_add(self.ahead)
        })
    }

    /// How many units could come one by one before one would have to wait longer than `longest`
    /// for all before it to drain.
    pub(super) fn capacity_within(&self, longest: u64) -> u64 {
        let longest = longest.saturating_add(self.elapsed);
        let drains = ratio_down(longest, self.limit, self.period);
        drains.saturating_add(1).saturating_sub(self.used)
    }

    /// How long the clock has to catch up.
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

    /// `elapsed` after `at`, less than a period.
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

    /// `elapsed` after `at`, which moves by the whole periods in it.
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
