//! Against the naive log, which drops nothing.

use std::time::Duration;

use proptest::prelude::*;

use super::UnitLog;
use crate::limit::samples::{at, limits, periods, requests, timed};
use crate::limit::subject::{Operation, agrees, any_limiter, operations, survives};
use crate::limit::{Algorithm, Limiter, State, clocks};

fn naive(limiter: &Limiter, charges: &[(u64, u64)], now: u64, cost: u64) -> bool {
    let inside = charges
        .iter()
        .filter(|(time, _)| now - time < limiter.micros());
    let counted: u128 = inside.map(|(_, cost)| u128::from(*cost)).sum();
    counted + u128::from(cost) <= u128::from(limiter.limit)
}

fn limiter(limit: u64, period: u64) -> Limiter {
    Limiter::new(Algorithm::SlidingLog, limit, Duration::from_micros(period))
}

fn filled(limiter: &Limiter, requests: &[(u64, u64, u64, u64)]) -> (UnitLog, u64) {
    let mut log = UnitLog::default();
    let mut last = 0;
    for (now, cost) in timed(requests, limiter.limit, limiter.micros()) {
        log.charge(limiter, at(now), cost);
        last = now;
    }
    (log, last)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn admits_what_the_log_admits(
        limit in limits(), period in periods(), requests in requests()
    ) {
        agrees(&limiter(limit, period), naive, Operation::Admit, &requests)?;
    }

    /// Most units above the limit are dropped, which changes no reading.
    #[test]
    fn charges_as_the_log_does(
        limit in limits(), period in periods(), requests in requests()
    ) {
        agrees(&limiter(limit, period), naive, Operation::Charge, &requests)?;
    }

    #[test]
    fn no_more_is_kept_than_matters(
        limit in 1..100u64, period in periods(), requests in requests()
    ) {
        let (log, _) = filled(&limiter(limit, period), &requests);
        let units: u64 = log.entries().map(|(_, units)| u64::from(units)).sum();
        prop_assert_eq!(units, log.total);
        prop_assert!(units <= limit + 1);
        prop_assert!(log.entries().all(|(_, units)| units > 0));
        prop_assert!(log.heap_bytes() <= 48 + 12 * 4 * log.entries().count().max(4));
    }

    #[test]
    fn entries_make_the_same_again(
        limit in 1..1_000u64, period in periods(), requests in requests()
    ) {
        let limiter = limiter(limit, period);
        let (mut original, last) = filled(&limiter, &requests);
        let mut copy = UnitLog::default();
        for (moment, units) in original.entries() {
            copy.charge(&limiter, moment, u64::from(units));
        }
        for wait in [0, period / 3, period] {
            let reading = copy.peek(&limiter, at(last + wait), 1);
            prop_assert_eq!(reading, original.peek(&limiter, at(last + wait), 1));
        }
    }

    /// Slices count what the log does, but for a part of the oldest slice, and at most a slice
    /// too long.
    #[test]
    fn slices_hold_the_log(
        limit in 1..1_000u64, period in 60_000..1_000_000_000u64, requests in requests()
    ) {
        let limiter = limiter(limit, period);
        let (mut log, last) = filled(&limiter, &requests);
        let mut slices = log.to_slices(&limiter, at(last));
        let exact = log.peek(&limiter, at(last), 1);
        let rough = slices.peek(&limiter, at(last), 1);
        let slice = Duration::from_micros(period.div_ceil(60));
        prop_assert!(rough.reset_after() <= exact.reset_after() + slice);
        prop_assert!(exact.reset_after() <= rough.reset_after());
        let later = log.peek(&limiter, at(last).plus(slice), 1);
        prop_assert!(exact.remaining <= rough.remaining);
        prop_assert!(rough.remaining <= later.remaining);
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
        limiter in any_limiter(Algorithm::SlidingLog), state: State, now: u64, cost: u64
    ) {
        survives(&limiter, state, now, cost)?;
    }
}
