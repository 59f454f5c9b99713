//! Cookies as rules read them: parsed in one defined form, so that no spelling evades a key.
//!
//! Two spellings that some origin server reads as one *value* are one value here: merging values
//! costs an abuser the second counter and affects no other client. *Names* are merged as little as
//! possible: if only the gateway took a name for the session cookie's, an abuser could put anything
//! into the key next to the session that the origin server reads.
//!
//! - Several `Cookie` lines (HTTP/2 splits them) are one list, in order.
//! - Only `;` separates; a `,` is data. An empty part between two `;` is not a cookie.
//! - The first `=` ends the name. Without one, the whole part is the name and the value is empty.
//! - Whitespace around names and values is removed.
//! - Names keep their case and their escapes; `$Version` is a name like any other.
//! - Values are percent-decoded once (as PHP, Express, Rails and ASP.NET Core do); `+` stays. Then
//!   a pair of double quotes is removed, and `\` escapes between them are decoded as in Python.
//! - A Latin-1 space (0xa0, 0x85) at either end of a value is removed unless it is part of a UTF-8
//!   character: Django and older versions of Express remove it.
//! - A repeated name has several values: `[0]` is the first, `[-1]` the last.

use std::borrow::Cow;

use http::header::COOKIE;
use http::{HeaderMap, HeaderValue};

use super::maps::split;
use crate::expr::percent_decode;

/// A name and its value.
pub type Cookie<'r> = (&'r [u8], Cow<'r, [u8]>);

/// All cookies of a request, in order.
pub fn parse(headers: &HeaderMap) -> Vec<Cookie<'_>> {
    let pairs = pieces(headers).filter_map(pair);
    pairs.map(|(name, value)| (name, plain(value))).collect()
}

/// The `nth` value of the cookie `name`. It decodes no other values.
pub fn find<'h>(headers: &'h HeaderMap, name: &[u8], nth: usize) -> Option<Cow<'h, [u8]>> {
    find_in(headers.get_all(COOKIE), name, nth)
}

/// [`find`] in these `Cookie` lines.
pub fn find_in<'h>(
    lines: impl IntoIterator<Item = &'h HeaderValue>,
    name: &[u8],
    nth: usize,
) -> Option<Cow<'h, [u8]>> {
    let mut before = nth;
    for line in lines {
        for piece in split(line.as_bytes(), b';') {
            let Some(value) = value_of(piece, name) else {
                continue;
            };
            if before == 0 {
                return Some(plain(value));
            }
            before -= 1;
        }
    }
    None
}

/// The value in `piece`. `None` if `piece` is not the cookie `name`.
#[inline]
fn value_of<'p>(piece: &'p [u8], name: &[u8]) -> Option<&'p [u8]> {
    // Most other cookies already differ in the first bytes.
    let rest = piece.trim_ascii_start().strip_prefix(name)?;
    let plain = |byte: &u8| *byte > b' ' && *byte != b'=';
    match rest.strip_prefix(b"=") {
        Some(value) if name.iter().all(plain) => Some(value.trim_ascii()),
        _ => {
            let (found, value) = pair(piece)?;
            (found == name).then_some(value)
        }
    }
}

/// The names of all cookies, in order.
pub fn names(headers: &HeaderMap) -> impl Iterator<Item = &[u8]> {
    pieces(headers).filter_map(pair).map(|(name, _)| name)
}

/// Each part between two `;` as written, possibly empty.
fn pieces(headers: &HeaderMap) -> impl Iterator<Item = &[u8]> {
    let lines = headers.get_all(COOKIE).iter();
    lines.flat_map(|line| split(line.as_bytes(), b';'))
}

/// Splits a cookie into its name and value as written. `None` if it is empty.
fn pair(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let text = text.trim_ascii();
    if text.is_empty() {
        return None;
    }
    let end = text.iter().position(|byte| *byte == b'=');
    let (name, rest) = text.split_at_checked(end.unwrap_or(text.len()))?;
    let value = rest.strip_prefix(b"=").unwrap_or(rest);
    Some((name.trim_ascii(), value.trim_ascii()))
}

/// The decoded value.
fn plain(text: &[u8]) -> Cow<'_, [u8]> {
    let odd = |byte: &u8| matches!(byte, b'%' | b'"' | 0x80..);
    // Without an early exit, which would prevent vectorisation.
    if !text.iter().fold(false, |any, byte| any | odd(byte)) {
        return Cow::Borrowed(text);
    }
    match percent_decode(trim_latin(text), false, false) {
        Cow::Borrowed(text) => unquoted(text),
        Cow::Owned(text) => Cow::Owned(unquoted(&text).into_owned()),
    }
}

/// Removes Latin-1 and ASCII spaces at both ends. The bytes of a UTF-8 character stay: no character
/// begins with these bytes, and a character that ends with them is recognised as a whole.
fn trim_latin(mut text: &[u8]) -> &[u8] {
    while let [0x85 | 0xa0 | b' ' | b'\t', rest @ ..] = text {
        text = rest;
    }
    while let [rest @ .., 0x85 | 0xa0 | b' ' | b'\t'] = text
        && (text.ends_with(b" ") || text.ends_with(b"\t") || !ends_in_utf8(text))
    {
        text = rest;
    }
    text
}

/// Whether the last byte is part of a UTF-8 character.
fn ends_in_utf8(text: &[u8]) -> bool {
    let starts = (2..=4).filter_map(|length| text.len().checked_sub(length));
    let mut tails = starts.filter_map(|start| text.get(start..));
    tails.any(|tail| std::str::from_utf8(tail).is_ok_and(|tail| tail.chars().count() == 1))
}

/// Removes a pair of double quotes and decodes `\` escapes between them: `\101` is `A`, `\c` is `c`.
fn unquoted(text: &[u8]) -> Cow<'_, [u8]> {
    let [b'"', inner @ .., b'"'] = text else {
        return Cow::Borrowed(text);
    };
    if !inner.contains(&b'\\') {
        return Cow::Borrowed(inner);
    }
    let mut out = Vec::with_capacity(inner.len());
    let mut rest = inner;
    while let Some((byte, after)) = rest.split_first() {
        let (byte, after) = match (byte, after) {
            (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', tail @ ..]) => {
                (((a - b'0') << 6) | ((b - b'0') << 3) | (c - b'0'), tail)
            }
            (b'\\', [escaped, tail @ ..]) => (*escaped, tail),
            _ => (*byte, after),
        };
        out.push(byte);
        rest = after;
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests;
