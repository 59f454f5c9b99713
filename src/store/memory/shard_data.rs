//! The data behind a shard's lock: the counters and bans of a subset of the keys.
//!
//! Every key has an entry in the table, so `max_keys`, expiry and eviction work alike for all algorithms. A large
//! counter (sub-windows, a log, leases, the two counters of a ratio) is kept outside the table; its entry holds a
//! handle, and the counter is freed with its entry.
//!
//! All logs together take at most `max_log_bytes`, and so do all sub-windows. Without memory for its log, a key
//! is counted in sixty sub-windows, and without memory for those in the three words of its entry, as a sliding
//! window. A log that cannot grow is converted likewise. No request stays uncounted. Such a key gets a log again
//! after its entry has expired.

use std::sync::atomic::Ordering;

use slab::Slab;

use super::bans::ShardBans;
use super::bucket::{EntryKind, TableEntry};
use super::hash::KeyTag;
use super::step_run::StepRun;
use super::table::{CounterTable, EntrySlot};
use super::{MemoryStore, second};
use crate::clock::Timestamp;
use crate::limit::{Counter, State};

#[cfg(test)]
mod tests;

/// Counters and bans.
#[derive(Debug)]
pub(super) struct ShardData {
    pub(super) table: CounterTable,
    pub(super) bans: ShardBans,
    /// The large counters, by the handle in their entry.
    pub(super) large: Slab<Counter>,
    /// The second of the last [`ShardData::sweep`].
    swept: u32,
}

// === impl ShardData ===

impl ShardData {
    /// Creates a table with `buckets` buckets, and no bans.
    pub(super) fn new(buckets: usize) -> Self {
        Self {
            table: CounterTable::new(buckets),
            bans: ShardBans::default(),
            large: Slab::new(),
            swept: 0,
        }
    }

    /// Writes `entry` at `spot` and frees the large counter that was there.
    pub(super) fn put(&mut self, spot: EntrySlot, entry: TableEntry, memory: &MemoryStore) {
        if let Some(handle) = self.table.put(spot, entry) {
            self.free(handle, memory);
        }
    }

    /// Writes a new entry for `key`.
    #[inline(never)]
    pub(super) fn insert(
        &mut self,
        key: KeyTag,
        entry: TableEntry,
        second: u32,
        memory: &MemoryStore,
    ) {
        let room = &memory.counter_room;
        let displaced = self.table.insert(key, entry, second, room);
        if displaced.live {
            memory.counters_evicted.fetch_add(1, Ordering::Relaxed);
        }
        if let Some(handle) = displaced.handle {
            self.free(handle, memory);
        }
    }

    /// Clears `spot`, which must be in use.
    pub(super) fn clear(&mut self, spot: EntrySlot, memory: &MemoryStore) {
        if let Some(handle) = self.table.clear(spot, &memory.counter_room) {
            self.free(handle, memory);
        }
    }

    /// Whether the entry at `spot` has leases.
    pub(super) fn holds_leases(&self, spot: EntrySlot) -> bool {
        let handle = self.table.entry(spot).handle();
        let counter = handle.and_then(|handle| self.large.get(handle as usize));
        matches!(counter, Some(Counter::Leases(_)))
    }

    /// Clears `spot` if it is `Some`; see [`ShardData::clear`].
    pub(super) fn clear_some(&mut self, spot: Option<EntrySlot>, memory: &MemoryStore) {
        if let Some(spot) = spot {
            self.clear(spot, memory);
        }
    }

    /// Clears the entries that `unwanted` returns `true` for.
    pub(super) fn clear_all(
        &mut self,
        unwanted: impl Fn(&TableEntry) -> bool,
        memory: &MemoryStore,
    ) {
        for handle in self.table.clear_all(unwanted, &memory.counter_room) {
            self.free(handle, memory);
        }
    }

    /// Raises the table's maximum entry lifetime to that of `entry`.
    pub(super) fn allow(&mut self, entry: &TableEntry, now: Timestamp) {
        self.table.allow(entry.expires.saturating_sub(second(now)));
    }

    /// Stores a large counter if there is memory for it, or else converts it to a smaller one. `paid` bytes are
    /// already charged to the budget. Returns the content of its entry.
    pub(super) fn keep(
        &mut self,
        tag: KeyTag,
        counter: Counter,
        paid: usize,
        run: &StepRun<'_>,
    ) -> (EntryKind, State) {
        let Some(counter) = self.fit(tag, counter, paid, run) else {
            return (EntryKind::Words, State::default());
        };
        let kind = match &counter {
            Counter::Words(state) => return (EntryKind::Words, *state),
            Counter::Share(_) | Counter::Slices(_) | Counter::Log(_) => EntryKind::Handle,
            Counter::Leases(_) => EntryKind::Leases,
        };
        let handle = u32::try_from(self.large.insert(counter)).unwrap_or(u32::MAX);
        (kind, [handle, 0, 0])
    }

    /// Adjusts the budget after a counter has grown or shrunk. `paid` bytes are charged to it so far.
    #[cold]
    pub(super) fn resized(&mut self, spot: EntrySlot, handle: u32, paid: usize, run: &StepRun<'_>) {
        let Some(counter) = self.large.try_remove(handle as usize) else {
            return;
        };
        let mut entry = self.table.entry(spot);
        let tag = KeyTag::of(entry.tag);
        (entry.kind, entry.state) = self.keep(tag, counter, paid, run);
        // The previous handle is that of the counter removed above.
        let _ = self.table.put(spot, entry);
    }

    /// Charges the size beyond `paid` bytes to the budget; without memory, makes the counter smaller.
    fn fit(
        &mut self,
        tag: KeyTag,
        counter: Counter,
        paid: usize,
        run: &StepRun<'_>,
    ) -> Option<Counter> {
        let memory = run.memory;
        let Some(budget) = memory.budgets.paying(&counter) else {
            return Some(counter);
        };
        let bytes = counter.bytes();
        budget.give(paid.saturating_sub(bytes));
        let pay = || budget.take_many(bytes.saturating_sub(paid));
        if pay() || (self.sweep(tag, second(run.now), memory) && pay()) {
            return Some(counter);
        }
        budget.give(paid);
        let smaller = counter.smaller(&run.step.limiter, run.now)?;
        self.fit(tag, smaller, 0, run)
    }

    /// Frees expired large counters, except that of `tag`, which is in use. Reads the whole shard, so it runs at
    /// most once per second; returns whether it ran.
    #[cold]
    pub(super) fn sweep(&mut self, tag: KeyTag, second: u32, memory: &MemoryStore) -> bool {
        if self.swept == second {
            return false;
        }
        self.swept = second;
        let span = self.table.span(second);
        let ended = |entry: &TableEntry| entry.handle().is_some() && !entry.is_live(span);
        self.clear_all(|entry| entry.tag != tag.get() && ended(entry), memory);
        true
    }

    #[cold]
    fn free(&mut self, handle: u32, memory: &MemoryStore) {
        if let Some(counter) = self.large.try_remove(handle as usize)
            && let Some(budget) = memory.budgets.paying(&counter)
        {
            budget.give(counter.bytes());
        }
    }
}
