//! What metrics show of the counters of async mode.

use super::async_counters::AsyncCounters;
use crate::clock::Timestamp;
use crate::limit::{ChargeUnits, Limiter};
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

    /// The number of evicted keys.
    pub(in crate::store) fn evictions(&self) -> u64 {
        self.shards.iter().map(|shard| shard.lock().evicted()).sum()
    }
}
