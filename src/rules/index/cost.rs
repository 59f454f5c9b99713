//! The cost of reading a value: a rough number of instructions above the cost of a plain field.

use super::IndexCost;
use super::choose::{GuardKind, GuardSite};
use crate::expr::ValueSource;
use crate::facts::fields::{self, ReadCost};

/// The cost of testing one rule, which an index saves.
const ONE_RULE: usize = 50;

/// The cost of reading `place`.
pub(super) fn of(place: &ValueSource) -> usize {
    fields::by_id(place.field()).read_cost.first()
}

/// The least number of rules on a site for which a group pays off.
pub(super) fn least(site: GuardSite<'_>, worth: IndexCost<'_>) -> usize {
    let spent = worth.read_anyway.contains(&site.source.field());
    let read = match fields::by_id(site.source.field()).read_cost {
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
