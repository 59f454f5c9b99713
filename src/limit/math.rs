//! The operations on a [`State`], implemented once for all algorithms with that shape, and exact division.

use super::{CounterReading, Limiter, State};
use crate::clock::Timestamp;

/// An algorithm's view of a [`State`] at one point in time.
pub(crate) trait CounterMath: Sized {
    /// Reads `state` at `now`.
    fn at(limiter: &Limiter, state: &State, now: Timestamp) -> Self;
    /// Whether `cost` fits.
    fn fits(&self, limiter: &Limiter, cost: u64) -> bool;
    /// Charges `cost`.
    fn add(&mut self, cost: u64);
    /// The state to store.
    fn state(&self) -> State;
    /// Whether the clock was set back, so that the state has moved to the new time.
    fn rebased(&self) -> bool;
    /// The result for a `cost` that fits or does not fit.
    fn reading(&self, limiter: &Limiter, fits: bool, cost: u64) -> CounterReading;
}

/// Charges `cost` if it fits.
#[inline(always)]
pub(super) fn admit<C: CounterMath>(
    limiter: &Limiter,
    state: &mut State,
    now: Timestamp,
    cost: u64,
) -> CounterReading {
    let mut counter = C::at(limiter, state, now);
    let fits = counter.fits(limiter, cost);
    if fits {
        counter.add(cost);
    }
    if fits || counter.rebased() {
        *state = counter.state();
    }
    counter.reading(limiter, fits, cost)
}

/// Charges `cost`, even above the limit.
#[inline]
pub(super) fn charge<C: CounterMath>(
    limiter: &Limiter,
    state: &mut State,
    now: Timestamp,
    cost: u64,
) -> CounterReading {
    let mut counter = C::at(limiter, state, now);
    let fits = counter.fits(limiter, cost);
    counter.add(cost);
    *state = counter.state();
    counter.reading(limiter, fits, cost)
}

/// Returns what [`admit`] would return, and charges nothing.
#[inline]
pub(super) fn peek<C: CounterMath>(
    limiter: &Limiter,
    state: &State,
    now: Timestamp,
    cost: u64,
) -> CounterReading {
    let counter = C::at(limiter, state, now);
    counter.reading(limiter, counter.fits(limiter, cost), cost)
}

/// Moves `state` to `now` if the clock was set back behind it.
pub(super) fn rebase<C: CounterMath>(limiter: &Limiter, state: &mut State, now: Timestamp) {
    let counter = C::at(limiter, state, now);
    if counter.rebased() {
        *state = counter.state();
    }
}

/// `a × b / c`, exact and rounded down. A result above 64 bits, or a division by zero, is `u64::MAX`.
#[inline]
pub(super) fn ratio_down(a: u64, b: u64, c: u64) -> u64 {
    match a.checked_mul(b) {
        Some(product) => product.checked_div(c).unwrap_or(u64::MAX),
        None => wide_ratio(a, b, c, 0),
    }
}

/// `a × b / c`, exact and rounded up. A result above 64 bits, or a division by zero, is `u64::MAX`.
#[inline]
pub(super) fn ratio_up(a: u64, b: u64, c: u64) -> u64 {
    match a.checked_mul(b) {
        Some(0) => 0,
        Some(_) if c == 0 => u64::MAX,
        Some(product) => product.div_ceil(c),
        None => wide_ratio(a, b, c, c.saturating_sub(1)),
    }
}

#[cold]
fn wide_ratio(a: u64, b: u64, c: u64, rounding: u64) -> u64 {
    let product = u128::from(a) * u128::from(b) + u128::from(rounding);
    let ratio = product.checked_div(u128::from(c));
    ratio.map_or(u64::MAX, |ratio| u64::try_from(ratio).unwrap_or(u64::MAX))
}
