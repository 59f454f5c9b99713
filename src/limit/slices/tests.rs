//! Examples: weights, the walk of a wait, memory.

use std::time::Duration;

use super::{SLICES_OF_A_LOG, SubWindows};
use crate::limit::samples::{SECOND, START, at};
use crate::limit::{Algorithm, Limiter};

fn per_minute(limit: u64, slices: u16) -> Limiter {
    Limiter {
        slices,
        ..Limiter::new(Algorithm::SlidingWindow, limit, Duration::from_secs(60))
    }
}

#[test]
fn only_the_oldest_slice_is_weighted() {
    let limiter = per_minute(100, 6);
    let mut slices = SubWindows::new(&limiter);
    slices.charge(&limiter, at(START + 5 * SECOND), 10);
    slices.charge(&limiter, at(START + 15 * SECOND), 10);
    let mut left = |seconds| {
        slices
            .peek(&limiter, at(START + seconds * SECOND), 1)
            .remaining
    };
    assert_eq!(left(59), 80);
    assert_eq!(left(60), 80);
    assert_eq!(left(65), 85);
    assert_eq!(left(70), 90);
    assert_eq!(left(75), 95);
    assert_eq!(left(80), 100);
}

#[test]
fn the_estimate_is_a_fraction() {
    let limiter = per_minute(100, 6);
    let mut slices = SubWindows::new(&limiter);
    slices.charge(&limiter, at(START), 3);
    slices.charge(&limiter, at(START + 10 * SECOND), 4);
    let estimate = slices.estimate(&limiter, at(START + 65 * SECOND));
    assert_eq!(estimate.as_f64(), 5.5);
}

#[test]
fn a_wait_walks_the_slices() {
    let limiter = per_minute(20, 6);
    let mut slices = SubWindows::new(&limiter);
    slices.charge(&limiter, at(START), 10);
    slices.charge(&limiter, at(START + 30 * SECOND), 10);
    let now = at(START + 40 * SECOND);
    let mut retry = |cost| slices.peek(&limiter, now, cost).retry_after();
    assert_eq!(retry(1), Some(Duration::from_secs(21)));
    assert_eq!(retry(10), Some(Duration::from_secs(30)));
    assert_eq!(retry(15), Some(Duration::from_secs(55)));
    assert_eq!(retry(20), Some(Duration::from_secs(60)));
    assert_eq!(retry(21), None);
}

#[test]
fn a_seam_gives_nothing_away() {
    let limiter = per_minute(100, 60);
    let mut slices = SubWindows::new(&limiter);
    let moments = [START + 59 * SECOND, START + 61 * SECOND];
    let requests = moments.iter().flat_map(|moment| [*moment; 100]);
    let admitted = requests.filter(|moment| slices.admit(&limiter, at(*moment), 1).fits);
    assert_eq!(admitted.count(), 100);
}

#[test]
fn a_log_without_room_has_sixty_slices() {
    let limiter = Limiter::new(Algorithm::SlidingLog, 5, Duration::from_secs(60));
    let slices = SubWindows::new(&limiter);
    assert_eq!(slices.slices(), u64::from(SLICES_OF_A_LOG));
    assert_eq!(slices.heap_bytes(), 61 * 4);
}

#[test]
fn counts_saturate() {
    let limiter = per_minute(u64::MAX, 2);
    let mut slices = SubWindows::new(&limiter);
    for half in 0..4 {
        slices.charge(&limiter, at(START + half * 30 * SECOND), u64::MAX);
    }
    let reading = slices.charge(&limiter, at(START + 90 * SECOND), u64::MAX);
    assert!(!reading.fits);
    assert!(slices.peek(&limiter, at(START + 200 * SECOND), 1).fits);
}
