//! Rate-limiting arithmetic: pure functions of (state, now, cost), one file per algorithm.
//!
//! Nothing here reads a clock, locks or stores: [`crate::store`] keeps the counter of each key (see [`CounterShape`])
//! and calls the three operations admit, charge and peek.
//!
//! Time is counted in whole microseconds, so that every number fits in the 53 bits of a Lua number and every
//! store decides alike.
//!
//! A clock that goes back by at most a period, or ten seconds if that is more, was read by another thread
//! earlier: the counter keeps its own time, nothing is forgotten, and `Retry-After` includes the difference.
//! A clock that goes back further was set: the counter moves to the new time ([`Limiter::rebase`]), so that no
//! client waits for a clock. A clock that jumps forward lets counters expire as if the time had passed.

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
pub mod slices;
pub mod sliding_log;
pub mod sliding_window;
pub(crate) mod token_bucket;

pub use algorithm::{Algorithm, AlgorithmRow, CapacityKind, RecoveryKind};
pub use counter::Counter;
pub use reading::CounterReading;

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

/// The largest limit that can be told from a larger one: counts are kept in 32 bits. A larger
/// limit is held to this one.
pub const MAX_LIMIT: u64 = u32::MAX as u64;

/// How far apart two threads may read one clock, in microseconds.
const SKEW: u64 = 10_000_000;

/// The longest duration that is told from a longer one: 584 years, as in a [`Timestamp`].
const MAX_SECONDS: u64 = u64::MAX / 1_000_000_000 - 1;

/// What is kept of one key: three words whose meaning belongs to the algorithm. All zero: nothing
/// was counted.
pub type State = [u32; 3];

/// What a limiter keeps of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CounterShape {
    /// A [`State`].
    Words,
    /// A counter for each of the sub-windows.
    Slices,
    /// The time of every unit.
    Log,
    /// A lease for every request in flight.
    Leases,
}

/// A limit: how many, in how long, counted how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limiter {
    /// How requests are counted.
    pub algorithm: Algorithm,
    /// Units that are allowed.
    pub limit: u64,
    /// The window.
    pub period: Duration,
    /// `token_bucket`, `gcra`: how many may come back to back from idle.
    pub burst: u64,
    /// `sliding_window`: into how many sub-windows it is divided.
    pub slices: u16,
    /// `leaky_bucket`: how many may wait.
    pub queue: u32,
    /// `leaky_bucket`: how long they may wait.
    pub max_wait: Duration,
}

/// Evaluates `$body` with `$math` standing for the algorithm's [`math::CounterMath`]. `sliding_log` counts as
/// `sliding_window` when there is no memory for more. A [`State`] of `concurrency` does not exist: its
/// [`CounterShape`] is never [`CounterShape::Words`].
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
    /// `limit` in a `period`, with a burst of as many, no sub-windows and nobody who waits.
    pub const fn new(algorithm: Algorithm, limit: u64, period: Duration) -> Self {
        Self {
            algorithm,
            limit,
            period,
            burst: limit,
            slices: 1,
            queue: 0,
            max_wait: Duration::MAX,
        }
    }

    /// What is kept of a key.
    pub const fn shape(&self) -> CounterShape {
        match self.algorithm {
            Algorithm::SlidingLog => CounterShape::Log,
            Algorithm::Concurrency => CounterShape::Leases,
            Algorithm::SlidingWindow if self.slices > 1 => CounterShape::Slices,
            _ => CounterShape::Words,
        }
    }

    /// The most that is ever admitted at once: the limit, the burst, or the queue and the one
    /// that passes.
    pub const fn capacity(&self) -> u64 {
        match self.algorithm.row().capacity {
            CapacityKind::Limit => self.capped(),
            CapacityKind::Burst => self.burst_capped(),
            CapacityKind::Queue => self.queue_size(),
        }
    }

    /// Charges `cost` if it fits. What does not fit changes nothing, unless the clock was set
    /// back: then the state is moved all the same, and should be kept.
    #[inline(never)]
    pub fn admit(&self, state: &mut State, now: Timestamp, cost: u64) -> CounterReading {
        by_algorithm!(self.algorithm, M => math::admit::<M>(self, state, now, cost))
    }

    /// Charges `cost`, past the limit too.
    #[inline(never)]
    pub fn charge(&self, state: &mut State, now: Timestamp, cost: u64) -> CounterReading {
        by_algorithm!(self.algorithm, M => math::charge::<M>(self, state, now, cost))
    }

    /// Says what [`Limiter::admit`] would say, and takes nothing.
    #[inline(never)]
    pub fn peek(&self, state: &State, now: Timestamp, cost: u64) -> CounterReading {
        by_algorithm!(self.algorithm, M => math::peek::<M>(self, state, now, cost))
    }

    /// Until the turn of what did not fit, as `reading` says, if it waits in spite of that; `None`:
    /// it never has one. Who finds a `leaky_bucket`'s queue full comes behind it.
    pub fn wait_for_turn(&self, reading: &CounterReading) -> Option<Duration> {
        let fits_in = reading.retry_after()?;
        Some(match self.algorithm {
            Algorithm::LeakyBucket if !reading.fits => reading.reset_after(),
            _ => fits_in,
        })
    }

    /// Moves `state` to `now` if the clock was set back. A store calls it when a [`Limiter::peek`] does not
    /// fit: a key that is only peeked at would stay full until the clock shows its old time again.
    pub fn rebase(&self, state: &mut State, now: Timestamp) {
        by_algorithm!(self.algorithm, M => math::rebase::<M>(self, state, now))
    }

    /// How near the limit a counter with `remaining` units left is: 0 is empty, 255 is at the limit
    /// or above it.
    #[inline]
    pub fn level(&self, remaining: u64) -> u8 {
        let capacity = self.capacity();
        let used = capacity.saturating_sub(remaining);
        // A capacity has 32 bits and no more than all of it is used, so nothing overflows.
        let level = (used * 255).checked_div(capacity);
        level.map_or(u8::MAX, |level| level as u8)
    }

    /// The limit, as far as it can be counted.
    const fn capped(&self) -> u64 {
        at_most(self.limit)
    }

    /// The burst, as far as it can be counted; none of nothing.
    const fn burst_capped(&self) -> u64 {
        if self.limit > 0 {
            at_most(self.burst)
        } else {
            0
        }
    }

    /// The requests that may wait, and the one that passes.
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

/// Whole microseconds, at most 584 years of them.
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

/// How long until a window begins that is `windows` ahead of the one that has `elapsed` so far;
/// none if the clock was set back.
#[cold]
fn until_begins(windows: u64, elapsed: u64, period: u64) -> Option<u64> {
    let ahead = windows.saturating_mul(period).saturating_sub(elapsed);
    (!was_set(ahead, period)).then_some(ahead)
}

/// Whether a clock that shows `ahead` microseconds less than a key's moment was set, and not just
/// read by another thread.
fn was_set(ahead: u64, period: u64) -> bool {
    ahead > period.max(SKEW)
}
