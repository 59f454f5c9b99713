//! Any query and any cookies: what a rule sees does not depend on how the same thing is spelled.

use std::ops::ControlFlow;

use http::header::COOKIE;
use http::request::Parts;
use http::{HeaderValue, Request};
use lockgate::expr::FieldFacts;
use lockgate::facts::RequestFacts;

use super::sample;

type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

/// Takes the first line for the query, the others for `Cookie` lines.
pub fn cookies_and_query(data: &[u8]) {
    let mut lines = data.split(|byte| *byte == b'\n');
    let query = lines.next().unwrap_or_default();
    let cookies: Vec<&[u8]> = lines.collect();
    if let Some(parts) = parts(b"", &cookies) {
        sample::plain(&parts, &mut |facts| check_cookies(facts, &cookies));
    }
    if let Some(parts) = parts(query, &[]) {
        sample::plain(&parts, &mut |facts| check_query(facts, query));
    }
}

fn check_cookies(facts: &RequestFacts<'_>, lines: &[&[u8]]) {
    let found = cookies(facts);
    for (name, value) in facts.cookies() {
        assert!(!name.contains(&b';') && !name.contains(&b'='));
        assert_eq!(name.trim_ascii(), *name);
        assert!(value.len() <= lines.iter().map(|line| line.len()).sum());
    }
    in_order(facts, lines);
    lookups_agree(facts, "http.request.cookies", &found);
    let whole = lines.join(&b"; "[..]);
    // White space around it would be refused.
    let whole = whole.trim_ascii();
    assert_eq!(cookies_of(&[whole]), Some(found.clone()));
    let crumbs = whole.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
    let crumbs: Vec<&[u8]> = crumbs.collect();
    assert_eq!(cookies_of(&crumbs), Some(found.clone()));
    // A value that is still in quotes would lose them too.
    let mut bare = found;
    bare.retain(|(_, value)| !value.starts_with(b"\"") || !value.ends_with(b"\""));
    let respelled = bare
        .iter()
        .map(|(name, value)| [name, &b"="[..], &escape(value)].concat());
    let respelled = respelled.collect::<Vec<_>>().join(&b';');
    assert_eq!(cookies_of(&[&respelled]), Some(bare));
}

/// Names are parts of the lines, one behind the other.
fn in_order(facts: &RequestFacts<'_>, lines: &[&[u8]]) {
    let whole = lines.join(&b';');
    let mut rest = &whole[..];
    for (name, _) in facts.cookies() {
        let at = rest
            .windows(name.len().max(1))
            .position(|part| part.starts_with(name));
        rest = &rest[at.expect("the name, in order") + name.len()..];
    }
}

fn check_query(facts: &RequestFacts<'_>, query: &[u8]) {
    let found = arguments(facts);
    let pieces = query
        .split(|byte| *byte == b'&')
        .filter(|piece| !piece.is_empty());
    assert_eq!(pieces.count(), found.len());
    lookups_agree(facts, "http.request.uri.args", &found);
    for escape in [escape, escape_small] {
        let respelled = found.iter().map(|(name, value)| {
            // Nothing at all would be no argument.
            [&escape(name), &b"="[..], &escape(value)].concat()
        });
        let respelled = respelled.collect::<Vec<_>>().join(&b'&');
        let Some(parts) = parts(&respelled, &[]) else {
            panic!("escapes alone are refused");
        };
        sample::plain(&parts, &mut |facts| assert_eq!(arguments(facts), found));
    }
}

/// First, last, count and list are those of `pairs`, for each name and for none.
fn lookups_agree(facts: &RequestFacts<'_>, field: &str, pairs: &Pairs) {
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

fn cookies_of(lines: &[&[u8]]) -> Option<Pairs> {
    let parts = parts(b"", lines)?;
    let mut found = None;
    sample::plain(&parts, &mut |facts| found = Some(cookies(facts)));
    found
}

fn cookies(facts: &RequestFacts<'_>) -> Pairs {
    let pairs = facts.cookies().iter();
    pairs
        .map(|(name, value)| (name.to_vec(), value.to_vec()))
        .collect()
}

fn arguments(facts: &RequestFacts<'_>) -> Pairs {
    let pairs = facts.arguments().iter();
    pairs
        .map(|(name, value)| (name.to_vec(), value.to_vec()))
        .collect()
}

/// `None`: no HTTP library would let it through.
fn parts(query: &[u8], cookies: &[&[u8]]) -> Option<Parts> {
    let target = [b"/?", query].concat();
    let mut request = Request::get(&target[..])
        .header("host", "shop.example")
        .body(())
        .ok()?;
    // A fragment is cut off before anything sees it.
    if request.uri().query().unwrap_or_default().as_bytes() != query {
        return None;
    }
    for line in cookies {
        request
            .headers_mut()
            .append(COOKIE, HeaderValue::from_bytes(line).ok()?);
    }
    Some(request.into_parts().0)
}

fn escape(text: &[u8]) -> Vec<u8> {
    text.iter()
        .flat_map(|byte| format!("%{byte:02X}").into_bytes())
        .collect()
}

fn escape_small(text: &[u8]) -> Vec<u8> {
    text.iter()
        .flat_map(|byte| format!("%{byte:02x}").into_bytes())
        .collect()
}
