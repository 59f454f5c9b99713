//! `concurrency` places: taken with the decision, given back once, however the request ends.
//! Where no rule counts what is in flight, nothing of this is asked.

use std::cell::Cell;
use std::sync::Arc;

use crate::limit::Algorithm;
use crate::rules::{Findings, Plan, RuleSet};
use crate::snapshot::Live;

/// The places that a request has taken, if any, until its answer has ended or its client has left.
#[derive(Default)]
pub struct Places(Cell<Option<Box<Taken>>>);

/// Places in the store; given back when this goes.
pub struct Taken {
    live: Arc<Live>,
    plan: Plan,
    findings: Findings,
}

/// The places that `plan` took, as `findings` says; `None`, nearly always: none.
pub fn taken(
    live: &Arc<Live>,
    rules: &RuleSet,
    plan: &Plan,
    findings: &Findings,
) -> Option<Box<Taken>> {
    let took = rules.takes_places() && took(plan, findings);
    took.then(|| {
        Box::new(Taken {
            live: live.clone(),
            plan: plan.clone(),
            findings: findings.clone(),
        })
    })
}

fn took(plan: &Plan, findings: &Findings) -> bool {
    findings.iter().any(|finding| {
        let step = plan.steps.get(usize::from(finding.step));
        finding.charged && step.is_some_and(|step| step.limiter.algorithm == Algorithm::Concurrency)
    })
}

// === impl Places ===

impl Places {
    /// Keeps what was taken until the request ends.
    pub fn keep(&self, taken: Box<Taken>) {
        self.0.set(Some(taken));
    }

    /// Gives them back now.
    pub fn free(&self) {
        drop(self.0.take());
    }

    /// Hands them to what outlives the answer.
    pub fn hand_over(&self) -> Option<Box<Taken>> {
        self.0.take()
    }
}

// === impl Taken ===

impl Drop for Taken {
    fn drop(&mut self) {
        self.live.lasting.store.release(&self.plan, &self.findings);
    }
}
