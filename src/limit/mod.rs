//! Rate-limiting arithmetic: pure functions of (state, now, cost), one file per algorithm.
//!
//! Nothing here reads a clock, locks or stores: [`crate::store`] keeps the counter of each key (see
//! [`CounterShape`]) and calls the three operations admit, charge and peek.
//!
//! Time is counted in whole microseconds, so that every number fits in the 53 bits of a Lua number
//! and all stores decide equally.
//!
//! If a clock goes back by at most a period, or ten seconds if that is more, another thread has read it
//! earlier: the counter keeps its own time, nothing is forgotten, and `Retry-After` includes the difference.
//! If a clock goes back further, it was set: the counter moves to the new time ([`Limiter::rebase`]), so that
//! no client waits for the clock. If a clock jumps forward, counters expire as if the time had passed.

use std::time::Duration;

use crate::clock::Timestamp;

mod algorithm;
pub mod concurrency;
mod counter;
pub(crate) mod fixed_window;
pub(crate) mod gcra;
pub(crate) mod leaky_bucket;
mod level;
pub(crate) mod math;
mod reading;
pub(crate) mod share;
pub mod slices;
pub mod sliding_log;
pub mod sliding_window;
pub(crate) mod token_bucket;

pub use algorithm::{Algorithm, AlgorithmRow, CapacityKind, RecoveryKind};
pub use counter::Counter;
pub use reading::CounterReading;
pub use share::{ChargeUnits, ShareCounter, ShareCounts, ShareRatio};

#[cfg(test)]
mod clocks;
#[cfg(test)]
mod lua_numbers;
#[cfg(test)]
mod samples;
#[cfg(test)]
mod subject;
#[cfg(test)]
mod tests;

/// The largest limit: counts have 32 bits. A larger limit is reduced to this one.
pub const MAX_LIMIT: u64 = u32::MAX as u64;

/// The largest difference between two threads' readings of one clock, in microseconds.
const SKEW: u64 = 10_000_000;

/// The longest duration in seconds, 584 years, as in a [`Timestamp`]. A longer one is reduced to it.
const MAX_SECONDS: u64 = u64::MAX / 1_000_000_000 - 1;

/// The state of one key: three words with a meaning that depends on the algorithm. All zero means
/// that nothing was counted.
pub type State = [u32; 3];

/// The shape of a limiter's counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CounterShape {
    /// A [`State`].
    Words,
    /// Two counters with common windows: see [`ShareCounter`].
    Share,
    /// A counter for each sub-window.
    Slices,
    /// The time of every unit.
    Log,
    /// A lease for every request in flight.
    Leases,
}

/// An algorithm with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limiter {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// The units allowed per period, or in flight for `concurrency`.
    pub limit: u64,
    /// The period of the limit.
    pub period: Duration,
    /// `token_bucket`, `gcra`: the units that an idle key can use at once.
    pub burst: u64,
    /// `sliding_window`: the number of sub-windows.
    pub slices: u16,
    /// `leaky_bucket`: the number of requests that may wait.
    pub queue: u32,
    /// `leaky_bucket`: the longest wait.
    pub max_wait: Duration,
    /// `sliding_window` without sub-windows, `fixed_window`: the share of the total that the count must also exceed.
    /// `None` if the limit alone decides.
    pub ratio: Option<ShareRatio>,
}

/// Evaluates `$body` with `$math` as the algorithm's [`math::CounterMath`]. `sliding_log` counts as
/// `sliding_window` if there is no memory for a log. A [`State`] of `concurrency` does not exist:
/// its [`CounterShape`] is never [`CounterShape::Words`].
macro_rules! by_algorithm {
    ($algorithm:expr, $math:ident => $body:expr) => {
        match $algorithm {
            $crate::limit::Algorithm::SlidingWindow
            | $crate::limit::Algorithm::SlidingLog
            | $crate::limit::Algorithm::Concurrency => {
                type $math = $crate::limit::sliding_window::SlidingWindowMath;
                $body
            }
            $crate::limit::Algorithm::FixedWindow => {
                type $math = $crate::limit::fixed_window::FixedWindowMath;
                $body
            }
            $crate::limit::Algorithm::TokenBucket => {
                type $math = $crate::limit::token_bucket::TokenBucketMath;
                $body
            }
            $crate::limit::Algorithm::LeakyBucket => {
                type $math = $crate::limit::leaky_bucket::LeakyBucketMath;
                $body
            }
            $crate::limit::Algorithm::Gcra => {
                type $math = $crate::limit::gcra::Cells;
                $body
            }
        }
    };
}

pub(crate) use by_algorithm;

// === impl Limiter ===

impl Limiter {
    /// A limiter of `limit` per `period`, with an equal burst, no sub-windows and no queue.
    pub const fn new(algorithm: Algorithm, limit: u64, period: Duration) -> Self {
        Self {
            algorithm,
            limit,
            period,
            burst: limit,
            slices: 1,
            queue: 0,
            max_wait: Duration::MAX,
            ratio: None,
        }
    }

    /// The shape of the limiter's counters.
    pub const fn shape(&self) -> CounterShape {
        let row = self.algorithm.row();
        if self.ratio.is_some() {
            CounterShape::Share
        } else if row.has_slices && self.slices > 1 {
            CounterShape::Slices
        } else {
            row.shape
        }
    }

    /// The most units admitted at once: the limit, the burst, or the queue plus the request that is
    /// forwarded at once.
    pub const fn capacity(&self) -> u64 {
        match self.algorithm.row().capacity {
            CapacityKind::Limit => self.capped(),
            CapacityKind::Burst => self.burst_capped(),
            CapacityKind::Queue => self.queue_size(),
        }
    }

    /// Charges `cost` if it fits. A cost that does not fit changes `state` only if the clock was
    /// set back; the moved state must then be stored too.
    #[inline(never)]
    pub fn admit(&self, state: &mut State, now: Timestamp, cost: u64) -> CounterReading {
        by_algorithm!(self.algorithm, M => math::admit::<M>(self, state, now, cost))
    }

    /// Charges `cost`, even above the limit.
    #[inline(never)]
    pub fn charge(&self, state: &mut State, now: Timestamp, cost: u64) -> CounterReading {
        by_algorithm!(self.algorithm, M => math::charge::<M>(self, state, now, cost))
    }

    /// Returns what [`Limiter::admit`] would return, and charges nothing.
    #[inline(never)]
    pub fn peek(&self, state: &State, now: Timestamp, cost: u64) -> CounterReading {
        by_algorithm!(self.algorithm, M => math::peek::<M>(self, state, now, cost))
    }

    /// The time until the turn of a request that did not fit according to `reading` but is held. `None`
    /// if its turn never comes. With a full `leaky_bucket` queue, the turn comes after the whole queue.
    pub fn wait_for_turn(&self, reading: &CounterReading) -> Option<Duration> {
        let fits_in = reading.retry_after()?;
        Some(match self.algorithm {
            Algorithm::LeakyBucket if !reading.fits => reading.reset_after(),
            _ => fits_in,
        })
    }

    /// Moves `state` to `now` if the clock was set back. A store calls it when a [`Limiter::peek`] does
    /// not fit: a key that is only peeked at would stay full until the clock reaches its old time again.
    pub fn rebase(&self, state: &mut State, now: Timestamp) {
        by_algorithm!(self.algorithm, M => math::rebase::<M>(self, state, now))
    }

    /// The fill level of a counter with `remaining` units left: 0 is empty, 255 is at or above the
    /// limit.
    #[inline]
    pub fn level(&self, remaining: u64) -> u8 {
        let capacity = self.capacity();
        let used = capacity.saturating_sub(remaining);
        // A capacity has 32 bits and `used` is at most the capacity, so nothing overflows.
        let level = (used * 255).checked_div(capacity);
        level.map_or(u8::MAX, |level| level as u8)
    }

    /// The limiter of a process that enforces only a `fraction` of the limit: rounded down, at least 1.
    pub fn scaled(self, fraction: f64) -> Self {
        let part = |whole: u64| match whole {
            0 => 0,
            _ => ((at_most(whole) as f64 * fraction) as u64).max(1),
        };
        Self {
            limit: part(self.limit),
            burst: part(self.burst),
            ..self
        }
    }

    /// The limit, at most [`MAX_LIMIT`].
    const fn capped(&self) -> u64 {
        at_most(self.limit)
    }

    /// The burst, at most [`MAX_LIMIT`]; 0 if the limit is 0.
    const fn burst_capped(&self) -> u64 {
        if self.limit > 0 {
            at_most(self.burst)
        } else {
            0
        }
    }

    /// The requests that may wait, plus the one that is forwarded at once.
    const fn queue_size(&self) -> u64 {
        if self.limit > 0 {
            self.queue as u64 + 1
        } else {
            0
        }
    }

    /// The period in microseconds, never zero.
    #[inline]
    fn micros(&self) -> u64 {
        micros(self.period).max(1)
    }
}

const fn at_most(limit: u64) -> u64 {
    if limit < MAX_LIMIT { limit } else { MAX_LIMIT }
}

/// Whole microseconds, at most 584 years.
#[inline]
const fn micros(duration: Duration) -> u64 {
    if duration.as_secs() >= MAX_SECONDS {
        return MAX_SECONDS * 1_000_000;
    }
    duration.as_secs() * 1_000_000 + duration.subsec_micros() as u64
}

/// [`micros`], rounded up.
fn micros_up(duration: Duration) -> u64 {
    micros(duration.saturating_add(Duration::from_nanos(999)))
}

/// Microseconds until the window begins that is `windows` after the current one, of which `elapsed`
/// has passed. `None` if the clock was set back.
#[cold]
fn until_begins(windows: u64, elapsed: u64, period: u64) -> Option<u64> {
    let ahead = windows.saturating_mul(period).saturating_sub(elapsed);
    (!was_set(ahead, period)).then_some(ahead)
}

/// Whether a clock that is `ahead` microseconds behind a key's time was set back, and not just read
/// earlier by another thread.
fn was_set(ahead: u64, period: u64) -> bool {
    ahead > period.max(SKEW)
}
