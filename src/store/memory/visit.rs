//! One step of a plan at its key's shard, under that shard's lock.

use std::time::Duration;

use super::bucket::{Entry, Kind};
use super::counter::Count;
use super::hash::KeyHash;
use super::sync::yield_now;
use super::table::Spot;
use super::{Held, Memory, Shard};
use crate::clock::Timestamp;
use crate::limit::{Algorithm, Reading, Shape, State};
use crate::rules::plan::{Finding, Op, Standing, Step};

mod ban;
mod long;
mod places;

/// A step, its key and its moment.
#[derive(Clone, Copy)]
pub(super) struct Visit<'a> {
    pub(super) memory: &'a Memory,
    /// The step's place in the plan.
    pub(super) index: u16,
    pub(super) step: &'a Step,
    /// What to do, which is less than the step says after the pass has ended.
    pub(super) op: Op,
    pub(super) key: &'a [u8],
    pub(super) hash: KeyHash,
    pub(super) now: Timestamp,
    /// The second that `now` lies in.
    pub(super) second: u32,
}

/// The key's shard, locked.
struct Site<'a> {
    shard: &'a Shard,
    held: &'a mut Held,
    /// A place for a ban that was taken before.
    reserved: &'a mut bool,
}

/// What follows from a reading.
enum Fate {
    /// The key is banned.
    Ban,
    /// The cost was charged; how the counter stands now.
    Charged(Reading),
    /// Nothing was taken.
    Kept,
}

// === impl Visit ===

impl Visit<'_> {
    /// Carries the step out.
    #[inline]
    pub(super) fn run(&self) -> Finding {
        let found = self.attempt(&mut false);
        found.unwrap_or_else(|| self.run_with_room())
    }

    /// Carries the step out after room for a ban was made. That is done while no lock is held,
    /// because the ban that ends first is often in another shard.
    #[cold]
    fn run_with_room(&self) -> Finding {
        loop {
            let mut reserved = self.make_room();
            if !reserved {
                // All places are in the hands of other threads, for a moment.
                yield_now();
            }
            let found = self.attempt(&mut reserved);
            if reserved {
                self.memory.ban_room.give(1);
            }
            match found {
                Some(found) => return found,
                None if self.step.candidate => return self.found(Standing::Over),
                None => {}
            }
        }
    }

    /// What is only tried lifts no ban and forgets no offence: with no room, it would act, and is
    /// not remembered.
    fn make_room(&self) -> bool {
        match self.step.candidate {
            true => self.memory.drop_ended(self.now),
            false => self.memory.free_ban(self.now, Some(self.hash)),
        }
    }

    /// `None`: a ban must start, but there is no room; nothing was changed. A place that was
    /// `reserved` is used first.
    fn attempt(&self, reserved: &mut bool) -> Option<Finding> {
        let shard = self.memory.shard(self.hash);
        let site = &mut Site {
            shard,
            held: &mut shard.held.lock(),
            reserved,
        };
        if let Some(until) = self.banned(site) {
            let started = false;
            return Some(self.found(Standing::Banned { until, started }));
        }
        if self.op == Op::Pass {
            return Some(self.found(Standing::Within));
        }
        let limiter = &self.step.limiter;
        match limiter.shape() {
            Shape::Words if limiter.algorithm == Algorithm::Concurrency => self.count_places(site),
            Shape::Words => self.count(site),
            Shape::Slices | Shape::Log => self.count_long(site),
        }
    }

    #[inline]
    fn banned(&self, site: &mut Site<'_>) -> Option<Timestamp> {
        let bans = &mut site.held.bans;
        if bans.is_empty() {
            return None;
        }
        if bans.is_behind(self.now) {
            self.memory.ban_room.give(bans.catch_up(self.now));
            site.shard.publish(bans);
        }
        bans.until(self.hash)
    }

    #[inline]
    fn count(&self, site: &mut Site<'_>) -> Option<Finding> {
        let held = &mut *site.held;
        let spot = held.table.find(self.hash);
        let kept = |spot| held.table.state(spot, self.second);
        let mut state = spot.map_or_else(State::default, kept);
        let reading = self.operate(&mut state);
        if !reading.fits {
            return self.refuse(site, spot, state, reading);
        }
        if self.counts() {
            match spot {
                Some(spot) => held.table.update(spot, self.entry(state, &reading)),
                None => self.insert(held, state, &reading),
            }
        }
        Some(self.told(reading, self.counts()))
    }

    /// `state` is as the operation left it.
    #[inline(never)]
    fn refuse(
        &self,
        site: &mut Site<'_>,
        spot: Option<Spot>,
        mut state: State,
        reading: Reading,
    ) -> Option<Finding> {
        match self.fate(&mut state, &reading) {
            Fate::Ban => {
                let found = self.ban(site)?;
                site.held.clear_some(spot, self.memory);
                Some(found)
            }
            Fate::Charged(after) => {
                self.write(site.held, spot, state, &after);
                Some(self.told(reading, true))
            }
            Fate::Kept => {
                // The operation may have moved it to the time of a clock that was set back.
                if spot.is_some() {
                    self.write(site.held, spot, state, &reading);
                }
                Some(self.told(reading, false))
            }
        }
    }

    #[inline]
    fn operate(&self, counter: &mut impl Count) -> Reading {
        let (limiter, cost) = (&self.step.limiter, self.step.cost);
        match self.op {
            Op::Admit => counter.admit(limiter, self.now, cost),
            Op::Charge => counter.charge(limiter, self.now, cost),
            Op::Peek | Op::Pass | Op::Always => counter.peek(limiter, self.now, cost),
        }
    }

    /// What follows from `reading`, which [`Visit::operate`] gave.
    fn fate(&self, counter: &mut impl Count, reading: &Reading) -> Fate {
        if self.may_ban() && !reading.fits {
            return Fate::Ban;
        }
        if self.op == Op::Charge || (self.op == Op::Admit && reading.fits) {
            return Fate::Charged(*reading);
        }
        if self.waits(reading) {
            let (limiter, cost) = (&self.step.limiter, self.step.cost);
            return Fate::Charged(counter.charge(limiter, self.now, cost));
        }
        Fate::Kept
    }

    /// Does not fit, but is charged all the same because it will wait.
    fn waits(&self, reading: &Reading) -> bool {
        let patience = self.step.patience;
        let soon = |wait: Duration| wait <= patience;
        let may = self.op == Op::Admit && !patience.is_zero();
        may && reading.retry_after.is_some_and(soon)
    }

    /// What does not fit bans the key.
    #[inline]
    fn may_ban(&self) -> bool {
        self.counts() && !self.step.ban.is_never()
    }

    /// What fits is charged.
    #[inline]
    fn counts(&self) -> bool {
        matches!(self.op, Op::Admit | Op::Charge)
    }

    #[inline]
    fn told(&self, reading: Reading, charged: bool) -> Finding {
        Finding {
            reading: Some(reading),
            charged,
            ..self.found(self.standing(&reading))
        }
    }

    /// What is found without a look at a counter.
    #[inline]
    pub(super) fn found(&self, standing: Standing) -> Finding {
        Finding {
            step: self.index,
            standing,
            reading: None,
            charged: false,
        }
    }

    /// A key with a ban rule is only acted on while it is banned; that it is full matters to
    /// those who count it.
    #[inline]
    fn standing(&self, reading: &Reading) -> Standing {
        let matters = || self.step.ban.is_never() || self.step.op != Op::Peek;
        if reading.fits || !matters() {
            Standing::Within
        } else {
            Standing::Over
        }
    }

    fn write(&self, held: &mut Held, spot: Option<Spot>, state: State, after: &Reading) {
        let Some(spot) = spot else {
            return self.insert(held, state, after);
        };
        let entry = self.entry(state, after);
        held.table.allow(entry.expires.saturating_sub(self.second));
        held.put(spot, entry, self.memory);
    }

    /// Writes a new entry, if there is something to write.
    #[inline(never)]
    fn insert(&self, held: &mut Held, state: State, after: &Reading) {
        if !after.reset_after.is_zero() {
            let entry = self.entry(state, after);
            held.table.allow(self.lifetime());
            held.table.allow(entry.expires.saturating_sub(self.second));
            held.insert(self.hash, entry, self.second, self.memory);
        }
    }

    #[inline]
    fn entry(&self, state: State, after: &Reading) -> Entry {
        Entry {
            tag: self.hash.tag,
            expires: self.end(after.reset_after),
            state,
            slot: self.step.id.slot,
            fill: self.fill(after),
            kind: Kind::Words,
        }
    }

    /// How many seconds an entry lasts at the most while nothing is charged past the limit.
    fn lifetime(&self) -> u32 {
        let limiter = &self.step.limiter;
        let periods = limiter.capacity().div_ceil(limiter.limit.max(1)) + 2;
        let periods = u32::try_from(periods).unwrap_or(u32::MAX);
        let longest = limiter.period.saturating_mul(periods).as_secs();
        u32::try_from(longest).unwrap_or(u32::MAX)
    }

    #[inline]
    fn fill(&self, after: &Reading) -> u8 {
        self.step.limiter.level(after.remaining)
    }

    /// The first second that does not begin before `wait` has passed.
    #[inline]
    fn end(&self, wait: Duration) -> u32 {
        let begun = self.now.as_nanos() - u64::from(self.second) * 1_000_000_000;
        let nanos = begun + u64::from(wait.subsec_nanos());
        let started = u64::from(nanos > 0) + u64::from(nanos > 1_000_000_000);
        let secs = (u64::from(self.second) + started).saturating_add(wait.as_secs());
        u32::try_from(secs).unwrap_or(u32::MAX)
    }
}
