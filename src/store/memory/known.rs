//! The most frequent case, in as little as it takes: a key that was counted before and is within
//! its limit. Everything else is left to [`super::visit`]; nothing was changed then.

use super::bucket::{Bucket, Kind};
use super::hash::KeyHash;
use super::table::Table;
use crate::clock::Timestamp;
use crate::limit::concurrency::InFlight;
use crate::limit::tally::Tally;
use crate::limit::{Algorithm, Reading, fixed_window, leaky_bucket, level_left};
use crate::limit::{sliding_window, token_bucket};
use crate::rules::plan::{Finding, Findings, Standing, Step};

/// A step that charges what fits, and its moment.
#[derive(Clone, Copy)]
pub(super) struct Ask<'a> {
    /// The step's place in its plan.
    pub(super) index: u16,
    pub(super) step: &'a Step,
    pub(super) now: Timestamp,
}

/// Charges the step's cost to `key`, if that is known and has room; says whether it did.
#[inline(always)]
pub(super) fn admit(
    table: &mut Table,
    key: KeyHash,
    ask: Ask<'_>,
    findings: &mut Findings,
) -> bool {
    let Ask { index, step, now } = ask;
    let charge = match step.limiter.algorithm {
        Algorithm::SlidingWindow if step.limiter.slices > 1 => return false,
        Algorithm::SlidingWindow => charge::<sliding_window::Window>,
        Algorithm::FixedWindow => charge::<fixed_window::Window>,
        Algorithm::TokenBucket | Algorithm::Gcra => charge::<token_bucket::Bucket>,
        Algorithm::LeakyBucket => charge::<leaky_bucket::Queue>,
        Algorithm::Concurrency => take_place,
        Algorithm::SlidingLog => return false,
    };
    let Some((bucket, place)) = table.known(key) else {
        return false;
    };
    charge(bucket, place, step, index, now, findings)
}

#[inline(never)]
fn charge<T: Tally>(
    bucket: &mut Bucket,
    place: usize,
    step: &Step,
    index: u16,
    now: Timestamp,
    findings: &mut Findings,
) -> bool {
    let limiter = &step.limiter;
    let Some(place) = bucket.place_mut(place) else {
        return false;
    };
    let Some(mut tally) = T::usual(limiter, place.words(), now) else {
        return false;
    };
    if place.has_expired(now) || !tally.fits(limiter, step.cost) {
        return false;
    }
    tally.add(step.cost);
    let reading = tally.reading(limiter, true, step.cost);
    let fill = level_left(T::capacity(limiter), reading.remaining);
    let end = end(now, reading.reset_nanos());
    place.update(tally.state(), step.id.slot, end, fill);
    findings.push(charged(index, reading));
    true
}

/// One that has another slot belongs to a rule that was registered anew.
#[inline(never)]
fn take_place(
    bucket: &mut Bucket,
    place: usize,
    step: &Step,
    index: u16,
    now: Timestamp,
    findings: &mut Findings,
) -> bool {
    let limiter = &step.limiter;
    let Some(place) = bucket.place_mut(place) else {
        return false;
    };
    let mut taken = InFlight::at(limiter, place.words(), now);
    if !place.is_of(step.id.slot, Kind::Places) || !taken.fits(limiter, step.cost) {
        return false;
    }
    taken.add(step.cost);
    let reading = taken.reading(limiter, true, step.cost);
    let share = share(InFlight::capacity(limiter), reading.remaining);
    place.update(taken.state(), step.id.slot, u32::MAX, share);
    findings.push(charged(index, reading));
    true
}

#[inline(always)]
fn charged(step: u16, reading: Reading) -> Finding {
    Finding {
        step,
        standing: Standing::Within,
        reading: Some(reading),
        charged: true,
    }
}

/// How much of the limit is taken: among places in flight, the fewest make room first.
#[inline]
pub(super) fn share(capacity: u64, left: u64) -> u8 {
    let share = (left * 255).checked_div(capacity);
    u8::MAX - share.map_or(0, |share| u8::try_from(share).unwrap_or(u8::MAX))
}

/// The first second that does not begin before `wait` nanoseconds have passed.
#[inline]
pub(super) fn end(now: Timestamp, wait: u64) -> u32 {
    const SECOND: u64 = 1_000_000_000;
    const LAST: u64 = u32::MAX as u64 * SECOND;
    let end = now.as_nanos().saturating_add(wait).min(LAST);
    let rounded = end + (SECOND - 1);
    (rounded / SECOND) as u32
}
