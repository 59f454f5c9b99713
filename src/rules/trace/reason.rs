//! A short text on why a rule acted, or why it did not.

use super::encounter::share_of;
use super::words::{length, past, span};
use super::{RuleEncounter, TracedCondition};
use crate::clock::Timestamp;
use crate::decision::Action;
use crate::expr::Predicate;
use crate::rules::{BanLength, KeyStatus, RuleCost, RuleScope, Step, StepOp, StepResult};

/// The most parts of an expression that a reason names.
const MOST: usize = 3;

/// The reason for what the rule did.
pub(super) fn why(
    met: &RuleEncounter<'_>,
    conditions: &[(&'static str, TracedCondition)],
) -> String {
    let reason = WrittenReason { met, conditions };
    if let Some(ending_rule) = met.ended_by {
        return reason.not_reached(&ending_rule.name);
    }
    if let Some((step, step_result)) = met.own.planned.filter(|_| met.acted()) {
        let acted = reason.acted(step, step_result);
        // After an action that forwards, the response still counts.
        let response = met.own.settled.and_then(|_| reason.response());
        return [acted]
            .into_iter()
            .chain(response)
            .collect::<Vec<_>>()
            .join("; ");
    }
    if let Some(part) = met.missing_part {
        return format!("key part `{part}` is missing and missing = \"skip\"");
    }
    let mut parts = reason.request();
    parts.extend(reason.response());
    parts.join("; ")
}

struct WrittenReason<'a> {
    met: &'a RuleEncounter<'a>,
    conditions: &'a [(&'static str, TracedCondition)],
}

// === impl WrittenReason ===

impl WrittenReason<'_> {
    fn not_reached(&self, ender: &str) -> String {
        let looked = match (self.met.own.planned, self.met.decision.verdict) {
            (Some(_), verdict) if verdict.poses_as_origin() => {
                "; its counter was read for the quota headers"
            }
            (Some(_), _) => "; its counter was read for Retry-After",
            (None, _) => "",
        };
        format!("not reached: rule {ender} ended the evaluation{looked}")
    }

    fn acted(&self, step: &Step, step_result: &StepResult) -> String {
        let because = match step_result.status {
            _ if step.op == StepOp::Always => {
                "the request matched, and the rule has no limit".to_owned()
            }
            KeyStatus::Banned {
                started: true,
                until,
            } => format!("this request is {}", self.begins_ban(step, until)),
            KeyStatus::Banned { until, .. } => {
                format!("banned for another {}", self.length(until))
            }
            _ => over(step, step_result),
        };
        if self.met.has_passed() {
            return format!("passed, with a clearance or as a CORS preflight: {because}");
        }
        let did = match self.met.held_for() {
            Some(held) if self.met.rule.action == Action::Tarpit => {
                format!("held for {} and blocked", span(held))
            }
            Some(held) => format!("held for {}", span(held)),
            None => past(self.met.rule.action).to_owned(),
        };
        let turn = self.was_delayed_and_counted(step, step_result);
        if self.met.rule.dry_run {
            format!("dry_run: would have {did}: {because}{turn}")
        } else {
            format!("{did}: {because}{turn}")
        }
    }

    /// Whether a delayed request was counted, as text.
    fn was_delayed_and_counted(&self, step: &Step, step_result: &StepResult) -> &'static str {
        let delayed = self.met.rule.action == Action::Delay && step.op == StepOp::Admit;
        match step_result.status {
            KeyStatus::Over if delayed && step_result.charged => {
                "; counted, because its turn comes when the wait ends"
            }
            KeyStatus::Over if delayed => "; not counted, because its turn would come later",
            _ => "",
        }
    }

    fn begins_ban(&self, step: &Step, until: Timestamp) -> String {
        let ban = until.since(self.met.now);
        let entry = match &self.met.rule.ban {
            BanLength::Escalating(lengths) => lengths.iter().position(|length| *length == ban),
            _ => None,
        };
        let entry = entry.map_or(String::new(), |entry| {
            format!(", entry {} of `escalate`", entry + 1)
        });
        format!("{}: banned for {}{entry}", above(step), length(ban))
    }

    /// The reasons from the request phase.
    fn request(&self) -> Vec<String> {
        let met = self.met;
        let Some((step, step_result)) = met.own.planned else {
            return self.unmatched();
        };
        let counted = match (step.op, step_result.status) {
            (StepOp::Admit, _) => return vec![self.admitted(step, step_result)],
            (StepOp::Charge, KeyStatus::Within) => counted(step, step_result),
            (StepOp::Charge, KeyStatus::Over) => {
                format!("{}, {}", charged(step, step_result), above(step))
            }
            (
                StepOp::Charge,
                KeyStatus::Banned {
                    started: true,
                    until,
                },
            ) => format!(
                "{}, {}",
                charged(step, step_result),
                self.begins_ban(step, until)
            ),
            (StepOp::Charge, KeyStatus::Banned { until, .. }) => {
                format!("banned for another {}, so not charged", self.length(until))
            }
            _ if step.mitigates && met.rule.ban.is_never() => {
                format!("`mitigate` matched, but {}", not_over(step, step_result))
            }
            _ if step.mitigates => "`mitigate` matched, but the key is not banned".to_owned(),
            _ => return vec![self.mismatch("mitigate")],
        };
        if !step.mitigates {
            vec![counted, self.mismatch("mitigate")]
        } else if met.matched.counts == Some(false) || met.matched.only_total {
            vec![counted, self.mismatch("count")]
        } else {
            vec![counted]
        }
    }

    fn admitted(&self, step: &Step, step_result: &StepResult) -> String {
        let counted = counted(step, step_result);
        let wait = step_result.reading.map(|reading| reading.wait());
        match wait.filter(|wait| !wait.is_zero()) {
            Some(wait) if self.met.rule.dry_run => {
                format!(
                    "dry_run: {counted}, and would wait {} for its turn",
                    span(wait)
                )
            }
            Some(wait) => format!("{counted}, and waits {} for its turn", span(wait)),
            None if step.limiter.ratio.is_some() => format!("{counted}: not over"),
            None => format!("{counted}: within the limit"),
        }
    }

    fn unmatched(&self) -> Vec<String> {
        let met = self.met;
        let one = matches!(met.rule.scope, RuleScope::Same(_)) || met.matched.counts.is_none();
        if one {
            vec![self.mismatch("mitigate")]
        } else {
            vec![self.mismatch("count"), self.mismatch("mitigate")]
        }
    }

    /// The reason from the response phase, for a rule that counts responses.
    fn response(&self) -> Option<String> {
        let met = self.met;
        if !met.rule.counts_response() {
            return None;
        }
        let Some((step, step_result)) = met.own.settled else {
            return Some(self.unsettled());
        };
        Some(match step_result.status {
            KeyStatus::Within => format!("the response {}", counted(step, step_result)),
            KeyStatus::Over => {
                format!(
                    "the response {}, {}: the rule acts on the next requests",
                    charged(step, step_result),
                    above(step)
                )
            }
            KeyStatus::Banned {
                started: true,
                until,
            } => {
                let begins = self.begins_ban(step, until);
                format!(
                    "the response {}, {begins} from now on",
                    charged(step, step_result)
                )
            }
            KeyStatus::Banned { until, .. } => format!(
                "banned for another {}, so the response is not charged",
                self.length(until)
            ),
        })
    }

    /// Why the response was not counted.
    fn unsettled(&self) -> String {
        let rule = self.met.rule;
        let asks = if rule.predicates().0.reads_response() {
            "count"
        } else if rule.total().is_some_and(Predicate::reads_response) {
            "total"
        } else {
            "cost"
        };
        match (self.met.counts, &rule.cost) {
            (None, _) => format!("`{asks}` reads the response, and this response never counts"),
            (Some(true), RuleCost::Header(name)) => {
                format!("the response has no whole number in `{name}`, so nothing is counted")
            }
            (Some(_), _) if rule.total().is_some() => {
                format!("{}; {}", self.mismatch("count"), self.mismatch("total"))
            }
            (Some(_), _) => self.mismatch("count"),
        }
    }

    /// Why `count` or `mitigate` did not match.
    fn mismatch(&self, key: &str) -> String {
        let subject = match self.met.rule.scope {
            RuleScope::Same(_) => String::new(),
            RuleScope::Separate { .. } | RuleScope::Share { .. } => format!("`{key}` "),
        };
        let mut named = self.conditions.iter();
        let Some((_, condition)) = named.find(|(label, _)| *label == key || *label == "both")
        else {
            return format!("{subject}did not match");
        };
        let decisive = condition.decisive();
        let shown = decisive.iter().take(MOST).map(|part| part.describe());
        let shown = shown.collect::<Vec<_>>().join(", and ");
        let more = match decisive.len().checked_sub(MOST) {
            Some(more) if more > 0 => format!(", and {more} more"),
            _ => String::new(),
        };
        format!("{subject}did not match: {shown}{more}")
    }

    fn length(&self, until: Timestamp) -> String {
        length(until.since(self.met.now))
    }
}

/// Why a request does not fit.
fn over(step: &Step, step_result: &StepResult) -> String {
    let (used, room) = used(step, step_result);
    let cost = step.cost;
    let algorithm = step.limiter.algorithm;
    if let Some(share) = share_of(step, step_result) {
        let would = if step.op == StepOp::Admit {
            "with this request "
        } else {
            ""
        };
        return format!("{would}{}: counted {share}", above(step));
    }
    match cost {
        _ if cost > room => format!("it costs {cost}, and the rule never admits more than {room}"),
        _ if algorithm.holds_leases() => {
            format!("over the limit, {used} of {room} are in flight")
        }
        1 if algorithm.has_queue() && used < room => {
            "its turn would come later than it is allowed to wait".to_owned()
        }
        _ if algorithm.has_queue() => {
            format!("the queue is full, {} wait", step.limiter.queue)
        }
        1 => format!("over the limit, {used} of {room} are used"),
        _ => format!("over the limit, it costs {cost} and {used} of {room} are used"),
    }
}

/// What is above which limit.
fn above(step: &Step) -> String {
    let limit = step.limiter.limit;
    match step.limiter.ratio {
        Some(ratio) => format!(
            "above the limit of {limit} and the ratio of {}",
            ratio.as_f64()
        ),
        None => format!("above the limit of {limit}"),
    }
}

/// Why a throttled key is not mitigated.
fn not_over(step: &Step, step_result: &StepResult) -> String {
    let limit = step.limiter.limit;
    if let Some(share) = share_of(step, step_result) {
        return format!("counted {share}: not above both the limit of {limit} and the ratio");
    }
    let (used, room) = used(step, step_result);
    format!("only {used} of {room} are used")
}

/// What was charged above the limit, as text.
fn charged(step: &Step, step_result: &StepResult) -> String {
    let name = if step.only_total {
        "counted in the total"
    } else {
        "counted"
    };
    match share_of(step, step_result) {
        Some(share) => format!("{name} {share}"),
        None => name.to_owned(),
    }
}

/// What was counted, as text.
fn counted(step: &Step, step_result: &StepResult) -> String {
    if step.limiter.ratio.is_some() {
        return charged(step, step_result);
    }
    let (used, room) = used(step, step_result);
    let flight = if step.limiter.algorithm.holds_leases() {
        " in flight"
    } else {
        ""
    };
    match step.cost {
        0 => format!("cost nothing, {used} of {room} are used"),
        1 => format!("counted {used} of {room}{flight}"),
        cost => format!("cost {cost} and counted {used} of {room}{flight}"),
    }
}

/// The units used, and the most that fit.
fn used(step: &Step, step_result: &StepResult) -> (u64, u64) {
    let room = step.limiter.capacity();
    let left = step_result.reading.map_or(0, |reading| reading.remaining);
    (room.saturating_sub(left), room)
}
