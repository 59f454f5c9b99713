//! Starts bans, and frees capacity for them over all shards.
//!
//! Capacity is freed while no lock is held, since the ban that ends first is often in another shard.

use std::mem;
use std::sync::atomic::Ordering;

use super::bans::BanRecord;
use super::hash::KeyHash;
use super::shard_data::ShardData;
use super::step_run::{NoBanCapacity, StepRun};
use super::sync::yield_now;
use super::table::EntrySlot;
use super::{MemoryStore, Shard, shown};
use crate::clock::Timestamp;
use crate::limit::{CounterReading, CounterShape};
use crate::rules::BanId;
use crate::rules::plan::{BanLength, KeyStatus, StepResult};
use crate::store::{BanAuthor, BanEntry};

impl MemoryStore {
    /// Frees capacity for a ban and leaves it taken, for the caller. Evicts ended bans first, then the past
    /// offence that ended first, then the ban that ends first, unless it is that of `key`, which another thread
    /// has banned in the meantime. Returns `false` if other threads are about to use all of the capacity.
    pub(super) fn free_ban(&self, now: Timestamp, key: Option<KeyHash>) -> bool {
        self.drop_ended(now) || self.forget_offence() || self.lift_ban(now, key)
    }

    /// Drops the ended bans of one shard and leaves one slot taken, for the caller. Returns whether there were
    /// any.
    pub(super) fn drop_ended(&self, now: Timestamp) -> bool {
        let ended = |shard: &&Shard| shard.first_live.load(Ordering::Relaxed) <= now.as_nanos();
        self.shards.iter().filter(ended).any(|shard| {
            let mut held = shard.held.lock();
            let gone = held.bans.catch_up(now);
            shard.publish(&held.bans);
            drop(held);
            self.ban_room.give(gone.saturating_sub(1));
            gone > 0
        })
    }

    fn forget_offence(&self) -> bool {
        let first = |shard: &&Shard| shard.first_past.load(Ordering::Relaxed);
        while let Some(shard) = self.shards.iter().min_by_key(first)
            && first(&shard) != u64::MAX
        {
            let mut held = shard.held.lock();
            let forgotten = held.bans.forget_first();
            shard.publish(&held.bans);
            if forgotten {
                return true;
            }
        }
        false
    }

    fn lift_ban(&self, now: Timestamp, key: Option<KeyHash>) -> bool {
        let first = |shard: &&Shard| shard.first_live.load(Ordering::Relaxed);
        let shard = self.shards.iter().min_by_key(first);
        let lifted = shard.and_then(|shard| {
            let mut held = shard.held.lock();
            let lifted = held.bans.lift_first(key);
            shard.publish(&held.bans);
            lifted
        });
        if lifted.as_ref().is_some_and(|ban| ban.until > now) {
            self.bans_evicted.fetch_add(1, Ordering::Relaxed);
        }
        lifted.is_some()
    }
}

impl StepRun<'_> {
    /// Runs the step after freeing capacity for a ban, while no lock is held: the ban that ends first is often
    /// in another shard.
    #[cold]
    pub(super) fn execute_after_eviction(&self) -> StepResult {
        loop {
            let mut reserved = self.reserve_ban();
            if !reserved {
                // Other threads hold all of the capacity at the moment.
                yield_now();
            }
            let done = self.try_execute(&mut reserved);
            if mem::take(&mut reserved) {
                self.memory.ban_room.give(1);
            }
            match done {
                Ok(done) => return done,
                Err(NoBanCapacity) if self.step.candidate => {
                    return self.without_counter(KeyStatus::Over);
                }
                Err(NoBanCapacity) => {}
            }
        }
    }

    /// Takes capacity for a ban. A candidate evicts no ban or offence; without capacity it leaves no record.
    fn reserve_ban(&self) -> bool {
        if self.step.candidate {
            self.memory.drop_ended(self.now)
        } else {
            self.memory.free_ban(self.now, Some(self.hash()))
        }
    }

    /// Bans the key, which is not banned, and clears its counter. Leases stay: their requests are in flight.
    #[cold]
    pub(super) fn ban(
        &self,
        data: &mut ShardData,
        spot: Option<EntrySlot>,
        reserved: &mut bool,
    ) -> Result<StepResult, NoBanCapacity> {
        let hash = self.hash();
        let past = data.bans.past(hash);
        if past.is_none() && !mem::take(reserved) && !self.memory.ban_room.take() {
            return Err(NoBanCapacity);
        }
        let sentence = self.ban_record(past.unwrap_or_default());
        let until = sentence.ban.until;
        data.bans.add(hash, sentence);
        self.memory.shard(hash.tag).publish(&data.bans);
        if self.step.limiter.shape() != CounterShape::Leases {
            data.clear_some(spot, self.memory);
        }
        let (started, length) = (true, until.since(self.now));
        Ok(StepResult {
            reading: Some(CounterReading::refusing(0, length, Some(length))),
            ..self.without_counter(KeyStatus::Banned { until, started })
        })
    }

    fn ban_record(&self, past: u32) -> BanRecord {
        let key = self.plan.key(self.step);
        let counts = matches!(self.step.ban, BanLength::Escalating(_));
        let before = if counts { past } else { 0 };
        let ban = BanEntry {
            id: self.step.id,
            ban_id: BanId::of(self.step.id, key),
            key: shown(key),
            until: self.now.plus(self.step.ban.length(before)),
            offence: before.saturating_add(1),
            since: self.now,
            by: BanAuthor::Rule,
            is_shared: false,
        };
        BanRecord {
            ban,
            began: self.now,
            counts,
        }
    }
}
