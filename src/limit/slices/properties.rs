//! Against a log of timestamps, and with one slice against `sliding_window`.

use std::time::Duration;

use proptest::prelude::*;

use super::SubWindows;
use crate::limit::samples::{at, limits, periods, requests, timed};
use crate::limit::subject::{Operation, agrees, any_limiter, operations, survives};
use crate::limit::{Algorithm, Limiter, State, clocks};

/// The charges of the slices that the window touches, in `period`-ths of a unit.
fn naive(limiter: &Limiter, charges: &[(u64, u64)], now: u64, cost: u64) -> bool {
    let (period, slices) = (u128::from(limiter.micros()), u128::from(limiter.slices));
    let index = |time: u64| u128::from(time) * slices / period;
    let passed = u128::from(now) * slices % period;
    let weight = |time: u64| match index(now) - index(time) {
        age if age < slices => period,
        age if age == slices => period - passed,
        _ => 0,
    };
    let charges = charges.iter();
    let estimate: u128 = charges
        .map(|(time, cost)| weight(*time) * u128::from(*cost))
        .sum();
    estimate + u128::from(cost) * period <= u128::from(limiter.limit) * period
}

fn limiter(limit: u64, period: u64, slices: u16) -> Limiter {
    Limiter {
        slices,
        ..Limiter::new(
            Algorithm::SlidingWindow,
            limit,
            Duration::from_micros(period),
        )
    }
}

fn slices() -> impl Strategy<Value = u16> {
    prop_oneof![2..8u16, Just(60), 2..400u16]
}

/// Periods in which a slice is at least a microsecond.
fn long_periods() -> impl Strategy<Value = u64> {
    periods().prop_map(|period| period.max(1_000))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn admits_what_the_log_admits(
        limit in limits(), period in periods(), slices in slices(), requests in requests()
    ) {
        agrees(&limiter(limit, period, slices), naive, Operation::Admit, &requests)?;
    }

    #[test]
    fn charges_as_the_log_does(
        limit in 1..1_000_000u64, period in periods(), slices in slices(), requests in requests()
    ) {
        agrees(&limiter(limit, period, slices), naive, Operation::Charge, &requests)?;
    }

    #[test]
    fn one_slice_is_the_sliding_window(
        limit in limits(), period in periods(), operation in operations(),
        requests in requests(), steps in prop::collection::vec(-100..100i64, 60)
    ) {
        let limiter = limiter(limit, period, 1);
        let mut slices = SubWindows::new(&limiter);
        let mut state = State::default();
        for ((now, cost), step) in timed(&requests, limit, period).zip(steps) {
            // A refused request advances the slices too, so only charges agree after a step back.
            let step = if operation == Operation::Charge { step } else { 0 };
            let step = (i128::from(period) * i128::from(step) / 64) as i64;
            let now = at(now.saturating_add_signed(step));
            let readings = match operation {
                Operation::Admit => (
                    slices.admit(&limiter, now, cost),
                    limiter.admit(&mut state, now, cost),
                ),
                Operation::Charge => (
                    slices.charge(&limiter, now, cost),
                    limiter.charge(&mut state, now, cost),
                ),
            };
            prop_assert_eq!(readings.0, readings.1);
        }
    }

    #[test]
    fn entries_make_the_same_again(
        limit in 1..1_000u64, period in long_periods(), slices in slices(),
        requests in requests()
    ) {
        let limiter = limiter(limit, period, slices);
        let mut original = SubWindows::new(&limiter);
        let mut last = 0;
        for (now, cost) in timed(&requests, limit, period) {
            original.admit(&limiter, at(now), cost);
            last = now;
        }
        let mut copy = SubWindows::new(&limiter);
        for (moment, count) in original.entries(&limiter) {
            copy.charge(&limiter, moment, u64::from(count));
        }
        for wait in [0, period / 3, period] {
            let reading = copy.peek(&limiter, at(last + wait), 1);
            prop_assert_eq!(reading, original.peek(&limiter, at(last + wait), 1));
        }
    }

    #[test]
    fn a_step_back_forgets_nothing(
        limit in 1..1_000u64, period in long_periods(), slices in slices(),
        operation in operations(), requests in requests(), share in 0..=64u64
    ) {
        let limiter = limiter(limit, period, slices);
        clocks::small_step_back(&limiter, operation, &requests, share)?;
        let slice = period.div_ceil(u64::from(slices));
        clocks::large_step_back(&limiter, operation, &requests, (share, slice))?;
    }

    #[test]
    fn a_jump_forward_is_time_that_passed(
        limit in 1..1_000u64, period in periods(), slices in slices(),
        operation in operations(), requests in requests(), share in 0..=64u64
    ) {
        clocks::jump_forward(&limiter(limit, period, slices), operation, &requests, share)?;
    }

    #[test]
    fn no_input_overflows(
        limiter in any_limiter(Algorithm::SlidingWindow), now: u64, cost: u64
    ) {
        survives(&limiter, State::default(), now, cost)?;
    }
}
