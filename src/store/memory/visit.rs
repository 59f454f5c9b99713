//! One step of a plan at its key's shard, under that shard's lock.

use std::mem;
use std::ops::DerefMut;
use std::time::Duration;

use super::bucket::{Entry, Kind};
use super::counter::Count;
use super::hash::{KeyHash, Tag};
use super::known::end;
use super::sync::yield_now;
use super::table::Spot;
use super::{Held, Memory, second};
use crate::clock::Timestamp;
use crate::limit::{Algorithm, Reading, Shape, State};
use crate::rules::plan::{Finding, Findings, Op, Plan, Standing, Step};

mod ban;
mod long;
mod places;

/// A step, its key and its moment.
#[derive(Clone, Copy)]
pub(super) struct Visit<'a> {
    pub(super) memory: &'a Memory,
    /// The step's place in the plan.
    pub(super) index: u16,
    pub(super) plan: &'a Plan,
    pub(super) step: &'a Step,
    /// What to do, which is less than the step says after the pass has ended.
    pub(super) op: Op,
    pub(super) tag: Tag,
    pub(super) now: Timestamp,
}

/// What is found, and what is at hand while it is.
pub(super) struct Notes<'a> {
    pub(super) findings: &'a mut Findings,
    /// A place for a ban that was taken before.
    reserved: bool,
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
    /// Carries the step out for the key with this hash; says whether that is within its limit.
    pub(super) fn run(&self, hash: KeyHash, notes: &mut Notes<'_>) -> bool {
        let within = self.try_run(hash, notes);
        within.unwrap_or_else(|| self.run_with_room(notes))
    }

    /// Carries the step out for a key that is not banned and whose shard is locked. Cold to the
    /// compiler, so that what is kept for it takes no register from what is tried before.
    #[cold]
    #[inline(never)]
    pub(super) fn run_locked(
        &self,
        mut held: impl DerefMut<Target = Held>,
        findings: &mut Findings,
    ) -> bool {
        let mut notes = Notes::new(findings);
        let within = self.attempt(&mut held, &mut notes);
        drop(held);
        within.unwrap_or_else(|| self.run_with_room(&mut notes))
    }

    /// Carries the step out after room for a ban was made. That is done while no lock is held,
    /// because the ban that ends first is often in another shard.
    #[cold]
    pub(super) fn run_with_room(&self, notes: &mut Notes<'_>) -> bool {
        loop {
            notes.reserved = self.make_room();
            if !notes.reserved {
                // All places are in the hands of other threads, for a moment.
                yield_now();
            }
            let within = self.try_run(self.hash(), notes);
            if mem::take(&mut notes.reserved) {
                self.memory.ban_room.give(1);
            }
            match within {
                Some(within) => return within,
                None if self.step.candidate => {
                    return notes.keep(self.found(Standing::Over));
                }
                None => {}
            }
        }
    }

    /// What is only tried lifts no ban and forgets no offence: with no room, it would act, and is
    /// not remembered.
    fn make_room(&self) -> bool {
        match self.step.candidate {
            true => self.memory.drop_ended(self.now),
            false => self.memory.free_ban(self.now, Some(self.hash())),
        }
    }

    /// The same, unless the key is banned.
    fn try_run(&self, hash: KeyHash, notes: &mut Notes<'_>) -> Option<bool> {
        let shard = self.memory.shard(self.tag);
        let mut held = shard.held.lock();
        if !held.bans.is_empty()
            && let Some(until) = self
                .memory
                .banned(shard, &mut held.bans, hash.whole(), self.now)
        {
            return Some(notes.keep(Finding::banned(self.index, until)));
        }
        self.attempt(&mut held, notes)
    }

    /// Carries the step out for a key that is not banned; says whether that is within its limit.
    /// `None`: a ban must start, but there is no room; nothing was changed. A place that was
    /// reserved is used first.
    #[inline(never)]
    pub(super) fn attempt(&self, held: &mut Held, notes: &mut Notes<'_>) -> Option<bool> {
        let limiter = &self.step.limiter;
        match limiter.shape() {
            _ if self.op == Op::Pass => Some(notes.keep(self.found(Standing::Within))),
            Shape::Words if limiter.algorithm == Algorithm::Concurrency => {
                self.count_places(held, notes)
            }
            Shape::Words => self.count_words(held, notes),
            Shape::Slices | Shape::Log => self.count_long(held, notes),
        }
    }

    /// Counts in the words of an entry.
    fn count_words(&self, held: &mut Held, notes: &mut Notes<'_>) -> Option<bool> {
        let spot = held.table.find(self.tag);
        let kept = |spot| held.table.state(spot, self.second());
        let mut state = spot.map_or_else(State::default, kept);
        let reading = self.operate(&mut state);
        if !reading.fits {
            let found = self.refuse(held, &mut notes.reserved, spot, state, reading)?;
            return Some(notes.keep(found));
        }
        if self.op.counts() {
            match spot {
                Some(spot) => held.table.update(spot, self.entry(state, &reading)),
                None => self.insert(held, state, &reading),
            }
        }
        Some(notes.keep(self.told(reading, self.op.counts())))
    }

    /// `state` is as the operation left it.
    fn refuse(
        &self,
        held: &mut Held,
        reserved: &mut bool,
        spot: Option<Spot>,
        mut state: State,
        reading: Reading,
    ) -> Option<Finding> {
        match self.fate(&mut state, &reading) {
            Fate::Ban => {
                let found = self.ban(held, reserved)?;
                held.clear_some(spot, self.memory);
                Some(found)
            }
            Fate::Charged(after) => {
                self.write(held, spot, state, &after);
                Some(self.told(reading, true))
            }
            Fate::Kept => {
                // The operation may have moved it to the time of a clock that was set back.
                if spot.is_some() {
                    self.write(held, spot, state, &reading);
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
        may && self.step.limiter.turn(reading).is_some_and(soon)
    }

    /// What does not fit bans the key.
    #[inline]
    fn may_ban(&self) -> bool {
        self.op.counts() && !self.step.ban.is_never()
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
    pub(super) fn found(&self, standing: Standing) -> Finding {
        Finding::bare(self.index, standing)
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
        held.table
            .allow(entry.expires.saturating_sub(self.second()));
        held.put(spot, entry, self.memory);
    }

    /// Writes a new entry, if there is something to write.
    #[inline(never)]
    fn insert(&self, held: &mut Held, state: State, after: &Reading) {
        if after.reset_nanos() > 0 {
            let entry = self.entry(state, after);
            held.table.allow(self.lifetime());
            held.table
                .allow(entry.expires.saturating_sub(self.second()));
            held.insert(self.tag, entry, self.second(), self.memory);
        }
    }

    fn entry(&self, state: State, after: &Reading) -> Entry {
        Entry {
            tag: self.tag.get(),
            expires: end(self.now, after.reset_nanos()),
            state,
            slot: self.step.id.slot,
            fill: self.step.limiter.level(after.remaining),
            kind: Kind::Words,
        }
    }

    /// All of the key's hash. That is made anew, since only a ban needs more than the tag.
    #[cold]
    fn hash(&self) -> KeyHash {
        self.memory.hash(self.plan, self.step)
    }

    /// The second that it is now.
    fn second(&self) -> u32 {
        second(self.now)
    }

    /// How many seconds an entry lasts at the most while nothing is charged past the limit.
    fn lifetime(&self) -> u32 {
        let limiter = &self.step.limiter;
        let periods = limiter.capacity().div_ceil(limiter.limit.max(1)) + 2;
        let periods = u32::try_from(periods).unwrap_or(u32::MAX);
        let longest = limiter.period.saturating_mul(periods).as_secs();
        u32::try_from(longest).unwrap_or(u32::MAX)
    }
}

// === impl Notes ===

impl<'a> Notes<'a> {
    /// Notes that go to `findings`.
    pub(super) fn new(findings: &'a mut Findings) -> Self {
        let reserved = false;
        Self { findings, reserved }
    }

    /// Adds a finding; says whether its key is within its limit.
    #[inline(always)]
    pub(super) fn keep(&mut self, found: Finding) -> bool {
        let within = found.standing == Standing::Within;
        self.findings.push(found);
        within
    }
}
