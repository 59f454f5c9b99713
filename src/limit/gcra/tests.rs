//! Examples: spacing, and the burst as tolerance.

use std::time::Duration;

use crate::limit::samples::{SECOND, START, at};
use crate::limit::{Algorithm, Limiter, State};

fn per_minute(limit: u64, burst: u64) -> Limiter {
    Limiter {
        burst,
        ..Limiter::new(Algorithm::Gcra, limit, Duration::from_secs(60))
    }
}

#[test]
fn a_burst_of_one_keeps_them_apart() {
    let limiter = per_minute(60, 1);
    let mut state = State::default();
    assert!(limiter.admit(&mut state, at(START), 1).fits);
    let early = limiter.admit(&mut state, at(START + SECOND - 1), 1);
    assert_eq!(early.retry_after(), Some(Duration::from_micros(1)));
    assert!(limiter.admit(&mut state, at(START + SECOND), 1).fits);
}

#[test]
fn a_burst_comes_back_as_it_is_paid_for() {
    let limiter = per_minute(60, 5);
    let mut state = State::default();
    let fifth = (0..5)
        .map(|_| limiter.admit(&mut state, at(START), 1))
        .last();
    assert_eq!(fifth.unwrap().reset_after(), Duration::from_secs(5));
    let two = limiter.admit(&mut state, at(START), 2);
    assert_eq!(two.retry_after(), Some(Duration::from_secs(2)));
    assert!(limiter.admit(&mut state, at(START + 2 * SECOND), 2).fits);
    assert_eq!(limiter.peek(&state, at(START), 6).retry_after(), None);
}
