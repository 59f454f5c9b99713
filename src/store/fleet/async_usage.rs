//! What metrics show of the counters of async mode.

use super::async_counters::AsyncCounters;
use crate::clock::Timestamp;
use crate::limit::{ChargeUnits, Limiter};
use crate::rules::plan::RuleId;
use crate::store::FillLevels;
use crate::store::redis::FleetKey;

// === impl AsyncCounters ===

impl AsyncCounters {
    /// The units of a key, as this node knows them.
    pub(in crate::store) fn usage(
        &self,
        key: FleetKey,
        limiter: &Limiter,
        now: Timestamp,
    ) -> ChargeUnits {
        let mut table = self.shard(key).lock();
        let entry = table.get(key);
        entry.map_or_else(ChargeUnits::default, |entry| entry.state.held(limiter, now))
    }

    /// Calls `count` with the small number of each key's rule.
    pub(in crate::store) fn each_slot(&self, now: Timestamp, mut count: impl FnMut(u16)) {
        for shard in &self.shards {
            shard.lock().slots(now).for_each(&mut count);
        }
    }

    /// Adds the keys of a rule to `levels`, with the units of the fleet as this node knows them.
    pub(in crate::store) fn add_levels(
        &self,
        id: RuleId,
        limiter: &Limiter,
        now: Timestamp,
        levels: &mut FillLevels,
    ) {
        for shard in &self.shards {
            let mut table = shard.lock();
            let live = table.entries();
            let of_rule = live.filter(|entry| entry.slot == id.slot && !entry.has_expired(now));
            let states: Vec<_> = of_rule.map(|entry| entry.state.clone()).collect();
            drop(table);
            for mut state in states {
                levels.add(state.held(limiter, now), limiter);
            }
        }
    }

    /// The number of evicted keys.
    pub(in crate::store) fn evictions(&self) -> u64 {
        self.shards.iter().map(|shard| shard.lock().evicted()).sum()
    }
}
