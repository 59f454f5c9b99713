//! What a client is told with an answer that is not the origin's: what it would be told with the
//! origin's. Rules behind the one that pretends were only looked at, and nothing was charged.

use std::time::Duration;

use super::{Finding, Op, Plan, Rule, RuleSet, Standing, Step};
use crate::clock::Timestamp;
use crate::decision::{Decision, Few, Verdict};
use crate::expr::Facts;
use crate::limit::slices::Slices;
use crate::limit::sliding_log::Log;
use crate::limit::{Algorithm, Limiter, Reading, Shape, State};

// === impl RuleSet ===

impl RuleSet {
    /// Takes in what a client would be told, had the origin given the answer in `facts`. Nothing
    /// is counted, for it did not.
    pub fn pretend(&self, decision: &mut Decision, facts: &dyn Facts) {
        if !decision.tentative.is_empty() {
            decision.tell_settled(&self.settle(facts, decision.settle_before));
        }
    }
}

// === impl Decision ===

impl Decision {
    /// Makes a refusal of a pretence, for a client that could take none.
    pub fn refuse_openly(&mut self) {
        let Verdict::Shadow { rule } = self.verdict else {
            return;
        };
        self.quotas.retain(|quota| quota.rule < rule);
        self.drop_waits();
        let retry_after = None;
        self.verdict = Verdict::Block { rule, retry_after };
        self.refuse_for(self.refused_for);
    }

    /// Takes in a rule that would have counted the request.
    pub(super) fn tell_unreached(
        &mut self,
        rule: &Rule,
        step: &Step,
        finding: &Finding,
        now: Timestamp,
    ) {
        let carried_out = match finding.reading.filter(|_| step.op != Op::Peek) {
            Some(reading) => carried_out(step, reading, *finding, now),
            None => *finding,
        };
        self.tell(rule, step, &carried_out, now);
    }

    /// Tells of the rules that count the response, as they stood when the request came.
    pub(super) fn tell_settled(&mut self, settled: &Plan) {
        let counted = |rule| settled.steps.iter().any(|step| step.rule == rule);
        if settled.steps.is_empty() {
            self.tentative = Few::default();
            return;
        }
        let tentative = std::mem::take(&mut self.tentative);
        let told = tentative.iter().filter(|quota| counted(quota.rule));
        self.quotas.extend(told.copied());
        self.quotas.sort_by_key(|quota| quota.rule);
    }
}

/// What would have been found, had the step been carried out.
fn carried_out(step: &Step, looked: Reading, finding: Finding, now: Timestamp) -> Finding {
    let reading = match step.op {
        Op::Admit if !looked.fits => looked,
        _ => charged(step, looked, now),
    };
    let bans = !looked.fits && !step.ban.is_never();
    let standing = match bans {
        true => Standing::Banned {
            until: now.plus(step.ban.length(0)),
            started: true,
        },
        false => finding.standing,
    };
    Finding {
        standing,
        reading: Some(reading),
        ..finding
    }
}

/// What is left after a charge.
fn charged(step: &Step, looked: Reading, now: Timestamp) -> Reading {
    let alone = alone(&step.limiter, now, step.cost);
    let reset_after = match step.limiter.algorithm {
        // Both were rounded up; together they are once.
        Algorithm::TokenBucket | Algorithm::LeakyBucket | Algorithm::Gcra => {
            let both = looked.reset_after().saturating_add(alone.reset_after());
            both.saturating_sub(Duration::from_nanos(is_broken(step).into()))
        }
        // The newest unit is the last to be forgotten.
        _ => looked.reset_after().max(alone.reset_after()),
    };
    looked.leaving(looked.remaining.saturating_sub(step.cost), reset_after)
}

/// Whether the cost drains in a time that is no whole number of nanoseconds.
fn is_broken(step: &Step) -> bool {
    let period = step.limiter.period.as_nanos();
    let drains = period.checked_mul(step.cost.into());
    let rest = drains.and_then(|drains| drains.checked_rem(step.limiter.limit.into()));
    rest.is_some_and(|rest| rest > 0)
}

/// What a key of which nothing was counted finds.
fn alone(limiter: &Limiter, now: Timestamp, cost: u64) -> Reading {
    match limiter.shape() {
        Shape::Words => limiter.charge(&mut State::default(), now, cost),
        Shape::Slices => Slices::new(limiter).charge(limiter, now, cost),
        Shape::Log => Log::new(limiter).charge(limiter, now, cost),
    }
}
