//! When a key with a ratio is over, and when it is not.

use std::time::Duration;

use super::*;
use crate::limit::samples::{SECOND, START, at};
use crate::limit::{Counter, CounterShape};

const MINUTE: Duration = Duration::from_secs(60);

/// More than 3 a minute and more than 40 %.
fn limiter(algorithm: Algorithm) -> Limiter {
    Limiter {
        ratio: Some(ShareRatio::nearest(0.4)),
        ..Limiter::new(algorithm, 3, MINUTE)
    }
}

fn both() -> [Limiter; 2] {
    [Algorithm::SlidingWindow, Algorithm::FixedWindow].map(limiter)
}

fn counts(count: u32, total: u32) -> ShareCounts {
    ShareCounts { count, total }
}

#[test]
fn a_key_is_over_above_the_limit_and_above_the_share() {
    for limiter in both() {
        let mut key = ShareCounter::default();
        key.charge(&limiter, at(START), ChargeUnits::of_total(5));
        for charged in 1..=3 {
            let reading = key.admit(&limiter, at(START), 1.into());
            assert!(reading.fits);
            assert_eq!(reading.share, counts(charged, 5 + charged));
            assert_eq!(reading.remaining, u64::from(3 - charged));
        }
        // 4 of 9 are more than 40 %.
        let refused = key.admit(&limiter, at(START), 1.into());
        assert!(!refused.fits);
        assert_eq!(refused.share, counts(3, 8));
        assert_eq!(refused.retry_after(), None);
        // 4 of 10 are not more.
        key.charge(&limiter, at(START), ChargeUnits::of_total(1));
        let admitted = key.admit(&limiter, at(START), 1.into());
        assert!(admitted.fits);
        assert_eq!((admitted.remaining, admitted.share), (0, counts(4, 10)));
    }
}

#[test]
fn a_count_below_the_limit_is_never_over() {
    for limiter in both() {
        let mut key = ShareCounter::default();
        let reading = key.charge(&limiter, at(START), 3.into());
        assert!(reading.fits);
        assert_eq!(reading.share, counts(3, 3));
        assert!(!key.charge(&limiter, at(START), 1.into()).fits);
        assert!(!key.peek(&limiter, at(START), ChargeUnits::default()).fits);
    }
}

#[test]
fn both_counters_fade_alike_and_the_total_is_empty_last() {
    let limiter = limiter(Algorithm::SlidingWindow);
    let mut key = ShareCounter::default();
    key.charge(&limiter, at(START), 2.into());
    key.charge(&limiter, at(START + 60 * SECOND), ChargeUnits::of_total(4));
    let half = key.peek(&limiter, at(START + 90 * SECOND), ChargeUnits::default());
    assert_eq!(half.share, counts(1, 5));
    assert_eq!(half.reset_after(), Duration::from_secs(90));
    let later = key.peek(&limiter, at(START + 120 * SECOND), ChargeUnits::default());
    assert_eq!(later.share, counts(0, 4));
}

#[test]
fn a_fixed_window_starts_both_counters_at_zero() {
    let limiter = limiter(Algorithm::FixedWindow);
    let mut key = ShareCounter::default();
    key.charge(&limiter, at(START), 5.into());
    let reading = key.peek(&limiter, at(START + 59 * SECOND), ChargeUnits::default());
    assert_eq!(reading.share, counts(5, 5));
    assert_eq!(reading.reset_after(), Duration::from_secs(1));
    let reading = key.peek(&limiter, at(START + 60 * SECOND), ChargeUnits::default());
    assert_eq!((reading.fits, reading.share), (true, counts(0, 0)));
}

#[test]
fn a_clock_behind_the_total_counts_in_its_window() {
    for limiter in both() {
        let mut key = ShareCounter::default();
        let next = START + 60 * SECOND;
        key.charge(&limiter, at(next), ChargeUnits::of_total(2));
        // Two seconds earlier, in the window before.
        let reading = key.charge(&limiter, at(next - 2 * SECOND), 1.into());
        assert_eq!(reading.share, counts(1, 3));
        let reading = key.peek(&limiter, at(next + SECOND), ChargeUnits::default());
        assert_eq!(reading.share, counts(1, 3));
        assert_eq!(key.count[0], key.total[0]);
    }
}

#[test]
fn a_clock_that_was_set_back_moves_both_counters() {
    for limiter in both() {
        let mut key = ShareCounter::default();
        key.charge(&limiter, at(START + 3_600 * SECOND), 2.into());
        let reading = key.peek(&limiter, at(START), ChargeUnits::default());
        assert_eq!(reading.share, counts(2, 2));
        let reading = key.peek(&limiter, at(START + SECOND), ChargeUnits::default());
        assert_eq!(reading.share, counts(2, 2));
    }
}

#[test]
fn a_ratio_is_rounded_and_never_nothing_or_all() {
    let parts = |share: f64| ShareRatio::nearest(share).parts();
    assert_eq!(
        [0.4, 0.33333, 0.0001, 0.9999].map(parts),
        [4000, 3333, 1, 9999]
    );
    assert_eq!([0.0, 0.000_01, 1.0, 7.0].map(parts), [1, 1, 9999, 9999]);
    assert!((ShareRatio::nearest(0.4).as_f64() - 0.4).abs() < 1e-9);
}

#[test]
fn a_limiter_with_a_ratio_has_two_counters() {
    let limiter = limiter(Algorithm::SlidingWindow);
    assert_eq!(limiter.shape(), CounterShape::Share);
    let counter = Counter::new(limiter.shape(), &limiter);
    assert!(matches!(counter, Counter::Share(_)));
    assert_eq!(counter.bytes(), 0);
    assert!(counter.smaller(&limiter, at(START)).is_none());
}

#[test]
fn the_words_of_a_store_make_the_same_counter() {
    for limiter in both() {
        let mut key = ShareCounter::default();
        key.charge(&limiter, at(START), 2.into());
        key.charge(&limiter, at(START), ChargeUnits::of_total(3));
        let index = START / (60 * SECOND);
        let read = ShareCounter::of_window(limiter.algorithm, index, [0, 2], [0, 5]);
        assert_eq!(read, key);
    }
}
