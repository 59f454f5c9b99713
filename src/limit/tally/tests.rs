//! The short way says what the long one says.

use proptest::prelude::*;

use super::super::samples::{START, at, limits, periods};
use super::*;
use crate::limit::{Algorithm, by_algorithm};
use std::time::Duration;

const ALL: [Algorithm; 5] = [
    Algorithm::SlidingWindow,
    Algorithm::FixedWindow,
    Algorithm::TokenBucket,
    Algorithm::LeakyBucket,
    Algorithm::Concurrency,
];

/// What `usual` makes of `state`, and what `at` does: the words after a charge and what is told.
fn both(
    limiter: &Limiter,
    state: &State,
    now: Timestamp,
    cost: u64,
) -> Option<[(State, Reading); 2]> {
    fn told<T: Tally>(mut tally: T, limiter: &Limiter, cost: u64) -> (State, Reading) {
        let fits = tally.fits(limiter, cost);
        tally.add(cost);
        (tally.state(), tally.reading(limiter, fits, cost))
    }
    by_algorithm!(limiter.algorithm, T => {
        let usual = told(T::usual(limiter, state, now)?, limiter, cost);
        Some([usual, told(T::at(limiter, state, now), limiter, cost)])
    })
}

proptest! {
    #[test]
    fn what_is_usual_is_as_it_is(
        algorithm in prop::sample::select(ALL.to_vec()),
        (limit, period, burst, queue) in (limits(), periods(), limits(), 0..50u32),
        words in prop_oneof![Just([0; 3]), any::<State>()],
        charges in prop::collection::vec((0..80u64, 0..9u64), 0..6),
        (step, cost) in (prop_oneof![0..3u64, 0..300u64], 0..9u64),
    ) {
        let limiter = Limiter {
            burst,
            queue,
            ..Limiter::new(algorithm, limit, Duration::from_nanos(period))
        };
        let after = |now: u64, step: u64| now.saturating_add(period / 64 * step + step);
        let (mut state, mut now) = (words, START);
        for (step, cost) in charges {
            now = after(now, step);
            limiter.charge(&mut state, at(now), cost);
        }
        if let Some([usual, whole]) = both(&limiter, &state, at(after(now, step)), cost) {
            prop_assert_eq!(usual, whole);
        }
    }
}

#[test]
fn the_usual_is_what_comes_soon_after() {
    for algorithm in ALL {
        let limiter = Limiter {
            queue: 9,
            ..Limiter::new(algorithm, 10, Duration::from_secs(60))
        };
        let mut state = State::default();
        limiter.admit(&mut state, at(START), 2);
        let soon = at(START + 1_000);
        assert!(both(&limiter, &state, soon, 1).is_some(), "{algorithm:?}");
    }
}
