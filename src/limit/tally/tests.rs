//! The short way says what the long one says.

use proptest::prelude::*;

use super::super::samples::{START, at, limits, periods};
use super::*;
use crate::limit::{Algorithm, by_algorithm, level};
use std::time::Duration;

const ALL: [Algorithm; 5] = [
    Algorithm::SlidingWindow,
    Algorithm::FixedWindow,
    Algorithm::TokenBucket,
    Algorithm::LeakyBucket,
    Algorithm::Concurrency,
];

/// What the short way makes of a `cost`, and what the long one does: the words, what is told and
/// how near the limit that is.
fn both(
    limiter: &Limiter,
    state: &State,
    now: Timestamp,
    cost: u64,
) -> Option<[(State, Reading, u8); 2]> {
    let cost = Few::of(cost)?;
    let (words, brief) =
        by_algorithm!(limiter.algorithm, T => T::briefly(limiter, state, now, cost))?;
    let mut whole = *state;
    let reading = limiter.admit(&mut whole, now, cost.get().into());
    let (capacity, left) = (limiter.capacity(), reading.remaining);
    assert_eq!(u64::from(brief.capacity.get()), capacity);
    assert_eq!(u64::from(brief.left()), left * 255 / capacity);
    let told = Reading::brief(brief.remaining, brief.reset, brief.wait);
    Some([
        (words, told, brief.fill()),
        (whole, reading, level(capacity, left)),
    ])
}

proptest! {
    #[test]
    fn what_is_brief_is_the_same(
        algorithm in prop::sample::select(ALL.to_vec()),
        (limit, period, burst, queue) in (limits(), periods(), limits(), 0..50u32),
        max_wait in prop_oneof![
            Just(Duration::MAX),
            (0..100u64).prop_map(Duration::from_secs),
            (u64::MAX / 2 - 9..u64::MAX / 2 + 9).prop_map(Duration::from_nanos),
        ],
        words in prop_oneof![Just([0; 3]), any::<State>()],
        charges in prop::collection::vec((0..80u64, 0..9u64), 0..6),
        (step, cost) in (prop_oneof![0..3u64, 0..300u64], prop_oneof![0..9u64, limits()]),
    ) {
        let limiter = Limiter {
            burst,
            queue,
            max_wait,
            ..Limiter::new(algorithm, limit, Duration::from_nanos(period))
        };
        let after = |now: u64, step: u64| now.saturating_add(period / 64 * step + step);
        let (mut state, mut now) = (words, START);
        for (step, cost) in charges {
            now = after(now, step);
            limiter.charge(&mut state, at(now), cost);
        }
        if let Some([brief, whole]) = both(&limiter, &state, at(after(now, step)), cost) {
            prop_assert_eq!(brief, whole);
        }
    }
}

#[test]
fn what_comes_soon_after_is_brief() {
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
