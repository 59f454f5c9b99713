//! What counts a key: three words of an entry, or something long beside the table.

use super::long::Long;
use crate::clock::Timestamp;
use crate::limit::slices::Slices;
use crate::limit::sliding_log::Log;
use crate::limit::{Limiter, Reading, Shape, State};

/// The three operations, on whatever counts.
pub(super) trait Count {
    /// Charges `cost` if it fits.
    fn admit(&mut self, limiter: &Limiter, now: Timestamp, cost: u64) -> Reading;
    /// Charges `cost`, past the limit too.
    fn charge(&mut self, limiter: &Limiter, now: Timestamp, cost: u64) -> Reading;
    /// Takes nothing.
    fn peek(&mut self, limiter: &Limiter, now: Timestamp, cost: u64) -> Reading;
}

/// The counter of a key whose limiter wants a long one.
#[derive(Debug)]
pub(super) enum Counter {
    /// There was no room for a long one: the plain sliding window.
    Words(State),
    /// What it wants, or the next best.
    Long(Box<Long>),
}

// === impl Counter ===

impl Counter {
    /// Nothing counted yet.
    pub(super) fn new(shape: Shape, limiter: &Limiter) -> Self {
        match shape {
            Shape::Words => Counter::Words(State::default()),
            Shape::Slices => Long::Slices(Slices::new(limiter)).into(),
            Shape::Log => Long::Log(Log::new(limiter)).into(),
        }
    }
}

impl From<Long> for Counter {
    fn from(long: Long) -> Self {
        Counter::Long(Box::new(long))
    }
}

impl Count for Counter {
    fn admit(&mut self, limiter: &Limiter, now: Timestamp, cost: u64) -> Reading {
        match self {
            Counter::Words(state) => limiter.admit(state, now, cost),
            Counter::Long(long) => match &mut **long {
                Long::Log(log) => log.admit(limiter, now, cost),
                Long::Slices(slices) => slices.admit(limiter, now, cost),
            },
        }
    }

    fn charge(&mut self, limiter: &Limiter, now: Timestamp, cost: u64) -> Reading {
        match self {
            Counter::Words(state) => limiter.charge(state, now, cost),
            Counter::Long(long) => match &mut **long {
                Long::Log(log) => log.charge(limiter, now, cost),
                Long::Slices(slices) => slices.charge(limiter, now, cost),
            },
        }
    }

    fn peek(&mut self, limiter: &Limiter, now: Timestamp, cost: u64) -> Reading {
        match self {
            Counter::Words(state) => state.peek(limiter, now, cost),
            Counter::Long(long) => match &mut **long {
                Long::Log(log) => log.peek(limiter, now, cost),
                Long::Slices(slices) => slices.peek(limiter, now, cost),
            },
        }
    }
}

// === impl State ===

impl Count for State {
    fn admit(&mut self, limiter: &Limiter, now: Timestamp, cost: u64) -> Reading {
        limiter.admit(self, now, cost)
    }

    fn charge(&mut self, limiter: &Limiter, now: Timestamp, cost: u64) -> Reading {
        limiter.charge(self, now, cost)
    }

    /// Where nothing fits, the state is moved to the time of a clock that was set back: a key that
    /// is only looked at would stay full until the clock shows its old time again.
    fn peek(&mut self, limiter: &Limiter, now: Timestamp, cost: u64) -> Reading {
        let reading = limiter.peek(self, now, cost);
        if !reading.fits {
            limiter.rebase(self, now);
        }
        reading
    }
}
