//! Against a log of timestamps, and against a queue of departures.

use std::time::Duration;

use proptest::prelude::*;

use crate::limit::samples::{START, at, limits, naive_level, periods, requests};
use crate::limit::subject::{Operation, agrees, any_limiter, operations, survives};
use crate::limit::{Algorithm, Limiter, State, clocks};

fn naive(limiter: &Limiter, charges: &[(u64, u64)], now: u64, cost: u64) -> bool {
    let period = i128::from(limiter.micros());
    let level = naive_level(limiter, charges, now);
    let longest = i128::try_from(limiter.max_wait.as_micros()).unwrap();
    let in_time = level <= longest * i128::from(limiter.limit);
    in_time && level + i128::from(cost) * period <= (i128::from(limiter.queue) + 1) * period
}

/// Waits are drawn as 1/64 of what the whole queue takes, seventy years at most.
fn limiter(limit: u64, queue: u32, period: u64, wait: u64) -> Limiter {
    let whole = (u128::from(queue) + 1) * u128::from(period) / u128::from(limit);
    let max_wait = (whole * u128::from(wait) / 64).min(1 << 51) as u64;
    Limiter {
        queue,
        max_wait: Duration::from_micros(max_wait),
        ..Limiter::new(Algorithm::LeakyBucket, limit, Duration::from_micros(period))
    }
}

fn queues() -> impl Strategy<Value = u32> {
    prop_oneof![0..20u32, 0..1_000u32, any::<u32>(), Just(u32::MAX)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn admits_what_the_log_admits(
        limit in limits(), queue in queues(), period in periods(), wait in 0..80u64,
        requests in requests()
    ) {
        agrees(&limiter(limit, queue, period, wait), naive, Operation::Admit, &requests)?;
    }

    #[test]
    fn charges_as_the_log_does(
        limit in 1..1_000_000u64, queue in 0..1_000_000u32, period in periods(),
        wait in 0..80u64, requests in requests()
    ) {
        agrees(&limiter(limit, queue, period, wait), naive, Operation::Charge, &requests)?;
    }

    /// Departures are counted in `limit`-ths of a microsecond: each the spacing after the one
    /// before, or at once.
    #[test]
    fn they_leave_evenly_spaced(
        limit in 1..1_000u64, queue in 0..50u32, period in periods(),
        gaps in prop::collection::vec(0..100u64, 1..200)
    ) {
        let limiter = Limiter { max_wait: Duration::MAX, ..limiter(limit, queue, period, 0) };
        let (mut now, mut free, mut state) = (START, 0u128, State::default());
        let mut waiting = Vec::new();
        for gap in gaps {
            now += (u128::from(gap) * u128::from(period) / u128::from(limit) / 64) as u64;
            let moment = u128::from(now) * u128::from(limit);
            // The requests with a turn that is not over: the forwarded one and those after it.
            waiting.retain(|departure| departure + u128::from(period) > moment);
            let reading = limiter.admit(&mut state, at(now), 1);
            // A turn that is partly over takes a whole slot until it is over.
            prop_assert_eq!(reading.fits, waiting.len() <= queue as usize);
            if reading.fits {
                let departure = free.max(moment);
                let wait = (departure - moment).div_ceil(u128::from(limit));
                prop_assert_eq!(reading.wait().as_micros(), wait);
                waiting.push(departure);
                free = departure + u128::from(period);
            }
        }
    }

    #[test]
    fn a_step_back_forgets_nothing(
        limit in 1..1_000u64, queue in 0..1_000u32, period in periods(), wait in 0..80u64,
        operation in operations(), requests in requests(), share in 0..=64u64
    ) {
        let limiter = limiter(limit, queue, period, wait);
        clocks::small_step_back(&limiter, operation, &requests, share)?;
        clocks::large_step_back(&limiter, operation, &requests, (share, 0))?;
    }

    #[test]
    fn a_jump_forward_is_time_that_passed(
        limit in 1..1_000u64, queue in 0..1_000u32, period in periods(),
        operation in operations(), requests in requests(), share in 0..=64u64
    ) {
        let limiter = limiter(limit, queue, period, 65);
        clocks::jump_forward(&limiter, operation, &requests, share)?;
    }

    #[test]
    fn no_input_overflows(
        limiter in any_limiter(Algorithm::LeakyBucket), state: [u32; 3], now: u64, cost: u64
    ) {
        survives(&limiter, state, now, cost)?;
    }
}
