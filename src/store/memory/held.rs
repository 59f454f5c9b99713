//! What a shard's lock guards: counters and bans of a part of the keys.

use std::sync::atomic::Ordering;

use super::Memory;
use super::bans::Bans;
use super::bucket::Entry;
use super::hash::Tag;
use super::long::Slab;
use super::table::{Spot, Table};

/// Counters and bans.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) table: Table,
    pub(super) bans: Bans,
    pub(super) slab: Slab,
    /// The second of the last [`Held::sweep`].
    swept: u32,
}

// === impl Held ===

impl Held {
    /// A table with `buckets` buckets, and no bans.
    pub(super) fn new(buckets: usize) -> Self {
        Self {
            table: Table::new(buckets),
            bans: Bans::default(),
            slab: Slab::default(),
            swept: 0,
        }
    }

    /// Writes `entry` at `spot`.
    pub(super) fn put(&mut self, spot: Spot, entry: Entry, memory: &Memory) {
        if let Some(handle) = self.table.put(spot, entry) {
            self.free(handle, memory);
        }
    }

    /// Writes a new entry for `key`.
    #[inline(never)]
    pub(super) fn insert(&mut self, key: Tag, entry: Entry, second: u32, memory: &Memory) {
        let room = &memory.counter_room;
        let displaced = self.table.insert(key, entry, second, room);
        if displaced.live {
            memory.counters_evicted.fetch_add(1, Ordering::Relaxed);
        }
        if let Some(handle) = displaced.handle {
            self.free(handle, memory);
        }
    }

    /// Empties `spot`, which was in use.
    pub(super) fn clear(&mut self, spot: Spot, memory: &Memory) {
        if let Some(handle) = self.table.clear(spot, &memory.counter_room) {
            self.free(handle, memory);
        }
    }

    /// [`Held::clear`], if there is something.
    pub(super) fn clear_some(&mut self, spot: Option<Spot>, memory: &Memory) {
        if let Some(spot) = spot {
            self.clear(spot, memory);
        }
    }

    /// Clears the entries that `unwanted` names.
    pub(super) fn clear_all(&mut self, unwanted: impl Fn(&Entry) -> bool, memory: &Memory) {
        for handle in self.table.clear_all(unwanted, &memory.counter_room) {
            self.free(handle, memory);
        }
    }

    /// Frees the long counters that have expired, but for that of `tag`, which is in use. Looks at
    /// the whole shard, so at most once a second; says whether it did.
    #[cold]
    pub(super) fn sweep(&mut self, tag: Tag, second: u32, memory: &Memory) -> bool {
        if self.swept == second {
            return false;
        }
        self.swept = second;
        let span = self.table.span(second);
        let ended = |entry: &Entry| entry.handle().is_some() && !entry.is_live(span);
        self.clear_all(|entry| entry.tag != tag.get() && ended(entry), memory);
        true
    }

    #[cold]
    fn free(&mut self, handle: u32, memory: &Memory) {
        if let Some(long) = self.slab.free(handle) {
            memory.budgets.paying(&long).give(long.bytes());
        }
    }
}
