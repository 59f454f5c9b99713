//! What a client is told of a rule: what is left, and when it may come back.
//!
//! `q` is the rule's limit and `w` its period, whatever the algorithm and the burst. `r` is what
//! the key can send at this moment, at most `q`. `concurrency` has no period: its `t` is the second
//! after which it is worth another try.

use std::time::Duration;

use super::decide::acted;
use super::{Finding, Op, Rule, Standing, Step};
use crate::clock::Timestamp;
use crate::decision::{Decision, Quota};
use crate::limit::Algorithm;

/// When a place may be free again. Nobody knows: a hint.
const PLACE: Duration = Duration::from_secs(1);

// === impl Decision ===

impl Decision {
    /// Takes in what the client may know of a rule that counts it, now or at the response.
    pub(super) fn tell(&mut self, rule: &Rule, step: &Step, finding: &Finding, now: Timestamp) {
        if !rule.tells() || step.op == Op::Always {
            return;
        }
        let Some(quota) = quota(rule, step, finding, now) else {
            return;
        };
        if acted(step, finding) || matches!(step.op, Op::Admit | Op::Charge) {
            self.quotas.push(quota);
        } else if rule.counts_response() {
            self.tentative.push(quota);
        }
    }
}

fn quota(rule: &Rule, step: &Step, finding: &Finding, now: Timestamp) -> Option<Quota> {
    let acted = acted(step, finding);
    let (remaining, reset) = match (finding.standing, finding.reading) {
        (Standing::Banned { until, .. }, _) => (0, until.since(now)),
        (_, Some(reading)) if step.limiter.algorithm == Algorithm::Concurrency => {
            (reading.remaining, PLACE)
        }
        // Where no wait helps, what is left at least becomes no less.
        (_, Some(reading)) if acted => (
            reading.remaining,
            reading.retry_after().unwrap_or(reading.reset_after()),
        ),
        (_, Some(reading)) => (reading.remaining, reading.reset_after()),
        (_, None) => return None,
    };
    let limit = rule.limiter.map_or(0, |limiter| limiter.limit);
    Some(Quota {
        rule: step.rule,
        remaining: remaining.min(limit),
        reset: match acted {
            true => whole_seconds(reset).max(1),
            false => whole_seconds(reset),
        },
    })
}

/// From now until a retry is admitted; `None`: waiting does not help.
pub(super) fn rest(finding: &Finding, now: Timestamp) -> Option<Duration> {
    match finding.standing {
        Standing::Banned { until, .. } => Some(until.since(now)),
        Standing::Over => finding.reading?.retry_after(),
        Standing::Within => None,
    }
}

/// From now until the turn of a request that is held; `None`: it has none.
pub(super) fn turn(step: &Step, finding: &Finding, now: Timestamp) -> Option<Duration> {
    match finding.standing {
        Standing::Over => step.limiter.turn(&finding.reading?),
        _ => rest(finding, now),
    }
}

/// `duration`, rounded up.
pub(super) fn whole_seconds(duration: Duration) -> u64 {
    duration.as_secs() + u64::from(duration.subsec_nanos() > 0)
}
