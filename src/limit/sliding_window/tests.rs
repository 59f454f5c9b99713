//! Examples, one for each rule of the arithmetic.

use std::time::Duration;

use super::*;
use crate::limit::samples::{SECOND, START, at};
use crate::limit::{Algorithm, MAX_LIMIT};

pub(super) fn limiter(limit: u64, period: Duration) -> Limiter {
    Limiter::new(Algorithm::SlidingWindow, limit, period)
}

fn per_minute(limit: u64) -> Limiter {
    limiter(limit, Duration::from_secs(60))
}

#[test]
fn forty_two_before_and_eighteen_now_are_forty_nine_and_a_half_a_quarter_in() {
    let limiter = per_minute(50);
    let mut state = State::default();
    for _ in 0..42 {
        assert!(limiter.admit(&mut state, at(START), 1).fits);
    }
    let now = at(START + 75 * SECOND);
    for _ in 0..18 {
        limiter.charge(&mut state, now, 1);
    }
    let estimate = estimate(&limiter, &state, now);
    assert_eq!(
        estimate.numerator * 2,
        u128::from(estimate.denominator) * 99
    );
    assert_eq!(estimate.as_f64(), 49.5);
    assert_eq!(limiter.peek(&state, now, 0).remaining, 0);
    assert!(!limiter.peek(&state, now, 1).fits);
}

#[test]
fn a_limit_of_one_admits_one_and_tells_when_the_next_fits() {
    let limiter = per_minute(1);
    let mut state = State::default();
    let first = limiter.admit(&mut state, at(START + 10 * SECOND), 1);
    assert_eq!(first, CounterReading::fitting(0, Duration::from_secs(110)));
    let second = limiter.admit(&mut state, at(START + 20 * SECOND), 1);
    assert!(!second.fits);
    assert_eq!(second.retry_after(), Some(Duration::from_secs(100)));
}

#[test]
fn a_refusal_takes_nothing_and_a_charge_goes_past_the_limit() {
    let limiter = per_minute(2);
    let mut state = State::default();
    limiter.charge(&mut state, at(START), 2);
    let before = state;
    assert!(!limiter.admit(&mut state, at(START), 1).fits);
    assert_eq!(state, before);
    let past = limiter.charge(&mut state, at(START), 3);
    assert!(!past.fits);
    assert_eq!(past.remaining, 0);
    assert_eq!(state[2], 5);
}

#[test]
fn a_cost_above_the_limit_never_fits() {
    let limiter = per_minute(3);
    let mut state = State::default();
    let reading = limiter.admit(&mut state, at(START), 4);
    assert!(!reading.fits);
    assert_eq!(reading.retry_after(), None);
    assert_eq!(
        limiter.peek(&state, at(START), u64::MAX).retry_after(),
        None
    );
    assert_eq!(state, State::default());
}

#[test]
fn a_limit_of_zero_admits_only_what_costs_nothing() {
    let limiter = per_minute(0);
    let mut state = State::default();
    assert!(!limiter.admit(&mut state, at(START), 1).fits);
    assert!(limiter.admit(&mut state, at(START), 0).fits);
    assert_eq!(limiter.fill(&state, at(START)), 255);
}

#[test]
fn what_costs_nothing_is_refused_past_the_limit_too() {
    let limiter = per_minute(2);
    let mut state = State::default();
    limiter.charge(&mut state, at(START), 2);
    assert!(limiter.peek(&state, at(START), 0).fits);
    limiter.charge(&mut state, at(START), 1);
    assert!(!limiter.peek(&state, at(START), 0).fits);
}

#[test]
fn counts_saturate() {
    let limiter = per_minute(MAX_LIMIT);
    let mut state = State::default();
    assert!(limiter.charge(&mut state, at(START), MAX_LIMIT).fits);
    assert!(!limiter.charge(&mut state, at(START), 1).fits);
    assert!(!limiter.charge(&mut state, at(START), u64::MAX).fits);
    assert_eq!(state[2], u32::MAX);
}

#[test]
fn a_limit_too_large_to_count_is_held_to_the_largest() {
    let limiter = per_minute(u64::MAX);
    let mut state = State::default();
    limiter.charge(&mut state, at(START), u64::MAX);
    let reading = limiter.peek(&state, at(START), 1);
    assert!(!reading.fits);
    assert_eq!(reading.remaining, 0);
}

#[test]
fn a_period_of_zero_is_one_microsecond() {
    let limiter = limiter(1, Duration::ZERO);
    let mut state = State::default();
    assert!(limiter.admit(&mut state, at(START), 1).fits);
    assert!(!limiter.admit(&mut state, at(START), 1).fits);
    assert!(limiter.admit(&mut state, at(START + 2), 1).fits);
}

#[test]
fn an_endless_period_does_not_overflow() {
    let limiter = limiter(1, Duration::MAX);
    let mut state = State::default();
    assert!(limiter.admit(&mut state, at(u64::MAX), 1).fits);
    let reading = limiter.admit(&mut state, at(u64::MAX), 1);
    assert!(!reading.fits);
    assert!(limiter.expires(&state, at(START)) > at(START));
}

#[test]
fn reset_is_the_end_of_the_last_window_that_counts() {
    let limiter = per_minute(10);
    let mut state = State::default();
    let reset = |state: &State, secs| {
        let now = at(START + secs * SECOND);
        (
            limiter.peek(state, now, 1).reset_after().as_secs(),
            limiter.expires(state, now).since(at(START)).as_secs(),
        )
    };
    assert_eq!(reset(&state, 20), (0, 20));
    limiter.charge(&mut state, at(START + 20 * SECOND), 1);
    assert_eq!(reset(&state, 20), (100, 120));
    assert_eq!(reset(&state, 70), (50, 120));
    assert_eq!(reset(&state, 120), (0, 120));
}

#[test]
fn fill_is_how_near_the_limit_a_key_is() {
    let limiter = per_minute(4);
    let mut state = State::default();
    let mut seen = vec![limiter.fill(&state, at(START))];
    for _ in 0..5 {
        limiter.charge(&mut state, at(START), 1);
        seen.push(limiter.fill(&state, at(START)));
    }
    assert_eq!(seen, [0, 63, 127, 191, 255, 255]);
    assert_eq!(limiter.fill(&state, at(START + 90 * SECOND)), 191);
    assert_eq!(limiter.fill(&state, at(START + 120 * SECOND)), 0);
}

#[test]
fn a_clock_that_goes_back_waits_at_the_start_of_the_window() {
    let limiter = per_minute(10);
    let mut state = State::default();
    limiter.charge(&mut state, at(START), 4);
    limiter.charge(&mut state, at(START + 90 * SECOND), 3);
    let back = at(START + 20 * SECOND);
    let estimate = estimate(&limiter, &state, back);
    assert_eq!(estimate.as_f64(), 7.0);
    let reading = limiter.admit(&mut state, back, 3);
    assert!(reading.fits);
    assert_eq!(reading.reset_after(), Duration::from_secs(40 + 120));
    assert!(!limiter.admit(&mut state, back, 1).fits);
    // Back in its own window the state has lost nothing and gained only what was admitted.
    assert_eq!(state, [(START / SECOND / 60) as u32 + 1, 4, 6]);
}

#[test]
fn a_clock_that_was_set_back_keeps_the_counts_for_the_window_of_now() {
    let limiter = per_minute(10);
    let mut state = State::default();
    limiter.charge(&mut state, at(START + 86_400 * SECOND), 10);
    let back = at(START + 20 * SECOND);
    let refused = limiter.admit(&mut state, back, 1);
    assert_eq!(refused.retry_after(), Some(Duration::from_secs(40 + 6)));
    assert_eq!(state, [(START / SECOND / 60) as u32, 0, 10]);
    let moved = state;
    limiter.rebase(&mut state, back);
    assert_eq!(state, moved);
}

#[test]
fn a_look_notices_a_clock_that_was_set_back_only_if_told_to() {
    let limiter = per_minute(10);
    let mut state = State::default();
    limiter.charge(&mut state, at(START + 86_400 * SECOND), 10);
    assert!(!limiter.peek(&state, at(START), 1).fits);
    limiter.rebase(&mut state, at(START));
    assert!(limiter.peek(&state, at(START + 120 * SECOND), 10).fits);
}

#[test]
fn the_wrap_of_the_index_is_no_edge() {
    let limiter = limiter(10, Duration::from_millis(1));
    // The last window before the year 2100 with a number that ends in 32 ones.
    let wrap = ((u64::from(u32::MAX) << 8) | u64::from(u32::MAX)) * 1_000;
    let mut state = State::default();
    limiter.charge(&mut state, at(wrap), 8);
    assert_eq!(state, [u32::MAX, 0, 8]);
    let next = at(wrap + 1_000);
    assert!(!limiter.peek(&state, next, 3).fits);
    assert!(limiter.admit(&mut state, next, 2).fits);
    assert_eq!(state, [0, 8, 2]);
    let back = limiter.peek(&state, at(wrap), 1);
    assert!(!back.fits);
    assert!(limiter.peek(&state, at(wrap + 3_000), 10).fits);
}

#[test]
fn an_empty_state_is_fresh_whatever_the_index() {
    let limiter = limiter(1, Duration::from_millis(1));
    // Seen from index 0 this window lies more than half the circle away.
    let now = at(0x9000_0000 * 1_000);
    let mut state = State::default();
    let reading = limiter.admit(&mut state, now, 1);
    assert_eq!(reading.reset_after(), Duration::from_millis(2));
    assert_eq!(state, [0x9000_0000, 0, 1]);
}
