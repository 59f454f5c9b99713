//! Against a log of timestamps, which forgets nothing and rounds nothing.

use proptest::prelude::*;

use super::tests::{SECOND, START, at, limiter};
use super::*;
use crate::limit::MAX_LIMIT;

const DAY: u64 = 86_400 * SECOND;

/// Every unit that was ever charged, with its time.
struct Log {
    limit: u64,
    period: u64,
    charges: Vec<(u64, u64)>,
}

impl Log {
    fn of(limiter: &Limiter) -> Self {
        Self {
            limit: limiter.limit,
            period: limiter.period.as_nanos() as u64,
            charges: Vec::new(),
        }
    }

    fn fits(&self, now: u64, cost: u64) -> bool {
        let window = now / self.period;
        let counted = |wanted: Option<u64>| -> u128 {
            let charges = self.charges.iter();
            let inside = charges.filter(|(time, _)| Some(time / self.period) == wanted);
            inside.map(|(_, cost)| u128::from(*cost)).sum()
        };
        let period = u128::from(self.period);
        let left = period - u128::from(now % self.period);
        let estimate = counted(window.checked_sub(1)) * left + counted(Some(window)) * period;
        estimate + u128::from(cost) * period <= u128::from(self.limit) * period
    }

    fn admit(&mut self, now: u64, cost: u64) -> bool {
        let fits = self.fits(now, cost);
        if fits {
            self.charges.push((now, cost));
        }
        fits
    }
}

fn periods() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(1_000_000),
        Just(SECOND),
        Just(60 * SECOND),
        Just(366 * DAY),
        1_000_000..366 * DAY,
        1_000_000..10 * SECOND,
        1..1_000u64,
    ]
}

fn limits() -> impl Strategy<Value = u64> {
    prop_oneof![1..20u64, 1..1_000u64, 1..=MAX_LIMIT, Just(MAX_LIMIT)]
}

/// Requests as (wait in 1/64 of a period, nanoseconds beside it, cost in 1/16 of the limit, units
/// beside it).
fn requests() -> impl Strategy<Value = Vec<(u64, u64, u64, u64)>> {
    let wait = prop_oneof![4 => 0..8u64, 2 => 0..64u64, 1 => 0..200u64];
    let cost = prop_oneof![3 => Just(0u64), 2 => 0..6u64, 1 => 0..20u64];
    prop::collection::vec((wait, 0..3u64, cost, 0..3u64), 1..60)
}

/// The requests as (time, cost).
fn timed(
    requests: &[(u64, u64, u64, u64)],
    limit: u64,
    period: u64,
) -> impl Iterator<Item = (u64, u64)> {
    requests
        .iter()
        .scan(START, move |now, (wait, nanos, share, units)| {
            let wait = u128::from(*wait) * u128::from(period) / 64;
            *now += wait as u64 + nanos;
            Some((*now, limit / 16 * share + units))
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn admits_exactly_what_the_log_admits(
        limit in limits(), period in periods(), requests in requests()
    ) {
        let limiter = limiter(limit, Duration::from_nanos(period));
        let mut log = Log::of(&limiter);
        let mut state = State::default();
        for (now, cost) in timed(&requests, limit, period) {
            let looked = limiter.peek(&state, at(now), cost);
            let reading = limiter.admit(&mut state, at(now), cost);
            prop_assert_eq!(reading.fits, looked.fits);
            prop_assert_eq!(reading.retry_after, looked.retry_after);
            prop_assert_eq!(reading.fits, log.admit(now, cost));
            // What is left after it is what the log would still admit, and not one more.
            prop_assert!(log.fits(now, reading.remaining));
            prop_assert!(!log.fits(now, reading.remaining + 1));
        }
    }

    #[test]
    fn charges_are_past_the_limit_exactly_when_the_log_is(
        limit in 1..1_000_000u64, period in periods(), requests in requests()
    ) {
        let limiter = limiter(limit, Duration::from_nanos(period));
        let mut log = Log::of(&limiter);
        let mut state = State::default();
        for (now, cost) in timed(&requests, limit, period) {
            let reading = limiter.charge(&mut state, at(now), cost);
            log.charges.push((now, cost));
            prop_assert_eq!(reading.fits, log.fits(now, 0));
            prop_assert_eq!(limiter.peek(&state, at(now), 0).fits, reading.fits);
            prop_assert_eq!(limiter.peek(&state, at(now), 0).remaining, reading.remaining);
        }
    }

    #[test]
    fn retry_after_is_exact(
        limit in limits(), period in periods(), requests in requests(), charge: bool
    ) {
        let limiter = limiter(limit, Duration::from_nanos(period));
        let mut state = State::default();
        for (now, cost) in timed(&requests, limit, period) {
            let operation = if charge { Limiter::charge } else { Limiter::admit };
            let reading = operation(&limiter, &mut state, at(now), cost);
            let fits = |wait: u64| limiter.peek(&state, at(now + wait), cost).fits;
            match reading.retry_after {
                None => prop_assert!(cost > limit),
                Some(wait) if reading.fits => prop_assert_eq!(wait, Duration::ZERO),
                Some(wait) => {
                    let wait = wait.as_nanos() as u64;
                    prop_assert!(wait > 0 && fits(wait) && !fits(wait - 1));
                    let seconds = wait.div_ceil(SECOND);
                    prop_assert!(fits(seconds * SECOND));
                    prop_assert!(!fits((seconds - 1) * SECOND));
                }
            }
        }
    }

    #[test]
    fn reset_and_expiry_are_exact(
        limit in limits(), period in periods(), requests in requests()
    ) {
        let limiter = limiter(limit, Duration::from_nanos(period));
        let mut state = State::default();
        for (now, cost) in timed(&requests, limit, period) {
            let reading = limiter.admit(&mut state, at(now), cost);
            let reset = reading.reset_after.as_nanos() as u64;
            let numerator = |wait: u64| estimate(&limiter, &state, at(now + wait)).numerator;
            prop_assert_eq!(numerator(reset), 0);
            prop_assert!(reset == 0 || numerator(reset - 1) > 0);
            prop_assert_eq!(limiter.expires(&state, at(now)), at(now + reset));
            let full = limiter.peek(&state, at(now), 0).remaining == 0;
            prop_assert_eq!(limiter.fill(&state, at(now)) == 255, full);
        }
    }

    /// Whatever the clock does, no window ever holds more than the limit, and what is refused at
    /// a moment of the past fits after the wait that was told.
    #[test]
    fn a_clock_that_jumps_admits_no_more_than_the_limit(
        limit in 1..50u64, period in periods(), jumps in prop::collection::vec(0..256u64, 1..200)
    ) {
        let limiter = limiter(limit, Duration::from_nanos(period));
        let mut state = State::default();
        for jump in jumps {
            let now = START + (u128::from(jump) * u128::from(period) / 64) as u64;
            let before = estimate(&limiter, &state, at(now));
            let reading = limiter.admit(&mut state, at(now), 1);
            let full = before.numerator + u128::from(period) > u128::from(limit * period);
            prop_assert_eq!(reading.fits, !full);
            prop_assert!(u64::from(state[2]) <= limit);
            if !reading.fits {
                let wait = reading.retry_after.unwrap().as_nanos() as u64;
                prop_assert!(limiter.peek(&state, at(now + wait), 1).fits);
                prop_assert!(!limiter.peek(&state, at(now + wait - 1), 1).fits);
            }
        }
    }

    #[test]
    fn no_input_overflows(
        state: [u32; 3], now: u64, cost: u64, limit: u64, secs: u64, nanos in 0..1_000_000_000u32
    ) {
        let limiter = limiter(limit, Duration::new(secs, nanos));
        for mut state in [state, State::default()] {
            limiter.fill(&state, at(now));
            limiter.expires(&state, at(now));
            let looked = limiter.peek(&state, at(now), cost);
            prop_assert_eq!(limiter.admit(&mut state, at(now), cost).fits, looked.fits);
            limiter.charge(&mut state, at(now), cost);
        }
    }
}
