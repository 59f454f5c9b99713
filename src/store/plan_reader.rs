//! Applies plans for people without changing anything: every step reads the counter and the ban that it would find, in
//! the shared store if there is one. Its result is that of a counted request.

use std::cell::Cell;

use super::redis::FleetKey;
use super::{Store, StoreAdmin};
use crate::clock::Timestamp;
use crate::decision::RuleIndex;
use crate::rules::FixedKeys;
use crate::rules::plan::{
    KeyStatus, OnStoreFailure, Plan, PlanResult, Step, StepOp, StepResult, StoreMode,
};

/// Reads what the steps of plans would find.
pub(super) struct PlanReader {
    admin: StoreAdmin,
    /// The keys that a person has set. Of some, only the ban is known.
    keys: FixedKeys,
    /// Whether the shared store has not replied.
    has_fallen_back: Cell<bool>,
}

/// What a step finds.
enum FoundStep {
    Done(StepResult),
    /// The rule admits every request while the store is out of reach.
    Admitted,
    /// The rule refuses every request while the store is out of reach.
    Unavailable,
}

// === impl PlanReader ===

impl PlanReader {
    pub(super) fn new(admin: StoreAdmin, keys: FixedKeys) -> Self {
        Self {
            admin,
            keys,
            has_fallen_back: Cell::new(false),
        }
    }

    /// Whether a plan was read without the shared store, because it does not reply.
    pub(super) fn has_fallen_back(&self) -> bool {
        self.has_fallen_back.get()
    }

    /// Adds the results that applying `plan` would have to `result`, which is empty. Returns the rule that responds with
    /// 503 because it needs the store.
    pub(super) async fn read(
        &self,
        plan: &mut Plan,
        now: Timestamp,
        result: &mut PlanResult,
    ) -> Option<RuleIndex> {
        result.at = now;
        let mut read = Vec::new();
        if !self.admin.store().is_local() && plan.needs_store() {
            let reading = self.admin.read_plan(plan.clone()).await.ok();
            result.at = reading.as_ref().map_or(now, |reading| reading.at);
            read = reading.map(|reading| reading.steps).unwrap_or_default();
        }
        for index in 0..plan.steps.len() {
            let known = read.get(index).copied().flatten();
            let Some(step) = plan.steps.get(index) else {
                break;
            };
            let (rule, ends) = (step.rule, step.mitigates && step.is_terminal);
            let done = match self.step(plan, index, known, result.at) {
                FoundStep::Done(done) => done,
                FoundStep::Admitted => continue,
                FoundStep::Unavailable => return Some(rule),
            };
            let done = counted(plan, done, result.at);
            result.steps.push(done);
            if ends && done.status != KeyStatus::Within {
                self.read_others(plan, index + 1, &read, result);
                break;
            }
        }
        None
    }

    /// After a step has ended evaluation: reads the later steps that request it, for the wait that a retry would find.
    fn read_others(
        &self,
        plan: &mut Plan,
        first: usize,
        read: &[Option<StepResult>],
        result: &mut PlanResult,
    ) {
        for index in first..plan.steps.len() {
            let step = plan.steps.get(index);
            if step.is_some_and(|step| step.peek_after_end) {
                let known = read.get(index).copied().flatten();
                if let FoundStep::Done(done) = self.step(plan, index, known, result.at) {
                    result.steps.push(done);
                }
            }
        }
    }

    /// Reads one step. `known` is what the shared store has for it.
    fn step(
        &self,
        plan: &mut Plan,
        index: usize,
        known: Option<StepResult>,
        now: Timestamp,
    ) -> FoundStep {
        let number = u16::try_from(index).unwrap_or(u16::MAX);
        let store = self.admin.store();
        let Some(step) = plan.steps.get(index) else {
            return FoundStep::Admitted;
        };
        if step.op == StepOp::Always {
            return FoundStep::Done(StepResult::without_counter(number, KeyStatus::Over));
        }
        let own_ban = || store.local().known_ban(step.id, plan.key(step), now);
        if let Some(until) = self.keys.known_ban(step.rule).or_else(own_ban) {
            return FoundStep::Done(StepResult::banned(number, until));
        }
        if let Some(done) = known {
            return FoundStep::Done(done);
        }
        if !store.is_local() {
            self.has_fallen_back.set(true);
            if let Some(ended) = fall_back(store, plan, index) {
                return ended;
            }
        }
        FoundStep::Done(own_result(store, plan, number, now))
    }
}

/// Returns the result that a step would have after counting the request. What it refuses costs nothing.
fn counted(plan: &Plan, done: StepResult, now: Timestamp) -> StepResult {
    let Some((step, reading)) = plan.steps.get(usize::from(done.step)).zip(done.reading) else {
        return done;
    };
    let is_charged = match step.op {
        StepOp::Admit => reading.fits,
        StepOp::Charge => reading.fits || step.ban.is_never(),
        StepOp::Peek | StepOp::CheckBan | StepOp::Always => false,
    };
    if !is_charged {
        return done;
    }
    StepResult {
        reading: Some(reading.after_charge(&step.limiter, now, step.units())),
        charged: true,
        ..done
    }
}

/// Changes a step as an outage of the shared store does. Returns what it finds, unless it reads the counters here.
fn fall_back(store: &Store, plan: &mut Plan, index: usize) -> Option<FoundStep> {
    let step = plan.steps.get_mut(index)?;
    if step.mode == StoreMode::Async && store.counters.as_ref().is_some_and(|all| !all.is_down()) {
        // Requests are still decided from what this node knows.
        return None;
    }
    match step.on_failure {
        OnStoreFailure::Local => step.limiter = step.limiter.scaled(store.local_fraction()),
        OnStoreFailure::Open => return Some(FoundStep::Admitted),
        OnStoreFailure::Closed => return Some(FoundStep::Unavailable),
    }
    None
}

/// Reads a step from the counters of this gateway.
fn own_result(store: &Store, plan: &Plan, index: u16, now: Timestamp) -> StepResult {
    let step = plan.steps.get(usize::from(index));
    let is_async = |step: &&Step| step.mode == StoreMode::Async;
    if let Some(counters) = &store.counters
        && let Some(step) = step.filter(is_async)
    {
        let key = FleetKey::new(step.id, plan.key(step));
        let known = counters.known_key(key, &step.limiter, now);
        return known.result(index, step, now);
    }
    let op = step.map_or(StepOp::CheckBan, |step| step.op.without_charge());
    store.local().run_step(plan, index, op, now)
}
