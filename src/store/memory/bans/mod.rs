//! The live bans and past offences of one shard, with readable keys.
//!
//! Bans have a separate capacity, so that a flood of new keys cannot evict one. An ended ban is dropped at the
//! next lookup in the shard, or when capacity is needed. A ban of an escalating rule stays for another day as a
//! past offence. Offences share the capacity of bans and are evicted before live bans.
//!
//! A ban records when it began, so that it never lasts longer than its length from now, even if the clock is set
//! back.

use std::collections::HashMap;
use std::time::Duration;

use self::by_expiry::BansByExpiry;
use super::hash::KeyHash;
use super::saved::SavedBan;
use crate::clock::Timestamp;
use crate::rules::BanId;
use crate::rules::plan::RuleId;
use crate::store::BanEntry;

mod by_expiry;

#[cfg(test)]
mod tests;

/// The time after the end of a ban during which `escalate` counts it as a past offence.
const MEMORY: Duration = Duration::from_secs(24 * 60 * 60);

/// The tolerated difference between a ban's beginning and an earlier `now`; above it, the clock was set back.
/// Requests do not reach a shard in the order in which they read the clock.
const SLACK: Duration = Duration::from_secs(10);

/// Bans of one shard.
#[derive(Debug, Default)]
pub(super) struct ShardBans {
    live: BansByExpiry,
    past: BansByExpiry,
    /// When the next ban ends or the next offence is forgotten. `None` if there are none.
    due: Option<Timestamp>,
    /// The latest time at which a ban here began or ended, or a later one.
    newest: Timestamp,
}

/// A ban, in force or past.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BanRecord {
    pub(super) ban: BanEntry,
    /// When the ban began.
    pub(super) began: Timestamp,
    /// Whether its rule escalates, so that the ban counts after its end.
    pub(super) counts: bool,
}

/// The result of [`ShardBans::remove`].
#[derive(Debug)]
pub(super) struct ExtractedBans {
    pub(super) live: Vec<BanEntry>,
    /// The number of removed past offences.
    pub(super) past: usize,
}

/// The next evictions, in nanoseconds since the epoch. `u64::MAX` if there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NextExpiries {
    /// When the first live ban ends.
    pub(super) live: u64,
    /// When the first past offence ended.
    pub(super) past: u64,
}

// === impl ShardBans ===

impl ShardBans {
    /// Returns whether there are no bans and no past offences.
    pub(super) fn is_empty(&self) -> bool {
        self.due.is_none()
    }

    /// Returns when the ban of the key with this complete hash ends. Accurate after [`ShardBans::catch_up`],
    /// which removes ended bans.
    pub(super) fn until(&self, key: u128) -> Option<Timestamp> {
        self.live.get(key).map(|live| live.ban.until)
    }

    /// Returns the number of remembered offences of `key`, after its last ban has ended.
    pub(super) fn past(&self, key: KeyHash) -> Option<u32> {
        self.past.get(key.whole()).map(|past| past.ban.offence)
    }

    /// Adds a ban for a key that has none. It uses the capacity of the key's past offence, or capacity taken
    /// before.
    pub(super) fn add(&mut self, key: KeyHash, sentence: BanRecord) {
        self.past.remove(key);
        self.newest = self.newest.max(sentence.began);
        self.live.insert(key.whole(), sentence);
        self.note();
    }

    /// Returns whether [`ShardBans::catch_up`] has work to do.
    pub(super) fn is_behind(&self, now: Timestamp) -> bool {
        self.due.is_some_and(|due| now >= due) || self.is_ahead(now)
    }

    /// Adjusts bans to a clock that was set back, ends bans and forgets old offences. Returns the number of
    /// removed records; their capacity stays taken.
    #[cold]
    pub(super) fn catch_up(&mut self, now: Timestamp) -> usize {
        let before = self.live.len() + self.past.len();
        if self.is_ahead(now) {
            self.live.change(|live| live.begin_by(now));
            self.past.change(|past| past.end_by(now));
            self.newest = now.plus(SLACK);
        }
        while self.live.first_end().is_some_and(|end| end <= now) {
            self.end_first();
        }
        let forgotten = |end: Timestamp| end.plus(MEMORY) <= now;
        while self.past.first_end().is_some_and(forgotten) {
            self.past.pop_first();
        }
        self.note();
        before - self.live.len() - self.past.len()
    }

    /// Returns what is evicted first.
    pub(super) fn firsts(&self) -> NextExpiries {
        let nanos = |end: Option<Timestamp>| end.map_or(u64::MAX, Timestamp::as_nanos);
        NextExpiries {
            live: nanos(self.live.first_end()),
            past: nanos(self.past.first_end()),
        }
    }

    /// Removes the offence that ended first; returns whether there was one. Its capacity stays taken.
    pub(super) fn forget_first(&mut self) -> bool {
        let forgotten = self.past.pop_first().is_some();
        self.note();
        forgotten
    }

    /// Removes the live ban that ends first, unless it is that of `spared`. Its capacity stays taken.
    pub(super) fn lift_first(&mut self, spared: Option<KeyHash>) -> Option<BanEntry> {
        if spared.is_some() && spared.map(KeyHash::whole) == self.live.first_key() {
            return None;
        }
        let lifted = self.live.pop_first();
        self.note();
        lifted.map(|(_, live)| live.ban)
    }

    /// Removes the bans and offences for which `unwanted` returns `true`. Their capacity stays taken.
    pub(super) fn remove(&mut self, unwanted: impl Fn(&BanRecord) -> bool) -> ExtractedBans {
        let live = self.live.extract(&unwanted);
        let past = self.past.extract(&unwanted);
        self.note();
        ExtractedBans {
            past: past.len(),
            live: live.into_iter().map(|live| live.ban).collect(),
        }
    }

    /// Returns the ban with this id that is in force at `now`, with the complete hash of its key. Reads all bans.
    pub(super) fn find(&self, id: BanId, now: Timestamp) -> Option<(u128, &BanRecord)> {
        let mut bans = self.live.entries();
        bans.find(|(_, live)| live.ban.ban_id == id && live.ban.until > now)
    }

    /// Returns the ban or the past offence of `key`.
    pub(super) fn record(&self, key: KeyHash) -> Option<&BanRecord> {
        let key = key.whole();
        self.live.get(key).or_else(|| self.past.get(key))
    }

    /// Removes the ban and the offence of `key`. Returns how many there were; their capacity stays taken.
    pub(super) fn remove_key(&mut self, key: KeyHash) -> usize {
        let removed = usize::from(self.live.remove(key)) + usize::from(self.past.remove(key));
        self.note();
        removed
    }

    /// Returns the number of bans of a rule that are in force at `now`. Reads all bans.
    pub(super) fn count_live(&self, id: RuleId, now: Timestamp) -> usize {
        let of_rule = |live: &&BanRecord| live.ban.id == id && live.ban.until > now;
        self.live.iter().filter(of_rule).count()
    }

    /// Adds the number of bans in force at `now` to the count of each rule. Reads all bans.
    pub(super) fn add_live(&self, now: Timestamp, counts: &mut HashMap<RuleId, usize>) {
        for live in self.live.iter().filter(|live| live.ban.until > now) {
            *counts.entry(live.ban.id).or_default() += 1;
        }
    }

    /// Returns the rules and the ids of the bans in force at `now`.
    pub(super) fn ids(&self, now: Timestamp) -> impl Iterator<Item = (RuleId, BanId)> {
        let live = self.live.iter().filter(move |live| live.ban.until > now);
        live.map(|live| (live.ban.id, live.ban.ban_id))
    }

    /// Returns the bans in force at `now`.
    pub(super) fn live(&self, now: Timestamp) -> impl Iterator<Item = BanEntry> {
        let live = self.live.iter().filter(move |live| live.ban.until > now);
        live.map(move |live| {
            let mut live = live.clone();
            live.begin_by(now);
            live.ban
        })
    }

    /// Returns the bans and offences that are valid at `now`.
    pub(super) fn saved(&self, now: Timestamp) -> impl Iterator<Item = SavedBan> {
        let all = [(&self.live, false), (&self.past, true)].into_iter();
        let all = all.flat_map(|(ends, past)| ends.entries().map(move |entry| (entry, past)));
        let meant = all.filter(move |((_, ban), _)| ban.counts || ban.ban.until > now);
        meant.map(|((hash, sentence), past)| SavedBan {
            hash,
            sentence: sentence.clone(),
            past,
        })
    }

    /// Returns whether `key` has a ban or a past offence.
    pub(super) fn has(&self, key: KeyHash) -> bool {
        let key = key.whole();
        self.live.get(key).is_some() || self.past.get(key).is_some()
    }

    /// Adds a record for a key that has none. Its capacity was taken before.
    pub(super) fn restore(&mut self, key: KeyHash, sentence: BanRecord, past: bool) {
        let (ends, happened) = if past {
            (&mut self.past, sentence.ban.until)
        } else {
            (&mut self.live, sentence.began)
        };
        self.newest = self.newest.max(happened);
        ends.insert(key.whole(), sentence);
        self.note();
    }

    /// Returns whether the clock was set back behind a record here.
    fn is_ahead(&self, now: Timestamp) -> bool {
        now.plus(SLACK) < self.newest
    }

    fn end_first(&mut self) {
        if let Some((key, sentence)) = self.live.pop_first()
            && sentence.counts
        {
            self.newest = self.newest.max(sentence.ban.until);
            self.past.insert(key, sentence);
        }
    }

    /// Updates `due`.
    fn note(&mut self) {
        let end = self.live.first_end();
        let forgotten = self.past.first_end().map(|end| end.plus(MEMORY));
        self.due = end.into_iter().chain(forgotten).min();
    }
}

// === impl BanRecord ===

impl BanRecord {
    /// Moves a ban that begins in the future to `now`, with its length unchanged.
    fn begin_by(&mut self, now: Timestamp) {
        if now.plus(SLACK) < self.began {
            let length = self.ban.until.since(self.began);
            self.began = now;
            self.ban.until = now.plus(length);
        }
    }

    /// Moves the end of a past ban that lies in the future to `now`.
    fn end_by(&mut self, now: Timestamp) {
        if now.plus(SLACK) < self.ban.until {
            self.ban.until = now;
        }
    }
}
