//! Capacities that all shards share, so that a limit is exact and no shard is full before the others.

use std::sync::atomic::Ordering;

use super::sync::AtomicUsize;
use crate::limit::{Counter, CounterShape};

/// A bounded number of slots or bytes.
#[derive(Debug)]
pub(super) struct SlotCapacity {
    taken: AtomicUsize,
    max: usize,
}

/// The minimum free memory, in bytes, for creating a large counter.
const LEAST: usize = 512;

/// The memory of large counters, in bytes, over all shards.
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

    /// The maximum.
    pub(super) fn max(&self) -> usize {
        self.max
    }

    /// Takes one slot. Returns `false` if all are taken.
    pub(super) fn take(&self) -> bool {
        self.take_many(1)
    }

    /// Takes `places` slots. Returns `false` and takes none if fewer are free.
    pub(super) fn take_many(&self, places: usize) -> bool {
        let more = |taken: usize| Some(taken.checked_add(places)?).filter(|sum| *sum <= self.max);
        // Relaxed suffices: the shards' locks order the content of the slots.
        self.taken
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more)
            .is_ok()
    }

    /// Returns whether `places` slots are free at the moment.
    pub(super) fn has(&self, places: usize) -> bool {
        let taken = self.taken.load(Ordering::Relaxed);
        self.max.saturating_sub(taken) >= places
    }

    /// Takes one slot, even above the maximum.
    pub(super) fn squeeze(&self) {
        self.taken.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns slots that were taken.
    pub(super) fn give(&self, places: usize) {
        self.taken.fetch_sub(places, Ordering::Relaxed);
    }

    /// Returns the number of taken slots.
    #[cfg(test)]
    pub(super) fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }

    /// Returns whether no slot is taken.
    pub(super) fn is_empty(&self) -> bool {
        self.taken.load(Ordering::Relaxed) == 0
    }
}

// === impl MemoryBudgets ===

impl MemoryBudgets {
    /// Creates two budgets of `bytes` each.
    pub(super) fn of(bytes: usize) -> Self {
        Self {
            logs: SlotCapacity::of(bytes),
            slices: SlotCapacity::of(bytes),
        }
    }

    /// The maximum size of one log, in bytes.
    pub(super) fn longest_log(&self) -> usize {
        self.logs.max()
    }

    /// The bytes taken by logs and by sub-windows.
    #[cfg(test)]
    pub(super) fn taken(&self) -> [usize; 2] {
        [self.logs.taken(), self.slices.taken()]
    }

    /// Returns the budget that `counter` is charged to. `None` for leases, which the requests in flight bound, and for
    /// words and pairs of counters, which the keys bound.
    pub(super) fn paying(&self, counter: &Counter) -> Option<&SlotCapacity> {
        match counter {
            Counter::Log(_) => Some(&self.logs),
            Counter::Slices(_) => Some(&self.slices),
            Counter::Words(_) | Counter::Share(_) | Counter::Leases(_) => None,
        }
    }

    /// Returns the most precise shape for which there is memory.
    pub(super) fn shape(&self, wanted: CounterShape) -> CounterShape {
        match wanted {
            CounterShape::Leases | CounterShape::Words | CounterShape::Share => wanted,
            CounterShape::Log if self.logs.has(LEAST) => CounterShape::Log,
            CounterShape::Log | CounterShape::Slices if self.slices.has(LEAST) => {
                CounterShape::Slices
            }
            CounterShape::Log | CounterShape::Slices => CounterShape::Words,
        }
    }
}
