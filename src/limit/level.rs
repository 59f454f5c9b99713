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
//! highest bit of `used`, which a limit and a burst of 32 bits each can need together.

use super::tally::Few;
use super::{Limiter, State, ratio, was_set};
use crate::clock::Timestamp;

/// The largest `used`: 33 bits.
const MOST: u64 = (1 << 33) - 1;
/// The last moment that is told from a later one, in the year 2262.
const LAST: u64 = (1 << 63) - 1;

/// The level at one moment.
#[derive(Clone, Copy)]
pub(super) struct Level {
    /// How much drains in a period.
    limit: u64,
    /// In nanoseconds, never zero.
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

/// A level less than a period after `at`, in numbers that need no care.
#[derive(Clone, Copy)]
pub(super) struct Fresh {
    /// How much drains in a period, never zero.
    limit: u64,
    /// In nanoseconds, never zero.
    period: u64,
    /// Units above empty, as of `at`.
    used: u32,
    at: u64,
    /// Since `at`.
    elapsed: u64,
    /// Whole units that have drained since `at`; less than `used`, if that is not zero.
    drained: u32,
}

// === impl Level ===

impl Level {
    /// The level at `now`. When the clock went back behind `at`, that moment is taken instead;
    /// when it was set back, all drains from `now`.
    #[inline(always)]
    pub(super) fn at(limiter: &Limiter, state: &State, now: Timestamp) -> Self {
        let now = now.as_nanos().min(LAST);
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
        let top = (self.used >> 32) << 31 | self.at >> 32;
        [self.used as u32, self.at as u32, top as u32]
    }

    pub(super) fn rebased(&self) -> bool {
        self.rebased
    }

    /// How many nanoseconds it takes until no more than `room` is left, rounded up; none if that
    /// never comes.
    #[inline]
    pub(super) fn drains_to(&self, room: u64) -> Option<u64> {
        let surplus = self.used.saturating_sub(room);
        if surplus == 0 {
            return Some(0);
        }
        let whole = ratio::up(surplus, self.period, self.limit);
        (self.limit > 0).then_some(whole.saturating_sub(self.elapsed))
    }

    /// [`Level::drains_to`], as the clock will show it, which may have to catch up first.
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
    pub(super) fn room_within(&self, longest: u64) -> u64 {
        let longest = longest.saturating_add(self.elapsed);
        let drains = ratio::down(longest, self.limit, self.period);
        drains.saturating_add(1).saturating_sub(self.used)
    }

    /// How long the clock has to catch up.
    pub(super) fn ahead(&self) -> u64 {
        self.ahead
    }

    #[inline]
    fn kept(limiter: &Limiter, state: &State) -> Self {
        let [used, at, top] = *state;
        Level {
            limit: limiter.capped(),
            period: limiter.nanos(),
            used: u64::from(top >> 31) << 32 | u64::from(used),
            at: u64::from(top & (u32::MAX >> 1)) << 32 | u64::from(at),
            elapsed: 0,
            drained: 0,
            ahead: 0,
            rebased: false,
        }
    }

    #[inline]
    fn empty(self, now: u64) -> Self {
        Level {
            used: 0,
            at: now,
            elapsed: 0,
            ..self
        }
    }

    /// `elapsed` after `at`, less than a period.
    #[inline]
    fn after(self, elapsed: u64) -> Self {
        let drained = ratio::down(elapsed, self.limit, self.period);
        if drained >= self.used {
            return self.empty(self.at + elapsed);
        }
        Level {
            elapsed,
            drained,
            ..self
        }
    }

    /// `elapsed` after `at`, which moves by the whole periods in it.
    #[inline]
    fn after_periods(self, elapsed: u64) -> Self {
        let periods = elapsed / self.period;
        let moved = Level {
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
            return Level {
                at,
                rebased,
                ..self
            };
        }
        Level { ahead, ..self }
    }
}

// === impl Fresh ===

impl Fresh {
    /// The level at `now`, less than a period after `at` or with nothing left of it; `None` for
    /// all others.
    #[inline(always)]
    pub(super) fn at(limiter: &Limiter, state: &State, now: Timestamp) -> Option<Self> {
        let [used, low, top] = *state;
        let (now, at) = (now.as_nanos(), u64::from(top) << 32 | u64::from(low));
        let limit = Few::of(limiter.limit)?.get();
        let period = limiter.few_nanos()?;
        if period == 0 || now > LAST {
            return None;
        }
        // Where `top` has a bit of `used`, it is past any such moment.
        let elapsed = now.checked_sub(at)?;
        let fresh = Fresh {
            limit: limit.into(),
            period,
            used,
            at,
            elapsed,
            drained: 0,
        };
        if elapsed >= period {
            // In a period as much drains as the limit.
            return (used <= limit).then_some(fresh.empty(now));
        }
        let drained = elapsed.checked_mul(fresh.limit)? / period;
        if drained >= u64::from(used) {
            return Some(fresh.empty(now));
        }
        let drained = drained as u32;
        Some(Fresh { drained, ..fresh })
    }

    /// The units, rounded up.
    #[inline(always)]
    pub(super) fn used(&self) -> u32 {
        self.used.wrapping_sub(self.drained)
    }

    /// The same and `cost`.
    #[inline(always)]
    pub(super) fn adding(self, cost: Few) -> Option<Self> {
        let used = self.used.checked_add(cost.get())?;
        Some(Fresh { used, ..self })
    }

    /// [`Level::state`].
    #[inline(always)]
    pub(super) fn state(&self) -> State {
        [self.used, self.at as u32, (self.at >> 32) as u32]
    }

    /// How many nanoseconds it takes until nothing is left, rounded up.
    #[inline(always)]
    pub(super) fn drains(&self) -> Option<u64> {
        let product = u64::from(self.used).checked_mul(self.period)?;
        // Less than `used` has drained, so less than all the time has passed.
        Some(product.div_ceil(self.limit).wrapping_sub(self.elapsed))
    }

    /// [`Level::room_within`].
    #[inline(always)]
    pub(super) fn room_within(&self, longest: u64) -> Option<u32> {
        let longest = longest.checked_add(self.elapsed)?;
        let drains = longest.checked_mul(self.limit)? / self.period;
        let room = drains.saturating_add(1).saturating_sub(self.used.into());
        Some(u32::try_from(room).unwrap_or(u32::MAX))
    }

    #[inline(always)]
    fn empty(self, now: u64) -> Self {
        Fresh {
            used: 0,
            at: now,
            elapsed: 0,
            ..self
        }
    }
}

/// The level at `now` after `charges` of (time, cost), in `period`-ths of a unit: of all the
/// moments since which it may have been above zero, the one that gives the most.
#[cfg(test)]
pub(super) fn naive(limiter: &Limiter, charges: &[(u64, u64)], now: u64) -> i128 {
    let (period, limit) = (i128::from(limiter.nanos()), i128::from(limiter.limit));
    let mut sum = 0;
    let since = charges.iter().rev().map(|(time, cost)| {
        sum += i128::from(*cost) * period;
        sum - i128::from(now - time) * limit
    });
    since.max().unwrap_or(0).max(0)
}
