//! The store in this process: a bounded two-choice table and a side table of bans, in shards.
//!
//! The table is allocated once. It never grows, never stops the world and expires in place. A key
//! lives in one shard, counter and ban under one lock, so each step is atomic; no two locks are
//! ever held at once. Nothing here awaits.
//!
//! What is bounded, and what gives way:
//!
//! - Keys, by `max_keys` over all shards. A new key takes the place of an expired entry, else of
//!   the one furthest below its limit, of the two buckets that the key has (`table`).
//! - Logs and sub-windows, by `max_log_bytes` each: past it a key is counted in less (`long`).
//! - Bans and past offences, by a quarter of `max_keys`: offences give way first (`bans`).

use std::sync::atomic::Ordering;

use self::bans::{Bans, Firsts};
use self::bucket::PLACES;
use self::hash::{KeyHasher, Tag};
use self::held::Held;
use self::known::Ask;
use self::long::Budgets;
use self::room::Room;
use self::slots::{SHARED, Slots};
use self::sync::{AtomicU64, Mutex};
use super::{BanEntry, Bounds, Evictions};
use crate::clock::Timestamp;
use crate::limit::Algorithm;
use crate::rules::plan::{Findings, Plan, RuleId};

mod bans;
mod bucket;
mod counter;
mod hash;
mod held;
mod known;
mod long;
mod make_room;
mod pass;
mod room;
mod saved;
mod slots;
mod snapshot;
mod sync;
mod table;
mod visit;

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

pub use self::saved::Damage;

/// How many bytes of a banned key are kept for listings, so that long keys cannot fill the memory.
pub const SHOWN: usize = 256;

/// Counters and bans in this process.
#[derive(Debug)]
pub struct Memory {
    hasher: KeyHasher,
    shards: Box<[Shard]>,
    counter_room: Room,
    ban_room: Room,
    budgets: Budgets,
    slots: Mutex<Slots>,
    counters_evicted: AtomicU64,
    bans_evicted: AtomicU64,
}

/// A part of the keys, on cache lines of its own.
#[derive(Debug)]
#[repr(align(64))]
struct Shard {
    /// See [`Firsts::live`].
    first_live: AtomicU64,
    /// See [`Firsts::past`].
    first_past: AtomicU64,
    held: Mutex<Held>,
}

// === impl Memory ===

impl Memory {
    /// A store for at least one key, and a quarter as many bans.
    pub fn new(bounds: Bounds) -> Self {
        let max_keys = bounds.max_keys.max(1);
        // One place in five stays free, so that two full buckets are rare before `max_keys` is
        // reached.
        let buckets = (max_keys + max_keys / 4).div_ceil(PLACES);
        let shards = (max_keys / 1024).next_power_of_two().min(256);
        Self {
            hasher: KeyHasher::random(),
            shards: (0..shards)
                .map(|_| Shard::new(buckets.div_ceil(shards)))
                .collect(),
            counter_room: Room::of(max_keys),
            ban_room: Room::of((max_keys / 4).max(1)),
            budgets: Budgets::of(bounds.max_log_bytes),
            slots: Mutex::default(),
            counters_evicted: AtomicU64::new(0),
            bans_evicted: AtomicU64::new(0),
        }
    }

    /// See [`super::Store::keyed`].
    pub fn set_secret(&mut self, secret: &[u8]) {
        self.hasher = KeyHasher::derived(secret);
    }

    /// See [`super::Store::apply`].
    #[inline]
    pub fn apply(&self, plan: &Plan, now: Timestamp) -> Findings {
        let mut findings = Findings::new();
        self.carry_out(plan, now, &mut findings);
        findings
    }

    /// See [`super::Store::release`].
    pub fn release(&self, plan: &Plan, findings: &Findings) {
        for finding in findings.iter().filter(|finding| finding.charged) {
            if let Some(step) = plan.steps.get(usize::from(finding.step))
                && step.limiter.algorithm == Algorithm::Concurrency
            {
                let ask = Ask {
                    index: finding.step,
                    step,
                    now: Timestamp::default(),
                };
                let tag = self.hash(plan, step).tag;
                self.visit(tag, plan, ask, step.op).give_back();
            }
        }
    }

    /// See [`super::Store::register`].
    pub fn register(&self, identity: u64, name: &str) -> RuleId {
        self.slots.lock().register(identity, name)
    }

    /// See [`super::Store::retire`].
    pub fn retire(&self, keep: &[u64], now: Timestamp) -> Vec<(String, usize)> {
        let gone = self.slots.lock().retire(keep);
        if gone.is_empty() {
            return Vec::new();
        }
        // `gone` is in slot order.
        let find = |slot| gone.binary_search_by_key(&slot, |rule| rule.id.slot);
        let mut ended: Vec<_> = gone.iter().map(|rule| (rule.id, 0)).collect();
        for shard in &self.shards {
            let mut held = shard.held.lock();
            let unwanted = |slot| slot != SHARED && find(slot).is_ok();
            held.clear_all(|entry| unwanted(entry.slot), self);
            let unwanted = |id| gone.iter().any(|rule| rule.id == id);
            let removed = held.bans.remove(|ban| unwanted(ban.id));
            shard.publish(&held.bans);
            drop(held);
            self.ban_room.give(removed.live.len() + removed.past);
            for ban in removed.live.iter().filter(|ban| ban.until > now) {
                let rule = ended.iter_mut().find(|(id, _)| *id == ban.id);
                rule.into_iter().for_each(|(_, count)| *count += 1);
            }
        }
        let counts = ended.into_iter().map(|(_, count)| count);
        gone.into_iter().map(|rule| rule.name).zip(counts).collect()
    }

    /// See [`super::Store::keys`].
    pub fn keys(&self, now: Timestamp) -> Vec<(u16, usize)> {
        let slots = self.slots.lock().in_use();
        let mut counts = vec![0; slots.last().map_or(0, |last| usize::from(*last) + 1)];
        for shard in &self.shards {
            for slot in shard.held.lock().table.live_slots(second(now)) {
                if let Some(count) = counts.get_mut(usize::from(slot)) {
                    *count += 1;
                }
            }
        }
        let count = |slot: u16| counts.get(usize::from(slot)).copied().unwrap_or_default();
        slots.into_iter().map(|slot| (slot, count(slot))).collect()
    }

    /// See [`super::Store::evictions`].
    pub fn evictions(&self) -> Evictions {
        Evictions {
            counters: self.counters_evicted.load(Ordering::Relaxed),
            bans: self.bans_evicted.load(Ordering::Relaxed),
        }
    }

    /// See [`super::Store::bans`].
    pub fn bans(&self, now: Timestamp) -> Vec<BanEntry> {
        let mut bans = Vec::new();
        for shard in &self.shards {
            bans.extend(shard.held.lock().bans.live(now));
        }
        bans.sort_by_key(|ban| ban.until);
        bans
    }

    /// When the ban of a key with this whole hash ends, if it has one.
    #[inline(never)]
    fn banned(
        &self,
        shard: &Shard,
        bans: &mut Bans,
        key: u128,
        now: Timestamp,
    ) -> Option<Timestamp> {
        if bans.is_behind(now) {
            self.ban_room.give(bans.catch_up(now));
            shard.publish(bans);
        }
        bans.until(key)
    }

    fn shard(&self, key: Tag) -> &Shard {
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
            held: Mutex::new(Held::new(buckets)),
        }
    }

    /// Tells other shards what makes room first here. The caller holds the lock.
    fn publish(&self, bans: &Bans) {
        let Firsts { live, past } = bans.firsts();
        self.first_live.store(live, Ordering::Relaxed);
        self.first_past.store(past, Ordering::Relaxed);
    }
}

/// The second that `now` lies in.
fn second(now: Timestamp) -> u32 {
    u32::try_from(now.as_secs()).unwrap_or(u32::MAX)
}
