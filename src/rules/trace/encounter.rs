//! The results of one rule for one request.

use std::time::Duration;

use super::{CandidateTrace, TraceVerdict, TracedShare};
use crate::clock::Timestamp;
use crate::decision::{Action, Decision};
use crate::limit::Limiter;
use crate::rules::decide::is_mitigated;
use crate::rules::planner::RuleMatch;
use crate::rules::quota::turn_wait;
use crate::rules::{KeyStatus, Rule, Step, StepOp, StepResult};

/// A rule, a request and the results of both phases.
pub(super) struct RuleEncounter<'a> {
    pub(super) rule: &'a Rule,
    pub(super) matched: RuleMatch,
    /// Whether `count` matched in the phase in which it is evaluated.
    pub(super) counts: Option<bool>,
    pub(super) own: TracedStatus<'a>,
    pub(super) candidate: TracedStatus<'a>,
    /// The first missing key part, if it makes the rule skip the request.
    pub(super) missing_part: Option<&'a str>,
    /// The rule that ended evaluation before this one.
    pub(super) ended_by: Option<&'a Rule>,
    pub(super) decision: &'a Decision,
    pub(super) now: Timestamp,
}

/// A store's results for a rule or its candidate, in each phase.
#[derive(Clone, Copy)]
pub(super) struct TracedStatus<'a> {
    pub(super) planned: Option<(&'a Step, &'a StepResult)>,
    pub(super) settled: Option<(&'a Step, &'a StepResult)>,
}

// === impl RuleEncounter ===

impl<'a> RuleEncounter<'a> {
    pub(super) fn verdict(&self) -> TraceVerdict {
        let action = self.rule.action;
        if self.ended_by.is_some() {
            TraceVerdict::NotReached
        } else if self.has_passed() {
            TraceVerdict::Passed
        } else if self.acted() && self.rule.dry_run {
            TraceVerdict::Would(action)
        } else if self.acted() {
            TraceVerdict::Acted(action)
        } else if self.missing_part.is_some() {
            TraceVerdict::Skip
        } else {
            self.own.verdict()
        }
    }

    /// What the candidate would have done. `None` if it was not reached.
    pub(super) fn candidate_trace(&self) -> Option<CandidateTrace> {
        let (step, _) = self.candidate.last()?;
        let (value, remaining) = self.candidate.used().unzip();
        Some(CandidateTrace {
            verdict: if self.candidate.acted() {
                TraceVerdict::Would(self.rule.action)
            } else {
                self.candidate.verdict()
            },
            value: value.flatten(),
            limit: step.limiter.limit,
            capacity: step.limiter.capacity(),
            remaining,
            share: self.candidate.share(),
            banned_for: self.candidate.banned_for(self.now),
        })
    }

    /// Whether the action was taken, or would have been.
    pub(super) fn acted(&self) -> bool {
        self.ended_by.is_none() && self.own.acted()
    }

    /// Whether the rule would have challenged the request, but let it pass.
    pub(super) fn has_passed(&self) -> bool {
        let step = self.own.planned.map(|(step, _)| step);
        self.acted() && step.is_some_and(|step| self.rule.has_passed(step))
    }

    /// The limiter of the key. `None` if it is not known.
    pub(super) fn limiter(&self) -> Option<Limiter> {
        let found = self.own.last().map(|(step, _)| step.limiter);
        found
            .filter(|_| self.rule.limiter.is_some())
            .or(self.rule.limiter)
    }

    /// The cost that is counted. `None` if nothing is counted.
    pub(super) fn cost(&self) -> Option<u64> {
        let (step, _) = self.own.last()?;
        matches!(step.op, StepOp::Admit | StepOp::Charge).then_some(step.cost)
    }

    /// How long this rule holds the request. `None` if it does not.
    pub(super) fn held_for(&self) -> Option<Duration> {
        if self.ended_by.is_some() || self.rule.dry_run || self.decision.hold.is_zero() {
            return None;
        }
        let (step, step_result) = self.own.planned?;
        let max_delay = self.rule.max_delay;
        let held = match (is_mitigated(step, step_result), self.rule.action) {
            (true, Action::Delay) => {
                turn_wait(step, step_result, self.now).map_or(max_delay, |turn| turn.min(max_delay))
            }
            (true, Action::Tarpit) => max_delay,
            (false, _) if step.op == StepOp::Admit => step_result.reading?.wait(),
            _ => return None,
        };
        (!held.is_zero()).then_some(held)
    }
}

// === impl TracedStatus ===

impl<'a> TracedStatus<'a> {
    /// The verdict if the rule did not act.
    fn verdict(&self) -> TraceVerdict {
        if self.charged() {
            TraceVerdict::Counted
        } else if self.planned.is_some_and(|(step, _)| step.mitigates) {
            TraceVerdict::Within
        } else {
            TraceVerdict::NoMatch
        }
    }

    fn acted(&self) -> bool {
        self.planned
            .is_some_and(|(step, step_result)| is_mitigated(step, step_result))
    }

    fn charged(&self) -> bool {
        let counted = |(step, step_result): (&Step, &StepResult)| {
            let banned = matches!(step_result.status, KeyStatus::Banned { started: false, .. });
            matches!(step.op, StepOp::Admit | StepOp::Charge) && !banned
        };
        [self.planned, self.settled]
            .into_iter()
            .flatten()
            .any(counted)
    }

    /// The last step and result.
    pub(super) fn last(&self) -> Option<(&'a Step, &'a StepResult)> {
        self.settled.or(self.planned)
    }

    /// The units used (`None` if the key is banned) and the units left.
    pub(super) fn used(&self) -> Option<(Option<u64>, u64)> {
        let (step, step_result) = self.last()?;
        if matches!(step_result.status, KeyStatus::Banned { .. }) {
            return Some((None, 0));
        }
        let remaining = step_result.reading?.remaining;
        let used = match self.share() {
            Some(share) => share.count,
            None => step.limiter.capacity().saturating_sub(remaining),
        };
        Some((Some(used), remaining))
    }

    /// The share of a rule with a ratio. `None` if the key is banned.
    pub(super) fn share(&self) -> Option<TracedShare> {
        let (step, step_result) = self.last()?;
        share_of(step, step_result)
    }

    pub(super) fn banned_for(&self, now: Timestamp) -> Option<Duration> {
        match self.last()?.1.status {
            KeyStatus::Banned { until, .. } => Some(until.since(now)),
            _ => None,
        }
    }
}

/// The share that the counters of a rule with a ratio had. `None` if the key is banned or was not read.
pub(super) fn share_of(step: &Step, step_result: &StepResult) -> Option<TracedShare> {
    if matches!(step_result.status, KeyStatus::Banned { .. }) {
        return None;
    }
    let (ratio, reading) = step.limiter.ratio.zip(step_result.reading)?;
    Some(TracedShare {
        count: reading.share.count.into(),
        total: reading.share.total.into(),
        ratio: ratio.as_f64(),
    })
}
