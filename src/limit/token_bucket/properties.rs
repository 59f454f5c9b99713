//! Against a log of timestamps, and against a bucket with fractional tokens.

use std::time::Duration;

use proptest::prelude::*;

use crate::limit::samples::{at, limits, naive_level, periods, requests, timed};
use crate::limit::subject::{Operation, agrees, any_limiter, operations, survives};
use crate::limit::{Algorithm, Limiter, State, clocks};

fn naive(limiter: &Limiter, charges: &[(u64, u64)], now: u64, cost: u64) -> bool {
    let period = i128::from(limiter.micros());
    let missing = naive_level(limiter, charges, now);
    missing + i128::from(cost) * period <= i128::from(limiter.burst) * period
}

fn limiter(limit: u64, burst: u64, period: u64) -> Limiter {
    Limiter {
        burst,
        ..Limiter::new(Algorithm::TokenBucket, limit, Duration::from_micros(period))
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn admits_what_the_log_admits(
        limit in limits(), burst in limits(), period in periods(), requests in requests()
    ) {
        agrees(&limiter(limit, burst, period), naive, Operation::Admit, &requests)?;
    }

    #[test]
    fn charges_as_the_log_does(
        limit in 1..1_000_000u64, burst in 1..1_000_000u64, period in periods(),
        requests in requests()
    ) {
        agrees(&limiter(limit, burst, period), naive, Operation::Charge, &requests)?;
    }

    /// Tokens are counted in `period`-ths.
    #[test]
    fn is_a_bucket_that_fills_evenly(
        limit in limits(), burst in limits(), period in periods(), requests in requests()
    ) {
        let limiter = limiter(limit, burst, period);
        let full = i128::from(burst) * i128::from(period);
        let (mut tokens, mut last, mut state) = (full, 0, State::default());
        for (now, cost) in timed(&requests, burst, period) {
            let filled = i128::from(now - last) * i128::from(limit);
            (tokens, last) = ((tokens + filled).min(full), now);
            let price = i128::from(cost) * i128::from(period);
            let reading = limiter.admit(&mut state, at(now), cost);
            prop_assert_eq!(reading.fits, price <= tokens);
            if reading.fits {
                tokens -= price;
            }
            prop_assert_eq!(i128::from(reading.remaining), tokens / i128::from(period));
        }
    }

    #[test]
    fn a_step_back_forgets_nothing(
        limit in 1..1_000u64, burst in 1..1_000u64, period in periods(),
        operation in operations(), requests in requests(), share in 0..=64u64
    ) {
        let limiter = limiter(limit, burst, period);
        clocks::small_step_back(&limiter, operation, &requests, share)?;
        clocks::large_step_back(&limiter, operation, &requests, (share, 0))?;
    }

    #[test]
    fn a_jump_forward_is_time_that_passed(
        limit in 1..1_000u64, burst in 1..1_000u64, period in periods(),
        operation in operations(), requests in requests(), share in 0..=64u64
    ) {
        let limiter = limiter(limit, burst, period);
        clocks::jump_forward(&limiter, operation, &requests, share)?;
    }

    #[test]
    fn no_input_overflows(
        limiter in any_limiter(Algorithm::TokenBucket), state: [u32; 3], now: u64, cost: u64
    ) {
        survives(&limiter, state, now, cost)?;
    }
}
