//! Rate-limiting arithmetic: pure functions of (state, now, cost), one file an algorithm.
//!
//! Nothing here reads a clock, locks or stores: [`crate::store`] keeps the [`State`], the
//! [`slices::Slices`] or the [`sliding_log::Log`] of each key and calls the three operations.
//!
//! A clock that goes back by no more than a period, or ten seconds if that is more, is taken for
//! one that another thread read earlier: the key's own moment counts, nothing is forgotten, and
//! what is told to wait includes what the clock has to catch up. One that goes back further was
//! set: what was counted is moved to the new time as it stands ([`Limiter::rebase`]), so that
//! nobody waits for a clock. A clock that jumps forward lets things expire, as if the time had
//! passed.

use std::time::Duration;

use crate::clock::Timestamp;

pub(crate) mod concurrency;
pub(crate) mod fixed_window;
pub(crate) mod gcra;
pub(crate) mod leaky_bucket;
mod level;
mod ratio;
mod reading;
pub mod slices;
pub mod sliding_log;
pub mod sliding_window;
pub(crate) mod tally;
pub(crate) mod token_bucket;

pub use reading::Reading;

#[cfg(test)]
mod clocks;
#[cfg(test)]
mod samples;
#[cfg(test)]
mod subject;
#[cfg(test)]
mod tests;

/// The largest limit that can be told from a larger one: counts are kept in 32 bits. A larger
/// limit is held to this one.
pub const MAX_LIMIT: u64 = u32::MAX as u64;

/// How far apart, in nanoseconds, two readings of one clock are believed to lie at most.
const SKEW: u64 = 10_000_000_000;

/// As many seconds as can be counted in nanoseconds.
const MOST_SECONDS: u64 = u64::MAX / 1_000_000_000 - 1;

/// Less than a quarter of the seconds that can be counted in nanoseconds.
const FEW_SECONDS: u64 = 1 << 31;

/// What is kept of one key: three words whose meaning belongs to the algorithm. All zero: nothing
/// was counted.
pub type State = [u32; 3];

/// How requests are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Algorithm {
    /// Two counters, the older one weighted by how much of it still lies in the window.
    #[default]
    SlidingWindow,
    /// One counter a window.
    FixedWindow,
    /// The moment of every unit.
    SlidingLog,
    /// A bucket of tokens that fills evenly.
    TokenBucket,
    /// A queue that is left evenly.
    LeakyBucket,
    /// The generic cell rate algorithm: the moment by which all would be paid for.
    Gcra,
    /// How many are in flight.
    Concurrency,
}

/// What a limiter keeps of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A [`State`].
    Words,
    /// A counter for each of the sub-windows.
    Slices,
    /// The moment of every unit.
    Log,
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

/// `$body`, with `$tally` standing for what an algorithm makes of a [`State`]. Those that keep more
/// than that count as `sliding_window` where there is no room for more.
macro_rules! by_algorithm {
    ($algorithm:expr, $tally:ident => $body:expr) => {
        match $algorithm {
            $crate::limit::Algorithm::SlidingWindow | $crate::limit::Algorithm::SlidingLog => {
                type $tally = $crate::limit::sliding_window::Window;
                $body
            }
            $crate::limit::Algorithm::FixedWindow => {
                type $tally = $crate::limit::fixed_window::Window;
                $body
            }
            $crate::limit::Algorithm::TokenBucket => {
                type $tally = $crate::limit::token_bucket::Bucket;
                $body
            }
            $crate::limit::Algorithm::LeakyBucket => {
                type $tally = $crate::limit::leaky_bucket::Queue;
                $body
            }
            $crate::limit::Algorithm::Gcra => {
                type $tally = $crate::limit::gcra::Cells;
                $body
            }
            $crate::limit::Algorithm::Concurrency => {
                type $tally = $crate::limit::concurrency::InFlight;
                $body
            }
        }
    };
}

#[cfg(test)]
use by_algorithm;

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
    pub const fn shape(&self) -> Shape {
        match self.algorithm {
            Algorithm::SlidingLog => Shape::Log,
            Algorithm::SlidingWindow if self.slices > 1 => Shape::Slices,
            _ => Shape::Words,
        }
    }

    /// The most that is ever admitted at once: the limit, the burst, or the queue and the one
    /// that passes.
    pub const fn capacity(&self) -> u64 {
        match self.algorithm {
            Algorithm::TokenBucket | Algorithm::Gcra => self.burst_capped(),
            Algorithm::LeakyBucket => self.places(),
            _ => self.capped(),
        }
    }

    /// Charges `cost` if it fits. What does not fit changes nothing, unless the clock was set
    /// back: then the state is moved all the same, and should be kept.
    #[inline(never)]
    pub fn admit(&self, state: &mut State, now: Timestamp, cost: u64) -> Reading {
        by_algorithm!(self.algorithm, T => tally::admit::<T>(self, state, now, cost))
    }

    /// Charges `cost`, past the limit too.
    #[inline(never)]
    pub fn charge(&self, state: &mut State, now: Timestamp, cost: u64) -> Reading {
        by_algorithm!(self.algorithm, T => tally::charge::<T>(self, state, now, cost))
    }

    /// Says what [`Limiter::admit`] would say, and takes nothing.
    #[inline(never)]
    pub fn peek(&self, state: &State, now: Timestamp, cost: u64) -> Reading {
        by_algorithm!(self.algorithm, T => tally::peek::<T>(self, state, now, cost))
    }

    /// Until the turn of what did not fit, as `reading` says, if it waits in spite of that; `None`:
    /// it never has one. Who finds a `leaky_bucket`'s queue full comes behind it.
    pub fn turn(&self, reading: &Reading) -> Option<Duration> {
        let fits_in = reading.retry_after()?;
        Some(match self.algorithm {
            Algorithm::LeakyBucket if !reading.fits => reading.reset_after(),
            _ => fits_in,
        })
    }

    /// Moves `state` to `now` if the clock was set back, and says whether it was. To be called
    /// when a [`Limiter::peek`] finds no room: a key that is only looked at would stay full until
    /// the clock shows its old time again.
    pub fn rebase(&self, state: &mut State, now: Timestamp) -> bool {
        by_algorithm!(self.algorithm, T => tally::rebase::<T>(self, state, now))
    }

    /// `concurrency`: gives back the places that `cost` took. Nothing for the others.
    pub fn release(&self, state: &mut State, cost: u64) {
        if self.algorithm == Algorithm::Concurrency {
            concurrency::release(state, cost);
        }
    }

    /// From when on `state` means nothing and can be dropped, if nothing more comes.
    pub fn expires(&self, state: &State, now: Timestamp) -> Timestamp {
        now.plus(self.peek(state, now, 0).reset_after())
    }

    /// How near the limit `state` is: 0 is empty, 255 is at the limit or past it. `concurrency`
    /// is at 255 while anything is in flight: a place that is forgotten would be given back twice.
    pub fn fill(&self, state: &State, now: Timestamp) -> u8 {
        self.level(self.peek(state, now, 0).remaining)
    }

    /// [`Limiter::fill`], from what a reading said was left.
    pub fn level(&self, remaining: u64) -> u8 {
        let capacity = self.capacity();
        if self.algorithm == Algorithm::Concurrency && remaining < capacity {
            return u8::MAX;
        }
        level(capacity, remaining)
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

    /// Those who wait and the one that passes.
    const fn places(&self) -> u64 {
        if self.limit > 0 {
            self.queue as u64 + 1
        } else {
            0
        }
    }

    /// The period in nanoseconds, where they are few enough to be added to a time.
    #[inline(always)]
    fn few_nanos(&self) -> Option<u64> {
        let seconds = self.period.as_secs();
        let nanos = u64::from(self.period.subsec_nanos());
        (seconds < FEW_SECONDS).then_some(seconds * 1_000_000_000 + nanos)
    }

    /// The period in nanoseconds, never zero.
    #[inline]
    fn nanos(&self) -> u64 {
        nanos(self.period).max(1)
    }
}

const fn at_most(limit: u64) -> u64 {
    if limit < MAX_LIMIT { limit } else { MAX_LIMIT }
}

/// How much of `capacity` is used: 255 is all of it, or more.
#[inline]
pub(crate) fn level(capacity: u64, remaining: u64) -> u8 {
    let used = capacity.saturating_sub(remaining);
    // No more is used than there is, so no bits are lost.
    (used * 255)
        .checked_div(capacity)
        .map_or(u8::MAX, |level| level as u8)
}

/// In nanoseconds, at most 584 years.
#[inline]
fn nanos(duration: Duration) -> u64 {
    let seconds = duration.as_secs().min(MOST_SECONDS);
    seconds * 1_000_000_000 + u64::from(duration.subsec_nanos())
}

/// How long until a window begins that is `windows` ahead of the one that has `elapsed` so far;
/// none if the clock was set back.
#[cold]
fn until_begins(windows: u64, elapsed: u64, period: u64) -> Option<u64> {
    let ahead = windows.saturating_mul(period).saturating_sub(elapsed);
    (!was_set(ahead, period)).then_some(ahead)
}

/// Whether a clock that shows `ahead` nanoseconds less than a key's moment was set, and not just
/// read by another thread.
fn was_set(ahead: u64, period: u64) -> bool {
    ahead > period.max(SKEW)
}
