//! Two counters of one key with common windows: the units of `count`, and those of `total`, which include them.
//!
//! The key is over if its count exceeds the limit and also exceeds a share of its total. Both are compared at
//! one instant, as whole units: the weighted part of a sliding window is rounded up. The ratio is a whole number
//! of 1/10,000, and no product exceeds 2^48, so that all stores decide equally.
//!
//! Windows are those of `sliding_window` or `fixed_window`. The total is never less than the count, so its
//! window is that of both: while the clock is behind it, the count starts in that window too.

use std::num::NonZeroU16;

use super::fixed_window::FixedWindowMath;
use super::math::CounterMath;
use super::sliding_window::SlidingWindowMath;
use super::{Algorithm, CounterReading, Limiter, State};
use crate::clock::Timestamp;

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

/// The whole, in units of [`ShareRatio`].
const WHOLE: u16 = 10_000;

/// The most units that one charge can add: more than any counter can hold.
const MAX_UNITS: u64 = (1 << 33) - 1;

/// The share of the total that the count must exceed, in 1/10,000: more than zero and less than the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShareRatio(NonZeroU16);

/// The units that a charge adds to each counter of a key. Only a [`ShareCounter`] has a total.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChargeUnits {
    /// The units of `count`.
    pub count: u64,
    /// The units of `total`: at least those of `count`.
    pub total: u64,
}

/// Both counts of a key, rounded up. Zero for a counter without a total.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShareCounts {
    /// The units of `count`.
    pub count: u32,
    /// The units of `total`.
    pub total: u32,
}

/// The two counters of a key, each with the words of its algorithm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShareCounter {
    /// The counter for `count`.
    pub count: State,
    /// The counter for `total`.
    pub total: State,
}

/// An algorithm with windows that two counters can have in common.
trait WindowMath: CounterMath {
    /// The units, rounded up.
    fn used(&self) -> u64;
    /// Microseconds until the window begins: not zero only if the clock went back.
    fn ahead(&self, limiter: &Limiter) -> u64;
}

/// Both counters at one point in time.
struct WindowPair<M> {
    count: M,
    total: M,
}

// === impl ShareRatio ===

impl ShareRatio {
    /// The smallest ratio.
    pub const SMALLEST: ShareRatio = ShareRatio(NonZeroU16::MIN);

    /// The ratio that is nearest to `share`.
    pub fn nearest(share: f64) -> Self {
        let parts = (share * f64::from(WHOLE)).round();
        let parts = parts.clamp(1.0, f64::from(WHOLE - 1)) as u16;
        NonZeroU16::new(parts).map_or(Self::SMALLEST, Self)
    }

    /// The ratio in 1/10,000.
    pub fn parts(self) -> u16 {
        self.0.get()
    }

    /// The ratio, for display.
    pub fn as_f64(self) -> f64 {
        f64::from(self.parts()) / f64::from(WHOLE)
    }

    /// Whether `count` exceeds this share of `total`. Both have at most 34 bits.
    fn is_exceeded(self, count: u64, total: u64) -> bool {
        u64::from(WHOLE) * count > u64::from(self.parts()) * total
    }
}

// === impl ChargeUnits ===

impl ChargeUnits {
    /// Units of `total` only.
    pub const fn of_total(total: u64) -> Self {
        Self { count: 0, total }
    }

    /// The sum of both charges.
    pub const fn plus(self, other: Self) -> Self {
        Self {
            count: self.count.saturating_add(other.count),
            total: self.total.saturating_add(other.total),
        }
    }

    /// The smaller number of units of each counter.
    pub fn at_most(self, other: Self) -> Self {
        Self {
            count: self.count.min(other.count),
            total: self.total.min(other.total),
        }
    }

    /// Whether there is nothing to charge.
    pub const fn is_zero(self) -> bool {
        self.count == 0 && self.total == 0
    }

    /// The units, limited to what a counter can hold.
    fn limited(self) -> Self {
        Self {
            count: self.count.min(MAX_UNITS),
            total: self.total.min(MAX_UNITS),
        }
    }
}

impl From<u64> for ChargeUnits {
    /// Units that belong to `count` and therefore to `total` too.
    fn from(units: u64) -> Self {
        Self {
            count: units,
            total: units,
        }
    }
}

// === impl ShareCounter ===

/// Evaluates `$body` with `$math` as the windows of the limiter.
macro_rules! by_windows {
    ($limiter:expr, $math:ident => $body:expr) => {
        match $limiter.algorithm {
            Algorithm::FixedWindow => {
                type $math = FixedWindowMath;
                $body
            }
            _ => {
                type $math = SlidingWindowMath;
                $body
            }
        }
    };
}

impl ShareCounter {
    /// The counters of the window with this number since the epoch. Each has the units of the window before and of
    /// this one. A fixed window has none of the window before.
    pub fn of_window(algorithm: Algorithm, index: u64, count: [u32; 2], total: [u32; 2]) -> Self {
        let state = |[previous, current]: [u32; 2]| match algorithm {
            Algorithm::FixedWindow => [index as u32, current, (index >> 32) as u32],
            _ => [index as u32, previous, current],
        };
        Self {
            count: state(count),
            total: state(total),
        }
    }

    /// Charges `units` if the key is not over afterwards. Otherwise the counters change only if the clock was set
    /// back.
    pub fn admit(
        &mut self,
        limiter: &Limiter,
        now: Timestamp,
        units: ChargeUnits,
    ) -> CounterReading {
        by_windows!(limiter, M => self.operate::<M>(limiter, now, units.limited(), |fits| fits))
    }

    /// Charges `units`. The reading tells whether the key is over.
    pub fn charge(
        &mut self,
        limiter: &Limiter,
        now: Timestamp,
        units: ChargeUnits,
    ) -> CounterReading {
        by_windows!(limiter, M => self.operate::<M>(limiter, now, units.limited(), |_| true))
    }

    /// Returns what [`ShareCounter::admit`] would return, and charges nothing. The counters move if the clock was
    /// set back.
    pub fn peek(
        &mut self,
        limiter: &Limiter,
        now: Timestamp,
        units: ChargeUnits,
    ) -> CounterReading {
        by_windows!(limiter, M => self.operate::<M>(limiter, now, units.limited(), |_| false))
    }

    #[inline]
    fn operate<M: WindowMath>(
        &mut self,
        limiter: &Limiter,
        now: Timestamp,
        units: ChargeUnits,
        charges: impl Fn(bool) -> bool,
    ) -> CounterReading {
        let mut pair = WindowPair::<M>::at(limiter, self, now);
        let fits = pair.fits(limiter, units);
        let charged = charges(fits);
        if charged {
            pair.count.add(units.count);
            pair.total.add(units.total);
        }
        if charged || pair.total.rebased() {
            self.count = pair.count.state();
            self.total = pair.total.state();
        }
        pair.reading(limiter, fits)
    }
}

// === impl WindowPair ===

impl<M: WindowMath> WindowPair<M> {
    #[inline]
    fn at(limiter: &Limiter, counter: &ShareCounter, now: Timestamp) -> Self {
        let total = M::at(limiter, &counter.total, now);
        let ahead = total.ahead(limiter);
        let now = Timestamp::from_micros(now.as_micros().saturating_add(ahead));
        Self {
            count: M::at(limiter, &counter.count, now),
            total,
        }
    }

    /// Whether the key is not over once `units` are charged.
    fn fits(&self, limiter: &Limiter, units: ChargeUnits) -> bool {
        let count = self.count.used() + units.count;
        let total = self.total.used() + units.total;
        let is_over = |ratio: ShareRatio| ratio.is_exceeded(count, total);
        count <= limiter.capped() || !limiter.ratio.is_none_or(is_over)
    }

    /// The reading. When a key that is over is no longer over depends on other requests.
    fn reading(&self, limiter: &Limiter, fits: bool) -> CounterReading {
        let reset = self.total.reading(limiter, true, 0).reset;
        let counts = ShareCounts {
            count: shown(self.count.used()),
            total: shown(self.total.used()),
        };
        CounterReading::of_share(fits, limiter.capped(), counts, reset)
    }
}

fn shown(units: u64) -> u32 {
    u32::try_from(units).unwrap_or(u32::MAX)
}

// === impl SlidingWindowMath ===

impl WindowMath for SlidingWindowMath {
    fn used(&self) -> u64 {
        SlidingWindowMath::used(self)
    }

    fn ahead(&self, _: &Limiter) -> u64 {
        self.ahead()
    }
}

// === impl FixedWindowMath ===

impl WindowMath for FixedWindowMath {
    fn used(&self) -> u64 {
        FixedWindowMath::used(self)
    }

    fn ahead(&self, limiter: &Limiter) -> u64 {
        FixedWindowMath::ahead(self, limiter)
    }
}
