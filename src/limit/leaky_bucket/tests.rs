//! Examples: turns, a full queue, a wait that is too long.

use std::time::Duration;

use crate::limit::samples::{SECOND, START, at};
use crate::limit::{Algorithm, Limiter, State};

fn per_minute(limit: u64, queue: u32, max_wait: u64) -> Limiter {
    Limiter {
        queue,
        max_wait: Duration::from_secs(max_wait),
        ..Limiter::new(Algorithm::LeakyBucket, limit, Duration::from_secs(60))
    }
}

#[test]
fn one_passes_and_the_queue_waits_its_turn() {
    let limiter = per_minute(30, 3, 60);
    let mut state = State::default();
    let readings: Vec<_> = (0..5)
        .map(|_| limiter.admit(&mut state, at(START), 1))
        .collect();
    let waits: Vec<_> = readings.iter().map(|r| r.wait().as_secs()).collect();
    assert_eq!(waits, [0, 2, 4, 6, 0]);
    let left: Vec<_> = readings.iter().map(|r| r.remaining).collect();
    assert_eq!(left, [3, 2, 1, 0, 0]);
    assert!(!readings[4].fits);
    assert_eq!(readings[4].retry_after(), Some(Duration::from_secs(2)));
    let later = limiter.admit(&mut state, at(START + 2 * SECOND), 1);
    assert_eq!((later.fits, later.wait()), (true, Duration::from_secs(6)));
}

#[test]
fn the_turn_of_one_that_finds_no_place_is_behind_the_queue() {
    let limiter = per_minute(30, 1, 60);
    let mut state = State::default();
    let turns: Vec<_> = (0..5)
        .map(|_| {
            let reading = limiter.peek(&state, at(START), 1);
            limiter.charge(&mut state, at(START), 1);
            if reading.fits {
                reading.wait().as_secs()
            } else {
                limiter.wait_for_turn(&reading).unwrap().as_secs()
            }
        })
        .collect();
    assert_eq!(turns, [0, 2, 4, 6, 8]);
    let never = limiter.peek(&state, at(START), 3);
    assert_eq!(limiter.wait_for_turn(&never), None);
}

#[test]
fn what_would_wait_too_long_is_refused_though_there_is_a_place() {
    let limiter = per_minute(30, 10, 5);
    let mut state = State::default();
    let readings: Vec<_> = (0..4)
        .map(|_| limiter.admit(&mut state, at(START), 1))
        .collect();
    let left: Vec<_> = readings.iter().map(|r| r.remaining).collect();
    assert_eq!(left, [2, 1, 0, 0]);
    assert!(!readings[3].fits);
    assert_eq!(readings[3].retry_after(), Some(Duration::from_secs(1)));
    let later = limiter.admit(&mut state, at(START + SECOND), 1);
    assert_eq!((later.fits, later.wait()), (true, Duration::from_secs(5)));
}

#[test]
fn a_cost_takes_as_many_turns() {
    let limiter = per_minute(30, 4, 60);
    let mut state = State::default();
    assert_eq!(
        limiter.admit(&mut state, at(START), 3).wait(),
        Duration::ZERO
    );
    assert_eq!(
        limiter.admit(&mut state, at(START), 2).wait(),
        Duration::from_secs(6)
    );
    assert_eq!(limiter.peek(&state, at(START), 6).retry_after(), None);
}

#[test]
fn a_clock_that_went_back_makes_nobody_wait_for_it() {
    let limiter = per_minute(30, 4, 60);
    let mut state = State::default();
    limiter.admit(&mut state, at(START + 50 * SECOND), 1);
    let back = limiter.admit(&mut state, at(START), 1);
    assert_eq!((back.fits, back.wait()), (true, Duration::from_secs(2)));
}
