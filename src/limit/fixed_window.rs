//! `fixed_window`: one counter, which starts from nothing with every window.
//!
//! Windows are aligned to the Unix epoch, so every gateway has the same ones. Cheap and simple to
//! tell, but around the seam of two windows twice the limit can pass in no time.
//!
//! The words: the window's number, low half; the count; the number's high half.

use super::math::CounterMath;
use super::reading::until;
use super::{CounterReading, Limiter, State, until_begins};
use crate::clock::Timestamp;

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

/// The counter as it stands at one moment.
#[derive(Clone, Copy)]
pub(crate) struct FixedWindowMath {
    /// The window's number since the epoch.
    index: u64,
    count: u32,
    /// How long until it ends.
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
            delay: match fits {
                true => 0,
                false => until((cost <= limiter.capped()).then_some(self.rest)),
            },
        }
    }
}

impl FixedWindowMath {
    /// The window `index`, which is yet to come and ends in `rest`; this one, if the clock was
    /// set.
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
