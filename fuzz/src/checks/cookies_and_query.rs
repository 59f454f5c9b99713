//! Any query and any cookies: what a rule sees does not depend on how the same thing is spelled.

use http::header::COOKIE;
use http::request::Parts;
use http::{HeaderValue, Request};
use lockgate::facts::RequestFacts;

use super::pairs::{Pairs, escape, lookups_agree, respelled};
use super::sample;

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
    let large = respelled(&found);
    for respelled in [large.to_ascii_lowercase(), large] {
        let Some(parts) = parts(&respelled, &[]) else {
            panic!("escapes alone are refused");
        };
        sample::plain(&parts, &mut |facts| assert_eq!(arguments(facts), found));
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
