//! Against a list of those in flight.

use std::time::Duration;

use proptest::prelude::*;

use crate::limit::samples::{START, at};
use crate::limit::subject::{any_limiter, survives};
use crate::limit::{Algorithm, Limiter, State};

/// Something that comes, or one of those in flight that leaves.
#[derive(Clone, Debug)]
enum Event {
    Admit(u64),
    Charge(u64),
    Leave(prop::sample::Index),
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        3 => (0..4u64).prop_map(Event::Admit),
        1 => (0..4u64).prop_map(Event::Charge),
        3 => any::<prop::sample::Index>().prop_map(Event::Leave),
    ];
    prop::collection::vec(event, 1..200)
}

proptest! {
    #[test]
    fn as_many_as_the_limit_are_in_flight(
        limit in 1..10u64, events in events(), clock in prop::collection::vec(any::<u64>(), 200)
    ) {
        let limiter = Limiter::new(Algorithm::Concurrency, limit, Duration::ZERO);
        let (mut state, mut flying) = (State::default(), Vec::new());
        for (event, now) in events.into_iter().zip(clock) {
            let taken: u64 = flying.iter().sum();
            match event {
                Event::Admit(cost) => {
                    let looked = limiter.peek(&state, at(now), cost);
                    let reading = limiter.admit(&mut state, at(now), cost);
                    prop_assert_eq!(reading.fits, taken + cost <= limit);
                    prop_assert_eq!(looked.fits, reading.fits);
                    flying.extend(reading.fits.then_some(cost));
                }
                Event::Charge(cost) => {
                    let reading = limiter.charge(&mut state, at(now), cost);
                    prop_assert_eq!(reading.fits, taken + cost <= limit);
                    flying.push(cost);
                }
                Event::Leave(_) if flying.is_empty() => {}
                Event::Leave(which) => {
                    let cost = flying.swap_remove(which.index(flying.len()));
                    limiter.release(&mut state, cost);
                }
            }
            let taken: u64 = flying.iter().sum();
            let reading = limiter.peek(&state, at(now), 1);
            prop_assert_eq!(reading.remaining, limit.saturating_sub(taken));
            prop_assert_eq!(reading.reset_after().is_zero(), taken == 0);
            prop_assert_eq!(limiter.fill(&state, at(now)), if taken > 0 { 255 } else { 0 });
        }
        flying.iter().for_each(|cost| limiter.release(&mut state, *cost));
        prop_assert_eq!(state, State::default());
        prop_assert_eq!(limiter.expires(&state, at(START)), at(START));
    }

    #[test]
    fn no_input_overflows(
        limiter in any_limiter(Algorithm::Concurrency), state: [u32; 3], now: u64, cost: u64
    ) {
        survives(&limiter, state, now, cost)?;
    }
}
