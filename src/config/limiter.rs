//! The limiters of a rule: its own, and that of its candidate.

use std::time::Duration;

use super::file::{CandidateSettings, RuleSettings};
use crate::limit::{Limiter, ShareRatio};

/// Returns the rule's limiter. `None` if its limit is absent or incomplete.
pub(super) fn of(rule: &RuleSettings) -> Option<Limiter> {
    build(rule, &CandidateSettings::default())
}

/// Returns the candidate's limiter. Absent settings have the rule's values.
pub(super) fn of_candidate(rule: &RuleSettings) -> Option<Limiter> {
    build(rule, rule.candidate.as_ref()?)
}

/// Builds a limiter. A setting is used only by the algorithms that have it.
fn build(rule: &RuleSettings, own: &CandidateSettings) -> Option<Limiter> {
    let algorithm = own.algorithm.as_ref().unwrap_or(&rule.algorithm).value;
    let limit = own.limit.as_ref().or(rule.limit.as_ref())?;
    let limit = u64::from(limit.value);
    let period = own.period.as_ref().or(rule.period.as_ref());
    let period = if algorithm.holds_leases() {
        Duration::ZERO
    } else {
        period?.value
    };
    let burst = own.burst.as_ref().or(rule.burst.as_ref());
    let mut limiter = Limiter::new(algorithm, limit, period);
    limiter.max_wait = rule.max_delay.value;
    if algorithm.has_burst() {
        limiter.burst = burst.map_or(limit, |burst| burst.value.into());
    }
    if algorithm.row().has_slices {
        limiter.slices = own.slices.as_ref().unwrap_or(&rule.slices).value;
    }
    if algorithm.has_queue() {
        limiter.queue = own.queue.as_ref().unwrap_or(&rule.queue).value;
    }
    if algorithm.has_ratio() {
        let ratio = own.ratio.as_ref().or(rule.ratio.as_ref());
        limiter.ratio = ratio.map(|ratio| ShareRatio::nearest(ratio.value));
    }
    Some(limiter)
}
