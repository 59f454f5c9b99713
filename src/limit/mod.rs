//! Rate-limiting arithmetic: pure functions of (state, now, cost), one file an algorithm.
//!
//! Nothing here reads a clock, locks or stores: [`crate::store`] keeps the [`State`] of each key
//! and calls the three operations.

use std::time::Duration;

use crate::clock::Timestamp;

/// What is kept of one key: three words whose meaning belongs to the algorithm. All zero: nothing
/// was counted.
pub type State = [u32; 3];

/// How requests are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Algorithm {
    /// Two counters, the older one weighted by how much of it still lies in the window.
    #[default]
    SlidingWindow,
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
}
