//! Bounded amounts that all shards share, so that a bound is exact and no shard is full before the others.

use std::sync::atomic::Ordering;

use super::sync::AtomicUsize;
use crate::limit::{Counter, CounterShape};

/// A bounded number of places.
#[derive(Debug)]
pub(super) struct SlotCapacity {
    taken: AtomicUsize,
    max: usize,
}

/// A counter beside the table is not even begun with less memory left than this, in bytes.
const LEAST: usize = 512;

/// The memory of counters beside the table, in bytes, over all shards.
#[derive(Debug)]
pub(super) struct MemoryBudgets {
    pub(super) logs: SlotCapacity,
    pub(super) slices: SlotCapacity,
}

// === impl SlotCapacity ===

impl SlotCapacity {
    pub(super) fn of(max: usize) -> Self {
        Self {
            taken: AtomicUsize::new(0),
            max,
        }
    }

    /// How many places there are.
    pub(super) fn max(&self) -> usize {
        self.max
    }

    /// Takes a place, if there is one.
    pub(super) fn take(&self) -> bool {
        self.take_many(1)
    }

    /// Takes so many places, if they are there.
    pub(super) fn take_many(&self, places: usize) -> bool {
        let more = |taken: usize| Some(taken.checked_add(places)?).filter(|sum| *sum <= self.max);
        // Only the number matters: what is in the places is ordered by the shards' locks.
        self.taken
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more)
            .is_ok()
    }

    /// Whether so many places are left, for now.
    pub(super) fn has(&self, places: usize) -> bool {
        let taken = self.taken.load(Ordering::Relaxed);
        self.max.saturating_sub(taken) >= places
    }

    /// Takes a place past the bound too.
    pub(super) fn squeeze(&self) {
        self.taken.fetch_add(1, Ordering::Relaxed);
    }

    /// Gives places back that were taken.
    pub(super) fn give(&self, places: usize) {
        self.taken.fetch_sub(places, Ordering::Relaxed);
    }

    /// How many places are taken.
    #[cfg(test)]
    pub(super) fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }

    /// Nothing is taken.
    pub(super) fn is_empty(&self) -> bool {
        self.taken.load(Ordering::Relaxed) == 0
    }
}

// === impl MemoryBudgets ===

impl MemoryBudgets {
    /// Each of `bytes`.
    pub(super) fn of(bytes: usize) -> Self {
        Self {
            logs: SlotCapacity::of(bytes),
            slices: SlotCapacity::of(bytes),
        }
    }

    /// No log can be longer than this many bytes.
    pub(super) fn longest_log(&self) -> usize {
        self.logs.max()
    }

    /// How many bytes are taken for logs, and for sub-windows.
    #[cfg(test)]
    pub(super) fn taken(&self) -> [usize; 2] {
        [self.logs.taken(), self.slices.taken()]
    }

    /// The budget that `counter` is paid from; `None` if it needs none: leases are bounded by the requests in
    /// flight.
    pub(super) fn paying(&self, counter: &Counter) -> Option<&SlotCapacity> {
        match counter {
            Counter::Log(_) => Some(&self.logs),
            Counter::Slices(_) => Some(&self.slices),
            Counter::Words(_) | Counter::Leases(_) => None,
        }
    }

    /// The best shape that there is memory for.
    pub(super) fn shape(&self, wanted: CounterShape) -> CounterShape {
        match wanted {
            CounterShape::Leases | CounterShape::Words => wanted,
            CounterShape::Log if self.logs.has(LEAST) => CounterShape::Log,
            CounterShape::Log | CounterShape::Slices if self.slices.has(LEAST) => {
                CounterShape::Slices
            }
            CounterShape::Log | CounterShape::Slices => CounterShape::Words,
        }
    }
}
