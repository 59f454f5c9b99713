//! `sliding_window`: two counters, the older one weighted by the share of its window that is still
//! in the sliding window.
//!
//! The estimate is `previous × (period − elapsed) / period + current`. Windows are aligned to the
//! Unix epoch, so all gateways use equal windows. All arithmetic is exact: `limit`, `current` and
//! `cost` are whole, so a cost fits exactly if it fits with the weighted part *rounded up*. No
//! rounding favours or harms a client, and only the display uses floating point.

use super::math::{CounterMath, ratio_down, ratio_up};
use super::reading::until;
use super::{CounterReading, Limiter, ShareCounts, State, until_begins};
use crate::clock::Timestamp;

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

/// An exact weighted count, as a fraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WeightedCount {
    /// The units, times [`WeightedCount::denominator`].
    pub numerator: u128,
    /// The period in microseconds, never zero.
    pub denominator: u64,
}

/// The two counters at one point in time.
#[derive(Clone, Copy)]
pub(crate) struct SlidingWindowMath {
    /// The length of a window in microseconds, never zero.
    period: u64,
    /// The low bits of the window's number since the epoch. They distinguish windows that are less
    /// than 2³¹ windows apart.
    index: u32,
    /// The count of the previous window.
    previous: u32,
    /// The count of this window.
    current: u32,
    /// Microseconds since the window began, always less than `period`.
    elapsed: u64,
    /// Microseconds until the window begins: not zero only if the clock went back.
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
    /// The window of `now` with the counts of `state`. If the clock went back behind the state's
    /// window, the start of that window is used instead: nothing is forgotten, and nothing is
    /// counted twice when the clock has caught up.
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
            delay: if fits {
                0
            } else {
                until(self.retry_after(limiter.capped(), cost))
            },
            share: ShareCounts::default(),
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

    /// The counters at the start of the future window `index`. If the clock was set back, the
    /// counts move to the current window.
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

    /// Microseconds until the window begins: not zero only if the clock went back.
    pub(super) fn ahead(&self) -> u64 {
        self.ahead
    }

    /// The weighted count, rounded up.
    #[inline]
    pub(super) fn used(&self) -> u64 {
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

    /// The least wait after which `cost` fits, if nothing more is charged.
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

/// The time into a window after which `count` of the previous window weighs at most `room`: the
/// least `elapsed` with `count × (period − elapsed) ≤ room × period`.
pub(super) fn faded_to(count: u32, room: u64, period: u64) -> u64 {
    if u64::from(count) <= room {
        return 0;
    }
    period - ratio_down(room, period, u64::from(count))
}
