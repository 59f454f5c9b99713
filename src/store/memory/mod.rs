//! The store in this process: a bounded two-choice hash table and a separate table of bans, in shards.
//!
//! The table is allocated once. It never grows or rehashes, and entries expire in place. A key belongs to one
//! shard, with its counter and ban under one lock, so each step is atomic. No thread holds two locks at once,
//! and nothing here awaits.
//!
//! The limits, and what is evicted at each:
//!
//! - Keys: `max_keys` over all shards. A new key replaces an expired entry in its two buckets, or else the entry
//!   furthest below its limit (`table`).
//! - Logs and sub-windows: `max_log_bytes` each. Above it, a key gets a smaller counter (`shard_data`).
//! - Bans and past offences: a quarter of `max_keys`. Offences are evicted first (`bans`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::time::Duration;

use self::administer::RemovedBans;
use self::bans::{BanRecord, NextExpiries, ShardBans};
use self::bucket::PLACES;
use self::capacity::{MemoryBudgets, SlotCapacity};
use self::hash::{KeyHasher, KeyTag};
use self::shard_data::ShardData;
use self::sync::{AtomicU64, Mutex};
use super::exemptions::ExemptionTable;
use super::{BanEntry, EvictionCounts, NO_KEY, StoreBounds};
use crate::clock::Timestamp;
use crate::limit::concurrency::{KeyLeases, LEASE_LIFETIME};
use crate::limit::{ChargeUnits, Counter, Limiter};
use crate::rules::plan::{HeldLeases, LeasedCounter, RuleId};
use crate::rules::registry::RuleRegistry;

mod administer;
mod bans;
mod bucket;
mod capacity;
mod execute;
mod hash;
mod inspect;
mod mirror;
mod saved;
mod shard_data;
mod snapshot;
mod start_ban;
mod step_run;
mod sync;
mod table;

#[cfg(test)]
mod clock;
#[cfg(test)]
mod evictions;
#[cfg(test)]
mod model;
#[cfg(test)]
mod schedules;
#[cfg(test)]
mod steered;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod threads;
#[cfg(test)]
mod wear;

pub use self::saved::SnapshotError;

/// The number of bytes of a banned key that are kept for listings, so that long keys cannot fill the memory.
pub const SHOWN: usize = 256;

/// Counters and bans in this process.
#[derive(Debug)]
pub struct MemoryStore {
    hasher: KeyHasher,
    shards: Box<[Shard]>,
    counter_room: SlotCapacity,
    ban_room: SlotCapacity,
    budgets: MemoryBudgets,
    counters_evicted: AtomicU64,
    bans_evicted: AtomicU64,
    /// The addresses that pass all rules.
    exemptions: ExemptionTable,
    /// The newest bans that a person has removed, so that they can be restored.
    removed: Mutex<RemovedBans>,
}

/// A subset of the keys, on separate cache lines.
#[derive(Debug)]
#[repr(align(64))]
struct Shard {
    /// See [`NextExpiries::live`].
    first_live: AtomicU64,
    /// See [`NextExpiries::past`].
    first_past: AtomicU64,
    held: Mutex<ShardData>,
}

// === impl MemoryStore ===

impl MemoryStore {
    /// Creates a store for at least one key, and a quarter as many bans.
    pub fn new(bounds: StoreBounds) -> Self {
        let max_keys = bounds.max_keys.max(1);
        // One slot in five stays free, so that two full buckets are rare below `max_keys`.
        let buckets = (max_keys + max_keys / 4).div_ceil(PLACES);
        let shards = (max_keys / 1024).next_power_of_two().min(256);
        Self {
            hasher: KeyHasher::random(),
            shards: (0..shards)
                .map(|_| Shard::new(buckets.div_ceil(shards)))
                .collect(),
            counter_room: SlotCapacity::of(max_keys),
            ban_room: SlotCapacity::of(bounds.max_bans()),
            budgets: MemoryBudgets::of(bounds.max_log_bytes),
            counters_evicted: AtomicU64::new(0),
            bans_evicted: AtomicU64::new(0),
            exemptions: ExemptionTable::default(),
            removed: Mutex::new(RemovedBans::default()),
        }
    }

    /// The maximum number of keys.
    pub fn max_keys(&self) -> usize {
        self.counter_room.max()
    }

    /// The addresses that pass all rules.
    pub fn exemptions(&self) -> &ExemptionTable {
        &self.exemptions
    }

    /// See [`super::Store::keyed`].
    pub fn set_secret(&mut self, secret: &[u8]) {
        self.hasher = KeyHasher::derived(secret);
    }

    /// Releases leases; ignores those that do not exist.
    pub fn release(&self, leases: &HeldLeases) {
        self.for_each_lease(leases, |held| held.release(leases.id));
    }

    /// Extends leases; ignores those that do not exist.
    pub fn renew(&self, leases: &HeldLeases, now: Timestamp) {
        self.for_each_lease(leases, |held| held.renew(now, leases.id));
        let lasts = Duration::from_secs(1) + LEASE_LIFETIME;
        let expires = second(now.plus(lasts));
        for LeasedCounter { id, key, .. } in &leases.counters {
            let tag = self.hasher.hash(id.identity, key).tag;
            let table = &mut self.shard(tag).held.lock().table;
            if let Some(entry) = table.find_mut(tag) {
                entry.extend(expires);
            }
        }
    }

    fn for_each_lease(&self, leases: &HeldLeases, change: impl Fn(&mut KeyLeases)) {
        for LeasedCounter { id, key, .. } in &leases.counters {
            let tag = self.hasher.hash(id.identity, key).tag;
            let data = &mut *self.shard(tag).held.lock();
            let Some(spot) = data.table.find(tag) else {
                continue;
            };
            let handle = data.table.entry(spot).handle();
            let counter = handle.and_then(|handle| data.large.get_mut(handle as usize));
            if let Some(Counter::Leases(held)) = counter {
                change(held);
                if held.is_empty() {
                    data.clear(spot, self);
                }
            }
        }
    }

    /// See [`super::Store::remove_rules`].
    pub fn remove_rules(&self, rules: &[RuleId], now: Timestamp) -> Vec<usize> {
        let mut ended: Vec<_> = rules.iter().map(|rule| (*rule, 0)).collect();
        if rules.is_empty() {
            return Vec::new();
        }
        let slots = rules.iter().map(|rule| rule.slot);
        // Other rules may count in the shared slot too.
        let slots: BTreeSet<_> = slots.filter(|s| *s != RuleRegistry::SHARED_SLOT).collect();
        for shard in &self.shards {
            let mut held = shard.held.lock();
            held.clear_all(|entry| slots.contains(&entry.slot), self);
            let removed = held.bans.remove(|record| rules.contains(&record.ban.id));
            shard.publish(&held.bans);
            drop(held);
            self.ban_room.give(removed.live.len() + removed.past);
            for ban in removed.live.iter().filter(|ban| ban.until > now) {
                let rule = ended.iter_mut().find(|(id, _)| *id == ban.id);
                rule.into_iter().for_each(|(_, count)| *count += 1);
            }
        }
        ended.into_iter().map(|(_, count)| count).collect()
    }

    /// Removes all bans and past offences for which `is_ended` returns `true`. Returns the number of bans.
    pub fn remove_bans(&self, is_ended: impl Fn(&BanEntry) -> bool) -> usize {
        self.remove_records(|record| is_ended(&record.ban))
    }

    /// Removes all bans and past offences that a remote store has reported, and keeps those of this process.
    pub fn forget_learned_bans(&self) {
        self.remove_records(|record| record.ban.is_shared);
    }

    fn remove_records(&self, is_removed: impl Fn(&BanRecord) -> bool) -> usize {
        let mut bans = 0;
        for shard in &self.shards {
            let mut held = shard.held.lock();
            if held.bans.is_empty() {
                continue;
            }
            let removed = held.bans.remove(&is_removed);
            shard.publish(&held.bans);
            drop(held);
            self.ban_room.give(removed.live.len() + removed.past);
            bans += removed.live.len();
        }
        bans
    }

    /// See [`super::Store::keys`].
    pub fn keys(&self, now: Timestamp) -> Vec<(u16, usize)> {
        let mut counts = BTreeMap::new();
        for shard in &self.shards {
            for entry in shard.held.lock().table.live(second(now)) {
                *counts.entry(entry.slot).or_default() += 1;
            }
        }
        counts.into_iter().collect()
    }

    /// See [`super::Store::usage`].
    pub fn usage(&self, id: RuleId, limiter: &Limiter, now: Timestamp) -> ChargeUnits {
        self.units(id, limiter, NO_KEY, now)
    }

    /// See [`super::Store::evictions`].
    pub fn evictions(&self) -> EvictionCounts {
        EvictionCounts {
            counters: self.counters_evicted.load(Ordering::Relaxed),
            bans: self.bans_evicted.load(Ordering::Relaxed),
        }
    }

    /// See [`super::Store::bans`].
    pub fn bans(&self, now: Timestamp) -> Vec<BanEntry> {
        let mut bans = self.list_bans(None, now);
        bans.sort_by_key(|ban| ban.until);
        bans
    }

    /// Returns when the ban of the key with this complete hash ends. `None` if the key is not banned.
    #[inline(never)]
    fn banned(
        &self,
        shard: &Shard,
        bans: &mut ShardBans,
        key: u128,
        now: Timestamp,
    ) -> Option<Timestamp> {
        if bans.is_behind(now) {
            self.ban_room.give(bans.catch_up(now));
            shard.publish(bans);
        }
        bans.until(key)
    }

    fn shard(&self, key: KeyTag) -> &Shard {
        let index = key.shard(self.shards.len() - 1);
        let shard = self.shards.get(index);
        shard.expect("the number of shards is a power of two, and the index is masked by it")
    }
}

// === impl Shard ===

impl Shard {
    fn new(buckets: usize) -> Self {
        Self {
            first_live: AtomicU64::new(u64::MAX),
            first_past: AtomicU64::new(u64::MAX),
            held: Mutex::new(ShardData::new(buckets)),
        }
    }

    /// Publishes to other shards which bans are evicted first here. The caller holds the lock.
    fn publish(&self, bans: &ShardBans) {
        let NextExpiries { live, past } = bans.firsts();
        self.first_live.store(live, Ordering::Relaxed);
        self.first_past.store(past, Ordering::Relaxed);
    }
}

/// The part of a banned key that is kept for listings.
fn shown(key: &[u8]) -> Box<[u8]> {
    key.get(..SHOWN).unwrap_or(key).into()
}

/// Converts `now` to whole seconds.
fn second(now: Timestamp) -> u32 {
    u32::try_from(now.as_secs()).unwrap_or(u32::MAX)
}
