//! The limiters of a rule: its own, and that of its candidate.

use std::time::Duration;

use super::file::{Candidate, Rule};
use crate::limit::{Capacity, Limiter};

/// The rule's own limiter. `None` if it has no limit, or not all of it.
pub(super) fn of(rule: &Rule) -> Option<Limiter> {
    build(rule, None)
}

/// The limiter of the candidate, with the rule's values for those that it leaves out.
pub(super) fn of_candidate(rule: &Rule) -> Option<Limiter> {
    build(rule, Some(rule.candidate.as_ref()?))
}

/// The largest cost that can ever be admitted.
pub(super) fn most(limiter: &Limiter) -> u64 {
    match limiter.algorithm.row().capacity {
        Capacity::Limit => limiter.limit,
        Capacity::Burst => limiter.burst,
        Capacity::Queue => u64::from(limiter.queue) + 1,
    }
}

/// A value applies only to the algorithms that know it.
fn build(rule: &Rule, own: Option<&Candidate>) -> Option<Limiter> {
    let algorithm = own.and_then(|own| own.algorithm.as_ref());
    let algorithm = algorithm.unwrap_or(&rule.algorithm).value;
    let limit = own.and_then(|own| own.limit.as_ref());
    let limit = u64::from(limit.or(rule.limit.as_ref())?.value);
    let period = own.and_then(|own| own.period.as_ref());
    let period = period.or(rule.period.as_ref()).map(|period| period.value);
    let burst = own.and_then(|own| own.burst.as_ref());
    let burst = burst.or(rule.burst.as_ref()).map(|burst| burst.value);
    let slices = own.and_then(|own| own.slices.as_ref());
    let queue = own.and_then(|own| own.queue.as_ref());
    let period = if algorithm.holds_leases() {
        Duration::ZERO
    } else {
        period?
    };
    let mut limiter = Limiter::new(algorithm, limit, period);
    limiter.max_wait = rule.max_delay.value;
    if algorithm.has_burst() {
        limiter.burst = burst.map_or(limit, u64::from);
    }
    if algorithm.row().has_slices {
        limiter.slices = slices.unwrap_or(&rule.slices).value;
    }
    if algorithm.has_queue() {
        limiter.queue = queue.unwrap_or(&rule.queue).value;
    }
    Some(limiter)
}
