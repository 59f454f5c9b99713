//! The counter of one key in the shape that its limiter needs, with the three operations.

use super::concurrency::{KeyLeases, LeaseId};
use super::share::{ChargeUnits, ShareCounter};
use super::slices::SubWindows;
use super::sliding_log::UnitLog;
use super::{CounterReading, CounterShape, Limiter, State};
use crate::clock::Timestamp;

/// The counter of one key.
#[derive(Clone, Debug)]
pub enum Counter {
    /// Three words with a meaning that depends on the algorithm.
    Words(State),
    /// Two counters with common windows.
    Share(ShareCounter),
    /// A counter for each sub-window.
    Slices(SubWindows),
    /// The time of every unit.
    Log(UnitLog),
    /// A lease for every request in flight.
    Leases(KeyLeases),
}

/// The overhead of a counter in bytes, for its handle and its allocation.
const ALLOCATION: usize = 48;

// === impl Counter ===

impl Counter {
    /// An empty counter of this shape.
    pub fn new(shape: CounterShape, limiter: &Limiter) -> Self {
        match shape {
            CounterShape::Words => Counter::Words(State::default()),
            CounterShape::Share => Counter::Share(ShareCounter::default()),
            CounterShape::Slices => Counter::Slices(SubWindows::new(limiter)),
            CounterShape::Log => Counter::Log(UnitLog::default()),
            CounterShape::Leases => Counter::Leases(KeyLeases::default()),
        }
    }

    /// A `sliding_window` counter: the number of the window since the epoch, and the counts of the window before
    /// and of this one.
    pub fn of_sliding_window(index: u64, previous: u32, current: u32) -> Self {
        Counter::Words([index as u32, previous, current])
    }

    /// A `fixed_window` counter: the number of the window since the epoch, and its count.
    pub fn of_fixed_window(index: u64, count: u32) -> Self {
        Counter::Words([index as u32, count, (index >> 32) as u32])
    }

    /// The counter of a bucket: the units that drain, and the time from which they do.
    pub fn of_bucket(used: u64, drains_from: Timestamp) -> Self {
        Counter::Words(super::level::state(used, drains_from.as_micros()))
    }

    /// Charges `units` if they fit. `lease` is the identity of the lease for `concurrency`.
    pub fn admit(
        &mut self,
        limiter: &Limiter,
        now: Timestamp,
        units: impl Into<ChargeUnits>,
        lease: LeaseId,
    ) -> CounterReading {
        let units = units.into();
        let cost = units.count;
        match self {
            Counter::Words(state) => limiter.admit(state, now, cost),
            Counter::Share(share) => share.admit(limiter, now, units),
            Counter::Slices(slices) => slices.admit(limiter, now, cost),
            Counter::Log(log) => log.admit(limiter, now, cost),
            Counter::Leases(leases) => leases.admit(limiter, now, cost, lease),
        }
    }

    /// Charges `units`, even above the limit.
    pub fn charge(
        &mut self,
        limiter: &Limiter,
        now: Timestamp,
        units: impl Into<ChargeUnits>,
        lease: LeaseId,
    ) -> CounterReading {
        let units = units.into();
        let cost = units.count;
        match self {
            Counter::Words(state) => limiter.charge(state, now, cost),
            Counter::Share(share) => share.charge(limiter, now, units),
            Counter::Slices(slices) => slices.charge(limiter, now, cost),
            Counter::Log(log) => log.charge(limiter, now, cost),
            Counter::Leases(leases) => leases.charge(limiter, now, cost, lease),
        }
    }

    /// Returns what [`Counter::admit`] would return, and charges nothing. If the units do not fit
    /// and the clock was set back, the counter moves to the new time (see [`Limiter::rebase`]).
    pub fn peek(
        &mut self,
        limiter: &Limiter,
        now: Timestamp,
        units: impl Into<ChargeUnits>,
    ) -> CounterReading {
        let units = units.into();
        let cost = units.count;
        match self {
            Counter::Share(share) => share.peek(limiter, now, units),
            Counter::Words(state) => {
                let reading = limiter.peek(state, now, cost);
                if !reading.fits {
                    limiter.rebase(state, now);
                }
                reading
            }
            Counter::Slices(slices) => slices.peek(limiter, now, cost),
            Counter::Log(log) => log.peek(limiter, now, cost),
            Counter::Leases(leases) => leases.peek(limiter, now, cost),
        }
    }

    /// The memory of a log or of sub-windows in bytes, with the allocator's overhead. Leases are
    /// limited by the requests in flight and count as 0, as do pairs of counters, which are limited by the keys.
    pub fn bytes(&self) -> usize {
        let heap = match self {
            Counter::Words(_) | Counter::Share(_) | Counter::Leases(_) => return 0,
            Counter::Slices(slices) => slices.heap_bytes(),
            Counter::Log(log) => log.heap_bytes(),
        };
        size_of::<Self>() + heap + ALLOCATION
    }

    /// Converts the counter to a shape that needs less memory. `None` if there is no smaller shape.
    #[cold]
    pub fn smaller(&self, limiter: &Limiter, now: Timestamp) -> Option<Self> {
        match self {
            Counter::Log(log) => Some(Counter::Slices(log.to_slices(limiter, now))),
            Counter::Slices(slices) => {
                let mut state = State::default();
                for (at, units) in slices.entries(limiter) {
                    limiter.charge(&mut state, at, u64::from(units));
                }
                Some(Counter::Words(state))
            }
            Counter::Words(_) | Counter::Share(_) | Counter::Leases(_) => None,
        }
    }
}
