//! What it costs to look at a value, in instructions, roughly and beside a plain field.

use super::Worth;
use super::choose::{Kind, Site};
use crate::expr::Place;
use crate::facts::fields;

/// What testing one rule costs that an index spares.
const ONE_RULE: usize = 50;

/// Fields that are not just there: what they cost when first read, and whether that is kept for
/// the next reader.
const COSTLY: &[(&str, usize, bool)] = &[
    ("ip.src.asnum", 750, true),
    ("ip.src.country", 750, true),
    ("ip.src.continent", 750, true),
    ("http.request.cookies", 400, true),
    ("http.request.uri.args", 400, true),
    ("http.request.uri.args.names", 400, true),
    ("http.request.uri.args.values", 400, true),
    ("http.request.headers.names", 600, false),
    ("http.request.headers.values", 600, false),
    ("http.response.headers.names", 600, false),
    ("http.response.headers.values", 600, false),
    ("http.request.full_uri", 300, false),
    ("raw.http.request.full_uri", 300, false),
    ("http.request.uri", 150, false),
    ("http.cookie", 150, false),
    ("http.x_forwarded_for", 150, false),
];

/// What reading `place` costs.
pub(super) fn of(place: &Place) -> usize {
    costly(place).map_or(0, |(_, cost, _)| *cost)
}

/// How many rules must use a site for it to be worth a group.
pub(super) fn least(site: Site<'_>, worth: Worth<'_>) -> usize {
    let kept = |(_, _, kept): &(_, _, bool)| *kept;
    let spent = worth.read_anyway.contains(&site.place.field());
    let read = match costly(site.place) {
        Some(row) if spent && kept(row) => 0,
        Some((_, cost, _)) => *cost,
        None => 0,
    };
    let look = match site.kind {
        Kind::Parts => 8 * ONE_RULE,
        _ => 0,
    };
    match worth.least {
        0 | 1 => worth.least,
        least => least.saturating_add((read + look) / ONE_RULE),
    }
}

fn costly(place: &Place) -> Option<&'static (&'static str, usize, bool)> {
    let name = fields::by_id(place.field())?.name;
    COSTLY.iter().find(|(costly, ..)| *costly == name)
}

#[cfg(test)]
mod tests {
    use super::COSTLY;
    use crate::expr::Scheme;
    use crate::facts::Fields;

    #[test]
    fn costly_fields_are_fields() {
        for (name, ..) in COSTLY {
            assert!(Fields.field(name).is_some(), "{name}");
        }
    }
}
