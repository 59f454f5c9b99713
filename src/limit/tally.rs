//! The operations on three words, the same for every algorithm that needs no more.
//!
//! Each is a function of its own for each algorithm, so that a store that picks the algorithm once
//! a step pays for nothing that belongs to another.

use std::num::{NonZeroU32, NonZeroU64};

use super::{Limiter, Reading, State};
use crate::clock::Timestamp;

#[cfg(test)]
mod tests;

/// A cost that was counted in few steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Brief {
    /// The most that is ever admitted at once.
    pub(crate) capacity: Few,
    /// How much of it is left; no more than all.
    pub(crate) remaining: u32,
    /// Until nothing is counted any more, in nanoseconds.
    pub(crate) reset: u64,
    /// Until its turn, in nanoseconds.
    pub(crate) wait: u64,
}

/// A number of units above zero that is small enough for plain arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Few(NonZeroU32);

/// What a [`State`] says at one moment.
pub(crate) trait Tally: Sized {
    /// What `state` says at `now`.
    fn at(limiter: &Limiter, state: &State, now: Timestamp) -> Self;
    /// What [`admit`] makes of a `cost` that fits, with the words to keep, where that takes few
    /// steps; `None`: it is to be asked.
    fn briefly(
        limiter: &Limiter,
        state: &State,
        now: Timestamp,
        cost: Few,
    ) -> Option<(State, Brief)>;
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

// === impl Few ===

impl Few {
    /// The most: as many as a word holds.
    const MOST: u64 = u32::MAX as u64;

    /// `units`, if they are few.
    #[inline(always)]
    pub(crate) fn of(units: u64) -> Option<Self> {
        match units {
            1..=Self::MOST => NonZeroU32::new(units as u32).map(Self),
            _ => None,
        }
    }

    /// As a number.
    #[inline(always)]
    pub(crate) fn get(self) -> u32 {
        self.0.get()
    }
}

// === impl Brief ===

impl Brief {
    /// How much of the capacity is used: 255 is all of it.
    #[inline(always)]
    pub(crate) fn fill(&self) -> u8 {
        let used = self.capacity.get().wrapping_sub(self.remaining);
        self.share(used)
    }

    /// What is left of the capacity, of 255.
    #[inline(always)]
    pub(crate) fn left(&self) -> u8 {
        self.share(self.remaining)
    }

    #[inline(always)]
    fn share(&self, units: u32) -> u8 {
        (u64::from(units) * 255 / NonZeroU64::from(self.capacity.0)) as u8
    }
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
