//! One step of a plan at its key's shard, under that shard's lock.

use std::mem;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::bucket::Entry;
use super::hash::KeyHash;
use super::table::Spot;
use super::{Found, Held, Memory, SHOWN, Shard, second};
use crate::clock::Timestamp;
use crate::limit::{Reading, State};
use crate::rules::plan::{Op, Standing, Step};
use crate::store::BanEntry;

/// A step, its key and its moment.
pub(super) struct Visit<'a> {
    pub(super) memory: &'a Memory,
    pub(super) step: &'a Step,
    /// What to do, which is less than the step says after the pass has ended.
    pub(super) op: Op,
    pub(super) key: &'a [u8],
    pub(super) hash: KeyHash,
    pub(super) now: Timestamp,
}

// === impl Visit ===

impl Visit<'_> {
    /// Carries the step out.
    pub(super) fn run(&self) -> Found {
        let found = self.attempt(&mut false);
        found.unwrap_or_else(|| self.run_with_room())
    }

    /// Carries the step out after room for a ban was made. That is done while no lock is held,
    /// because the ban that ends first is often in another shard.
    #[cold]
    fn run_with_room(&self) -> Found {
        loop {
            let mut reserved = self.memory.free_ban(self.now);
            if !reserved {
                // All places are in the hands of other threads, for a moment.
                std::thread::yield_now();
            }
            let found = self.attempt(&mut reserved);
            if reserved {
                self.memory.ban_room.give(1);
            }
            if let Some(found) = found {
                return found;
            }
        }
    }

    /// `None`: a ban must start, but there is no room; nothing was changed. A place that was
    /// `reserved` is used first.
    fn attempt(&self, reserved: &mut bool) -> Option<Found> {
        let shard = self.memory.shard(self.hash);
        let held = &mut *shard.held.lock();
        if let Some(until) = self.banned(shard, held) {
            let started = false;
            return Some((Standing::Banned { until, started }, None));
        }
        if self.op == Op::Pass {
            return Some((Standing::Within, None));
        }
        let second = second(self.now);
        let spot = held.table.find(self.hash);
        let mut state = spot.map_or_else(State::default, |spot| held.table.state(spot, second));
        let reading = self.operate(&mut state);
        if self.starts_ban(reading) {
            return self.ban(shard, held, spot, reserved);
        }
        if self.op == Op::Charge || (self.op == Op::Admit && reading.fits) {
            self.write(held, spot, state, reading);
        }
        Some((self.standing(reading), Some(reading)))
    }

    fn banned(&self, shard: &Shard, held: &mut Held) -> Option<Timestamp> {
        if held.bans.is_empty() {
            return None;
        }
        let ended = held.bans.remove_ended(self.now);
        if ended > 0 {
            self.memory.ban_room.give(ended);
            shard.publish(&held.bans);
        }
        held.bans.until(self.hash)
    }

    fn operate(&self, state: &mut State) -> Reading {
        let (limiter, cost) = (&self.step.limiter, self.step.cost);
        match self.op {
            Op::Admit => limiter.admit(state, self.now, cost),
            Op::Charge => limiter.charge(state, self.now, cost),
            Op::Peek | Op::Pass | Op::Always => limiter.peek(state, self.now, cost),
        }
    }

    fn starts_ban(&self, reading: Reading) -> bool {
        let counted = matches!(self.op, Op::Admit | Op::Charge);
        counted && !reading.fits && !self.step.ban.is_never()
    }

    /// A key with a ban rule is only acted on while it is banned; that it is full matters to
    /// those who count it.
    fn standing(&self, reading: Reading) -> Standing {
        let counts = self.step.ban.is_never() || self.step.op != Op::Peek;
        if reading.fits || !counts {
            Standing::Within
        } else {
            Standing::Over
        }
    }

    #[cold]
    fn ban(
        &self,
        shard: &Shard,
        held: &mut Held,
        spot: Option<Spot>,
        reserved: &mut bool,
    ) -> Option<Found> {
        if !mem::take(reserved) && !self.memory.ban_room.take() {
            return None;
        }
        if let Some(spot) = spot {
            held.table.clear(spot, &self.memory.counter_room);
        }
        let length = self.step.ban.length(0);
        let until = self.now.plus(length);
        let ban = BanEntry {
            id: self.step.id,
            key: self.key.get(..SHOWN).unwrap_or(self.key).into(),
            until,
            offence: 1,
        };
        held.bans.add(self.hash, ban);
        shard.publish(&held.bans);
        let started = true;
        let reading = Reading {
            fits: false,
            remaining: 0,
            reset_after: length,
            retry_after: Some(length),
            wait: Duration::ZERO,
        };
        Some((Standing::Banned { until, started }, Some(reading)))
    }

    fn write(&self, held: &mut Held, spot: Option<Spot>, state: State, reading: Reading) {
        let expires = self.now.plus(reading.reset_after);
        let entry = Entry {
            tag: self.hash.tag,
            expires: next_second(expires),
            state,
            slot: self.step.id.slot,
            fill: self.step.limiter.level(reading.remaining),
        };
        if let Some(spot) = spot {
            held.table.put(spot, entry);
        } else if !reading.reset_after.is_zero() {
            self.insert(held, entry);
        }
    }

    #[inline(never)]
    fn insert(&self, held: &mut Held, entry: Entry) {
        let room = &self.memory.counter_room;
        if held.table.insert(self.hash, entry, second(self.now), room) {
            let evicted = &self.memory.counters_evicted;
            evicted.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The first second that does not begin before `time`.
fn next_second(time: Timestamp) -> u32 {
    u32::try_from(time.as_nanos().div_ceil(1_000_000_000)).unwrap_or(u32::MAX)
}
