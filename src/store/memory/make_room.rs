//! Room for one more ban, taken from all shards.
//!
//! No lock is held when this begins, since what makes room is often in another shard.

use std::sync::atomic::Ordering;

use super::hash::KeyHash;
use super::{Memory, Shard};
use crate::clock::Timestamp;

impl Memory {
    /// Makes room for a ban and leaves the place taken, for the caller: what has ended goes first,
    /// then the past offence that ended first, then the ban that ends first, unless it is that of
    /// `key`, which another thread has banned meanwhile. There may be none when others are about
    /// to use all places.
    pub(super) fn free_ban(&self, now: Timestamp, key: Option<KeyHash>) -> bool {
        self.drop_ended(now) || self.forget_offence() || self.lift_ban(now, key)
    }

    /// Drops the bans of a shard that have ended and leaves a place taken, for the caller; says
    /// whether there were any.
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
