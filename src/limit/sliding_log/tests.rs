//! Examples: the edges of the window, and which entries are merged or dropped.

use std::time::Duration;

use super::UnitLog;
use crate::limit::samples::{SECOND, START, at};
use crate::limit::{Algorithm, Limiter, MAX_LIMIT};

fn per_minute(limit: u64) -> Limiter {
    Limiter::new(Algorithm::SlidingLog, limit, Duration::from_secs(60))
}

#[test]
fn a_unit_counts_for_exactly_a_period() {
    let limiter = per_minute(1);
    let mut log = UnitLog::default();
    let first = log.admit(&limiter, at(START), 1);
    assert_eq!((first.fits, first.remaining), (true, 0));
    assert_eq!(first.reset_after(), Duration::from_secs(60));
    let early = log.admit(&limiter, at(START + 60 * SECOND - 1), 1);
    assert_eq!(early.retry_after(), Some(Duration::from_micros(1)));
    assert!(log.admit(&limiter, at(START + 60 * SECOND), 1).fits);
}

#[test]
fn a_cost_waits_for_as_many_to_leave() {
    let limiter = per_minute(3);
    let mut log = UnitLog::default();
    for second in [0, 10, 20] {
        log.admit(&limiter, at(START + second * SECOND), 1);
    }
    let now = at(START + 30 * SECOND);
    let mut retry = |cost| log.peek(&limiter, now, cost).retry_after();
    assert_eq!(retry(1), Some(Duration::from_secs(30)));
    assert_eq!(retry(2), Some(Duration::from_secs(40)));
    assert_eq!(retry(3), Some(Duration::from_secs(50)));
    assert_eq!(retry(4), None);
}

#[test]
fn one_moment_is_one_entry() {
    let limiter = per_minute(100);
    let mut log = UnitLog::default();
    for _ in 0..50 {
        log.admit(&limiter, at(START), 2);
    }
    assert_eq!(log.entries().collect::<Vec<_>>(), [(at(START), 100)]);
}

#[test]
fn what_is_far_past_the_limit_is_forgotten() {
    let limiter = per_minute(10);
    let mut log = UnitLog::default();
    for second in 0..50 {
        log.charge(&limiter, at(START + second * SECOND), 3);
    }
    assert_eq!(log.entries().count(), 4);
    assert_eq!(log.total, 11);
    log.charge(&limiter, at(START + 50 * SECOND), u64::MAX);
    assert_eq!(log.entries().count(), 1);
}

#[test]
fn the_largest_limit_needs_a_unit_more_than_an_entry_holds() {
    let limiter = per_minute(MAX_LIMIT);
    let mut log = UnitLog::default();
    log.charge(&limiter, at(START), u64::MAX);
    assert_eq!(log.entries().count(), 2);
    assert!(!log.peek(&limiter, at(START), 0).fits);
}

#[test]
fn memory_is_given_back() {
    let limiter = per_minute(10_000);
    let mut log = UnitLog::default();
    for moment in 0..10_000 {
        log.admit(&limiter, at(START + moment), 1);
    }
    assert!(log.heap_bytes() >= 120_000);
    log.peek(&limiter, at(START + 60 * SECOND + 9_990), 1);
    assert!(log.heap_bytes() < 400);
}

#[test]
fn a_clock_that_was_set_back_moves_the_log() {
    let limiter = per_minute(2);
    let mut log = UnitLog::default();
    log.admit(&limiter, at(START), 1);
    log.admit(&limiter, at(START + 20 * SECOND), 1);
    let back = log.admit(&limiter, at(START - 3_600 * SECOND), 1);
    assert_eq!(back.retry_after(), Some(Duration::from_secs(40)));
    assert_eq!(back.reset_after(), Duration::from_secs(60));
}
