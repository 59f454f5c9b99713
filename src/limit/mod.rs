//! Rate-limiting arithmetic: pure functions of (state, now, cost), one file an algorithm.
//!
//! Nothing here reads a clock, locks or stores: [`crate::store`] keeps the [`State`] of each key
//! and calls the three operations.

use std::time::Duration;

use crate::clock::Timestamp;

pub mod sliding_window;

/// The largest limit that can be told from a larger one: counts are kept in 32 bits. A larger
/// limit is held to this one.
pub const MAX_LIMIT: u64 = u32::MAX as u64;

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

/// What an operation found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// `admit`, `peek`: the cost fits (`admit` has charged it). `charge`: the count is not past
    /// the limit after it.
    pub fits: bool,
    /// Whole units left.
    pub remaining: u64,
    /// Until nothing is counted any more, if nothing more comes.
    pub reset_after: Duration,
    /// Until this cost would fit, if nothing more comes; zero if it fits now, `None` if it never
    /// can.
    pub retry_after: Option<Duration>,
    /// How long what fits must wait for its turn.
    pub wait: Duration,
}

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

    /// Charges `cost` if it fits.
    pub fn admit(&self, state: &mut State, now: Timestamp, cost: u64) -> Reading {
        sliding_window::admit(self, state, now, cost)
    }

    /// Charges `cost`, past the limit too.
    pub fn charge(&self, state: &mut State, now: Timestamp, cost: u64) -> Reading {
        sliding_window::charge(self, state, now, cost)
    }

    /// Says what [`Limiter::admit`] would say, and takes nothing.
    pub fn peek(&self, state: &State, now: Timestamp, cost: u64) -> Reading {
        sliding_window::peek(self, state, now, cost)
    }

    /// From when on `state` means nothing and can be dropped, if nothing more comes.
    pub fn expires(&self, state: &State, now: Timestamp) -> Timestamp {
        now.plus(self.peek(state, now, 0).reset_after)
    }

    /// How near the limit `state` is: 0 is empty, 255 is at the limit or past it.
    pub fn fill(&self, state: &State, now: Timestamp) -> u8 {
        self.level(self.peek(state, now, 0).remaining)
    }

    /// [`Limiter::fill`], from what a reading said was left.
    pub fn level(&self, remaining: u64) -> u8 {
        let limit = self.capped();
        let used = limit.saturating_sub(remaining);
        (used * 255)
            .checked_div(limit)
            .map_or(u8::MAX, |level| u8::try_from(level).unwrap_or(u8::MAX))
    }

    fn capped(&self) -> u64 {
        self.limit.min(MAX_LIMIT)
    }
}
