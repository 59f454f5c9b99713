//! Applies a plan in a fleet: exact steps by calls to the shared store, async steps from the counters of this node, and
//! without the store each rule's fallback.
//!
//! Consecutive exact steps are one call. Steps that are only peeked at after evaluation has ended are read from this
//! node's counters.

use std::ops::Range;

use super::fleet::AsyncStep;
use super::handle::StoreHandle;
use super::redis::NameHash;
use crate::clock::Timestamp;
use crate::decision::RuleIndex;
use crate::limit::Limiter;
use crate::rules::plan::{
    KeyStatus, OnStoreFailure, Plan, PlanResult, Step, StepOp, StepResult, StoreMode,
};

/// A plan that is being applied.
pub(super) struct SharedPlan<'a> {
    handle: &'a StoreHandle,
    plan: &'a mut Plan,
    result: &'a mut PlanResult,
    /// The time of this gateway.
    now: Timestamp,
    /// The time of the store, as far as it is known.
    store_time: Timestamp,
    /// The limiter of the next step for the whole fleet, if this node enforces a share of it.
    fleet_limiter: Option<Limiter>,
    /// The last key that was hashed.
    last_hash: Option<(Range<u32>, NameHash)>,
}

/// How far a plan was applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PlanProgress {
    /// The steps before this one were applied, and evaluation goes on.
    Reached(usize),
    /// A step has ended evaluation.
    Ended,
    /// The store cannot be reached, and this rule responds with 503.
    Unavailable(RuleIndex),
}

// === impl SharedPlan ===

impl<'a> SharedPlan<'a> {
    pub(super) fn new(
        handle: &'a StoreHandle,
        plan: &'a mut Plan,
        now: Timestamp,
        result: &'a mut PlanResult,
    ) -> Self {
        let store_time = handle.store_time(now);
        result.at = store_time;
        Self {
            handle,
            plan,
            result,
            now,
            store_time,
            fleet_limiter: None,
            last_hash: None,
        }
    }

    /// Applies the plan. Returns the rule that responds with 503, because it needs the store.
    pub(super) async fn apply(&mut self) -> Option<RuleIndex> {
        let mut progress = PlanProgress::Reached(0);
        if self.plan.steps.iter().any(is_exact) {
            let local = self.handle.store().local();
            if let Some(banned) = local.first_ban(self.plan, self.store_time) {
                self.apply_known_ban(banned);
                return None;
            }
        }
        while let PlanProgress::Reached(next) = progress
            && let Some(step) = self.plan.steps.get(next)
        {
            progress = if is_exact(step) {
                self.apply_exact(next).await
            } else {
                self.apply_async(next)
            };
        }
        match progress {
            PlanProgress::Unavailable(rule) => Some(rule),
            PlanProgress::Reached(_) | PlanProgress::Ended => None,
        }
    }

    /// Applies consecutive async steps from `first` on. It never waits.
    pub(super) fn apply_async(&mut self, first: usize) -> PlanProgress {
        let is_down = self.handle.counters().is_none_or(|shared| shared.is_down());
        let mut next = first;
        while self
            .plan
            .steps
            .get(next)
            .is_some_and(|step| !is_exact(step))
        {
            let progress = if is_down {
                self.fall_back(next)
            } else {
                self.run_and_check(next)
            };
            match progress {
                PlanProgress::Reached(after) => next = after,
                ended => return ended,
            }
        }
        PlanProgress::Reached(next)
    }

    /// Applies consecutive exact steps from `first` on in one call. If it fails, each of their rules uses its fallback.
    async fn apply_exact(&mut self, first: usize) -> PlanProgress {
        let rest = self.plan.steps.get(first..).unwrap_or_default();
        let is_called = |step: &&Step| step.op == StepOp::Always || is_exact(step);
        let steps = first..first + rest.iter().take_while(is_called).count();
        let mut called = PlanResult::default();
        let call = self
            .handle
            .call(self.plan, steps.clone(), self.now, &mut called);
        // Boxed, because it is large: otherwise every request would have room for a call, even without a shared store.
        if Box::pin(call).await.is_err() {
            return self.fall_back_all(steps);
        }
        self.handle.store().local().record(self.plan, &called);
        let has_ended = self.plan.ending_step(&called);
        self.result.at = called.at;
        self.result.steps.append(&mut called.steps);
        self.result.offences.append(&mut called.offences);
        match has_ended {
            Some(_) => self.peek_others(steps),
            None => PlanProgress::Reached(steps.end),
        }
    }

    fn fall_back_all(&mut self, steps: Range<usize>) -> PlanProgress {
        let end = steps.end;
        for index in steps {
            match self.fall_back(index) {
                PlanProgress::Reached(_) => {}
                ended => return ended,
            }
        }
        PlanProgress::Reached(end)
    }

    /// Applies a step without the store.
    #[cold]
    fn fall_back(&mut self, index: usize) -> PlanProgress {
        let fraction = self.handle.store().local_fraction();
        let next = PlanProgress::Reached(index + 1);
        let Some(step) = self.plan.steps.get_mut(index) else {
            return next;
        };
        if step.op != StepOp::Always {
            match step.on_failure {
                OnStoreFailure::Local => {
                    self.fleet_limiter = Some(step.limiter);
                    step.limiter = step.limiter.scaled(fraction);
                }
                OnStoreFailure::Open => return next,
                OnStoreFailure::Closed => return PlanProgress::Unavailable(step.rule),
            }
        }
        self.run_and_check(index)
    }

    /// Runs a step on this node's counters, and checks whether it ends evaluation.
    fn run_and_check(&mut self, index: usize) -> PlanProgress {
        let Some(step) = self.plan.steps.get(index) else {
            return PlanProgress::Reached(index + 1);
        };
        let (ends, op) = (step.mitigates && step.is_terminal, step.op);
        let done = self.run(index, op);
        self.result.steps.push(done);
        if ends && done.status != KeyStatus::Within {
            return self.peek_others(index..index + 1);
        }
        PlanProgress::Reached(index + 1)
    }

    /// After a step of `ended` has ended evaluation: peeks at the later steps that request it, and at the earlier ones
    /// that this request has filled up, for the state that a retry would find.
    fn peek_others(&mut self, ended: Range<usize>) -> PlanProgress {
        for index in ended.end..self.plan.steps.len() {
            let step = self.plan.steps.get(index);
            if let Some(step) = step.filter(|step| step.peek_after_end) {
                let op = step.op.without_charge();
                let done = self.run(index, op);
                self.result.steps.push(done);
            }
        }
        for earlier in self.result.steps.clone() {
            let index = usize::from(earlier.step);
            let step = self.plan.steps.get(index);
            let is_filled_up = step.is_some_and(|step| step.is_filled_up(&earlier));
            if index < ended.start && is_filled_up {
                let done = self.run(index, StepOp::Peek);
                self.result.steps.push(done);
            }
        }
        PlanProgress::Ended
    }

    /// Decides a request whose step `banned` has a ban that is known locally. The charges of earlier steps follow
    /// later, but no slot is taken: the request releases its slots at once.
    fn apply_known_ban(&mut self, banned: usize) {
        let earlier = self.plan.steps.iter().take(banned);
        let is_charged = |step: &Step| step.op.counts() && !step.limiter.algorithm.holds_leases();
        let has_charges = earlier.into_iter().any(is_charged);
        for index in 0..banned {
            let op = self.plan.steps.get(index).map(|step| step.op);
            let done = self.run(index, op.unwrap_or(StepOp::CheckBan).without_charge());
            self.result.steps.push(done);
        }
        if has_charges {
            let mut plan = self.plan.clone();
            plan.steps.truncate(banned);
            plan.steps.retain(|step| is_charged(step));
            self.handle.charge_later(plan);
        }
        self.run_and_check(banned);
    }

    /// Runs a step on this node's counters.
    fn run(&mut self, index: usize, op: StepOp) -> StepResult {
        let number = u16::try_from(index).unwrap_or(u16::MAX);
        let Some(step) = self.plan.steps.get(index) else {
            return StepResult::without_counter(number, KeyStatus::Within);
        };
        let fleet_limiter = self.fleet_limiter.take().unwrap_or(step.limiter);
        let local = self.handle.store().local();
        let Some(counters) = self.handle.counters().filter(|_| !is_exact(step)) else {
            return local.run_step(self.plan, number, op, self.store_time);
        };
        let hash = match &self.last_hash {
            Some((key, hash)) if *key == step.key => *hash,
            _ => NameHash::of(self.plan.key(step)),
        };
        self.last_hash = Some((step.key.clone(), hash));
        counters.run(&AsyncStep {
            local,
            plan: self.plan,
            index: number,
            step,
            fleet_limiter,
            hash,
            op,
            now: self.store_time,
            draw: self.handle.draw(),
            is_alone: counters.is_down(),
        })
    }
}

/// Whether the shared store must decide a step.
fn is_exact(step: &Step) -> bool {
    step.mode == StoreMode::Exact && step.op != StepOp::Always
}

/// Whether no step needs the shared store to decide.
pub(super) fn is_async(plan: &Plan) -> bool {
    !plan.steps.iter().any(is_exact)
}
