//! What makes a refusal's wait exact: rules before the one that refused have charged this request,
//! and may have no room for the next one.

use super::quota::rest;
use super::{Findings, Op, Plan, RuleSet, Standing, Step};
use crate::clock::Timestamp;
use crate::decision::{Decision, Verdict};
use crate::limit::Algorithm;

// === impl RuleSet ===

impl RuleSet {
    /// The rules that were charged for a request that was refused after all and that are full
    /// now, to be looked at. Rarely any, so that most refusals cost no second look.
    pub fn look_again(
        &self,
        plan: &Plan,
        findings: &Findings,
        decision: &Decision,
    ) -> Option<Plan> {
        let Verdict::Block { rule, .. } = decision.verdict else {
            return None;
        };
        let full = findings.iter().filter_map(|finding| {
            let step = plan.steps.get(usize::from(finding.step))?;
            let charged = step.op == Op::Admit && finding.standing == Standing::Within;
            let is_full = finding.reading?.remaining < step.cost;
            // A refused request gives its place back.
            let keeps = step.limiter.algorithm != Algorithm::Concurrency;
            let counts = step.rule < rule && step.peek_after_end && charged && keeps;
            (counts && is_full).then_some(step)
        });
        let mut steps: Vec<Step> = full.cloned().collect();
        let first = steps.first()?.clone();
        steps.insert(0, end_of_pass(first));
        Some(Plan {
            steps: steps.into(),
            keys: plan.keys.clone(),
        })
    }

    /// Takes in what a store found for [`RuleSet::look_again`], whose plan was `full`: the longest
    /// wait counts, and a client is told the wait of each.
    pub fn lengthen(&self, decision: &mut Decision, full: &Plan, found: &Findings, now: Timestamp) {
        let again = found.iter().filter(|finding| finding.step > 0);
        for finding in again.filter(|finding| finding.standing != Standing::Within) {
            let wait = rest(finding, now);
            decision.lengthen(wait);
            let step = full.steps.get(usize::from(finding.step));
            if let Some((step, wait)) = step.zip(wait) {
                let remaining = finding.reading.map_or(0, |reading| reading.remaining);
                decision.tell_wait(step.rule, remaining, wait);
            }
        }
    }
}

/// A step after which everything is only looked at.
fn end_of_pass(step: Step) -> Step {
    Step {
        op: Op::Always,
        acts: true,
        ends_pass: true,
        ..step
    }
}
