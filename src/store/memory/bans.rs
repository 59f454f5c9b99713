//! One shard's bans, with readable keys.
//!
//! They have room of their own, so that no flood of new keys can free a banned one. Ended bans are
//! dropped when the shard is next asked, and when room is needed.

use std::collections::{BTreeSet, HashMap};

use super::hash::{KeyHash, Prehashed};
use crate::clock::Timestamp;
use crate::store::BanEntry;

/// Bans of one shard.
#[derive(Debug, Default)]
pub(super) struct Bans {
    by_key: HashMap<u128, BanEntry, Prehashed>,
    by_end: BTreeSet<(Timestamp, u128)>,
}

// === impl Bans ===

impl Bans {
    /// There are none.
    pub(super) fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }

    /// When the ban of `key` ends, if it has one.
    pub(super) fn until(&self, key: KeyHash) -> Option<Timestamp> {
        self.by_key.get(&key.whole()).map(|ban| ban.until)
    }

    /// Adds a ban for a key that has none. Its place was taken before.
    pub(super) fn add(&mut self, key: KeyHash, ban: BanEntry) {
        self.by_end.insert((ban.until, key.whole()));
        self.by_key.insert(key.whole(), ban);
    }

    /// When the first of them ends.
    pub(super) fn first_end(&self) -> Option<Timestamp> {
        self.by_end.first().map(|(until, _)| *until)
    }

    /// Removes the one that ends first; its place stays taken.
    pub(super) fn remove_first(&mut self) -> Option<BanEntry> {
        let (_, key) = self.by_end.pop_first()?;
        self.by_key.remove(&key)
    }

    /// Removes those that have ended; says how many, their places stay taken.
    pub(super) fn remove_ended(&mut self, now: Timestamp) -> usize {
        let mut removed = 0;
        while self.first_end().is_some_and(|end| end <= now) {
            self.remove_first();
            removed += 1;
        }
        removed
    }

    /// Removes those that `unwanted` names; their places stay taken.
    pub(super) fn remove(&mut self, unwanted: impl Fn(&BanEntry) -> bool) -> Vec<BanEntry> {
        let by_end = &mut self.by_end;
        let gone = self.by_key.extract_if(|_, ban| unwanted(ban));
        gone.map(|(key, ban)| {
            by_end.remove(&(ban.until, key));
            ban
        })
        .collect()
    }

    /// Those in force at `now`.
    pub(super) fn live(&self, now: Timestamp) -> impl Iterator<Item = &BanEntry> {
        self.by_key.values().filter(move |ban| ban.until > now)
    }
}
