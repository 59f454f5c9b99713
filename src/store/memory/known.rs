//! The most frequent case, in as little as it takes: a key that was counted before and is within
//! its limit. Everything else is left to [`super::visit`]; nothing was changed then that it would
//! not change as well.

use std::marker::PhantomData;

use super::Held;
use super::bucket::{Kind, Place};
use super::hash::Tag;
use crate::clock::Timestamp;
use crate::limit::Reading;
use crate::limit::concurrency::InFlight;
use crate::limit::tally::{Brief, Few, Tally};
use crate::rules::plan::{Finding, Findings, Standing, Step};

mod long;
#[cfg(test)]
mod tests;

pub(super) use self::long::admit_long;

/// A step that charges what fits, and its moment.
#[derive(Clone, Copy)]
pub(super) struct Ask<'a> {
    /// The step's place in its plan.
    pub(super) index: u16,
    pub(super) step: &'a Step,
    pub(super) now: Timestamp,
}

/// What an algorithm makes of an entry that is known.
pub(super) trait Known {
    /// How it counts.
    type Tally: Tally;

    /// Whether the words at `place` mean something to the step.
    fn counts(place: &Place, ask: Ask<'_>) -> bool;
    /// When the entry expires and how near its limit it is, after what was counted.
    fn marks(brief: &Brief, now: Timestamp) -> (u32, u8);
}

/// Words that expire.
pub(super) struct Expiring<T>(PhantomData<T>);

/// Charges the step's cost to `key`, if that is known and has room; says whether it did.
#[inline(always)]
pub(super) fn admit<K: Known>(
    held: &mut Held,
    key: Tag,
    ask: Ask<'_>,
    findings: &mut Findings,
) -> bool {
    let charged = |place: &mut Place| charge::<K>(place, ask, findings);
    held.table.with(key, charged).is_some()
}

// === impl Expiring ===

impl<T: Tally> Known for Expiring<T> {
    type Tally = T;

    #[inline(always)]
    fn counts(place: &Place, ask: Ask<'_>) -> bool {
        !place.has_expired(ask.now)
    }

    #[inline(always)]
    fn marks(brief: &Brief, now: Timestamp) -> (u32, u8) {
        (end(now, brief.reset), brief.fill())
    }
}

// === impl InFlight ===

impl Known for InFlight {
    type Tally = Self;

    /// One that has another slot belongs to a rule that was registered anew.
    #[inline(always)]
    fn counts(place: &Place, ask: Ask<'_>) -> bool {
        place.is_of(ask.step.id.slot, Kind::Places)
    }

    /// As [`share`] has it.
    #[inline(always)]
    fn marks(brief: &Brief, _: Timestamp) -> (u32, u8) {
        (u32::MAX, u8::MAX - brief.left())
    }
}

#[inline(always)]
fn charge<K: Known>(place: &mut Place, ask: Ask<'_>, findings: &mut Findings) -> Option<()> {
    let Ask { index, step, now } = ask;
    if !K::counts(place, ask) {
        return None;
    }
    let cost = Few::of(step.cost)?;
    let (state, brief) = K::Tally::briefly(&step.limiter, place.words(), now, cost)?;
    let (expires, fill) = K::marks(&brief, now);
    place.update(state, step.id.slot, expires, fill);
    tell(findings, index, &brief);
    Some(())
}

#[inline(always)]
fn tell(findings: &mut Findings, step: u16, brief: &Brief) {
    let Brief {
        remaining,
        reset,
        wait,
        ..
    } = *brief;
    if findings.len() == findings.capacity() {
        return tell_more(findings, step, remaining, reset, wait);
    }
    findings.push(charged(step, Reading::brief(remaining, reset, wait)));
}

/// Apart, because all that would be at hand after a call would have to be kept over it.
#[cold]
#[inline(never)]
fn tell_more(findings: &mut Findings, step: u16, remaining: u32, reset: u64, wait: u64) {
    findings.push(charged(step, Reading::brief(remaining, reset, wait)));
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
