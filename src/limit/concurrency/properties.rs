//! Against a list of the leases that are held.

use std::time::Duration;

use proptest::prelude::*;

use super::{KeyLeases, LEASE_LIFETIME};
use crate::limit::samples::{START, at};
use crate::limit::subject::{any_limiter, survives};
use crate::limit::{Algorithm, Limiter, micros};

/// What happens to the lease with this identity.
#[derive(Clone, Copy, Debug)]
enum Event {
    Admit(u64, u64),
    Charge(u64, u64),
    Release(u64),
    Renew(u64),
}

fn events() -> impl Strategy<Value = Vec<(Event, u64)>> {
    let event = prop_oneof![
        3 => (0..20u64, 0..4u64).prop_map(|(id, cost)| Event::Admit(id, cost)),
        1 => (0..20u64, 0..4u64).prop_map(|(id, cost)| Event::Charge(id, cost)),
        3 => (0..20u64).prop_map(Event::Release),
        2 => (0..20u64).prop_map(Event::Renew),
    ];
    prop::collection::vec((event, 0..micros(LEASE_LIFETIME) / 4), 1..200)
}

proptest! {
    #[test]
    fn no_more_than_the_limit_is_in_flight(limit in 1..10u64, events in events()) {
        let limiter = Limiter::new(Algorithm::Concurrency, limit, Duration::ZERO);
        let (mut leases, mut now) = (KeyLeases::default(), START);
        let mut held: Vec<(u64, u64, u64)> = Vec::new();
        for (event, wait) in events {
            now += wait;
            let expires = now + micros(LEASE_LIFETIME);
            held.retain(|(_, _, expires)| *expires > now);
            let others = |id: u64| -> u64 {
                held.iter().filter(|lease| lease.0 != id).map(|lease| lease.1).sum()
            };
            match event {
                Event::Admit(id, cost) => {
                    let fits = others(id) + cost <= limit;
                    prop_assert_eq!(leases.admit(&limiter, at(now), cost, id).fits, fits);
                    held.retain(|lease| lease.0 != id);
                    held.extend(fits.then_some((id, cost, expires)));
                }
                Event::Charge(id, cost) => {
                    let fits = others(id) + cost <= limit;
                    prop_assert_eq!(leases.charge(&limiter, at(now), cost, id).fits, fits);
                    held.retain(|lease| lease.0 != id);
                    held.push((id, cost, expires));
                }
                Event::Release(id) => {
                    leases.release(id);
                    held.retain(|lease| lease.0 != id);
                }
                Event::Renew(id) => {
                    leases.renew(at(now), id);
                    held.iter_mut().filter(|lease| lease.0 == id).for_each(|lease| lease.2 = expires);
                }
            }
            let taken: u64 = held.iter().map(|lease| lease.1).sum();
            let reading = leases.peek(&limiter, at(now), 1);
            prop_assert_eq!(reading.remaining, limit.saturating_sub(taken));
            prop_assert_eq!(reading.reset_after().is_zero(), held.is_empty());
            prop_assert_eq!(leases.is_empty(), held.is_empty());
        }
    }

    #[test]
    fn no_input_overflows(
        limiter in any_limiter(Algorithm::Concurrency), state: [u32; 3], now: u64, cost: u64
    ) {
        survives(&limiter, state, now, cost)?;
    }
}
