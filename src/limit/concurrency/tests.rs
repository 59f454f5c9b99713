//! Examples: leases taken, released, renewed and expired.

use std::time::Duration;

use super::{KeyLeases, LEASE_LIFETIME};
use crate::clock::Timestamp;
use crate::limit::samples::{START, at};
use crate::limit::{Algorithm, Limiter};

fn limiter(limit: u64) -> Limiter {
    Limiter::new(Algorithm::Concurrency, limit, Duration::ZERO)
}

fn after(wait: Duration) -> Timestamp {
    at(START).plus(wait)
}

#[test]
fn a_unit_is_free_once_its_lease_is_released() {
    let (limiter, mut leases) = (limiter(2), KeyLeases::default());
    assert_eq!(leases.admit(&limiter, at(START), 1, 1).remaining, 1);
    assert_eq!(leases.admit(&limiter, at(START), 1, 2).remaining, 0);
    let third = leases.admit(&limiter, after(LEASE_LIFETIME / 2), 1, 3);
    assert_eq!(
        (third.fits, third.retry_after()),
        (false, Some(Duration::from_secs(1)))
    );
    leases.release(1);
    assert!(leases.admit(&limiter, at(START), 1, 3).fits);
}

#[test]
fn a_lease_that_is_not_renewed_expires() {
    let (limiter, mut leases) = (limiter(2), KeyLeases::default());
    leases.admit(&limiter, at(START), 1, 1);
    leases.admit(&limiter, at(START), 1, 2);
    leases.renew(after(Duration::from_secs(10)), 2);
    let just_before = after(LEASE_LIFETIME - Duration::from_micros(1));
    assert!(!leases.peek(&limiter, just_before, 1).fits);
    assert_eq!(leases.peek(&limiter, after(LEASE_LIFETIME), 1).remaining, 1);
    let renewed_until = after(LEASE_LIFETIME + Duration::from_secs(10));
    assert_eq!(leases.peek(&limiter, renewed_until, 1).remaining, 2);
    assert!(leases.is_empty());
}

#[test]
fn taking_or_releasing_a_lease_twice_has_the_effect_of_once() {
    let (limiter, mut leases) = (limiter(3), KeyLeases::default());
    for _ in 0..2 {
        assert_eq!(leases.admit(&limiter, at(START), 2, 7).remaining, 1);
    }
    leases.release(7);
    leases.release(7);
    leases.release(8);
    leases.renew(at(START), 7);
    assert!(leases.is_empty());
    assert_eq!(leases.peek(&limiter, at(START), 0).remaining, 3);
}

#[test]
fn a_huge_cost_releases_no_unit_of_others() {
    let limiter = limiter(3);
    for cost in [u64::from(u32::MAX), 1 << 32, u64::MAX] {
        let mut leases = KeyLeases::default();
        for id in 0..3 {
            assert!(leases.admit(&limiter, at(START), 1, id).fits);
        }
        leases.charge(&limiter, at(START), cost, 3);
        leases.charge(&limiter, at(START), cost, 4);
        leases.release(3);
        assert!(!leases.admit(&limiter, at(START), 1, 5).fits, "{cost}");
        leases.release(4);
        let full = leases.peek(&limiter, at(START), 1);
        assert_eq!((full.fits, full.remaining), (false, 0), "{cost}");
    }
    assert_eq!(
        KeyLeases::default()
            .peek(&limiter, at(START), 4)
            .retry_after(),
        None
    );
}
