//! What metrics show of the counters of async mode.

use super::async_counters::AsyncCounters;
use crate::clock::Timestamp;
use crate::limit::{ChargeUnits, Limiter};
use crate::rules::plan::RuleId;
use crate::store::FillLevels;
use crate::store::async_mode::KeyState;
use crate::store::fleet::key_table::KeyNews;
use crate::store::redis::FleetKey;

/// What a node knows of a key in async mode.
#[derive(Clone, Debug)]
pub(in crate::store) enum KnownKey {
    /// It is banned until this time.
    Banned(Timestamp),
    /// A copy of its counter.
    Counted(KeyState),
}

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

    /// Returns what this node knows of a key, with the events that concern it. Nothing is changed.
    pub(in crate::store) fn known_key(
        &self,
        key: FleetKey,
        limiter: &Limiter,
        now: Timestamp,
    ) -> KnownKey {
        let mut table = self.shard(key).lock();
        let entry = table.get(key);
        let known = entry.map(|entry| (entry.state.clone(), entry.news.as_deref().cloned()));
        drop(table);
        match known {
            None => KnownKey::Counted(KeyState::new(limiter)),
            Some((_, Some(KeyNews::Banned(ban)))) if ban.until > now => KnownKey::Banned(ban.until),
            Some((_, Some(KeyNews::Banned(_)))) => KnownKey::Counted(KeyState::new(limiter)),
            Some((mut state, Some(KeyNews::Exhausted(view)))) => {
                let at = view.at;
                state.learn(limiter, at, view);
                KnownKey::Counted(state)
            }
            Some((state, None)) => KnownKey::Counted(state),
        }
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
