//! What it costs to look at a value, in instructions, roughly and beside a plain field.

use super::IndexCost;
use super::choose::{GuardKind, GuardSite};
use crate::expr::ValueSource;
use crate::facts::fields::{self, ReadCost};

/// What testing one rule costs that an index spares.
const ONE_RULE: usize = 50;

/// What reading `place` costs.
pub(super) fn of(place: &ValueSource) -> usize {
    fields::by_id(place.field()).read_cost.first()
}

/// How many rules must use a site for it to be worth a group.
pub(super) fn least(site: GuardSite<'_>, worth: IndexCost<'_>) -> usize {
    let spent = worth.read_anyway.contains(&site.place.field());
    let read = match fields::by_id(site.place.field()).read_cost {
        ReadCost::FirstRead(_) if spent => 0,
        cost => cost.first(),
    };
    let look = match site.kind {
        GuardKind::Parts => 8 * ONE_RULE,
        _ => 0,
    };
    match worth.least {
        0 | 1 => worth.least,
        least => least.saturating_add((read + look) / ONE_RULE),
    }
}
