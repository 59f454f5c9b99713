//! `fixed_window`: one counter, which starts at zero in every window.
//!
//! Windows are aligned to the Unix epoch, so all gateways use equal windows. Cheap and simple to
//! explain, but at the boundary of two windows up to twice the limit is admitted within a short time.
//!
//! The words: the low half of the window's number; the count; the high half of the number.

use super::math::CounterMath;
use super::reading::until;
use super::{CounterReading, Limiter, ShareCounts, State, until_begins};
use crate::clock::Timestamp;

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

/// The counter at one point in time.
#[derive(Clone, Copy)]
pub(crate) struct FixedWindowMath {
    /// The window's number since the epoch.
    index: u64,
    count: u32,
    /// Microseconds until the window ends.
    rest: u64,
    rebased: bool,
}

// === impl FixedWindowMath ===

impl CounterMath for FixedWindowMath {
    #[inline(always)]
    fn at(limiter: &Limiter, state: &State, now: Timestamp) -> Self {
        let period = limiter.micros();
        let elapsed = now.as_micros() % period;
        let fresh = FixedWindowMath {
            index: now.as_micros() / period,
            count: 0,
            rest: period - elapsed,
            rebased: false,
        };
        let [low, count, high] = *state;
        let index = u64::from(high) << 32 | u64::from(low);
        if count == 0 || index < fresh.index {
            fresh
        } else if index == fresh.index {
            FixedWindowMath { count, ..fresh }
        } else {
            let ahead = until_begins(index - fresh.index, elapsed, period);
            fresh.back_from(
                index,
                count,
                ahead.map(|ahead| ahead.saturating_add(period)),
            )
        }
    }

    #[inline]
    fn fits(&self, limiter: &Limiter, cost: u64) -> bool {
        u64::from(self.count).saturating_add(cost) <= limiter.capped()
    }

    #[inline]
    fn add(&mut self, cost: u64) {
        let cost = u32::try_from(cost).unwrap_or(u32::MAX);
        self.count = self.count.saturating_add(cost);
    }

    #[inline]
    fn state(&self) -> State {
        [self.index as u32, self.count, (self.index >> 32) as u32]
    }

    fn rebased(&self) -> bool {
        self.rebased
    }

    #[inline]
    fn reading(&self, limiter: &Limiter, fits: bool, cost: u64) -> CounterReading {
        CounterReading {
            fits,
            remaining: limiter.capped().saturating_sub(u64::from(self.count)),
            reset: if self.count > 0 { self.rest } else { 0 },
            delay: if fits {
                0
            } else {
                until((cost <= limiter.capped()).then_some(self.rest))
            },
            share: ShareCounts::default(),
        }
    }
}

impl FixedWindowMath {
    /// The count.
    pub(super) fn used(&self) -> u64 {
        u64::from(self.count)
    }

    /// Microseconds until the window begins: not zero only if the clock went back.
    pub(super) fn ahead(&self, limiter: &Limiter) -> u64 {
        self.rest.saturating_sub(limiter.micros())
    }

    /// The counter in the future window `index`, which ends in `rest` microseconds. `None` for
    /// `rest` means that the clock was set back: the count moves to the current window.
    #[inline]
    fn back_from(self, index: u64, count: u32, rest: Option<u64>) -> Self {
        match rest {
            Some(rest) => FixedWindowMath {
                index,
                count,
                rest,
                ..self
            },
            None => FixedWindowMath {
                count,
                rebased: true,
                ..self
            },
        }
    }
}
