//! `sliding_window`: two counters, the older one weighted by how much of it still lies in the
//! window that ends now.
//!
//! The estimate is `previous × (period − elapsed) / period + current`. Windows are aligned to the
//! Unix epoch, so every gateway has the same ones. All arithmetic is exact: `limit`, `current` and
//! `cost` are whole, so a cost fits exactly if the weighted part *rounded up* leaves room for it.
//! Nothing here is ever rounded in anyone's favour, and nothing uses floating point but a display.

use super::math::{CounterMath, ratio_down, ratio_up};
use super::reading::until;
use super::{CounterReading, Limiter, State, until_begins};
use crate::clock::Timestamp;

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

/// A weighted count, exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WeightedCount {
    /// The units, times [`WeightedCount::denominator`].
    pub numerator: u128,
    /// The period in microseconds, never zero.
    pub denominator: u64,
}

/// The two counters as they stand at one moment.
#[derive(Clone, Copy)]
pub(crate) struct SlidingWindowMath {
    /// Its length in microseconds, never zero.
    period: u64,
    /// The low bits of its number since the epoch: two windows are told apart that lie less than
    /// 2³¹ of them from each other.
    index: u32,
    /// What was counted in the one before.
    previous: u32,
    /// What was counted in this one.
    current: u32,
    /// How much of it has passed, always less than `period`.
    elapsed: u64,
    /// How long until it begins: not zero only after the clock went back.
    ahead: u64,
    /// The previous window's part of the estimate, rounded up.
    faded: u64,
    rebased: bool,
}

/// The weighted count at `now`.
pub fn estimate(limiter: &Limiter, state: &State, now: Timestamp) -> WeightedCount {
    let window = SlidingWindowMath::at(limiter, state, now);
    let left = window.period - window.elapsed;
    WeightedCount {
        numerator: u128::from(window.previous) * u128::from(left)
            + u128::from(window.current) * u128::from(window.period),
        denominator: window.period,
    }
}

// === impl WeightedCount ===

impl WeightedCount {
    /// The units, for display.
    pub fn as_f64(self) -> f64 {
        self.numerator as f64 / self.denominator as f64
    }
}

// === impl SlidingWindowMath ===

impl CounterMath for SlidingWindowMath {
    /// The window of `now`, with what `state` says about it. When the clock went back behind the
    /// state's window, that window's first moment is taken instead: nothing is forgotten, and
    /// nothing is counted twice when the clock has caught up.
    #[inline(always)]
    fn at(limiter: &Limiter, state: &State, now: Timestamp) -> Self {
        let period = limiter.micros();
        let number = now.as_micros() / period;
        let fresh = SlidingWindowMath {
            period,
            index: number as u32,
            previous: 0,
            current: 0,
            elapsed: now.as_micros() % period,
            ahead: 0,
            faded: 0,
            rebased: false,
        };
        let [index, previous, current] = *state;
        if previous == 0 && current == 0 {
            return fresh;
        }
        match fresh.index.wrapping_sub(index) as i32 {
            0 => fresh.holding(previous, current),
            1 => fresh.holding(current, 0),
            2.. => fresh,
            _ => fresh.back_from(index).holding(previous, current),
        }
    }

    #[inline]
    fn fits(&self, limiter: &Limiter, cost: u64) -> bool {
        self.used().saturating_add(cost) <= limiter.capped()
    }

    #[inline]
    fn add(&mut self, cost: u64) {
        let cost = u32::try_from(cost).unwrap_or(u32::MAX);
        self.current = self.current.saturating_add(cost);
    }

    #[inline]
    fn state(&self) -> State {
        [self.index, self.previous, self.current]
    }

    fn rebased(&self) -> bool {
        self.rebased
    }

    #[inline]
    fn reading(&self, limiter: &Limiter, fits: bool, cost: u64) -> CounterReading {
        CounterReading {
            fits,
            remaining: limiter.capped().saturating_sub(self.used()),
            reset: self.reset_after(),
            delay: match fits {
                true => 0,
                false => until(self.retry_after(limiter.capped(), cost)),
            },
        }
    }
}

impl SlidingWindowMath {
    #[inline]
    fn holding(self, previous: u32, current: u32) -> Self {
        SlidingWindowMath {
            previous,
            current,
            faded: ratio_up(u64::from(previous), self.period - self.elapsed, self.period),
            ..self
        }
    }

    /// The first moment of the window `index`, which is yet to come; this one, if the clock was
    /// set.
    #[inline]
    fn back_from(self, index: u32) -> Self {
        let windows = u64::from(index.wrapping_sub(self.index));
        match until_begins(windows, self.elapsed, self.period) {
            Some(ahead) => SlidingWindowMath {
                index,
                elapsed: 0,
                ahead,
                ..self
            },
            None => SlidingWindowMath {
                rebased: true,
                ..self
            },
        }
    }

    /// The estimate, rounded up.
    #[inline]
    fn used(&self) -> u64 {
        u64::from(self.current) + self.faded
    }

    #[inline]
    fn reset_after(&self) -> u64 {
        let rest = self.ahead.saturating_add(self.period - self.elapsed);
        if self.current > 0 {
            rest.saturating_add(self.period)
        } else if self.previous > 0 {
            rest
        } else {
            0
        }
    }

    /// The least wait after which `cost` fits, if nothing more comes.
    #[inline]
    fn retry_after(&self, limit: u64, cost: u64) -> Option<u64> {
        let room = limit.checked_sub(cost)?;
        let wait = match room.checked_sub(u64::from(self.current)) {
            Some(room) => faded_to(self.previous, room, self.period).saturating_sub(self.elapsed),
            None => (self.period - self.elapsed).saturating_add(faded_to(
                self.current,
                room,
                self.period,
            )),
        };
        Some(self.ahead.saturating_add(wait))
    }
}

/// How far into a window `count` of the window before weighs no more than `room`: the least
/// `elapsed` with `count × (period − elapsed) ≤ room × period`.
pub(super) fn faded_to(count: u32, room: u64, period: u64) -> u64 {
    if u64::from(count) <= room {
        return 0;
    }
    period - ratio_down(room, period, u64::from(count))
}
