//! What it costs to read a field, in instructions, roughly and beside a plain one.

use super::by_id;
use crate::expr::FieldId;

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

/// What the first reading of a field costs, and whether that is kept for the next; `None`: nothing
/// to speak of.
pub fn price(field: FieldId) -> Option<(usize, bool)> {
    let name = by_id(field)?.name;
    let row = COSTLY.iter().find(|(costly, ..)| *costly == name);
    row.map(|(_, cost, kept)| (*cost, *kept))
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
