//! What people do to bans: list them, start and end them by hand, and restore what they have ended.
//!
//! A ban is found by its id in a scan of all shards, one after the other, each locked for the time that its own bans
//! take.

use std::collections::VecDeque;

use super::bans::BanRecord;
use super::hash::KeyHash;
use super::{MemoryStore, shown};
use crate::clock::Timestamp;
use crate::rules::BanId;
use crate::rules::plan::RuleId;
use crate::store::{AdminError, BanEntry, BanKey, BanTerms};

#[cfg(test)]
mod tests;

/// The number of removed bans that can be restored by their id.
const MAX_REMOVED: usize = 1_024;

/// Bans that a person has removed, oldest first, each with the complete hash of its key.
#[derive(Debug, Default)]
pub(super) struct RemovedBans(VecDeque<(u128, BanRecord)>);

/// A key of which a ban is changed.
struct KnownKey {
    hash: KeyHash,
    ban_id: BanId,
    shown: Box<[u8]>,
    /// The offences that the key has, and whether they count for its next ban.
    offence: Option<(u32, bool)>,
}

// === impl MemoryStore ===

impl MemoryStore {
    /// Returns the bans in force at `now`, of one rule or of all, in no order.
    pub fn list_bans(&self, rule: Option<RuleId>, now: Timestamp) -> Vec<BanEntry> {
        let mut bans = Vec::new();
        for shard in &self.shards {
            let data = shard.held.lock();
            let live = data.bans.live(now);
            bans.extend(live.filter(|ban| rule.is_none_or(|rule| ban.id == rule)));
        }
        bans
    }

    /// Calls `visit` with the rule and the id of each ban in force at `now`, shard by shard.
    pub fn each_ban(&self, now: Timestamp, mut visit: impl FnMut(RuleId, BanId)) {
        for shard in &self.shards {
            let data = shard.held.lock();
            for ban in data.bans.ids(now) {
                visit(ban.0, ban.1);
            }
        }
    }

    /// Returns the ban with this id. `None` if there is none at `now`.
    pub fn find_ban(&self, id: BanId, now: Timestamp) -> Option<BanEntry> {
        self.find_record(id, now).map(|(_, record)| record.ban)
    }

    /// Returns the ban with this id that a person has removed. `None` if there is none that can be restored.
    pub fn removed_ban(&self, id: BanId) -> Option<BanEntry> {
        let found = self.removed.lock().find(id);
        found.map(|(_, record)| record.ban)
    }

    /// Ends a ban, and forgets the offences of its key. Returns the ban, which can be restored.
    pub fn remove_ban(
        &self,
        rule: RuleId,
        key: &BanKey,
        now: Timestamp,
    ) -> Result<BanEntry, AdminError> {
        let (hash, record) = match key {
            BanKey::Id(id) => self.find_record(*id, now),
            BanKey::Bytes(key) => self.record_of(self.hasher.hash(rule.identity, key)),
        }
        .filter(|(_, record)| record.ban.id == rule && record.ban.until > now)
        .ok_or(AdminError::NotFound)?;
        self.remove_hash(hash);
        let ban = record.ban.clone();
        self.removed.lock().add(hash.whole(), record);
        Ok(ban)
    }

    /// Starts a ban by hand, or restores a removed one. A ban of the key is replaced. `is_shared` says whether a
    /// shared store has the ban too.
    ///
    /// An id is that of a ban in force or of one that was removed; [`AdminError::NotFound`] if it is neither.
    pub fn add_ban(
        &self,
        rule: RuleId,
        key: &BanKey,
        terms: BanTerms,
        is_shared: bool,
        now: Timestamp,
    ) -> Result<BanEntry, AdminError> {
        if terms.until <= now {
            return Err(AdminError::AlreadyEnded);
        }
        let known = self.known_key(rule, key, now).ok_or(AdminError::NotFound)?;
        let (offence, counts) = known.offence.unwrap_or((0, false));
        let counts = counts || terms.offence.is_some();
        let ban = BanEntry {
            id: rule,
            ban_id: known.ban_id,
            key: known.shown,
            until: terms.until,
            offence: terms.offence.unwrap_or(offence).max(1),
            since: terms.since,
            by: terms.by,
            is_shared,
        };
        let record = BanRecord {
            ban: ban.clone(),
            began: now,
            counts,
        };
        if !self.put_ban(known.hash, record, now) {
            return Err(AdminError::NoCapacity);
        }
        self.removed.lock().forget(ban.ban_id);
        Ok(ban)
    }

    /// Finds the key of a ban by hand.
    fn known_key(&self, rule: RuleId, key: &BanKey, now: Timestamp) -> Option<KnownKey> {
        match key {
            BanKey::Bytes(key) => {
                let hash = self.hasher.hash(rule.identity, key);
                let record = self.record_of(hash);
                Some(KnownKey {
                    hash,
                    ban_id: BanId::of(rule, key),
                    shown: shown(key),
                    offence: record.map(|(_, record)| (record.ban.offence, record.counts)),
                })
            }
            BanKey::Id(id) => {
                let found = self.find_record(*id, now);
                let (hash, record) = found.or_else(|| self.removed.lock().find(*id))?;
                (record.ban.id.identity == rule.identity).then_some(KnownKey {
                    hash,
                    ban_id: *id,
                    offence: Some((record.ban.offence, record.counts)),
                    shown: record.ban.key,
                })
            }
        }
    }

    /// Returns the ban with this id and the hash of its key.
    fn find_record(&self, id: BanId, now: Timestamp) -> Option<(KeyHash, BanRecord)> {
        self.shards.iter().find_map(|shard| {
            let data = shard.held.lock();
            let (hash, record) = data.bans.find(id, now)?;
            Some((KeyHash::from_whole(hash), record.clone()))
        })
    }

    /// Returns the ban or the past offence of a key.
    fn record_of(&self, hash: KeyHash) -> Option<(KeyHash, BanRecord)> {
        let data = self.shard(hash.tag).held.lock();
        data.bans.record(hash).map(|record| (hash, record.clone()))
    }
}

// === impl RemovedBans ===

impl RemovedBans {
    fn add(&mut self, hash: u128, record: BanRecord) {
        self.forget(record.ban.ban_id);
        if self.0.len() >= MAX_REMOVED {
            self.0.pop_front();
        }
        self.0.push_back((hash, record));
    }

    fn forget(&mut self, id: BanId) {
        self.0.retain(|(_, record)| record.ban.ban_id != id);
    }

    fn find(&self, id: BanId) -> Option<(KeyHash, BanRecord)> {
        let (hash, record) = self.0.iter().find(|(_, record)| record.ban.ban_id == id)?;
        Some((KeyHash::from_whole(*hash), record.clone()))
    }
}
