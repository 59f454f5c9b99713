//! Against a log of timestamps, of which those in the window of the moment count.

use std::time::Duration;

use proptest::prelude::*;

use crate::limit::samples::{limits, periods, requests};
use crate::limit::subject::{Operation, agrees, any_limiter, operations, survives};
use crate::limit::{Algorithm, Limiter, clocks};

fn naive(limiter: &Limiter, charges: &[(u64, u64)], now: u64, cost: u64) -> bool {
    let window = |time: u64| time / limiter.micros();
    let inside = charges
        .iter()
        .filter(|(time, _)| window(*time) == window(now));
    let counted: u128 = inside.map(|(_, cost)| u128::from(*cost)).sum();
    counted + u128::from(cost) <= u128::from(limiter.limit)
}

fn limiter(limit: u64, period: u64) -> Limiter {
    Limiter::new(Algorithm::FixedWindow, limit, Duration::from_micros(period))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn admits_what_the_log_admits(
        limit in limits(), period in periods(), requests in requests()
    ) {
        agrees(&limiter(limit, period), naive, Operation::Admit, &requests)?;
    }

    #[test]
    fn charges_as_the_log_does(
        limit in 1..1_000_000u64, period in periods(), requests in requests()
    ) {
        agrees(&limiter(limit, period), naive, Operation::Charge, &requests)?;
    }

    #[test]
    fn a_step_back_forgets_nothing(
        limit in 1..1_000u64, period in periods(), operation in operations(),
        requests in requests(), share in 0..=64u64
    ) {
        let limiter = limiter(limit, period);
        clocks::small_step_back(&limiter, operation, &requests, share)?;
        clocks::large_step_back(&limiter, operation, &requests, (share, 0))?;
    }

    #[test]
    fn a_jump_forward_is_time_that_passed(
        limit in 1..1_000u64, period in periods(), operation in operations(),
        requests in requests(), share in 0..=64u64
    ) {
        clocks::jump_forward(&limiter(limit, period), operation, &requests, share)?;
    }

    #[test]
    fn no_input_overflows(
        limiter in any_limiter(Algorithm::FixedWindow), state: [u32; 3], now: u64, cost: u64
    ) {
        survives(&limiter, state, now, cost)?;
    }
}
