//! One shard's bans, live and past, with readable keys.
//!
//! They have room of their own, so that no flood of new keys can free a banned one. A ban that has
//! ended is dropped when the shard is next asked, and when room is needed. One of a rule that
//! escalates stays for another day as a past offence, in the same room: it makes room before any
//! live ban does.
//!
//! A ban knows when it began, so that it never lasts longer than its length from now, wherever the
//! clock is set.

use std::time::Duration;

use self::by_expiry::BansByExpiry;
use super::hash::KeyHash;
use super::saved::SavedBan;
use crate::clock::Timestamp;
use crate::store::BanEntry;

mod by_expiry;

#[cfg(test)]
mod tests;

/// How long after its end a ban of an escalating rule makes the next one a repetition.
const MEMORY: Duration = Duration::from_secs(24 * 60 * 60);

/// How far behind a ban's beginning the time may be before it means that the clock was set back.
/// Requests do not reach a shard in the order in which they read the clock.
const SLACK: Duration = Duration::from_secs(10);

/// Bans of one shard.
#[derive(Debug, Default)]
pub(super) struct ShardBans {
    live: BansByExpiry,
    past: BansByExpiry,
    /// When something here ends or is forgotten; `None`: nothing is here.
    due: Option<Timestamp>,
    /// The latest moment at which something here happened, or a later one.
    newest: Timestamp,
}

/// A ban, in force or past.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BanRecord {
    pub(super) ban: BanEntry,
    /// When it began.
    pub(super) began: Timestamp,
    /// Its rule escalates, so that it counts after its end.
    pub(super) counts: bool,
}

/// What was removed.
#[derive(Debug)]
pub(super) struct RemovedBans {
    pub(super) live: Vec<BanEntry>,
    /// How many past ones.
    pub(super) past: usize,
}

/// What stands first in line when room is needed, in nanoseconds; `u64::MAX`: nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NextExpiries {
    /// When the first live ban ends.
    pub(super) live: u64,
    /// When the first past one ended.
    pub(super) past: u64,
}

// === impl ShardBans ===

impl ShardBans {
    /// There are none, not even past ones.
    pub(super) fn is_empty(&self) -> bool {
        self.due.is_none()
    }

    /// When the ban of the key with this whole hash ends, if it has one. What has ended is out of
    /// it after [`ShardBans::catch_up`].
    pub(super) fn until(&self, key: u128) -> Option<Timestamp> {
        self.live.get(key).map(|live| live.ban.until)
    }

    /// How many offences of `key` are remembered, now that its last ban has ended.
    pub(super) fn past(&self, key: KeyHash) -> Option<u32> {
        self.past.get(key.whole()).map(|past| past.ban.offence)
    }

    /// Adds a ban for a key that has none. It takes the place of the key's past one, or one that
    /// was taken before.
    pub(super) fn add(&mut self, key: KeyHash, sentence: BanRecord) {
        self.past.remove(key);
        self.newest = self.newest.max(sentence.began);
        self.live.insert(key.whole(), sentence);
        self.note();
    }

    /// Whether [`ShardBans::catch_up`] has something to do.
    pub(super) fn is_behind(&self, now: Timestamp) -> bool {
        self.due.is_some_and(|due| now >= due) || self.is_ahead(now)
    }

    /// Moves bans back with the clock, ends those that have ended and forgets old offences. Says
    /// how many are gone; their places stay taken.
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

    /// What makes room first.
    pub(super) fn firsts(&self) -> NextExpiries {
        let nanos = |end: Option<Timestamp>| end.map_or(u64::MAX, Timestamp::as_nanos);
        NextExpiries {
            live: nanos(self.live.first_end()),
            past: nanos(self.past.first_end()),
        }
    }

    /// Forgets the offence that ended first; says whether there was one. Its place stays taken.
    pub(super) fn forget_first(&mut self) -> bool {
        let forgotten = self.past.pop_first().is_some();
        self.note();
        forgotten
    }

    /// Removes the live ban that ends first, unless it is that of `spared`; its place stays taken.
    pub(super) fn lift_first(&mut self, spared: Option<KeyHash>) -> Option<BanEntry> {
        if spared.is_some() && spared.map(KeyHash::whole) == self.live.first_key() {
            return None;
        }
        let lifted = self.live.pop_first();
        self.note();
        lifted.map(|(_, live)| live.ban)
    }

    /// Removes those, live and past, that `unwanted` names; their places stay taken.
    pub(super) fn remove(&mut self, unwanted: impl Fn(&BanEntry) -> bool) -> RemovedBans {
        let live = self.live.extract(|live| unwanted(&live.ban));
        let past = self.past.extract(|past| unwanted(&past.ban));
        self.note();
        RemovedBans {
            past: past.len(),
            live: live.into_iter().map(|live| live.ban).collect(),
        }
    }

    /// Those in force at `now`.
    pub(super) fn live(&self, now: Timestamp) -> impl Iterator<Item = BanEntry> {
        let live = self.live.iter().filter(move |live| live.ban.until > now);
        live.map(move |live| {
            let mut live = live.clone();
            live.begin_by(now);
            live.ban
        })
    }

    /// Those that mean something at `now`, live and past.
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

    /// Whether there is one of `key`, live or past.
    pub(super) fn has(&self, key: KeyHash) -> bool {
        let key = key.whole();
        self.live.get(key).is_some() || self.past.get(key).is_some()
    }

    /// Adds one for a key that has none. Its place was taken before.
    pub(super) fn restore(&mut self, key: KeyHash, sentence: BanRecord, past: bool) {
        let (ends, happened) = match past {
            true => (&mut self.past, sentence.ban.until),
            false => (&mut self.live, sentence.began),
        };
        self.newest = self.newest.max(happened);
        ends.insert(key.whole(), sentence);
        self.note();
    }

    /// The clock was set back behind something here.
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

    /// Notes when there is something to do next.
    fn note(&mut self) {
        let end = self.live.first_end();
        let forgotten = self.past.first_end().map(|end| end.plus(MEMORY));
        self.due = end.into_iter().chain(forgotten).min();
    }
}

// === impl BanRecord ===

impl BanRecord {
    /// Lets a ban that begins later than the clock says begin now, as long as it was.
    fn begin_by(&mut self, now: Timestamp) {
        if now.plus(SLACK) < self.began {
            let length = self.ban.until.since(self.began);
            self.began = now;
            self.ban.until = now.plus(length);
        }
    }

    /// Lets a past ban that ended later than the clock says have ended now.
    fn end_by(&mut self, now: Timestamp) {
        if now.plus(SLACK) < self.ban.until {
            self.ban.until = now;
        }
    }
}
