//! Stores counters and bans, and applies a [`Plan`](crate::rules::plan::Plan) in one call.
//!
//! A store knows nothing of requests, expressions or actions. Every kind of store returns equal results and runs
//! the `conformance` test suite. Each core uses the store through a [`StoreHandle`].

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use self::admin_handle::CommandQueue;
use self::fleet::AsyncCounters;
use self::memory::{MemoryStore, SnapshotError};
use self::redis::health::{StoreHealth, StoreState};
use self::redis::{FleetKey, RedisSettings, RedisStore};
use crate::clock::Timestamp;
use crate::limit::{ChargeUnits, Limiter};
use crate::rules::plan::{OnStoreFailure, RuleId, StoreMode};
use crate::rules::registry::RegisteredRule;

mod admin_handle;
mod administer;
pub mod async_mode;
mod ban_entry;
pub mod ban_page;
mod crossing_changes;
pub mod exemptions;
mod fleet;
mod handle;
mod index_queue;
mod key_usage;
mod listed_ban;
pub mod memory;
mod peek;
pub mod persist;
mod plan_reader;
pub mod redis;
mod shared_plan;
mod store_error;

pub use admin_handle::StoreAdmin;
pub use ban_entry::{AdminError, AdminNote, BanAuthor, BanEntry, BanKey, BanTerms, MAX_NOTE_BYTES};
pub use exemptions::{ChangeScope, ExemptionEntry, ExemptionTable};
pub use handle::{LeaseGuard, OnSettled, StoreHandle};
pub use key_usage::{FillLevels, InspectedRule, KeyUsage};
pub use listed_ban::{AppliedChange, BanRequest, ListedBan, ListedKey};
pub use store_error::StoreError;

#[cfg(test)]
mod conformance;
#[cfg(test)]
pub(crate) mod faulty;
#[cfg(test)]
mod fixture;
#[cfg(test)]
mod old_snapshot;
#[cfg(test)]
mod tests;

/// The bytes of the key of a rule without key parts.
const NO_KEY: &[u8] = &[];

/// The counters and bans of one gateway. They survive a reload.
#[derive(Debug)]
pub struct Store {
    /// The counters of this process: the only ones, or the fallback during an outage of the remote store.
    local: MemoryStore,
    /// The counters of the fleet. `None` if the gateway does not share counters.
    remote: Option<Remote>,
    /// The counters of async mode. `None` if the gateway does not share counters.
    counters: Option<AsyncCounters>,
    /// The commands of the admin API.
    commands: CommandQueue,
    /// The number of operations after responses that were dropped because a core's queue was full.
    dropped: AtomicU64,
    /// The share of each limit that this process enforces during an outage of the remote store.
    local_fraction: f64,
    /// What rules do during an outage, unless they have a setting of their own.
    fallback: OnStoreFailure,
}

/// A store that is reached over the network.
#[derive(Debug)]
enum Remote {
    /// Redis or Valkey.
    Redis(Arc<RedisStore>),
    /// A test store that is slow, late or down.
    #[cfg(test)]
    Faulty(Box<faulty::FaultyStore>),
}

/// The entries evicted for newer ones since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EvictionCounts {
    /// Evicted counters that had not expired.
    pub counters: u64,
    /// Evicted bans that had not ended.
    pub bans: u64,
}

/// What was restored from a counter snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RestoreSummary {
    /// The number of restored counters.
    pub counters: usize,
    /// The number of restored bans that are in force.
    pub bans: usize,
    /// The rules in the snapshot that are not registered, each with the number of its bans that were dropped.
    pub unknown: Vec<(String, usize)>,
    /// Whether the store has adopted the snapshot's hash secret, which differs from its own.
    pub other_secret: bool,
}

/// The capacity of a store in this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreBounds {
    /// The maximum number of tracked keys over all rules. The maximum number of bans is a quarter of it.
    pub max_keys: usize,
    /// The maximum total size of all `sliding_log` timestamps, in bytes.
    pub max_log_bytes: usize,
}

// === impl Store ===

impl Store {
    /// Creates a store in this process.
    pub fn memory(bounds: StoreBounds) -> Self {
        Self {
            local: MemoryStore::new(bounds),
            remote: None,
            counters: None,
            commands: CommandQueue::default(),
            dropped: AtomicU64::new(0),
            local_fraction: 1.0,
            fallback: OnStoreFailure::Local,
        }
    }

    /// Returns the store with shared counters. During an outage, this process enforces `local_fraction` of each
    /// limit. `fallback` is what most rules do then, for metrics.
    pub fn shared(
        self,
        settings: RedisSettings,
        local_fraction: f64,
        fallback: OnStoreFailure,
    ) -> Self {
        let max_keys = self.local.max_keys();
        Self {
            counters: Some(AsyncCounters::new(max_keys, settings.sync_interval)),
            remote: Some(Remote::Redis(Arc::new(RedisStore::new(settings)))),
            local_fraction,
            fallback,
            ..self
        }
    }

    /// Returns the counters of this process: the store itself, or the fallback of a remote store.
    pub fn local(&self) -> &MemoryStore {
        &self.local
    }

    /// Returns the addresses that pass all rules.
    pub fn exemptions(&self) -> &ExemptionTable {
        self.local.exemptions()
    }

    /// Returns whether the store has no remote counters.
    pub fn is_local(&self) -> bool {
        self.remote.is_none()
    }

    /// Returns the number of operations after responses that were dropped since the start.
    pub fn settle_dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Returns the store with keys hashed under `secret`, so that outsiders cannot compute which keys share a
    /// table slot. The store must not have counted anything yet.
    pub fn keyed(mut self, secret: &[u8]) -> Self {
        self.set_secret(secret);
        self
    }

    /// [`Store::keyed`], in place.
    pub fn set_secret(&mut self, secret: &[u8]) {
        self.local.set_secret(secret);
    }

    /// Writes `rules` and all counters and bans that are valid at `now`, without blocking requests. Returns
    /// `out`, which should be buffered.
    pub fn save<W: Write>(
        &self,
        out: W,
        rules: &[RegisteredRule],
        now: Timestamp,
    ) -> io::Result<W> {
        self.local.save(out, rules, now)
    }

    /// Reads a snapshot of [`Store::save`] to its end and checks that it is complete and undamaged.
    pub fn verify(&self, input: impl Read) -> Result<(), SnapshotError> {
        MemoryStore::verify(input)
    }

    /// Restores a snapshot of [`Store::save`]: every record of one of `rules` that is valid at `now` and for
    /// which there is capacity. The store must not have counted anything, and `input` must be verified.
    pub fn restore(
        &mut self,
        input: impl Read,
        rules: &[RegisteredRule],
        now: Timestamp,
    ) -> Result<RestoreSummary, SnapshotError> {
        self.local.restore(input, rules, now)
    }

    /// Returns the health of the remote store. `None` if the gateway does not share counters.
    pub fn health(&self) -> Option<&StoreHealth> {
        match self.remote.as_ref()? {
            Remote::Redis(redis) => Some(&redis.health),
            #[cfg(test)]
            Remote::Faulty(_) => None,
        }
    }

    /// Returns the state of the store at `now`: `ok`, `degraded`, or the default fallback during an outage.
    pub fn state(&self, now: Timestamp) -> &'static str {
        match self.health().map(|health| health.state(now)) {
            Some(StoreState::Down) => self.fallback.name(),
            _ if self.is_async_down() => self.fallback.name(),
            None | Some(StoreState::Ok) => "ok",
            Some(StoreState::Degraded) => "degraded",
        }
    }

    /// Returns whether rules use their fallback because the remote store, or a part of it, is out of reach.
    pub fn is_falling_back(&self) -> bool {
        let is_down = |health: &StoreHealth| health.is_down() || health.has_failed_node();
        self.health().is_some_and(is_down) || self.is_async_down()
    }

    fn is_async_down(&self) -> bool {
        let is_async_down = |counters: &AsyncCounters| counters.is_falling_back();
        self.counters.as_ref().is_some_and(is_async_down)
    }

    /// Returns the share of each limit that this process enforces during an outage of the remote store.
    pub(crate) fn local_fraction(&self) -> f64 {
        self.local_fraction
    }

    /// Removes the counters and bans of `rules`. Returns, per rule, the number of removed bans that were in
    /// force at `now`.
    ///
    /// A request that still uses the old configuration may count for a removed rule afterwards; such a counter
    /// expires like any other.
    pub fn remove_rules(&self, rules: &[RuleId], now: Timestamp) -> Vec<usize> {
        if let Some(counters) = &self.counters {
            counters.remove_rules(rules);
        }
        self.local.remove_rules(rules, now)
    }

    /// Returns the number of tracked keys per rule slot that has any, in slot order. Reads every counter: for a
    /// metrics scrape, not for a request.
    pub fn keys(&self, now: Timestamp) -> Vec<(u16, usize)> {
        let Some(counters) = &self.counters else {
            return self.local.keys(now);
        };
        let mut keys: BTreeMap<u16, usize> = self.local.keys(now).into_iter().collect();
        counters.each_slot(now, |slot| *keys.entry(slot).or_default() += 1);
        keys.into_iter().collect()
    }

    /// Returns the units in the only counter of a rule without a key. In a fleet, an async rule has the units of all
    /// gateways as this one knows them, and any other rule those that this gateway has counted.
    pub fn usage(
        &self,
        id: RuleId,
        limiter: &Limiter,
        mode: StoreMode,
        now: Timestamp,
    ) -> ChargeUnits {
        match &self.counters {
            Some(counters) if mode == StoreMode::Async && !counters.is_down() => {
                counters.usage(FleetKey::new(id, NO_KEY), limiter, now)
            }
            _ => self.local.usage(id, limiter, now),
        }
    }

    /// Returns how much of their limit the keys of a rule have used, as far as this gateway knows. Reads every counter,
    /// shard by shard: at most every few seconds, and not on the thread of a core.
    pub fn fill_levels(&self, rule: &InspectedRule, now: Timestamp) -> FillLevels {
        let mut levels = FillLevels::default();
        let InspectedRule { id, limiter, mode } = rule;
        match &self.counters {
            Some(counters) if *mode == StoreMode::Async && !counters.is_down() => {
                counters.add_levels(*id, limiter, now, &mut levels);
                levels.add_banned(self.local.count_bans(*id, now));
            }
            _ => self.local.add_levels(*id, limiter, now, &mut levels),
        }
        levels
    }

    /// Returns the counter and the ban of a key, as far as this gateway knows them.
    pub fn key_usage(&self, rule: &InspectedRule, key: &[u8], now: Timestamp) -> KeyUsage {
        let InspectedRule { id, limiter, mode } = rule;
        match &self.counters {
            Some(counters) if *mode == StoreMode::Async && !counters.is_down() => {
                let count = || counters.usage(FleetKey::new(*id, key), limiter, now).count;
                let ban = self.local.known_ban(*id, key, now);
                ban.map_or_else(|| KeyUsage::counted(count()), KeyUsage::banned)
            }
            _ => self.local.key_usage(*id, limiter, key, now),
        }
    }

    /// Returns the number of evicted counters and bans.
    pub fn evictions(&self) -> EvictionCounts {
        let mut evictions = self.local.evictions();
        if let Some(counters) = &self.counters {
            evictions.counters += counters.evictions();
        }
        evictions
    }

    /// Returns the number of bans in force at `now` per rule that has any. Reads every ban.
    pub fn ban_counts(&self, now: Timestamp) -> HashMap<RuleId, usize> {
        self.local.ban_counts(now)
    }

    /// Returns the bans in force at `now`, sorted by their end.
    pub fn bans(&self, now: Timestamp) -> Vec<BanEntry> {
        self.local.bans(now)
    }
}

// === impl StoreBounds ===

impl StoreBounds {
    /// Limits the store to `max_keys` keys and the default 64 MiB for logs.
    pub const fn keys(max_keys: usize) -> Self {
        Self {
            max_keys,
            max_log_bytes: 64 << 20,
        }
    }

    /// Returns the maximum number of bans and past offences.
    pub fn max_bans(&self) -> usize {
        (self.max_keys / 4).max(1)
    }
}
