//! Against a log of timestamps, which forgets nothing and rounds nothing.

use proptest::prelude::*;

use super::*;
use crate::limit::{Algorithm, MAX_LIMIT};

const SECOND: u64 = 1_000_000_000;
const DAY: u64 = 86_400 * SECOND;
/// Thursday 2026-01-01, a whole number of minutes.
const START: u64 = 1_767_225_600 * SECOND;

fn limiter(limit: u64, period: Duration) -> Limiter {
    Limiter {
        algorithm: Algorithm::SlidingWindow,
        limit,
        period,
    }
}

fn per_minute(limit: u64) -> Limiter {
    limiter(limit, Duration::from_secs(60))
}

fn at(nanos: u64) -> Timestamp {
    Timestamp::from_nanos(nanos)
}

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

#[test]
fn forty_two_before_and_eighteen_now_are_forty_nine_and_a_half_a_quarter_in() {
    let limiter = per_minute(50);
    let mut state = State::default();
    for _ in 0..42 {
        assert!(limiter.admit(&mut state, at(START), 1).fits);
    }
    let now = at(START + 75 * SECOND);
    for _ in 0..18 {
        limiter.charge(&mut state, now, 1);
    }
    let estimate = estimate(&limiter, &state, now);
    assert_eq!(
        estimate.numerator * 2,
        u128::from(estimate.denominator) * 99
    );
    assert_eq!(estimate.as_f64(), 49.5);
    assert_eq!(limiter.peek(&state, now, 0).remaining, 0);
    assert!(!limiter.peek(&state, now, 1).fits);
}

#[test]
fn a_limit_of_one_admits_one_and_tells_when_the_next_fits() {
    let limiter = per_minute(1);
    let mut state = State::default();
    let first = limiter.admit(&mut state, at(START + 10 * SECOND), 1);
    assert_eq!(
        first,
        Reading {
            fits: true,
            remaining: 0,
            reset_after: Duration::from_secs(110),
            retry_after: Some(Duration::ZERO),
        }
    );
    let second = limiter.admit(&mut state, at(START + 20 * SECOND), 1);
    assert!(!second.fits);
    assert_eq!(second.retry_after, Some(Duration::from_secs(100)));
}

#[test]
fn a_refusal_takes_nothing_and_a_charge_goes_past_the_limit() {
    let limiter = per_minute(2);
    let mut state = State::default();
    limiter.charge(&mut state, at(START), 2);
    let before = state;
    assert!(!limiter.admit(&mut state, at(START), 1).fits);
    assert_eq!(state, before);
    let past = limiter.charge(&mut state, at(START), 3);
    assert!(!past.fits);
    assert_eq!(past.remaining, 0);
    assert_eq!(state[2], 5);
}

#[test]
fn a_cost_above_the_limit_never_fits() {
    let limiter = per_minute(3);
    let mut state = State::default();
    let reading = limiter.admit(&mut state, at(START), 4);
    assert!(!reading.fits);
    assert_eq!(reading.retry_after, None);
    assert_eq!(limiter.peek(&state, at(START), u64::MAX).retry_after, None);
    assert_eq!(state, State::default());
}

#[test]
fn a_limit_of_zero_admits_only_what_costs_nothing() {
    let limiter = per_minute(0);
    let mut state = State::default();
    assert!(!limiter.admit(&mut state, at(START), 1).fits);
    assert!(limiter.admit(&mut state, at(START), 0).fits);
    assert_eq!(limiter.fill(&state, at(START)), 255);
}

#[test]
fn what_costs_nothing_is_refused_past_the_limit_too() {
    let limiter = per_minute(2);
    let mut state = State::default();
    limiter.charge(&mut state, at(START), 2);
    assert!(limiter.peek(&state, at(START), 0).fits);
    limiter.charge(&mut state, at(START), 1);
    assert!(!limiter.peek(&state, at(START), 0).fits);
}

#[test]
fn counts_saturate() {
    let limiter = per_minute(MAX_LIMIT);
    let mut state = State::default();
    assert!(limiter.charge(&mut state, at(START), MAX_LIMIT).fits);
    assert!(!limiter.charge(&mut state, at(START), 1).fits);
    assert!(!limiter.charge(&mut state, at(START), u64::MAX).fits);
    assert_eq!(state[2], u32::MAX);
}

#[test]
fn a_limit_too_large_to_count_is_held_to_the_largest() {
    let limiter = per_minute(u64::MAX);
    let mut state = State::default();
    limiter.charge(&mut state, at(START), u64::MAX);
    let reading = limiter.peek(&state, at(START), 1);
    assert!(!reading.fits);
    assert_eq!(reading.remaining, 0);
}

#[test]
fn a_period_of_zero_is_one_nanosecond() {
    let limiter = limiter(1, Duration::ZERO);
    let mut state = State::default();
    assert!(limiter.admit(&mut state, at(START), 1).fits);
    assert!(!limiter.admit(&mut state, at(START), 1).fits);
    assert!(limiter.admit(&mut state, at(START + 2), 1).fits);
}

#[test]
fn an_endless_period_does_not_overflow() {
    let limiter = limiter(1, Duration::MAX);
    let mut state = State::default();
    assert!(limiter.admit(&mut state, at(u64::MAX), 1).fits);
    let reading = limiter.admit(&mut state, at(u64::MAX), 1);
    assert!(!reading.fits);
    assert!(limiter.expires(&state, at(START)) > at(START));
}

#[test]
fn reset_is_the_end_of_the_last_window_that_counts() {
    let limiter = per_minute(10);
    let mut state = State::default();
    let reset = |state: &State, secs| {
        let now = at(START + secs * SECOND);
        (
            limiter.peek(state, now, 1).reset_after.as_secs(),
            limiter.expires(state, now).since(at(START)).as_secs(),
        )
    };
    assert_eq!(reset(&state, 20), (0, 20));
    limiter.charge(&mut state, at(START + 20 * SECOND), 1);
    assert_eq!(reset(&state, 20), (100, 120));
    assert_eq!(reset(&state, 70), (50, 120));
    assert_eq!(reset(&state, 120), (0, 120));
}

#[test]
fn fill_is_how_near_the_limit_a_key_is() {
    let limiter = per_minute(4);
    let mut state = State::default();
    let mut seen = vec![limiter.fill(&state, at(START))];
    for _ in 0..5 {
        limiter.charge(&mut state, at(START), 1);
        seen.push(limiter.fill(&state, at(START)));
    }
    assert_eq!(seen, [0, 63, 127, 191, 255, 255]);
    assert_eq!(limiter.fill(&state, at(START + 90 * SECOND)), 191);
    assert_eq!(limiter.fill(&state, at(START + 120 * SECOND)), 0);
}

#[test]
fn a_clock_that_goes_back_waits_at_the_start_of_the_window() {
    let limiter = per_minute(10);
    let mut state = State::default();
    limiter.charge(&mut state, at(START), 4);
    limiter.charge(&mut state, at(START + 90 * SECOND), 3);
    let back = at(START + 20 * SECOND);
    let estimate = estimate(&limiter, &state, back);
    assert_eq!(estimate.as_f64(), 7.0);
    let reading = limiter.admit(&mut state, back, 3);
    assert!(reading.fits);
    assert_eq!(reading.reset_after, Duration::from_secs(40 + 120));
    assert!(!limiter.admit(&mut state, back, 1).fits);
    // Back in its own window the state has lost nothing and gained only what was admitted.
    assert_eq!(state, [(START / SECOND / 60) as u32 + 1, 4, 6]);
}

#[test]
fn the_wrap_of_the_index_is_no_edge() {
    let limiter = limiter(10, Duration::from_millis(1));
    // The last window whose number ends in 32 ones, before the year 2100.
    let wrap = ((u64::from(u32::MAX) << 8) | u64::from(u32::MAX)) * 1_000_000;
    let mut state = State::default();
    limiter.charge(&mut state, at(wrap), 8);
    assert_eq!(state, [u32::MAX, 0, 8]);
    let next = at(wrap + 1_000_000);
    assert!(!limiter.peek(&state, next, 3).fits);
    assert!(limiter.admit(&mut state, next, 2).fits);
    assert_eq!(state, [0, 8, 2]);
    let back = limiter.peek(&state, at(wrap), 1);
    assert!(!back.fits);
    assert!(limiter.peek(&state, at(wrap + 3_000_000), 10).fits);
}

#[test]
fn an_empty_state_is_fresh_whatever_the_index() {
    let limiter = limiter(1, Duration::from_millis(1));
    // Seen from index 0 this window lies more than half the circle away.
    let now = at(0x9000_0000 * 1_000_000);
    let mut state = State::default();
    let reading = limiter.admit(&mut state, now, 1);
    assert_eq!(reading.reset_after, Duration::from_millis(2));
    assert_eq!(state, [0x9000_0000, 0, 1]);
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
