//! `Forwarded` (RFC 7239): the `for` of each element.
//!
//! A line whose quotes do not pair up is no list at all: a client that leaves a quote open must
//! not be able to swallow what a proxy appends.

use std::net::IpAddr;

use super::address;

/// The addresses of a line from the last to the first; `None`: not an address.
pub fn hops(line: &[u8]) -> std::iter::Rev<std::vec::IntoIter<Option<IpAddr>>> {
    let hops = match split(line, b',') {
        Some(elements) => elements.into_iter().map(hop).collect(),
        None => vec![None],
    };
    hops.into_iter().rev()
}

/// The only `for` of an element; with several, nobody knows which one was meant.
fn hop(element: &[u8]) -> Option<IpAddr> {
    let pairs = split(element, b';')?;
    let mut nodes = pairs.into_iter().filter_map(node);
    let node = nodes.next()?;
    nodes.next().is_none().then(|| address(unquoted(node)))?
}

fn node(pair: &[u8]) -> Option<&[u8]> {
    let pair = pair.trim_ascii();
    let (name, value) = pair.split_at_checked(4)?;
    name.eq_ignore_ascii_case(b"for=").then_some(value)
}

fn unquoted(value: &[u8]) -> &[u8] {
    let inner = value
        .strip_prefix(b"\"")
        .and_then(|v| v.strip_suffix(b"\""));
    inner.unwrap_or(value)
}

/// Splits at separators outside quoted strings; `None` if a quote stays open.
fn split(text: &[u8], separator: u8) -> Option<Vec<&[u8]>> {
    let (mut quoted, mut escaped) = (false, false);
    let parts = text.split(|byte| {
        let skip = std::mem::take(&mut escaped);
        match *byte {
            b'\\' if quoted && !skip => escaped = true,
            b'"' if !skip => quoted = !quoted,
            _ => {}
        }
        !quoted && *byte == separator
    });
    let parts = parts.collect();
    (!quoted).then_some(parts)
}
