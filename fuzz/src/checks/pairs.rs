//! Names with values: what lookups find in them, and another spelling.

use std::ops::ControlFlow;

use lockgate::expr::FieldFacts;
use lockgate::facts::RequestFacts;

use super::sample;

/// Names with their values, in order.
pub type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

/// First, last, count and list are those of `pairs`, for each name and for none.
pub fn lookups_agree(facts: &RequestFacts<'_>, field: &str, pairs: &Pairs) {
    let field = sample::field(field);
    let names = pairs.iter().map(|(name, _)| Some(&name[..]));
    for name in names.take(20).chain([None, Some(&b"no such name"[..])]) {
        let named = pairs
            .iter()
            .filter(|pair| name.is_none_or(|name| pair.0 == name));
        let expected: Vec<&[u8]> = named.map(|pair| &pair.1[..]).collect();
        let mut seen = Vec::new();
        facts.each(field, name, &mut |value| {
            seen.push(value.to_vec());
            ControlFlow::Continue(())
        });
        assert_eq!(seen, expected);
        for (index, expected) in [
            (0, expected.first()),
            (-1, expected.last()),
            (1, expected.get(1)),
            (i32::MAX, None),
            (i32::MIN, None),
        ] {
            let value = facts.element(field, name, index);
            assert_eq!(value.as_deref(), expected.copied(), "{index}");
        }
    }
}

/// The urlencoded form of `pairs` with every byte escaped.
pub fn respelled(pairs: &Pairs) -> Vec<u8> {
    // A pair that is nothing at all would be no pair.
    let respelled = pairs
        .iter()
        .map(|(name, value)| [&escape(name), &b"="[..], &escape(value)].concat());
    respelled.collect::<Vec<_>>().join(&b'&')
}

/// Escapes every byte.
pub fn escape(text: &[u8]) -> Vec<u8> {
    let escaped = text.iter().map(|byte| format!("%{byte:02X}"));
    escaped.collect::<String>().into_bytes()
}
