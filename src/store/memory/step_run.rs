//! Runs one step of a plan on its key's counter and ban, under the lock of the key's shard.

use std::ops::DerefMut;
use std::time::Duration;

use super::bucket::{EntryKind, TableEntry};
use super::hash::{KeyHash, KeyTag};
use super::shard_data::ShardData;
use super::table::EntrySlot;
use super::{MemoryStore, second};
use crate::clock::Timestamp;
use crate::limit::{Counter, CounterReading, CounterShape, State};
use crate::rules::plan::{KeyStatus, Plan, PlanResult, Step, StepOp, StepResult};

/// One step of a plan, its key and its time.
#[derive(Clone, Copy)]
pub(super) struct StepRun<'a> {
    pub(super) memory: &'a MemoryStore,
    pub(super) plan: &'a Plan,
    /// The step's index in the plan.
    pub(super) index: u16,
    pub(super) step: &'a Step,
    /// The operation. After evaluation has ended it is weaker than the step's own.
    pub(super) op: StepOp,
    pub(super) now: Timestamp,
}

/// The outcome of an operation on a counter.
enum StepOutcome {
    /// The key must be banned.
    Ban,
    /// The cost was charged; the reading is from after the charge.
    Charged(CounterReading),
    /// Nothing was charged.
    Unchanged,
}

/// The step must start a ban, but there is no capacity for it. Nothing was changed.
pub(super) struct NoBanCapacity;

// === impl StepRun ===

impl StepRun<'_> {
    /// Runs the step; returns whether its key is within its limit.
    #[inline(never)]
    pub(super) fn execute(&self, result: &mut PlanResult) -> bool {
        self.push(result, self.alone())
    }

    /// Runs the step and returns its result.
    pub(super) fn alone(&self) -> StepResult {
        if self.op == StepOp::Always {
            return self.without_counter(KeyStatus::Over);
        }
        let done = self.try_execute(&mut false);
        done.unwrap_or_else(|NoBanCapacity| self.execute_after_eviction())
    }

    /// Runs the step for a key that is not banned, with its shard locked. Marked cold, so that
    /// [`MemoryStore::count_words`] keeps its registers.
    #[cold]
    #[inline(never)]
    pub(super) fn execute_locked(
        &self,
        tag: KeyTag,
        mut data: impl DerefMut<Target = ShardData>,
        result: &mut PlanResult,
    ) -> bool {
        let done = self.attempt(tag, &mut data, &mut false);
        drop(data);
        let done = done.unwrap_or_else(|NoBanCapacity| self.execute_after_eviction());
        self.push(result, done)
    }

    pub(super) fn try_execute(&self, reserved: &mut bool) -> Result<StepResult, NoBanCapacity> {
        let hash = self.hash();
        let shard = self.memory.shard(hash.tag);
        let mut data = shard.held.lock();
        if !data.bans.is_empty()
            && let Some(until) = (self.memory).banned(shard, &mut data.bans, hash.whole(), self.now)
        {
            return Ok(StepResult::banned(self.index, until));
        }
        self.attempt(hash.tag, &mut data, reserved)
    }

    /// Runs the step for a key that is not banned. `reserved` is whether capacity for a ban is already taken.
    #[inline(never)]
    fn attempt(
        &self,
        tag: KeyTag,
        data: &mut ShardData,
        reserved: &mut bool,
    ) -> Result<StepResult, NoBanCapacity> {
        if self.op == StepOp::CheckBan {
            return Ok(self.without_counter(KeyStatus::Within));
        }
        let spot = data.table.find(tag);
        let entry = spot.map_or_else(TableEntry::default, |spot| data.table.entry(spot));
        let is_live = entry.expires > second(self.now);
        if self.step.limiter.shape() == CounterShape::Words {
            let state = if is_live {
                entry.state
            } else {
                State::default()
            };
            return self.attempt_words(tag, data, (spot, state), reserved);
        }
        match spot.zip(entry.handle()).filter(|_| is_live) {
            Some(large) => self.attempt_large(data, large, reserved),
            None if is_live => self.attempt_words(tag, data, (spot, entry.state), reserved),
            None => {
                if self.op != StepOp::Peek {
                    data.clear_some(spot, self.memory);
                }
                self.attempt_new(tag, data, reserved)
            }
        }
    }

    /// Counts in the words of an existing or a new entry.
    fn attempt_words(
        &self,
        tag: KeyTag,
        data: &mut ShardData,
        (spot, state): (Option<EntrySlot>, State),
        reserved: &mut bool,
    ) -> Result<StepResult, NoBanCapacity> {
        let mut counter = Counter::Words(state);
        let reading = self.operate(&mut counter);
        let (after, charged) = match self.outcome(&mut counter, &reading) {
            StepOutcome::Ban => return self.ban(data, spot, reserved),
            StepOutcome::Charged(after) => (after, true),
            StepOutcome::Unchanged => (reading, false),
        };
        // Write even if nothing was charged: the operation may have moved the state back to a clock that was set
        // back.
        if let Counter::Words(state) = counter
            && (charged || (!reading.fits && spot.is_some()))
        {
            self.write(tag, data, spot, (EntryKind::Words, state), &after);
        }
        Ok(self.result(reading, charged))
    }

    /// Counts in a large counter in place.
    fn attempt_large(
        &self,
        data: &mut ShardData,
        (spot, handle): (EntrySlot, u32),
        reserved: &mut bool,
    ) -> Result<StepResult, NoBanCapacity> {
        let Some(counter) = data.large.get_mut(handle as usize) else {
            return Ok(self.without_counter(KeyStatus::Within));
        };
        let paid = counter.bytes();
        // A charge that starts a ban must change nothing if there is no capacity for the ban.
        if self.op == StepOp::Charge && self.may_ban() && !self.peek(counter).fits {
            return self.ban(data, Some(spot), reserved);
        }
        let reading = self.operate(counter);
        let (after, charged) = match self.outcome(counter, &reading) {
            StepOutcome::Ban => return self.ban(data, Some(spot), reserved),
            StepOutcome::Charged(after) => (after, true),
            StepOutcome::Unchanged => (reading, false),
        };
        let is_resized = counter.bytes() != paid;
        let expires = end(self.now, &after);
        data.table.allow(expires.saturating_sub(second(self.now)));
        let fill = self.step.limiter.level(after.remaining);
        if let Some(entry) = data.table.entry_mut(spot) {
            entry.refresh(expires, fill);
        }
        if is_resized {
            data.resized(spot, handle, paid, self);
        }
        Ok(self.result(reading, charged))
    }

    /// Counts for a key that has no counter yet and needs a large one.
    fn attempt_new(
        &self,
        tag: KeyTag,
        data: &mut ShardData,
        reserved: &mut bool,
    ) -> Result<StepResult, NoBanCapacity> {
        let shape = self.shape_of_new(tag, data);
        if shape == CounterShape::Words {
            return self.attempt_words(tag, data, (None, State::default()), reserved);
        }
        let mut counter = Counter::new(shape, &self.step.limiter);
        let reading = self.operate(&mut counter);
        let (after, charged) = match self.outcome(&mut counter, &reading) {
            StepOutcome::Ban => return self.ban(data, None, reserved),
            StepOutcome::Charged(after) => (after, true),
            StepOutcome::Unchanged => (reading, false),
        };
        if charged && after.reset_micros() > 0 {
            let words = data.keep(tag, counter, 0, self);
            self.write(tag, data, None, words, &after);
        }
        Ok(self.result(reading, charged))
    }

    /// Returns the shape of a new counter. A counter that is only peeked at needs no memory.
    fn shape_of_new(&self, tag: KeyTag, data: &mut ShardData) -> CounterShape {
        let (wanted, budgets) = (self.step.limiter.shape(), &self.memory.budgets);
        if self.op == StepOp::Peek && wanted != CounterShape::Leases {
            return CounterShape::Words;
        }
        if budgets.shape(wanted) != wanted {
            data.sweep(tag, second(self.now), self.memory);
        }
        budgets.shape(wanted)
    }

    fn operate(&self, counter: &mut Counter) -> CounterReading {
        let (limiter, cost, lease) = (&self.step.limiter, self.step.units(), self.plan.lease);
        match self.op {
            StepOp::Admit => counter.admit(limiter, self.now, cost, lease),
            StepOp::Charge => counter.charge(limiter, self.now, cost, lease),
            StepOp::Peek | StepOp::CheckBan | StepOp::Always => self.peek(counter),
        }
    }

    fn peek(&self, counter: &mut Counter) -> CounterReading {
        counter.peek(&self.step.limiter, self.now, self.step.units())
    }

    /// Derives the outcome from `reading`, which [`StepRun::operate`] returned.
    fn outcome(&self, counter: &mut Counter, reading: &CounterReading) -> StepOutcome {
        if self.may_ban() && !reading.fits {
            return StepOutcome::Ban;
        }
        if self.op == StepOp::Charge || (self.op == StepOp::Admit && reading.fits) {
            return StepOutcome::Charged(*reading);
        }
        if self.will_wait(reading) {
            let (limiter, cost, lease) = (&self.step.limiter, self.step.units(), self.plan.lease);
            return StepOutcome::Charged(counter.charge(limiter, self.now, cost, lease));
        }
        StepOutcome::Unchanged
    }

    /// Returns whether a request that does not fit is charged because it will wait in the queue.
    fn will_wait(&self, reading: &CounterReading) -> bool {
        let max_hold = self.step.max_hold;
        let soon = |wait: Duration| wait <= max_hold;
        let may = self.op == StepOp::Admit && !max_hold.is_zero();
        may && self.step.limiter.wait_for_turn(reading).is_some_and(soon)
    }

    /// Whether a cost that does not fit bans the key.
    fn may_ban(&self) -> bool {
        self.op.counts() && !self.step.ban.is_never()
    }

    /// Updates the entry at `spot`, or inserts a new one if there is state to keep.
    fn write(
        &self,
        tag: KeyTag,
        data: &mut ShardData,
        spot: Option<EntrySlot>,
        (kind, state): (EntryKind, State),
        after: &CounterReading,
    ) {
        let entry = self.entry(tag.get(), kind, state, after);
        match spot {
            Some(spot) => {
                data.allow(&entry, self.now);
                data.put(spot, entry, self.memory);
            }
            None if after.reset_micros() > 0 => {
                data.table.allow(self.lifetime());
                data.allow(&entry, self.now);
                data.insert(tag, entry, second(self.now), self.memory);
            }
            None => {}
        }
    }

    fn entry(&self, tag: u64, kind: EntryKind, state: State, after: &CounterReading) -> TableEntry {
        TableEntry {
            tag,
            expires: end(self.now, after),
            state,
            slot: self.step.id.slot,
            fill: self.step.limiter.level(after.remaining),
            kind,
        }
    }

    /// Returns the maximum lifetime of an entry, in seconds, unless charges exceed the limit.
    fn lifetime(&self) -> u32 {
        let limiter = &self.step.limiter;
        let periods = limiter.capacity().div_ceil(limiter.limit.max(1)) + 2;
        let periods = u32::try_from(periods).unwrap_or(u32::MAX);
        let longest = limiter.period.saturating_mul(periods).as_secs();
        u32::try_from(longest).unwrap_or(u32::MAX)
    }

    #[inline(always)]
    pub(super) fn result(&self, reading: CounterReading, charged: bool) -> StepResult {
        StepResult {
            reading: Some(reading),
            charged,
            ..self.without_counter(self.status(&reading))
        }
    }

    /// A ban rule mitigates a key only while it is banned; a full counter matters only to steps that count.
    #[inline(always)]
    fn status(&self, reading: &CounterReading) -> KeyStatus {
        if reading.fits || (self.step.op == StepOp::Peek && !self.step.ban.is_never()) {
            KeyStatus::Within
        } else {
            KeyStatus::Over
        }
    }

    #[inline(always)]
    pub(super) fn without_counter(&self, status: KeyStatus) -> StepResult {
        StepResult::without_counter(self.index, status)
    }

    pub(super) fn finish(&self, result: &mut PlanResult, status: KeyStatus) -> bool {
        self.push(result, self.without_counter(status))
    }

    /// Adds the step's result; returns whether its key is within its limit.
    #[inline(always)]
    pub(super) fn push(&self, result: &mut PlanResult, done: StepResult) -> bool {
        let within = done.status == KeyStatus::Within;
        if result.steps.len() < result.steps.capacity() {
            result.steps.push(done);
        } else {
            push_more(result, done);
        }
        within
    }

    /// The hash of the key.
    pub(super) fn hash(&self) -> KeyHash {
        self.memory.hash(self.plan, self.step)
    }
}

/// Out of line, so that the caller does not have to save its registers around the push.
#[cold]
#[inline(never)]
fn push_more(result: &mut PlanResult, done: StepResult) {
    result.steps.push(done);
}

/// Returns the first whole second at which the counter is empty.
#[inline(always)]
pub(super) fn end(now: Timestamp, reading: &CounterReading) -> u32 {
    const SECOND: u64 = 1_000_000;
    const LAST: u64 = u32::MAX as u64 * SECOND;
    let end = now.as_micros().saturating_add(reading.reset_micros());
    end.min(LAST).div_ceil(SECOND) as u32
}
