//! The same for a key whose counter is a log or sub-windows, worked on where it is kept.
//!
//! What the counter takes stays the same, so nothing is paid.

use super::{Ask, end, tell};
use crate::limit::tally::{Brief, Few};
use crate::rules::plan::Findings;
use crate::store::memory::Held;
use crate::store::memory::bucket::Place;
use crate::store::memory::hash::Tag;
use crate::store::memory::long::Slab;

/// Charges the step's cost to `key`, if that has a long counter with room; says whether it did.
#[inline(always)]
pub(in crate::store::memory) fn admit_long(
    held: &mut Held,
    key: Tag,
    ask: Ask<'_>,
    findings: &mut Findings,
) -> bool {
    let Held { table, slab, .. } = held;
    let Some((brief, expires)) = table.with(key, |place| charge(place, slab, ask)) else {
        return false;
    };
    table.allow_until(expires, ask.now);
    tell(findings, ask.index, &brief);
    true
}

/// Says as well when the entry expires.
#[inline(always)]
fn charge(place: &mut Place, slab: &mut Slab, ask: Ask<'_>) -> Option<(Brief, u32)> {
    let Ask { step, now, .. } = ask;
    if place.has_expired(now) {
        return None;
    }
    let long = slab.get_mut(place.handle()?)?;
    let brief = long.briefly(&step.limiter, now, Few::of(step.cost)?)?;
    let expires = end(now, brief.reset);
    place.refresh(expires, brief.fill());
    Some((brief, expires))
}
