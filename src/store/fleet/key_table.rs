//! A bounded table of keys in async mode.
//!
//! At its capacity, a new key replaces one of the next entries in turn: an expired one, or else the one that is
//! furthest below its limit.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher};
use std::time::Duration;

use crate::clock::Timestamp;
use crate::limit::{CounterReading, Limiter};
use crate::rules::plan::BanLength;
use crate::store::async_mode::{FleetInfo, FleetView, KeyState, ReportTiming};
use crate::store::redis::{FleetKey, SyncReport};

/// The number of entries among which an eviction chooses.
const CANDIDATES: usize = 16;

/// How long a node keeps in mind that a key is exhausted for which it has no requests.
const NEWS_LIFETIME: Duration = Duration::from_secs(10);

/// The keys of one shard. The map has a keyed hash, so clients cannot choose keys that share a bucket.
#[derive(Debug)]
pub(super) struct KeyTable {
    index: HashMap<FleetKey, u32, KeyedHash>,
    entries: Vec<KeyEntry>,
    capacity: usize,
    /// The entry at which the next eviction starts.
    hand: usize,
    evicted: u64,
}

/// A keyed hash of a [`FleetKey`], whose bits come from a SHA-256: one multiplication with secret numbers.
#[derive(Clone, Copy, Debug)]
struct KeyedHash {
    secret: u64,
    factor: u64,
}

/// A hash of one key with the numbers of a [`KeyedHash`].
struct KeyHasher {
    numbers: KeyedHash,
    hash: u64,
}

/// A key in async mode.
#[derive(Debug)]
pub(super) struct KeyEntry {
    key: FleetKey,
    pub(super) state: KeyState,
    /// What the node has learned from events and has not used yet.
    pub(super) news: Option<Box<KeyNews>>,
    /// When the counter is empty, in seconds since the epoch.
    expires: u32,
    /// How full the counter is, from 0 to 255.
    fill: u8,
    /// The small number of the key's rule.
    pub(super) slot: u16,
    /// What the store needs to merge a report. `None` if the node has not counted for the key.
    pub(super) rule: Option<CountedRule>,
    /// In which queue the key is.
    pub(super) queued: ReportTiming,
}

/// The part of a rule that the store needs to merge a report.
#[derive(Clone, Debug)]
pub(super) struct CountedRule {
    /// The limiter of the whole fleet.
    pub(super) limiter: Limiter,
    pub(super) ban: BanLength,
}

/// What a node has learned of a key from events.
#[derive(Clone, Debug)]
pub(super) enum KeyNews {
    /// The fleet has used up the key's capacity.
    Exhausted(FleetView),
    /// The key is banned.
    Banned(BanNews),
}

/// A ban that the store has started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BanNews {
    pub(super) until: Timestamp,
    /// The ordinal of the offence, counted from 1.
    pub(super) offence: u32,
    /// Whether a report of this node has started the ban.
    pub(super) started: bool,
}

// === impl KeyTable ===

impl KeyTable {
    /// A table of at least one key.
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            index: HashMap::with_hasher(KeyedHash::random()),
            entries: Vec::new(),
            capacity: capacity.max(1),
            hand: 0,
            evicted: 0,
        }
    }

    /// The entry of a key. `None` if there is none.
    pub(super) fn get(&mut self, key: FleetKey) -> Option<&mut KeyEntry> {
        let index = *self.index.get(&key)?;
        self.entries.get_mut(index as usize)
    }

    /// The entry of a key; a new one if there is none.
    pub(super) fn get_or_insert(
        &mut self,
        key: FleetKey,
        now: Timestamp,
        new: impl FnOnce() -> KeyState,
    ) -> &mut KeyEntry {
        let index = match self.index.get(&key) {
            Some(index) => *index as usize,
            None => self.insert(KeyEntry::new(key, new()), now),
        };
        let entry = self.entries.get_mut(index);
        entry.expect("the index of a key is that of an entry")
    }

    /// The entries of all keys.
    pub(super) fn entries(&mut self) -> impl Iterator<Item = &mut KeyEntry> {
        self.entries.iter_mut()
    }

    /// Removes a key.
    pub(super) fn remove(&mut self, key: FleetKey) {
        let Some(index) = self.index.remove(&key) else {
            return;
        };
        self.entries.swap_remove(index as usize);
        if let Some(moved) = self.entries.get(index as usize) {
            self.index.insert(moved.key, index);
        }
    }

    /// Removes all keys of rules for which `is_removed` returns `true`.
    pub(super) fn remove_rules(&mut self, is_removed: impl Fn(u64) -> bool) {
        let keys = self.entries.iter().map(|entry| entry.key);
        let removed: Vec<_> = keys.filter(|key| is_removed(key.identity)).collect();
        for key in removed {
            self.remove(key);
        }
    }

    /// Forgets the bans that requests have not met yet.
    pub(super) fn forget_bans(&mut self) {
        for entry in &mut self.entries {
            if matches!(entry.news.as_deref(), Some(KeyNews::Banned(_))) {
                entry.news = None;
            }
        }
    }

    /// The small numbers of the rules of all keys that have counted something.
    pub(super) fn slots(&self, now: Timestamp) -> impl Iterator<Item = u16> {
        let is_live = move |entry: &&KeyEntry| !entry.has_expired(now);
        self.entries.iter().filter(is_live).map(|entry| entry.slot)
    }

    /// The number of evicted keys that had counted something.
    pub(super) fn evicted(&self) -> u64 {
        self.evicted
    }

    fn insert(&mut self, entry: KeyEntry, now: Timestamp) -> usize {
        let key = entry.key;
        let index = if self.entries.len() < self.capacity {
            self.entries.push(entry);
            self.entries.len() - 1
        } else {
            self.replace(entry, now)
        };
        self.index.insert(key, index as u32);
        index
    }

    /// Replaces an entry and returns its index.
    fn replace(&mut self, entry: KeyEntry, now: Timestamp) -> usize {
        let count = self.entries.len();
        let candidates = (self.hand..self.hand + CANDIDATES.min(count)).map(|at| at % count);
        let value = |index: &usize| self.entries.get(*index).map(|entry| entry.value(now));
        let least = candidates.min_by_key(value).unwrap_or(0);
        self.hand = (self.hand + CANDIDATES) % count;
        if let Some(replaced) = self.entries.get_mut(least) {
            self.evicted += u64::from(!replaced.has_expired(now));
            self.index.remove(&replaced.key);
            *replaced = entry;
        }
        least
    }
}

// === impl KeyedHash ===

impl KeyedHash {
    fn random() -> Self {
        Self {
            secret: getrandom::u64().unwrap_or_default(),
            factor: getrandom::u64().unwrap_or_default() | 1,
        }
    }
}

impl BuildHasher for KeyedHash {
    type Hasher = KeyHasher;

    fn build_hasher(&self) -> KeyHasher {
        KeyHasher {
            numbers: *self,
            hash: self.secret,
        }
    }
}

// === impl KeyHasher ===

impl Hasher for KeyHasher {
    fn write_u64(&mut self, word: u64) {
        let product = u128::from(self.hash ^ word) * u128::from(self.numbers.factor);
        self.hash = (product >> 64) as u64 ^ product as u64;
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes
            .iter()
            .for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn finish(&self) -> u64 {
        self.hash
    }
}

// === impl KeyEntry ===

impl KeyEntry {
    fn new(key: FleetKey, state: KeyState) -> Self {
        Self {
            key,
            state,
            news: None,
            expires: 0,
            fill: 0,
            slot: 0,
            rule: None,
            queued: ReportTiming::Later,
        }
    }

    /// Takes the report of the key. `None` if the node has not counted for it, or if its last report is in flight.
    pub(super) fn take_report(&mut self, now: Timestamp, fleet: &FleetInfo) -> Option<SyncReport> {
        let CountedRule { limiter, ban } = self.rule.clone()?;
        let report = self.state.take_report(&limiter, now, fleet)?;
        self.queued = ReportTiming::Later;
        Some(SyncReport {
            key: self.key,
            limiter,
            ban,
            report,
        })
    }

    /// Keeps the entry until its counter is empty, according to a reading at `now`.
    pub(super) fn touch(&mut self, limiter: &Limiter, now: Timestamp, reading: &CounterReading) {
        self.fill = limiter.level(reading.remaining);
        self.expire_at(now.plus(reading.reset_after()));
    }

    /// Notes that the key is exhausted, unless it is banned.
    pub(super) fn set_exhausted(&mut self, view: FleetView) {
        if !matches!(self.news.as_deref(), Some(KeyNews::Banned(_))) {
            self.expire_at(view.at.plus(NEWS_LIFETIME));
            self.news = Some(Box::new(KeyNews::Exhausted(view)));
        }
    }

    /// Notes that the key is banned.
    pub(super) fn set_ban(&mut self, mut ban: BanNews) {
        if let Some(KeyNews::Banned(earlier)) = self.news.as_deref() {
            ban.started |= earlier.started && earlier.until == ban.until;
        }
        self.expire_at(ban.until);
        self.news = Some(Box::new(KeyNews::Banned(ban)));
    }

    /// Keeps the entry until `end`, or longer.
    fn expire_at(&mut self, end: Timestamp) {
        let end = u32::try_from(end.as_secs().saturating_add(1)).unwrap_or(u32::MAX);
        self.expires = self.expires.max(end);
    }

    pub(super) fn has_expired(&self, now: Timestamp) -> bool {
        u64::from(self.expires) <= now.as_secs()
    }

    /// How much would be lost with the entry: nothing if it has expired; a ban is worth most.
    fn value(&self, now: Timestamp) -> u16 {
        if self.has_expired(now) {
            return 0;
        }
        let news = if self.news.is_some() { 256 } else { 0 };
        1 + u16::from(self.fill) + news
    }
}
