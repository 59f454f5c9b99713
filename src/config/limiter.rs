//! The limits of a rule as the arithmetic knows them: its own, and the one that it tries.

use std::time::Duration;

use super::Spanned;
use super::file::{Candidate, Rule};
use crate::limit::{Algorithm, Limiter};

/// The rule's own limit; `None`: it has none, or not all of it.
pub(super) fn of(rule: &Rule) -> Option<Limiter> {
    let algorithm = rule.algorithm.value;
    let limit = u64::from(rule.limit.as_ref()?.value);
    let period = period(algorithm, rule.period.as_ref())?;
    Some(Limiter {
        burst: of_buckets(algorithm, rule.burst.as_ref()).unwrap_or(limit),
        slices: of_windows(algorithm, rule.slices.value),
        queue: of_queues(algorithm, rule.queue.value),
        max_wait: rule.max_delay.value,
        ..Limiter::new(algorithm, limit, period)
    })
}

/// The limit that is tried beside it. What the candidate does not say is as in the rule, where it
/// has a meaning.
pub(super) fn of_candidate(rule: &Rule) -> Option<Limiter> {
    let own = rule.candidate.as_ref()?;
    let algorithm = algorithm(rule, own);
    let limit = own.limit.as_ref().or(rule.limit.as_ref())?;
    let limit = u64::from(limit.value);
    let period = period(algorithm, own.period.as_ref().or(rule.period.as_ref()))?;
    let burst = own.burst.as_ref().or(rule.burst.as_ref());
    let slices = own.slices.as_ref().unwrap_or(&rule.slices);
    let queue = own.queue.as_ref().unwrap_or(&rule.queue);
    Some(Limiter {
        burst: of_buckets(algorithm, burst).unwrap_or(limit),
        slices: of_windows(algorithm, slices.value),
        queue: of_queues(algorithm, queue.value),
        max_wait: rule.max_delay.value,
        ..Limiter::new(algorithm, limit, period)
    })
}

/// The largest cost that can ever be admitted.
pub(super) fn most(limiter: &Limiter) -> u64 {
    match limiter.algorithm {
        Algorithm::TokenBucket | Algorithm::Gcra => limiter.burst,
        Algorithm::LeakyBucket => u64::from(limiter.queue) + 1,
        Algorithm::SlidingWindow
        | Algorithm::FixedWindow
        | Algorithm::SlidingLog
        | Algorithm::Concurrency => limiter.limit,
    }
}

fn algorithm(rule: &Rule, candidate: &Candidate) -> Algorithm {
    let own = candidate.algorithm.as_ref();
    own.map_or(rule.algorithm.value, |own| own.value)
}

/// What is in flight is counted for no time.
fn period(algorithm: Algorithm, written: Option<&Spanned<Duration>>) -> Option<Duration> {
    match algorithm {
        Algorithm::Concurrency => Some(Duration::ZERO),
        _ => written.map(|period| period.value),
    }
}

fn of_buckets(algorithm: Algorithm, burst: Option<&Spanned<u32>>) -> Option<u64> {
    let bucket = matches!(algorithm, Algorithm::TokenBucket | Algorithm::Gcra);
    burst.filter(|_| bucket).map(|burst| u64::from(burst.value))
}

fn of_windows(algorithm: Algorithm, slices: u16) -> u16 {
    match algorithm {
        Algorithm::SlidingWindow => slices,
        _ => 1,
    }
}

fn of_queues(algorithm: Algorithm, queue: u32) -> u32 {
    match algorithm {
        Algorithm::LeakyBucket => queue,
        _ => 0,
    }
}
