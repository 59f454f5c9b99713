//! Examples: the burst, the rate after it, and a limit that changes.

use std::time::Duration;

use crate::limit::samples::{SECOND, START, at};
use crate::limit::{Algorithm, Limiter, MAX_LIMIT, State};

fn limiter(limit: u64, burst: u64, period: Duration) -> Limiter {
    Limiter {
        burst,
        ..Limiter::new(Algorithm::TokenBucket, limit, period)
    }
}

fn per_minute(limit: u64, burst: u64) -> Limiter {
    limiter(limit, burst, Duration::from_secs(60))
}

#[test]
fn a_burst_passes_and_then_one_at_a_time() {
    let limiter = per_minute(6, 3);
    let mut state = State::default();
    let mut remaining = Vec::new();
    for _ in 0..3 {
        let reading = limiter.admit(&mut state, at(START), 1);
        assert!(reading.fits);
        remaining.push(reading.remaining);
    }
    assert_eq!(remaining, [2, 1, 0]);
    let fourth = limiter.admit(&mut state, at(START + 4 * SECOND), 1);
    assert!(!fourth.fits);
    assert_eq!(fourth.retry_after(), Some(Duration::from_secs(6)));
    assert_eq!(fourth.reset_after(), Duration::from_secs(26));
    assert!(limiter.admit(&mut state, at(START + 10 * SECOND), 1).fits);
    assert!(!limiter.admit(&mut state, at(START + 19 * SECOND), 1).fits);
}

#[test]
fn thirds_are_not_rounded() {
    let limiter = limiter(3, 1, Duration::from_micros(10));
    let mut state = State::default();
    let mut admitted = Vec::new();
    for moment in 0..=40 {
        if limiter.admit(&mut state, at(START + moment), 1).fits {
            admitted.push(moment);
        }
    }
    // Every 10/3 ns, as soon as a whole microsecond shows it; the level is empty at each of them.
    assert_eq!(admitted, [0, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40]);
    let mut state = State::default();
    limiter.charge(&mut state, at(START), 9);
    let reading = limiter.peek(&state, at(START), 1);
    assert_eq!(reading.retry_after(), Some(Duration::from_micros(30)));
}

#[test]
fn a_burst_above_the_limit_takes_periods_to_come_back() {
    let limiter = per_minute(10, 35);
    let mut state = State::default();
    let reading = limiter.admit(&mut state, at(START), 35);
    assert_eq!(reading.reset_after(), Duration::from_secs(210));
    let later = limiter.peek(&state, at(START + 150 * SECOND), 1);
    assert_eq!(later.remaining, 25);
    assert!(limiter.admit(&mut state, at(START + 150 * SECOND), 5).fits);
    assert_eq!(
        limiter.peek(&state, at(START + 150 * SECOND), 1).remaining,
        20
    );
}

#[test]
fn what_is_missing_stays_missing_when_the_limit_or_the_burst_changes() {
    let mut state = State::default();
    per_minute(10, 20).charge(&mut state, at(START), 15);
    let reading = per_minute(60, 30).peek(&state, at(START), 1);
    assert_eq!(reading.remaining, 15);
    assert_eq!(reading.reset_after(), Duration::from_secs(15));
    let reading = per_minute(10, 5).peek(&state, at(START), 1);
    assert_eq!(reading.remaining, 0);
    assert_eq!(reading.retry_after(), Some(Duration::from_secs(66)));
}

#[test]
fn a_limit_of_zero_admits_only_what_costs_nothing() {
    let limiter = per_minute(0, 5);
    let mut state = State::default();
    assert!(!limiter.admit(&mut state, at(START), 1).fits);
    assert!(limiter.admit(&mut state, at(START), 0).fits);
    limiter.charge(&mut state, at(START), 1);
    let reading = limiter.peek(&state, at(START), 0);
    assert_eq!((reading.fits, reading.retry_after()), (false, None));
}

#[test]
fn the_largest_limit_and_burst_do_not_saturate() {
    let limiter = limiter(u64::MAX, u64::MAX, Duration::from_secs(1));
    let mut state = State::default();
    assert!(limiter.admit(&mut state, at(START), MAX_LIMIT).fits);
    let later = at(START + SECOND - 1);
    let back = limiter.peek(&state, later, 0).remaining;
    assert_eq!(back, MAX_LIMIT - 4_295);
    assert!(limiter.admit(&mut state, later, back).fits);
    assert!(!limiter.admit(&mut state, later, 1).fits);
    limiter.charge(&mut state, later, u64::MAX);
    assert!(!limiter.peek(&state, later, 0).fits);
}
