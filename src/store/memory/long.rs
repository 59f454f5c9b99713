//! Counters that do not fit into an entry: logs and sub-windows.
//!
//! Every key has its entry in the table, whatever counts it, so `max_keys`, expiry and who makes
//! room are the same for all algorithms. The entry of a long counter holds a handle; the counter
//! is kept here, and freed with its entry.
//!
//! All logs together take at most `max_log_bytes`, all sub-windows together as much again. A key
//! that finds no room for a log is counted in sixty sub-windows, and one that finds no room for
//! those in the three words of its entry, by the plain sliding window. So is one whose log cannot
//! grow. Nothing is uncounted. Such a key gets its log back after its entry has expired.

use std::mem::size_of;

use super::counter::Counter;
use super::room::Room;
use crate::clock::Timestamp;
use crate::limit::slices::Slices;
use crate::limit::sliding_log::Log;
use crate::limit::tally::{Brief, Few};
use crate::limit::{Limiter, Shape, State};

#[cfg(test)]
mod tests;

/// What a counter takes beside what it says itself: the place for its handle, and the allocator's
/// part.
const OVERHEAD: usize = size_of::<Option<Box<Long>>>() + size_of::<u32>() + 32;

/// A new counter is not even begun where less than this is left.
const LEAST: usize = 512;

/// A counter that does not fit into an entry.
#[derive(Debug)]
pub(super) enum Long {
    /// The moment of every unit.
    Log(Log),
    /// A counter for each sub-window.
    Slices(Slices),
}

/// The counters of one shard that handles stand for.
#[derive(Debug, Default)]
pub(super) struct Slab {
    counters: Vec<Option<Box<Long>>>,
    free: Vec<u32>,
}

/// How many bytes may be taken, over all shards.
#[derive(Debug)]
pub(super) struct Budgets {
    logs: Room,
    slices: Room,
}

// === impl Long ===

impl Long {
    /// How much memory it takes.
    pub(super) fn bytes(&self) -> usize {
        let own = match self {
            Long::Log(log) => log.bytes(),
            Long::Slices(slices) => slices.bytes(),
        };
        own + OVERHEAD
    }

    /// Charges a `cost` that fits, where that takes few steps and no other memory; `None`: it is
    /// to be asked.
    #[inline(always)]
    pub(super) fn briefly(
        &mut self,
        limiter: &Limiter,
        now: Timestamp,
        cost: Few,
    ) -> Option<Brief> {
        match self {
            Long::Log(log) => log.briefly(limiter, now, cost),
            Long::Slices(slices) => slices.briefly(limiter, now, cost),
        }
    }

    /// The same count in less memory.
    #[cold]
    pub(super) fn smaller(&self, limiter: &Limiter, now: Timestamp) -> Counter {
        match self {
            Long::Log(log) => {
                let slices = log.to_slices(limiter, now);
                Counter::Long(Box::new(Long::Slices(slices)))
            }
            Long::Slices(slices) => {
                let mut state = State::default();
                for (at, units) in slices.entries(limiter) {
                    limiter.charge(&mut state, at, u64::from(units));
                }
                Counter::Words(state)
            }
        }
    }
}

// === impl Slab ===

impl Slab {
    /// Keeps a counter; returns its handle.
    pub(super) fn keep(&mut self, long: Box<Long>) -> u32 {
        let fresh = || u32::try_from(self.counters.len()).unwrap_or(u32::MAX);
        let handle = self.free.pop().unwrap_or_else(fresh);
        if handle as usize == self.counters.len() {
            self.counters.push(None);
        }
        self.restore(handle, long);
        handle
    }

    /// The counter of `handle`.
    pub(super) fn get(&self, handle: u32) -> Option<&Long> {
        self.counters.get(handle as usize)?.as_deref()
    }

    /// The same, to be worked on where it is: what it takes must stay the same.
    #[inline(always)]
    pub(super) fn get_mut(&mut self, handle: u32) -> Option<&mut Long> {
        self.counters.get_mut(handle as usize)?.as_deref_mut()
    }

    /// Takes the counter of `handle`, which will be restored.
    pub(super) fn lend(&mut self, handle: u32) -> Option<Box<Long>> {
        self.counters.get_mut(handle as usize)?.take()
    }

    /// Puts the counter of `handle` back.
    pub(super) fn restore(&mut self, handle: u32, long: Box<Long>) {
        if let Some(place) = self.counters.get_mut(handle as usize) {
            *place = Some(long);
        }
    }

    /// Frees `handle`; returns what it stood for.
    pub(super) fn free(&mut self, handle: u32) -> Option<Box<Long>> {
        self.free.push(handle);
        self.lend(handle)
    }

    /// The counters that there are.
    #[cfg(test)]
    pub(super) fn iter(&self) -> impl Iterator<Item = &Long> {
        self.counters.iter().flatten().map(|long| &**long)
    }
}

// === impl Budgets ===

impl Budgets {
    /// Each of `bytes`.
    pub(super) fn of(bytes: usize) -> Self {
        Self {
            logs: Room::of(bytes),
            slices: Room::of(bytes),
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

    /// The one that `long` is paid from.
    pub(super) fn paying(&self, long: &Long) -> &Room {
        match long {
            Long::Log(_) => &self.logs,
            Long::Slices(_) => &self.slices,
        }
    }

    /// The best kind of counter that there is room for.
    pub(super) fn shape(&self, wanted: Shape) -> Shape {
        match wanted {
            Shape::Log if self.logs.has(LEAST) => Shape::Log,
            Shape::Log | Shape::Slices if self.slices.has(LEAST) => Shape::Slices,
            Shape::Log | Shape::Slices | Shape::Words => Shape::Words,
        }
    }
}
