//! What people see of counters: the units of a key, and how full the keys of a rule are.

use std::collections::HashMap;

use super::{MemoryStore, Shard, ShardData, second};
use crate::clock::Timestamp;
use crate::limit::{ChargeUnits, Counter, Limiter, State};
use crate::rules::plan::RuleId;
use crate::store::async_mode::held_units;
use crate::store::key_usage::{FillLevels, KeyUsage};
use crate::store::memory::bucket::TableEntry;

#[cfg(test)]
mod tests;

// === impl MemoryStore ===

impl MemoryStore {
    /// Returns the units in the counter of a key.
    pub fn units(&self, id: RuleId, limiter: &Limiter, key: &[u8], now: Timestamp) -> ChargeUnits {
        let tag = self.hasher.hash(id.identity, key).tag;
        let data = self.shard(tag).held.lock();
        let entry = data.table.find(tag).map(|spot| data.table.entry(spot));
        let Some(entry) = entry.filter(|entry| entry.expires > second(now)) else {
            return ChargeUnits::default();
        };
        held_units(limiter, &mut data.counter_of(&entry), now)
    }

    /// Returns the units of a key and its ban.
    pub fn key_usage(&self, id: RuleId, limiter: &Limiter, key: &[u8], now: Timestamp) -> KeyUsage {
        match self.known_ban(id, key, now) {
            Some(until) => KeyUsage::banned(until),
            None => KeyUsage::counted(self.units(id, limiter, key, now).count),
        }
    }

    /// Returns the number of bans of a rule.
    pub fn count_bans(&self, id: RuleId, now: Timestamp) -> usize {
        let counts = |shard: &Shard| shard.held.lock().bans.count_live(id, now);
        self.shards.iter().map(counts).sum()
    }

    /// Returns the number of bans of each rule that has any. Reads every ban, shard by shard.
    pub fn ban_counts(&self, now: Timestamp) -> HashMap<RuleId, usize> {
        let mut counts = HashMap::new();
        for shard in &self.shards {
            shard.held.lock().bans.add_live(now, &mut counts);
        }
        counts
    }

    /// Adds the keys of a rule to `levels`. Copies the counters of one shard after the other and reads them without a
    /// lock. The keys of rules that share a slot are added together.
    pub fn add_levels(
        &self,
        id: RuleId,
        limiter: &Limiter,
        now: Timestamp,
        levels: &mut FillLevels,
    ) {
        for shard in &self.shards {
            let data = shard.held.lock();
            let live = data.table.live(second(now));
            let entries = live.filter(|entry| entry.slot == id.slot);
            let counters: Vec<_> = entries.map(|entry| data.counter_of(&entry)).collect();
            let banned = data.bans.count_live(id, now);
            drop(data);
            levels.add_banned(banned);
            for mut counter in counters {
                levels.add(held_units(limiter, &mut counter, now), limiter);
            }
        }
    }
}

// === impl ShardData ===

impl ShardData {
    /// Returns a copy of the counter of `entry`.
    fn counter_of(&self, entry: &TableEntry) -> Counter {
        match entry.handle() {
            Some(handle) => {
                let large = self.large.get(handle as usize).cloned();
                large.unwrap_or(Counter::Words(State::default()))
            }
            None => Counter::Words(entry.state),
        }
    }
}
