//! `concurrency`: how many are in flight. What is admitted or charged takes a place, until it is
//! given back with [`Limiter::release`]; time frees nothing.
//!
//! So [`Reading::reset_after`] is `Duration::MAX` while anything is in flight, which keeps the
//! store from dropping the count, and is nothing to show to a client. When a place will be free
//! is unknown; [`Reading::retry_after`] is a hint.

use std::time::Duration;

use super::tally::Tally;
use super::{Limiter, Reading, State};
use crate::clock::Timestamp;

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

/// After how long one that found no place may ask again.
const HINT: Duration = Duration::from_secs(1);

/// How many are in flight.
#[derive(Clone, Copy)]
pub(super) struct InFlight(u32);

/// Gives back what `cost` took.
pub(super) fn release(state: &mut State, cost: u64) {
    let InFlight(taken) = InFlight::of(state);
    let cost = u32::try_from(cost).unwrap_or(u32::MAX);
    *state = InFlight(taken.saturating_sub(cost)).state();
}

// === impl InFlight ===

impl Tally for InFlight {
    fn at(_: &Limiter, state: &State, _: Timestamp) -> Self {
        Self::of(state)
    }

    fn fits(&self, limiter: &Limiter, cost: u64) -> bool {
        u64::from(self.0).saturating_add(cost) <= limiter.capped()
    }

    fn add(&mut self, cost: u64) {
        let cost = u32::try_from(cost).unwrap_or(u32::MAX);
        self.0 = self.0.saturating_add(cost);
    }

    fn state(&self) -> State {
        [self.0, 0, 0]
    }

    fn rebased(&self) -> bool {
        false
    }

    fn reading(&self, limiter: &Limiter, fits: bool, cost: u64) -> Reading {
        let idle = self.0 == 0;
        Reading {
            fits,
            remaining: limiter.capped().saturating_sub(u64::from(self.0)),
            reset_after: if idle { Duration::ZERO } else { Duration::MAX },
            retry_after: if fits {
                Some(Duration::ZERO)
            } else {
                (cost <= limiter.capped()).then_some(HINT)
            },
            wait: Duration::ZERO,
        }
    }
}

impl InFlight {
    fn of(state: &State) -> Self {
        let [taken, ..] = *state;
        Self(taken)
    }
}
