//! Where counters and bans are kept: applies a [`Plan`] in one call.
//!
//! A store knows nothing of requests, expressions or actions. Every kind of store returns the same results:
//! `conformance` is the one suite for all of them. Each core uses it through a [`StoreHandle`].

use std::fmt;
use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicU64, Ordering};

use self::memory::{MemoryStore, SnapshotError};
use crate::clock::Timestamp;
use crate::rules::plan::{HeldLeases, Plan, PlanResult, RuleId};
use crate::rules::registry::RegisteredRule;

mod handle;
pub mod memory;
pub mod persist;

pub use handle::{LeaseGuard, OnSettled, StoreHandle};

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

/// The counters and bans of one gateway. They outlive a configuration.
#[derive(Debug)]
pub struct Store {
    /// The counters of this process: all there are, or those that rules fall back to.
    local: MemoryStore,
    /// The counters of the fleet; `None`: a gateway on its own.
    remote: Option<Remote>,
    /// How much work behind responses was dropped, because the queue of a core was full.
    dropped: AtomicU64,
}

/// A store that a network lies before.
#[derive(Debug)]
enum Remote {
    /// A store of tests that is slow, late or down.
    #[cfg(test)]
    Faulty(faulty::FaultyStore),
}

/// Why a store could not apply a plan. Each rule says what happens then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreError {
    /// There was no reply in time. The plan may have been applied, or may be applied later.
    Timeout,
    /// The store cannot be reached or returned an error. Nothing was applied.
    Unavailable,
}

/// What had to make room for something newer, since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EvictionCounts {
    /// Counters that still meant something.
    pub counters: u64,
    /// Bans that had not ended.
    pub bans: u64,
}

/// A ban that is in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BanEntry {
    /// The rule.
    pub id: RuleId,
    /// The key's bytes as the plan had them, cut at [`memory::SHOWN`] bytes.
    pub key: Box<[u8]>,
    /// When it ends.
    pub until: Timestamp,
    /// Which offence of the key it is, counted from 1.
    pub offence: u32,
}

/// What was taken over from a snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RestoreSummary {
    /// Keys that are counted.
    pub counters: usize,
    /// Bans that are in force.
    pub bans: usize,
    /// The rules that are not registered here, each with how many bans have ended by it.
    pub unknown: Vec<(String, usize)>,
    /// Keys are hashed under another secret from now on, that of the snapshot.
    pub other_secret: bool,
}

/// How much a store in this process may keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreBounds {
    /// Keys that are tracked, over all rules; bans a quarter as many.
    pub max_keys: usize,
    /// Bytes of all `sliding_log` timestamps together.
    pub max_log_bytes: usize,
}

// === impl Store ===

impl Store {
    /// A store in this process.
    pub fn memory(bounds: StoreBounds) -> Self {
        Self {
            local: MemoryStore::new(bounds),
            remote: None,
            dropped: AtomicU64::new(0),
        }
    }

    /// The counters of this process: the store itself, or what rules fall back to.
    pub fn local(&self) -> &MemoryStore {
        &self.local
    }

    /// Whether the counters of this process are all there are.
    pub fn is_local(&self) -> bool {
        self.remote.is_none()
    }

    /// How much work behind responses was dropped since the start.
    pub fn settle_dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// The same with keys hashed under `secret`, so that nobody else can tell which of them share
    /// a place. It must not have counted anything yet.
    pub fn keyed(mut self, secret: &[u8]) -> Self {
        self.set_secret(secret);
        self
    }

    /// [`Store::keyed`], in place.
    pub fn set_secret(&mut self, secret: &[u8]) {
        self.local.set_secret(secret);
    }

    /// Writes the `rules` and all that means something at `now`, on which no request waits; gives
    /// `out` back, which should be buffered.
    pub fn save<W: Write>(
        &self,
        out: W,
        rules: &[RegisteredRule],
        now: Timestamp,
    ) -> io::Result<W> {
        self.local.save(out, rules, now)
    }

    /// Reads what [`Store::save`] wrote to its end and says whether it is whole.
    pub fn verify(&self, input: impl Read) -> Result<(), SnapshotError> {
        MemoryStore::verify(input)
    }

    /// Takes over what [`Store::save`] wrote, as far as its rules are among `rules`, it means
    /// something at `now` and there is room. For a store that has counted nothing yet, and input
    /// that was verified.
    pub fn restore(
        &mut self,
        input: impl Read,
        rules: &[RegisteredRule],
        now: Timestamp,
    ) -> Result<RestoreSummary, SnapshotError> {
        self.local.restore(input, rules, now)
    }

    /// Applies `plan` in one call: its steps in order, until one ends the pass; then peeks at those that ask for
    /// it. `now` is the caller's clock; the store decides by its own, and returns it in `result`, which must be
    /// empty.
    pub async fn apply(
        &self,
        plan: &Plan,
        now: Timestamp,
        result: &mut PlanResult,
    ) -> Result<(), StoreError> {
        let Some(remote) = &self.remote else {
            self.local.apply(plan, now, result);
            return Ok(());
        };
        match *remote {
            #[cfg(test)]
            Remote::Faulty(ref faulty) => faulty.apply(plan, now, result).await,
        }
    }

    /// Releases leases, if they exist.
    pub async fn release(&self, leases: &HeldLeases) -> Result<(), StoreError> {
        let Some(remote) = &self.remote else {
            self.local.release(leases);
            return Ok(());
        };
        match *remote {
            #[cfg(test)]
            Remote::Faulty(ref faulty) => faulty.release(leases).await,
        }
    }

    /// Extends leases, if they exist.
    pub async fn renew(&self, leases: &HeldLeases, now: Timestamp) -> Result<(), StoreError> {
        let Some(remote) = &self.remote else {
            self.local.renew(leases, now);
            return Ok(());
        };
        match *remote {
            #[cfg(test)]
            Remote::Faulty(ref faulty) => faulty.renew(leases, now).await,
        }
    }

    /// Removes the counters and bans of `rules`. Returns for each rule how many bans that were in
    /// force at `now` have ended by it.
    ///
    /// A request that still holds the old configuration may count for them afterwards; such a
    /// count expires like any other.
    pub fn remove_rules(&self, rules: &[RuleId], now: Timestamp) -> Vec<usize> {
        self.local.remove_rules(rules, now)
    }

    /// The number of counted keys of each slot that has any, in slot order. Reads every counter:
    /// for a scrape, not for a request.
    pub fn keys(&self, now: Timestamp) -> Vec<(u16, usize)> {
        self.local.keys(now)
    }

    /// What had to make room.
    pub fn evictions(&self) -> EvictionCounts {
        self.local.evictions()
    }

    /// The bans in force at `now`, those that end first before the others.
    pub fn bans(&self, now: Timestamp) -> Vec<BanEntry> {
        self.local.bans(now)
    }
}

// === impl StoreBounds ===

impl StoreBounds {
    /// At most `max_keys` keys, and the default room for logs.
    pub const fn keys(max_keys: usize) -> Self {
        Self {
            max_keys,
            max_log_bytes: 64 << 20,
        }
    }
}

// === impl StoreError ===

impl StoreError {
    /// The word for it in metrics.
    pub const fn kind(self) -> &'static str {
        match self {
            StoreError::Timeout => "timeout",
            StoreError::Unavailable => "unavailable",
        }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            StoreError::Timeout => "the store did not reply in time",
            StoreError::Unavailable => "the store cannot be reached",
        })
    }
}
