//! Properties that all algorithms share, and those in which they differ.

use std::time::Duration;

use super::samples::{SECOND, START, at};
use super::subject::Subject;
use super::*;

fn per_minute(algorithm: Algorithm, limit: u64) -> Limiter {
    Limiter {
        queue: u32::try_from(limit - 1).unwrap(),
        ..Limiter::new(algorithm, limit, Duration::from_secs(60))
    }
}

#[test]
fn every_algorithm_admits_its_capacity_and_not_one_more() {
    for algorithm in Algorithm::ALL {
        let mut subject = Subject::of(&per_minute(algorithm, 5));
        for _ in 0..5 {
            assert!(subject.admit(START, 1).fits, "{algorithm:?}");
        }
        assert!(!subject.admit(START, 1).fits, "{algorithm:?}");
        assert!(subject.peek(START, 0).fits, "{algorithm:?}");
        subject.charge(START, 1);
        assert!(!subject.peek(START, 0).fits, "{algorithm:?}");
    }
}

#[test]
fn every_algorithm_refuses_what_never_fits() {
    for algorithm in Algorithm::ALL {
        let subject = Subject::of(&per_minute(algorithm, 5));
        let reading = subject.peek(START, 6);
        assert_eq!((reading.fits, reading.retry_after()), (false, None));
        assert_eq!(subject.peek(START, u64::MAX).retry_after(), None);
    }
}

#[test]
fn every_algorithm_is_full_at_its_capacity() {
    for algorithm in Algorithm::ALL {
        let limiter = per_minute(algorithm, 4);
        let mut subject = Subject::of(&limiter);
        for (admitted, expected) in [(0, 0), (2, 127), (2, 255)] {
            let remaining = subject.admit(START, admitted).remaining;
            assert_eq!(limiter.level(remaining), expected, "{algorithm:?}");
        }
    }
}

#[test]
fn a_peek_foretells_the_reading_after_a_charge() {
    let share = Some(ShareRatio::nearest(0.01));
    let mut limiters: Vec<Limiter> = Algorithm::ALL.map(|own| per_minute(own, 40)).to_vec();
    let sliding = per_minute(Algorithm::SlidingWindow, 40);
    limiters.push(Limiter {
        slices: 6,
        ..sliding
    });
    limiters.push(Limiter {
        ratio: share,
        ..sliding
    });
    for limiter in limiters {
        let limiter = Limiter {
            queue: 40,
            burst: 30,
            ..limiter
        };
        let mut counter = Counter::new(limiter.shape(), &limiter);
        for (second, cost) in [(0, 1), (0, 3), (7, 2), (31, 5), (62, 1), (95, 4), (400, 1)] {
            let now = at(START + second * SECOND);
            let peeked = counter.peek(&limiter, now, cost);
            let foretold = peeked.after_charge(&limiter, now, cost.into());
            let found = counter.admit(&limiter, now, cost, second + cost);
            assert!(
                foretold.reset.abs_diff(found.reset) <= 1,
                "{limiter:?} {second}"
            );
            let foretold = CounterReading {
                reset: found.reset,
                ..foretold
            };
            assert_eq!(foretold, found, "{limiter:?} {second}");
        }
    }
}

#[test]
fn the_fill_is_seen_against_what_can_be_used_at_once() {
    let bucket = Limiter {
        burst: 20,
        ..Limiter::new(Algorithm::TokenBucket, 1_000, Duration::from_secs(60))
    };
    let mut state = State::default();
    bucket.admit(&mut state, at(START), 10);
    assert_eq!(bucket.fill(&state, at(START)), 127);
    let queue = Limiter {
        queue: 3,
        ..Limiter::new(Algorithm::LeakyBucket, 1_000, Duration::from_secs(60))
    };
    let mut state = State::default();
    queue.admit(&mut state, at(START), 1);
    assert_eq!(queue.fill(&state, at(START)), 63);
}

#[test]
fn without_room_for_more_a_log_counts_as_a_sliding_window() {
    let log = per_minute(Algorithm::SlidingLog, 5);
    let window = per_minute(Algorithm::SlidingWindow, 5);
    let (mut one, mut other) = (State::default(), State::default());
    for moment in [0, 30, 61, 75, 100] {
        let now = at(START + moment * SECOND);
        let readings = (
            log.charge(&mut one, now, 2),
            window.charge(&mut other, now, 2),
        );
        assert_eq!(readings.0, readings.1);
        assert_eq!(one, other);
    }
}

#[test]
fn the_names_of_algorithms_differ_and_only_concurrency_holds_leases() {
    let names: std::collections::BTreeSet<_> = Algorithm::ALL.map(|a| a.row().name).into();
    assert_eq!(names.len(), Algorithm::ALL.len());
    for algorithm in Algorithm::ALL {
        let is_concurrency = algorithm == Algorithm::Concurrency;
        let leases = per_minute(algorithm, 5).shape() == CounterShape::Leases;
        assert_eq!(algorithm.holds_leases(), is_concurrency);
        assert_eq!(leases, is_concurrency, "{algorithm:?}");
    }
}

#[test]
fn a_ratio_past_64_bits_and_over_nothing_is_the_largest() {
    assert_eq!(math::ratio_down(7, 3, 2), 10);
    assert_eq!(math::ratio_up(7, 3, 2), 11);
    assert_eq!(math::ratio_down(u64::MAX, 3, 3), u64::MAX);
    assert_eq!(math::ratio_down(u64::MAX, 3, 6), u64::MAX / 2);
    assert_eq!(math::ratio_up(u64::MAX, 3, 6), u64::MAX / 2 + 1);
    assert_eq!(math::ratio_up(u64::MAX, u64::MAX, 1), u64::MAX);
    assert_eq!(math::ratio_up(0, 1, 0), 0);
    assert_eq!(math::ratio_up(1, 1, 0), u64::MAX);
    assert_eq!(math::ratio_down(1, 1, 0), u64::MAX);
}
