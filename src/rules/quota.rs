//! What quota headers tell a client about a rule: what is left, and when it may come back.
//!
//! `q` is the rule's limit and `w` its period, whatever the algorithm and the burst. `r` is what the key can send
//! now, at most `q`. `concurrency` has no period: its `t` is the second after which another try is worth it.
//!
//! A response that is not the origin's carries the headers that the origin's would have carried: the rules behind
//! the one that acted were only peeked at, and what a charge would have left is computed here.

use std::time::Duration;

use super::decide::acted;
use super::{KeyStatus, Plan, Rule, RuleSet, Step, StepOp, StepResult};
use crate::clock::Timestamp;
use crate::decision::{Decision, PendingQuota, QuotaStatus};
use crate::expr::FieldFacts;
use crate::limit::{Counter, RecoveryKind};

/// When a slot may become free. Unknown, so this is a hint.
const SLOT_HINT: Duration = Duration::from_secs(1);

// === impl RuleSet ===

impl RuleSet {
    /// Adds the quota headers that the response in `facts` would carry if it were the origin's. Nothing is counted.
    pub fn add_shadow_quotas(&self, decision: &mut Decision, facts: &dyn FieldFacts) {
        if !decision.pending_quotas.is_empty() {
            let settled = self.settle(facts, decision.settle_before);
            decision.add_settled_quotas(self, &settled);
        }
    }
}

// === impl Decision ===

impl Decision {
    /// Adds the quota of a rule that counts the request, now or at the response.
    pub(super) fn add_quota(&mut self, rule: &Rule, step: &Step, result: &StepResult) {
        if !rule.sends_quota_headers() || step.op == StepOp::Always {
            return;
        }
        let Some((remaining, reset)) = left(step, result, self.at) else {
            return;
        };
        let acted = acted(step, result);
        if acted || step.op.counts() {
            self.quotas.push(quota(rule, step, remaining, reset, acted));
        } else if rule.counts_response() {
            self.pending_quotas.push(PendingQuota {
                rule: step.rule,
                remaining,
                reset,
                is_banned: matches!(result.status, KeyStatus::Banned { .. }),
            });
        }
    }

    /// Adds the quota of a rule that would have counted the request and was only peeked at.
    pub(super) fn add_unreached_quota(&mut self, rule: &Rule, step: &Step, result: &StepResult) {
        let Some(reading) = result.reading.filter(|_| step.op != StepOp::Peek) else {
            return self.add_quota(rule, step, result);
        };
        let mut executed = *result;
        if step.op != StepOp::Admit || reading.fits {
            let (remaining, reset) =
                after_charge(step, reading.remaining, reading.reset_after(), self.at);
            executed.reading = Some(reading.leaving(remaining, reset));
        }
        if !reading.fits && !step.ban.is_never() {
            executed.status = KeyStatus::Banned {
                until: self.at.plus(step.ban.length(0)),
                started: true,
            };
        }
        self.add_quota(rule, step, &executed);
    }

    /// Adds the quotas of the rules that count the response, as this response leaves them.
    pub(super) fn add_settled_quotas(&mut self, rules: &RuleSet, settled: &Plan) {
        let pending = std::mem::take(&mut self.pending_quotas);
        if settled.steps.is_empty() {
            return;
        }
        for pending in pending.iter() {
            let own = |step: &&Step| step.rule == pending.rule && !step.candidate;
            let step = settled.steps.iter().find(own);
            let Some((step, rule)) = step.zip(rules.get(pending.rule)) else {
                continue;
            };
            let (remaining, reset) = if pending.is_banned {
                (pending.remaining, pending.reset)
            } else {
                after_charge(step, pending.remaining, pending.reset, self.at)
            };
            self.quotas.push(quota(rule, step, remaining, reset, false));
        }
        self.quotas.sort_by_key(|quota| quota.rule);
    }
}

/// What is left, and until when. `None` if no counter was read.
fn left(step: &Step, result: &StepResult, at: Timestamp) -> Option<(u64, Duration)> {
    if let KeyStatus::Banned { until, .. } = result.status {
        return Some((0, until.since(at)));
    }
    let reading = result.reading?;
    let reset = if step.limiter.algorithm.holds_leases() {
        SLOT_HINT
    } else if acted(step, result) {
        // Where no wait helps, what is left at least becomes no less.
        reading.retry_after().unwrap_or(reading.reset_after())
    } else {
        reading.reset_after()
    };
    Some((reading.remaining, reset))
}

fn quota(rule: &Rule, step: &Step, remaining: u64, reset: Duration, acted: bool) -> QuotaStatus {
    let limit = rule.limiter.map_or(0, |limiter| limiter.limit);
    let reset = whole_seconds(reset);
    QuotaStatus {
        rule: step.rule,
        remaining: remaining.min(limit),
        reset: if acted { reset.max(1) } else { reset },
    }
}

/// What a charge of the step's cost leaves of so much, and until when.
fn after_charge(step: &Step, remaining: u64, reset: Duration, at: Timestamp) -> (u64, Duration) {
    let limiter = &step.limiter;
    let alone = Counter::new(limiter.shape(), limiter)
        .charge(limiter, at, step.cost, 0)
        .reset_after();
    let reset = match limiter.algorithm.row().recovery {
        // Each was rounded up; together they are rounded up once.
        RecoveryKind::Refills => {
            let rounding = Duration::from_micros(drains_unevenly(step).into());
            reset.saturating_add(alone).saturating_sub(rounding)
        }
        // The newest unit expires last.
        RecoveryKind::Expires | RecoveryKind::Released => reset.max(alone),
    };
    (remaining.saturating_sub(step.cost), reset)
}

/// Whether the cost drains in a time that is no whole number of microseconds.
fn drains_unevenly(step: &Step) -> bool {
    let drains = step
        .limiter
        .period
        .as_micros()
        .checked_mul(step.cost.into());
    let rest = drains.and_then(|drains| drains.checked_rem(step.limiter.limit.into()));
    rest.is_some_and(|rest| rest > 0)
}

/// From now until a retry is admitted; `None`: waiting does not help.
pub(super) fn retry_wait(result: &StepResult, at: Timestamp) -> Option<Duration> {
    match result.status {
        KeyStatus::Banned { until, .. } => Some(until.since(at)),
        KeyStatus::Over => result.reading?.retry_after(),
        KeyStatus::Within => None,
    }
}

/// From now until the turn of a request that is held; `None`: it has none.
pub(super) fn turn_wait(step: &Step, result: &StepResult, at: Timestamp) -> Option<Duration> {
    match result.status {
        KeyStatus::Over => step.limiter.wait_for_turn(&result.reading?),
        _ => retry_wait(result, at),
    }
}

/// `duration`, rounded up.
pub(super) fn whole_seconds(duration: Duration) -> u64 {
    duration.as_secs() + u64::from(duration.subsec_nanos() > 0)
}
