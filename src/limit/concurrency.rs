//! `concurrency`: how many are in flight. What is admitted or charged takes a place, until it is
//! given back with [`Limiter::release`]; time frees nothing.
//!
//! So [`Reading::reset_after`] has no end while anything is in flight, which keeps the
//! store from dropping the count, and is nothing to show to a client. When a place will be free
//! is unknown; [`Reading::retry_after`] is a hint.

use super::reading::until;
use super::tally::{Brief, Few, Tally};
use super::{Limiter, MAX_LIMIT, Reading, State};
use crate::clock::Timestamp;

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

/// After how many nanoseconds one that found no place may ask again.
const HINT: u64 = 1_000_000_000;

/// The most that one request takes: more than any limit. So the count, which has 64 bits, reaches
/// no end at which giving back would give back what others took.
const MOST: u64 = MAX_LIMIT + 1;

/// How many are in flight.
#[derive(Clone, Copy)]
pub(crate) struct InFlight(u64);

/// Gives back what `cost` took.
pub(super) fn release(state: &mut State, cost: u64) {
    let InFlight(taken) = InFlight::of(state);
    *state = InFlight(taken.saturating_sub(cost.min(MOST))).state();
}

// === impl InFlight ===

impl Tally for InFlight {
    #[inline(always)]
    fn at(_: &Limiter, state: &State, _: Timestamp) -> Self {
        Self::of(state)
    }

    #[inline(always)]
    fn briefly(
        limiter: &Limiter,
        state: &State,
        _: Timestamp,
        cost: Few,
    ) -> Option<(State, Brief)> {
        let [taken, 0, _] = *state else {
            return None;
        };
        let capacity = Few::of(limiter.limit)?;
        let room = capacity.get().checked_sub(taken)?;
        let brief = Brief {
            capacity,
            remaining: room.checked_sub(cost.get())?,
            reset: u64::MAX,
            wait: 0,
        };
        Some(([taken.wrapping_add(cost.get()), 0, 0], brief))
    }

    #[inline]
    fn fits(&self, limiter: &Limiter, cost: u64) -> bool {
        self.0.saturating_add(cost) <= limiter.capped()
    }

    #[inline]
    fn add(&mut self, cost: u64) {
        self.0 = self.0.saturating_add(cost.min(MOST));
    }

    #[inline]
    fn state(&self) -> State {
        [self.0 as u32, (self.0 >> 32) as u32, 0]
    }

    fn rebased(&self) -> bool {
        false
    }

    #[inline]
    fn reading(&self, limiter: &Limiter, fits: bool, cost: u64) -> Reading {
        let idle = self.0 == 0;
        Reading {
            fits,
            remaining: limiter.capped().saturating_sub(self.0),
            reset: if idle { 0 } else { u64::MAX },
            delay: match fits {
                true => 0,
                false => until((cost <= limiter.capped()).then_some(HINT)),
            },
        }
    }
}

impl InFlight {
    fn of(state: &State) -> Self {
        let [low, high, _] = *state;
        Self(u64::from(high) << 32 | u64::from(low))
    }
}
