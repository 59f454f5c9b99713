//! Examples: the boundary of two windows, and the readings.

use std::time::Duration;

use crate::limit::samples::{SECOND, START, at};
use crate::limit::{Algorithm, Limiter, State};

fn per_minute(algorithm: Algorithm, limit: u64) -> Limiter {
    Limiter::new(algorithm, limit, Duration::from_secs(60))
}

/// The number of admitted requests, of `limit` just before a window boundary and `limit` just after.
fn around_the_seam(limiter: &Limiter) -> usize {
    let mut state = State::default();
    let seam = START + 60 * SECOND;
    let moments = [seam - SECOND, seam + SECOND];
    let requests = moments
        .iter()
        .flat_map(|moment| vec![*moment; limiter.limit as usize]);
    requests
        .filter(|moment| limiter.admit(&mut state, at(*moment), 1).fits)
        .count()
}

#[test]
fn twice_the_limit_passes_around_a_seam_here_and_not_with_a_sliding_window() {
    let fixed = per_minute(Algorithm::FixedWindow, 100);
    assert_eq!(around_the_seam(&fixed), 200);
    // A sixtieth of the minute has passed, and as much of what was counted before it.
    let sliding = per_minute(Algorithm::SlidingWindow, 100);
    assert_eq!(around_the_seam(&sliding), 101);
}

#[test]
fn a_window_counts_to_its_end_and_no_further() {
    let limiter = per_minute(Algorithm::FixedWindow, 3);
    let mut state = State::default();
    let first = limiter.admit(&mut state, at(START + 20 * SECOND), 2);
    assert!(first.fits);
    assert_eq!(first.remaining, 1);
    assert_eq!(first.reset_after(), Duration::from_secs(40));
    let second = limiter.admit(&mut state, at(START + 50 * SECOND), 2);
    assert!(!second.fits);
    assert_eq!(second.retry_after(), Some(Duration::from_secs(10)));
    assert!(limiter.admit(&mut state, at(START + 60 * SECOND), 3).fits);
    let number = START / SECOND / 60 + 1;
    assert_eq!(state, [number as u32, 3, (number >> 32) as u32]);
}

#[test]
fn a_cost_above_the_limit_never_fits() {
    let limiter = per_minute(Algorithm::FixedWindow, 3);
    let reading = limiter.peek(&State::default(), at(START), 4);
    assert!(!reading.fits);
    assert_eq!(reading.retry_after(), None);
}

#[test]
fn a_clock_that_was_set_back_keeps_the_count_for_the_window_of_now() {
    let limiter = per_minute(Algorithm::FixedWindow, 3);
    let mut state = State::default();
    limiter.charge(&mut state, at(START + 86_400 * SECOND), 3);
    let reading = limiter.admit(&mut state, at(START + 20 * SECOND), 1);
    assert_eq!(reading.retry_after(), Some(Duration::from_secs(40)));
    assert!(limiter.admit(&mut state, at(START + 60 * SECOND), 1).fits);
}
