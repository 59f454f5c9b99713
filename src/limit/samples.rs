//! Times, limits and requests for the tests of every algorithm.

use std::time::Duration;

use proptest::prelude::*;

use super::{CounterReading, Limiter, MAX_LIMIT, State, micros_up};
use crate::clock::Timestamp;

pub(super) const SECOND: u64 = 1_000_000;
pub(super) const DAY: u64 = 86_400 * SECOND;
/// Thursday 2026-01-01, a whole number of minutes.
pub(super) const START: u64 = 1_767_225_600 * SECOND;

/// A request as (wait in 1/64 of a period, additional microseconds, cost in 1/16 of the capacity,
/// additional units).
pub(super) type Request = (u64, u64, u64, u64);

pub(super) fn at(micros: u64) -> Timestamp {
    Timestamp::from_micros(micros)
}

pub(super) fn periods() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(1_000),
        Just(SECOND),
        Just(60 * SECOND),
        Just(366 * DAY),
        1_000..366 * DAY,
        1_000..10 * SECOND,
        1..1_000u64,
    ]
}

pub(super) fn limits() -> impl Strategy<Value = u64> {
    prop_oneof![1..20u64, 1..1_000u64, 1..=MAX_LIMIT, Just(MAX_LIMIT)]
}

pub(super) fn requests() -> impl Strategy<Value = Vec<Request>> {
    let wait = prop_oneof![4 => 0..8u64, 2 => 0..64u64, 1 => 0..200u64];
    let cost = prop_oneof![3 => Just(0u64), 2 => 0..6u64, 1 => 0..20u64];
    prop::collection::vec((wait, 0..3u64, cost, 0..3u64), 1..60)
}

/// The requests as (time, cost).
pub(super) fn timed(
    requests: &[Request],
    capacity: u64,
    period: u64,
) -> impl Iterator<Item = (u64, u64)> {
    requests
        .iter()
        .scan(START, move |now, (wait, micros, share, units)| {
            let wait = u128::from(*wait) * u128::from(period) / 64;
            *now += wait as u64 + micros;
            Some((*now, capacity / 16 * share + units))
        })
}

/// The level at `now` after `charges` of (time, cost), in `period`-ths of a unit: the maximum over
/// all times since which it may have been above zero.
pub(super) fn naive_level(limiter: &Limiter, charges: &[(u64, u64)], now: u64) -> i128 {
    let (period, limit) = (i128::from(limiter.micros()), i128::from(limiter.limit));
    let mut sum = 0;
    let since = charges.iter().rev().map(|(time, cost)| {
        sum += i128::from(*cost) * period;
        sum - i128::from(now - time) * limit
    });
    since.max().unwrap_or(0).max(0)
}

impl Limiter {
    /// The time from which `state` is empty and can be dropped, if nothing more is charged.
    pub fn expires(&self, state: &State, now: Timestamp) -> Timestamp {
        now.plus(self.peek(state, now, 0).reset_after())
    }

    /// The fill level of `state`: 0 is empty, 255 is at or above the limit.
    pub fn fill(&self, state: &State, now: Timestamp) -> u8 {
        self.level(self.peek(state, now, 0).remaining)
    }
}

impl CounterReading {
    /// Adds a wait until the turn.
    pub fn waiting(self, wait: Duration) -> Self {
        let delay = micros_up(wait);
        Self { delay, ..self }
    }
}
