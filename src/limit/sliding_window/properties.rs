//! Against a log of timestamps, which forgets nothing and rounds nothing.

use std::time::Duration;

use proptest::prelude::*;

use super::tests::limiter;
use super::*;
use crate::limit::Algorithm;
use crate::limit::clocks;
use crate::limit::samples::{SECOND, START, at, limits, periods, requests, timed};
use crate::limit::subject::{Operation, agrees, any_limiter, operations, survives};

fn naive(limiter: &Limiter, charges: &[(u64, u64)], now: u64, cost: u64) -> bool {
    let period = limiter.micros();
    let counted = |wanted: Option<u64>| -> u128 {
        let inside = charges
            .iter()
            .filter(|(time, _)| Some(time / period) == wanted);
        inside.map(|(_, cost)| u128::from(*cost)).sum()
    };
    let window = now / period;
    let left = u128::from(period - now % period);
    let period = u128::from(period);
    let estimate = counted(window.checked_sub(1)) * left + counted(Some(window)) * period;
    estimate + u128::from(cost) * period <= u128::from(limiter.limit) * period
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn admits_what_the_log_admits(
        limit in limits(), period in periods(), requests in requests()
    ) {
        let limiter = limiter(limit, Duration::from_micros(period));
        agrees(&limiter, naive, Operation::Admit, &requests)?;
    }

    #[test]
    fn charges_as_the_log_does(
        limit in 1..1_000_000u64, period in periods(), requests in requests()
    ) {
        let limiter = limiter(limit, Duration::from_micros(period));
        agrees(&limiter, naive, Operation::Charge, &requests)?;
    }

    #[test]
    fn the_estimate_and_the_expiry_are_exact(
        limit in limits(), period in periods(), requests in requests()
    ) {
        let limiter = limiter(limit, Duration::from_micros(period));
        let mut state = State::default();
        for (now, cost) in timed(&requests, limit, period) {
            let reading = limiter.admit(&mut state, at(now), cost);
            let reset = reading.reset_after().as_micros() as u64;
            let numerator = |wait: u64| estimate(&limiter, &state, at(now + wait)).numerator;
            prop_assert_eq!(numerator(reset), 0);
            prop_assert!(reset == 0 || numerator(reset - 1) > 0);
            prop_assert_eq!(limiter.expires(&state, at(now)), at(now + reset));
            let full = limiter.peek(&state, at(now), 0).remaining == 0;
            prop_assert_eq!(limiter.fill(&state, at(now)) == 255, full);
        }
    }

    #[test]
    fn a_step_back_forgets_nothing(
        limit in 1..1_000u64, period in periods(), operation in operations(),
        requests in requests(), share in 0..=64u64
    ) {
        let period = period.max(1_000);
        let limiter = limiter(limit, Duration::from_micros(period));
        clocks::small_step_back(&limiter, operation, &requests, share)?;
        // Windows shorter than a second cannot be distinguished over decades.
        if period >= SECOND {
            clocks::large_step_back(&limiter, operation, &requests, (share, period))?;
        }
    }

    #[test]
    fn a_jump_forward_is_time_that_passed(
        limit in 1..1_000u64, period in periods(), operation in operations(),
        requests in requests(), share in 0..=64u64
    ) {
        let limiter = limiter(limit, Duration::from_micros(period));
        clocks::jump_forward(&limiter, operation, &requests, share)?;
    }

    /// Whatever the clock does, no window ever admits more than the limit, and a refused request
    /// fits after its `retry_after`.
    #[test]
    fn a_clock_that_jumps_admits_no_more_than_the_limit(
        limit in 1..50u64, period in periods(), jumps in prop::collection::vec(0..256u64, 1..200)
    ) {
        let limiter = limiter(limit, Duration::from_micros(period));
        let mut state = State::default();
        for jump in jumps {
            let now = START + (u128::from(jump) * u128::from(period) / 64) as u64;
            let before = estimate(&limiter, &state, at(now));
            let reading = limiter.admit(&mut state, at(now), 1);
            let full = before.numerator + u128::from(period) > u128::from(limit * period);
            prop_assert_eq!(reading.fits, !full);
            prop_assert!(u64::from(state[2]) <= limit);
            if !reading.fits {
                let wait = reading.retry_after().unwrap().as_micros() as u64;
                prop_assert!(limiter.peek(&state, at(now + wait), 1).fits);
                prop_assert!(!limiter.peek(&state, at(now + wait - 1), 1).fits);
            }
        }
    }

    #[test]
    fn no_input_overflows(
        limiter in any_limiter(Algorithm::SlidingWindow), state: [u32; 3], now: u64, cost: u64
    ) {
        survives(&limiter, state, now, cost)?;
    }
}
