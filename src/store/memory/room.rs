//! How many of something may exist, shared by all shards, so that the bound is exact and no shard
//! is full before the others.

use std::sync::atomic::Ordering;

use super::sync::AtomicUsize;

/// A bounded number of places.
#[derive(Debug)]
pub(super) struct Room {
    taken: AtomicUsize,
    max: usize,
}

// === impl Room ===

impl Room {
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
