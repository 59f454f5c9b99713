//! Bans, indexed by key and by end.

use std::collections::{BTreeSet, HashMap};

use super::BanRecord;
use crate::clock::Timestamp;
use crate::rules::PrehashedKeys;
use crate::store::memory::hash::KeyHash;

/// Bans, at most one per key, ordered by their end.
#[derive(Debug, Default)]
pub(super) struct BansByExpiry {
    by_key: HashMap<u128, BanRecord, PrehashedKeys>,
    by_end: BTreeSet<(Timestamp, u128)>,
}

// === impl BansByExpiry ===

impl BansByExpiry {
    pub(super) fn len(&self) -> usize {
        self.by_key.len()
    }

    /// Returns the ban of `key`.
    pub(super) fn get(&self, key: u128) -> Option<&BanRecord> {
        self.by_key.get(&key)
    }

    /// Returns all bans, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &BanRecord> {
        self.by_key.values()
    }

    /// Returns all bans with the complete hash of their key, in no order.
    pub(super) fn entries(&self) -> impl Iterator<Item = (u128, &BanRecord)> {
        self.by_key.iter().map(|(key, sentence)| (*key, sentence))
    }

    /// Returns when the first ban ends.
    pub(super) fn first_end(&self) -> Option<Timestamp> {
        self.by_end.first().map(|(end, _)| *end)
    }

    /// Returns the complete hash of the key with the ban that ends first.
    pub(super) fn first_key(&self) -> Option<u128> {
        self.by_end.first().map(|(_, key)| *key)
    }

    /// Adds a ban for a key that has none; `key` is its complete hash.
    pub(super) fn insert(&mut self, key: u128, sentence: BanRecord) {
        self.by_end.insert((sentence.ban.until, key));
        self.by_key.insert(key, sentence);
    }

    /// Removes the ban of `key`; returns whether there was one.
    pub(super) fn remove(&mut self, key: KeyHash) -> bool {
        let removed = self.by_key.remove(&key.whole());
        removed.is_some_and(|gone| self.by_end.remove(&(gone.ban.until, key.whole())))
    }

    /// Removes the ban that ends first.
    pub(super) fn pop_first(&mut self) -> Option<(u128, BanRecord)> {
        let (_, key) = self.by_end.pop_first()?;
        self.by_key.remove(&key).map(|sentence| (key, sentence))
    }

    /// Removes the bans for which `unwanted` returns `true`.
    pub(super) fn extract(&mut self, unwanted: impl Fn(&BanRecord) -> bool) -> Vec<BanRecord> {
        let by_end = &mut self.by_end;
        let gone = self.by_key.extract_if(|_, sentence| unwanted(sentence));
        gone.map(|(key, sentence)| {
            by_end.remove(&(sentence.ban.until, key));
            sentence
        })
        .collect()
    }

    /// Changes all bans and indexes them again.
    pub(super) fn change(&mut self, change: impl Fn(&mut BanRecord)) {
        for (key, mut sentence) in std::mem::take(self).by_key {
            change(&mut sentence);
            self.insert(key, sentence);
        }
    }
}
