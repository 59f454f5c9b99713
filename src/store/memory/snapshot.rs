//! Saves and restores counters and bans.
//!
//! Saving copies one shard after the other, each under its lock, and writes without a lock: each key is
//! consistent, the snapshot as a whole is not. Leases are not saved.

use std::collections::HashMap;
use std::io::{self, Read, Write};

use super::bucket::{EntryKind, TableEntry};
use super::hash::{KeyHash, KeyHasher, KeyTag};
use super::saved::{
    RecordReader, RecordWriter, SavedBan, SavedCount, SavedCounter, SavedHeader, SavedRecord,
    SnapshotError,
};
use super::shard_data::ShardData;
use super::{MemoryStore, second};
use crate::clock::Timestamp;
use crate::limit::slices::SubWindows;
use crate::limit::sliding_log::UnitLog;
use crate::limit::{self, State};
use crate::rules::plan::RuleId;
use crate::rules::registry::RegisteredRule;
use crate::store::RestoreSummary;

#[cfg(test)]
mod tests;

/// Maps the rules of a snapshot to the registered ones.
#[derive(Default)]
struct RestoredRules {
    known: HashMap<u64, RuleId>,
    /// The registered slots, by the slots in the snapshot.
    slots: HashMap<u16, u16>,
    /// The rules that are not registered, with the number of their bans in force.
    unknown: HashMap<u64, (String, usize)>,
}

// === impl MemoryStore ===

impl MemoryStore {
    /// Writes all counters and bans valid at `now`. Returns `out`, which should be buffered.
    pub fn save<W: Write>(
        &self,
        out: W,
        rules: &[RegisteredRule],
        now: Timestamp,
    ) -> io::Result<W> {
        let longest = self.shards.iter().map(|s| s.held.lock().table.longest());
        let header = SavedHeader {
            secret: self.hasher.secret(),
            taken: now,
            longest: longest.max().unwrap_or_default(),
        };
        let mut writer = RecordWriter::new(out, &header)?;
        let mut rules = rules.iter().cloned().map(SavedRecord::Rule);
        rules.try_for_each(|rule| writer.add(&rule))?;
        for exemption in self.exemptions.list(now) {
            writer.add(&SavedRecord::Exemption(exemption))?;
        }
        for shard in &self.shards {
            let mut copy = shard.held.lock().copy(now);
            copy.sort_unstable_by_key(SavedRecord::order);
            copy.iter().try_for_each(|record| writer.add(record))?;
        }
        writer.end()
    }

    /// Reads a snapshot to its end and checks that it is complete and undamaged.
    pub fn verify(input: impl Read) -> Result<(), SnapshotError> {
        let (mut reader, _) = RecordReader::new(input, 0)?;
        while reader.next()?.is_some() {}
        Ok(())
    }

    /// Restores the records of registered rules that are valid at `now` and for which there is capacity, and
    /// adopts the snapshot's hash secret. The store must be empty and the snapshot verified: records before an
    /// error stay.
    pub fn restore(
        &mut self,
        input: impl Read,
        rules: &[RegisteredRule],
        now: Timestamp,
    ) -> Result<RestoreSummary, SnapshotError> {
        let ids = rules.iter().map(|rule| (rule.id.identity, rule.id));
        let ids: HashMap<_, _> = ids.collect();
        let (mut reader, header) = RecordReader::new(input, self.budgets.longest_log())?;
        let other_secret = self.hasher.secret() != header.secret;
        self.hasher = KeyHasher::keyed(header.secret);
        for shard in &self.shards {
            shard.held.lock().table.allow(header.longest);
        }
        let mut rules = RestoredRules::default();
        let mut exemptions = Vec::new();
        while let Some(record) = reader.next()? {
            match record {
                SavedRecord::Rule(rule) => rules.add(rule, &ids),
                SavedRecord::Ban(ban) => rules.restore_ban(ban, self, now),
                SavedRecord::Counter(counter) => rules.restore_counter(counter, self, now),
                SavedRecord::Exemption(exemption) => exemptions.push(exemption),
            }
        }
        self.exemptions.replace(exemptions, now);
        self.catch_up(now);
        let counters = self.keys(now).into_iter().map(|(_, count)| count).sum();
        let restored = rules.restored(counters, self.bans(now).len());
        Ok(RestoreSummary {
            other_secret,
            ..restored
        })
    }

    fn catch_up(&self, now: Timestamp) {
        for shard in &self.shards {
            let mut held = shard.held.lock();
            self.ban_room.give(held.bans.catch_up(now));
            shard.publish(&held.bans);
        }
    }
}

// === impl ShardData ===

impl ShardData {
    /// Returns copies of all counters and bans valid at `now`.
    fn copy(&self, now: Timestamp) -> Vec<SavedRecord> {
        let bans = self.bans.saved(now).map(SavedRecord::Ban);
        let entries = self.table.live(second(now));
        let counters = entries.filter_map(|entry| self.counter(entry));
        bans.chain(counters.map(SavedRecord::Counter)).collect()
    }

    /// Returns the entry words for a restored count. `None` if there is no memory for it.
    fn restore_count(
        &mut self,
        count: SavedCount,
        memory: &MemoryStore,
    ) -> Option<(EntryKind, State)> {
        let counter = count.restored();
        if let limit::Counter::Words(state) = counter {
            return Some((EntryKind::Words, state));
        }
        let budget = memory.budgets.paying(&counter);
        let paid = budget.is_none_or(|budget| budget.take_many(counter.bytes()));
        paid.then(|| {
            let handle = u32::try_from(self.large.insert(counter)).unwrap_or(u32::MAX);
            (EntryKind::Handle, [handle, 0, 0])
        })
    }

    fn counter(&self, entry: TableEntry) -> Option<SavedCounter> {
        let count = match entry.kind {
            EntryKind::Words => SavedCount::Words(entry.state),
            EntryKind::Handle => SavedCount::of(self.large.get(entry.handle()? as usize)?)?,
            EntryKind::Leases => return None,
        };
        Some(SavedCounter {
            tag: entry.tag,
            expires: entry.expires,
            slot: entry.slot,
            fill: entry.fill,
            count,
        })
    }
}

// === impl SavedCount ===

impl SavedCount {
    /// Returns the part of `counter` that is saved. `None` for leases: their requests end with the process.
    fn of(counter: &limit::Counter) -> Option<Self> {
        Some(match counter {
            limit::Counter::Words(state) => SavedCount::Words(*state),
            limit::Counter::Share(share) => SavedCount::Share(*share),
            limit::Counter::Slices(slices) => {
                let (index, counts) = slices.saved();
                SavedCount::Slices { index, counts }
            }
            limit::Counter::Log(log) => SavedCount::Log {
                at: log.latest_time(),
                entries: log.entries().collect(),
            },
            limit::Counter::Leases(_) => return None,
        })
    }

    fn restored(self) -> limit::Counter {
        use limit::Counter;
        match self {
            SavedCount::Words(state) => Counter::Words(state),
            SavedCount::Share(share) => Counter::Share(share),
            SavedCount::Slices { index, counts } => {
                Counter::Slices(SubWindows::restored(index, counts))
            }
            SavedCount::Log { at, entries } => Counter::Log(UnitLog::restored(at, &entries)),
        }
    }
}

// === impl RestoredRules ===

impl RestoredRules {
    fn add(&mut self, rule: RegisteredRule, ids: &HashMap<u64, RuleId>) {
        let RuleId { identity, slot } = rule.id;
        match ids.get(&identity) {
            Some(id) => {
                self.slots.insert(slot, id.slot);
                self.known.insert(identity, *id);
            }
            None => {
                self.unknown.insert(identity, (rule.name, 0));
            }
        }
    }

    fn restore_ban(&mut self, ban: SavedBan, memory: &MemoryStore, now: Timestamp) {
        let (hash, past) = (KeyHash::from_whole(ban.hash), ban.past);
        let mut sentence = ban.sentence;
        let identity = sentence.ban.id.identity;
        if let Some((_, bans)) = self.unknown.get_mut(&identity) {
            *bans += usize::from(!past && sentence.ban.until > now);
        }
        let Some(id) = self.known.get(&identity) else {
            return;
        };
        sentence.ban.id = *id;
        let shard = memory.shard(hash.tag);
        let mut held = shard.held.lock();
        if held.bans.has(hash) {
            return;
        }
        let has_room = memory.ban_room.take();
        if past && !has_room {
            return;
        }
        held.bans.restore(hash, sentence, past);
        shard.publish(&held.bans);
        drop(held);
        if !has_room {
            // The bans are now one above the limit: evict one by the usual order.
            memory.free_ban(now, None);
        }
    }

    fn restore_counter(&self, counter: SavedCounter, memory: &MemoryStore, now: Timestamp) {
        let Some(slot) = self.slots.get(&counter.slot) else {
            return;
        };
        let tag = KeyTag::of(counter.tag);
        let mut held = memory.shard(tag).held.lock();
        let entry = TableEntry {
            tag: tag.get(),
            expires: counter.expires,
            state: State::default(),
            slot: *slot,
            fill: counter.fill,
            kind: EntryKind::Words,
        };
        let span = held.table.span(second(now));
        if !entry.is_live(span) || held.table.find(tag).is_some() {
            return;
        }
        if let Some((kind, state)) = held.restore_count(counter.count, memory) {
            let entry = TableEntry {
                kind,
                state,
                ..entry
            };
            held.insert(tag, entry, second(now), memory);
        }
    }

    fn restored(self, counters: usize, bans: usize) -> RestoreSummary {
        let mut unknown: Vec<_> = self.unknown.into_values().collect();
        unknown.sort();
        RestoreSummary {
            counters,
            bans,
            unknown,
            other_secret: false,
        }
    }
}
