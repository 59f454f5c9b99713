//! Applies a plan: one step after the other, each under the lock of its key's shard.
//!
//! The frequent case is a known key within its limit: [`MemoryStore::count_words`] updates its entry in place.
//! [`StepRun`] handles all other cases.

use super::MemoryStore;
use super::hash::KeyHash;
use super::step_run::{StepRun, end};
use crate::clock::Timestamp;
use crate::limit::math::CounterMath;
use crate::limit::{CounterShape, by_algorithm};
use crate::rules::plan::{KeyStatus, Plan, PlanResult, Step, StepOp, StepResult};

impl MemoryStore {
    /// Runs the steps of `plan` in order until one ends evaluation, then peeks at the later steps that request it. Adds
    /// the results to `result`, which is empty.
    pub fn apply(&self, plan: &Plan, now: Timestamp, result: &mut PlanResult) {
        result.at = now;
        for (index, step) in plan.steps.iter().enumerate() {
            let run = StepRun {
                memory: self,
                plan,
                index: index as u16,
                step,
                op: step.op,
                now,
            };
            let within = self.execute(run, result);
            if !within && step.mitigates && step.is_terminal {
                self.peek_after_end(run, result);
                return;
            }
        }
    }

    /// After a step has ended evaluation: peeks at the later steps that request it, for their `Retry-After`, and
    /// at the earlier steps that this request has filled to their limit, for the state that a retry would find.
    #[inline(never)]
    fn peek_after_end(&self, last: StepRun<'_>, result: &mut PlanResult) {
        let steps = (0..)
            .zip(&last.plan.steps)
            .skip(usize::from(last.index) + 1);
        for (index, step) in steps.filter(|(_, step)| step.peek_after_end) {
            let op = step.op.without_charge();
            let run = StepRun {
                index,
                step,
                op,
                ..last
            };
            self.execute(run, result);
        }
        for place in 0..result.steps.len() {
            let earlier = result.steps.get(place).copied();
            let Some(earlier) = earlier.filter(|earlier| earlier.step < last.index) else {
                return;
            };
            let Some(step) = last.plan.steps.get(usize::from(earlier.step)) else {
                return;
            };
            if step.is_filled_up(&earlier) {
                let (index, op) = (earlier.step, StepOp::Peek);
                let run = StepRun {
                    index,
                    step,
                    op,
                    ..last
                };
                self.execute(run, result);
            }
        }
    }

    /// Runs one step; returns whether its key is within its limit.
    #[inline(always)]
    fn execute(&self, run: StepRun<'_>, result: &mut PlanResult) -> bool {
        let limiter = &run.step.limiter;
        match run.op {
            StepOp::Admit | StepOp::Charge if limiter.shape() == CounterShape::Words => {
                by_algorithm!(limiter.algorithm, M => Self::count_words::<M>(&run, result))
            }
            StepOp::Admit | StepOp::Charge | StepOp::Peek => run.execute(result),
            StepOp::CheckBan if self.ban_room.is_empty() => run.finish(result, KeyStatus::Within),
            StepOp::CheckBan => run.execute(result),
            StepOp::Always => run.finish(result, KeyStatus::Over),
        }
    }

    /// Runs a step with a counter that fits into the words of an entry.
    #[inline(never)]
    fn count_words<M: CounterMath>(run: &StepRun<'_>, result: &mut PlanResult) -> bool {
        let (memory, step, now) = (run.memory, run.step, run.now);
        let hash = memory.hash(run.plan, step);
        let shard = memory.shard(hash.tag);
        let mut data = shard.held.lock();
        if !data.bans.is_empty()
            && let Some(until) = memory.banned(shard, &mut data.bans, hash.whole(), now)
        {
            return run.push(result, StepResult::banned(run.index, until));
        }
        if let Some(entry) = data.table.find_mut(hash.tag)
            && !entry.has_expired(now)
        {
            let mut counter = M::at(&step.limiter, entry.words(), now);
            if counter.fits(&step.limiter, step.cost) {
                counter.add(step.cost);
                let reading = counter.reading(&step.limiter, true, step.cost);
                let fill = step.limiter.level(reading.remaining);
                entry.update(counter.state(), step.id.slot, end(now, &reading), fill);
                return run.push(result, run.result(reading, true));
            }
        }
        run.execute_locked(hash.tag, data, result)
    }

    /// The hash of a step's key.
    #[inline(always)]
    pub(super) fn hash(&self, plan: &Plan, step: &Step) -> KeyHash {
        self.hasher.hash(step.id.identity, plan.key(step))
    }
}
