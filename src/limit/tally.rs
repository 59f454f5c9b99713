//! The operations on three words, the same for every algorithm that needs no more.
//!
//! Each is a function of its own for each algorithm, so that a store that picks the algorithm once
//! a step pays for nothing that belongs to another.

use super::{Limiter, Reading, State};
use crate::clock::Timestamp;

#[cfg(test)]
mod tests;

/// What a [`State`] says at one moment.
pub(crate) trait Tally: Sized {
    /// The most that is ever admitted at once.
    fn capacity(limiter: &Limiter) -> u64;
    /// What `state` says at `now`.
    fn at(limiter: &Limiter, state: &State, now: Timestamp) -> Self;
    /// What `state` says at `now`, where that takes few steps; `None`: it is to be asked of
    /// [`Tally::at`].
    fn usual(limiter: &Limiter, state: &State, now: Timestamp) -> Option<Self>;
    /// Whether there is room for `cost`.
    fn fits(&self, limiter: &Limiter, cost: u64) -> bool;
    /// Counts `cost`.
    fn add(&mut self, cost: u64);
    /// The words to keep.
    fn state(&self) -> State;
    /// Whether the clock had been set back, so that the words name another moment now.
    fn rebased(&self) -> bool;
    /// What is told of it, for a `cost` that fitted or did not.
    fn reading(&self, limiter: &Limiter, fits: bool, cost: u64) -> Reading;
}

/// Counts `cost` if it fits.
#[inline(always)]
pub(crate) fn admit<T: Tally>(
    limiter: &Limiter,
    state: &mut State,
    now: Timestamp,
    cost: u64,
) -> Reading {
    let mut tally = T::at(limiter, state, now);
    let fits = tally.fits(limiter, cost);
    if fits {
        tally.add(cost);
    }
    if fits || tally.rebased() {
        *state = tally.state();
    }
    tally.reading(limiter, fits, cost)
}

/// Counts `cost`, past the limit too.
#[inline]
pub(crate) fn charge<T: Tally>(
    limiter: &Limiter,
    state: &mut State,
    now: Timestamp,
    cost: u64,
) -> Reading {
    let mut tally = T::at(limiter, state, now);
    let fits = tally.fits(limiter, cost);
    tally.add(cost);
    *state = tally.state();
    tally.reading(limiter, fits, cost)
}

/// Says what [`admit`] would say, and takes nothing.
#[inline]
pub(crate) fn peek<T: Tally>(
    limiter: &Limiter,
    state: &State,
    now: Timestamp,
    cost: u64,
) -> Reading {
    let tally = T::at(limiter, state, now);
    tally.reading(limiter, tally.fits(limiter, cost), cost)
}

/// Brings `state` back to `now` if the clock was set back behind it; says whether it was.
pub(crate) fn rebase<T: Tally>(limiter: &Limiter, state: &mut State, now: Timestamp) -> bool {
    let tally = T::at(limiter, state, now);
    if tally.rebased() {
        *state = tally.state();
    }
    tally.rebased()
}
