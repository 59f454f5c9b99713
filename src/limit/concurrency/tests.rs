//! Examples: places taken and given back.

use std::time::Duration;

use crate::limit::samples::{DAY, START, at};
use crate::limit::{Algorithm, Limiter, State};

fn limiter(limit: u64) -> Limiter {
    Limiter::new(Algorithm::Concurrency, limit, Duration::ZERO)
}

#[test]
fn a_place_is_free_when_it_was_given_back_and_not_before() {
    let limiter = limiter(2);
    let mut state = State::default();
    assert_eq!(limiter.admit(&mut state, at(START), 1).remaining, 1);
    assert_eq!(limiter.admit(&mut state, at(START), 1).remaining, 0);
    let third = limiter.admit(&mut state, at(START + 365 * DAY), 1);
    assert!(!third.fits);
    assert_eq!(third.retry_after(), Some(Duration::from_secs(1)));
    limiter.release(&mut state, 1);
    assert!(limiter.admit(&mut state, at(START), 1).fits);
}

#[test]
fn an_entry_lives_while_anything_is_in_flight() {
    let limiter = limiter(1_000);
    let mut state = State::default();
    limiter.admit(&mut state, at(START), 1);
    assert_eq!(limiter.expires(&state, at(START)), at(u64::MAX));
    assert_eq!(limiter.fill(&state, at(START)), 255);
    limiter.release(&mut state, 1);
    assert_eq!(limiter.expires(&state, at(START)), at(START));
    assert_eq!(limiter.fill(&state, at(START)), 0);
}

#[test]
fn more_than_was_taken_cannot_be_given_back() {
    let limiter = limiter(3);
    let mut state = State::default();
    limiter.charge(&mut state, at(START), 2);
    limiter.release(&mut state, u64::MAX);
    assert_eq!(state, State::default());
    assert_eq!(limiter.peek(&state, at(START), 4).retry_after(), None);
}

#[test]
fn a_huge_cost_gives_back_no_place_of_others() {
    let limiter = limiter(3);
    for cost in [u64::from(u32::MAX), 1 << 32, u64::MAX] {
        let mut state = State::default();
        for _ in 0..3 {
            assert!(limiter.admit(&mut state, at(START), 1).fits);
        }
        limiter.charge(&mut state, at(START), cost);
        limiter.charge(&mut state, at(START), cost);
        limiter.release(&mut state, cost);
        assert!(!limiter.admit(&mut state, at(START), 1).fits, "{cost}");
        limiter.release(&mut state, cost);
        let full = limiter.peek(&state, at(START), 1);
        assert_eq!((full.fits, full.remaining), (false, 0), "{cost}");
        (0..3).for_each(|_| limiter.release(&mut state, 1));
        assert_eq!(state, State::default(), "{cost}");
    }
}
