//! The quota headers of a rule: the units left, and the time until a retry.
//!
//! `q` is the rule's limit and `w` its period, whatever the algorithm and the burst. `r` is what the key can send
//! now, at most `q`. `concurrency` has no period: its `t` is a hint of one second after which a retry may fit.
//!
//! A shadow response carries the quota headers that the origin server's response would have carried: the
//! rules after the one that acted were only peeked at, and the units left after a charge are computed here.

use std::time::Duration;

use super::decide::is_mitigated;
use super::{KeyStatus, Plan, Rule, RuleSet, Step, StepOp, StepResult};
use crate::clock::Timestamp;
use crate::decision::{Decision, PendingQuota, QuotaStatus};
use crate::expr::FieldFacts;
use crate::limit::{Counter, RecoveryKind};

/// When a slot may become free. The real time is unknown, so this is a hint.
const SLOT_HINT: Duration = Duration::from_secs(1);

// === impl RuleSet ===

impl RuleSet {
    /// Adds the quota headers that the origin server's response in `facts` would carry. Nothing is counted.
    pub fn add_shadow_quotas(&self, decision: &mut Decision, facts: &dyn FieldFacts) {
        if !decision.pending_quotas.is_empty() {
            let settled = self.settle(facts, decision.settle_before);
            decision.add_settled_quotas(self, &settled);
        }
    }
}

// === impl Decision ===

impl Decision {
    /// Adds the quota of a rule that counts the request, now or in the response phase.
    pub(super) fn add_quota(&mut self, rule: &Rule, step: &Step, result: &StepResult) {
        if !rule.sends_quota_headers() || step.op == StepOp::Always {
            return;
        }
        let Some((remaining, reset)) = left(step, result, self.at) else {
            return;
        };
        let acted = is_mitigated(step, result);
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

    /// Adds the quotas of the rules that count the response, as they are after it.
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

/// The units left, and the time until the reset. `None` if no counter was read.
fn left(step: &Step, result: &StepResult, at: Timestamp) -> Option<(u64, Duration)> {
    if let KeyStatus::Banned { until, .. } = result.status {
        return Some((0, until.since(at)));
    }
    let reading = result.reading?;
    let reset = if step.limiter.algorithm.holds_leases() {
        SLOT_HINT
    } else if is_mitigated(step, result) {
        // If no wait helps, the time until the counter is empty.
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

/// The units left and the time until the reset, after the step's cost is charged.
fn after_charge(step: &Step, remaining: u64, reset: Duration, at: Timestamp) -> (u64, Duration) {
    let limiter = &step.limiter;
    let alone = Counter::new(limiter.shape(), limiter)
        .charge(limiter, at, step.cost, 0)
        .reset_after();
    let reset = match limiter.algorithm.row().recovery {
        // Both times were rounded up; their sum is rounded up only once.
        RecoveryKind::Refills => {
            let rounding = Duration::from_micros(drains_unevenly(step).into());
            reset.saturating_add(alone).saturating_sub(rounding)
        }
        // The newest unit expires last.
        RecoveryKind::Expires | RecoveryKind::Released => reset.max(alone),
    };
    (remaining.saturating_sub(step.cost), reset)
}

/// Whether the time in which the cost drains is not a whole number of microseconds.
fn drains_unevenly(step: &Step) -> bool {
    let drains = step
        .limiter
        .period
        .as_micros()
        .checked_mul(step.cost.into());
    let rest = drains.and_then(|drains| drains.checked_rem(step.limiter.limit.into()));
    rest.is_some_and(|rest| rest > 0)
}

/// The time until a retry is admitted. `None` if no wait helps.
pub(super) fn retry_wait(result: &StepResult, at: Timestamp) -> Option<Duration> {
    match result.status {
        KeyStatus::Banned { until, .. } => Some(until.since(at)),
        KeyStatus::Over => result.reading?.retry_after(),
        KeyStatus::Within => None,
    }
}

/// The time until the turn of a held request. `None` if it never has one.
pub(super) fn turn_wait(step: &Step, result: &StepResult, at: Timestamp) -> Option<Duration> {
    match result.status {
        KeyStatus::Over => step.limiter.wait_for_turn(&result.reading?),
        _ => retry_wait(result, at),
    }
}

/// `duration` in seconds, rounded up.
pub(super) fn whole_seconds(duration: Duration) -> u64 {
    duration.as_secs() + u64::from(duration.subsec_nanos() > 0)
}
