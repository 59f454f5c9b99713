//! Query arguments and form fields as rules read them: parsed in one defined form, so that no spelling evades a
//! key.
//!
//! - Only `&` separates; a `;` is data.
//! - Names and values are percent-decoded once and `+` is a space in both, so `%75ser` and `user`
//!   are one name. Decoding comes after splitting: `%26` and `%3D` are data.
//! - A broken escape stays as written.
//! - The first `=` ends the name. Without one, the whole part is the name and the value is empty.
//! - Names keep their case; `a[]` and `a` are two names.
//! - A repeated name has several values: `[0]` is the first, `[-1]` the last.
//! - An empty part between two `&` is not an argument.

use std::borrow::Cow;

use super::maps::split;
use crate::expr::percent_decode;

/// A name and its value.
pub type Argument<'r> = (Cow<'r, [u8]>, Cow<'r, [u8]>);

/// All arguments of a query, in order.
pub fn parse(query: &[u8]) -> Vec<Argument<'_>> {
    let pairs = pairs(query).map(|(name, value)| (decode(name), decode(value)));
    pairs.collect()
}

/// The `nth` value of the argument `name`. It decodes no other values.
#[inline(always)]
pub fn find<'q>(query: &'q [u8], name: &[u8], nth: usize) -> Option<Cow<'q, [u8]>> {
    let mut before = nth;
    for piece in split(query, b'&') {
        let Some(value) = value_of(piece, name) else {
            continue;
        };
        if before == 0 {
            return Some(decode(value));
        }
        before -= 1;
    }
    None
}

/// The names of all arguments, in order.
pub fn names(query: &[u8]) -> impl Iterator<Item = Cow<'_, [u8]>> {
    pairs(query).map(|(name, _)| decode(name))
}

/// The value in `piece`. `None` if `piece` is not the argument `name`.
#[inline]
fn value_of<'p>(piece: &'p [u8], name: &[u8]) -> Option<&'p [u8]> {
    let odd = |byte: &u8| matches!(byte, b'=' | b'%' | b'+');
    let end = piece.iter().position(odd).unwrap_or(piece.len());
    match piece.split_at_checked(end)? {
        (written, [b'=', value @ ..]) => (written == name).then_some(value),
        (written, []) => (!piece.is_empty() && written == name).then_some(&[]),
        _ => {
            let (written, value) = pair(piece);
            (*decode(written) == *name).then_some(value)
        }
    }
}

/// Names and values as written.
fn pairs(query: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let pieces = split(query, b'&').filter(|piece| !piece.is_empty());
    pieces.map(pair)
}

fn pair(piece: &[u8]) -> (&[u8], &[u8]) {
    let end = piece.iter().position(|byte| *byte == b'=');
    let pair = end.and_then(|end| piece.split_at_checked(end));
    let (name, rest) = pair.unwrap_or((piece, b""));
    (name, rest.strip_prefix(b"=").unwrap_or(rest))
}

fn decode(text: &[u8]) -> Cow<'_, [u8]> {
    percent_decode(text, true, false)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn one(query: &str, expected: &[(&str, &str)]) {
        let bytes = |text: &str| Cow::Owned(text.as_bytes().to_vec());
        let expected: Vec<Argument<'_>> =
            expected.iter().map(|(n, v)| (bytes(n), bytes(v))).collect();
        assert_eq!(parse(query.as_bytes()), expected, "{query}");
    }

    #[test]
    fn edge_cases_are_parsed_as_specified() {
        one("a=1&b=2", &[("a", "1"), ("b", "2")]);
        one("user=x&%75ser=y", &[("user", "x"), ("user", "y")]);
        one("u%73er=%41%42", &[("user", "AB")]);
        one("a=1;b=2", &[("a", "1;b=2")]);
        one("a=x+y", &[("a", "x y")]);
        one("a+b=1&a%20b=2", &[("a b", "1"), ("a b", "2")]);
        one("a=%2B", &[("a", "+")]);
        one("a=%26b%3D1", &[("a", "&b=1")]);
        one("a=%zz%4", &[("a", "%zz%4")]);
        one("a=%%41", &[("a", "%A")]);
        one("a=%2541", &[("a", "%41")]);
        one("a=%", &[("a", "%")]);
        one("a", &[("a", "")]);
        one("a=", &[("a", "")]);
        one("=1", &[("", "1")]);
        one("a=b=c", &[("a", "b=c")]);
        one("a=1&A=2", &[("a", "1"), ("A", "2")]);
        one("a[]=1&a[]=2", &[("a[]", "1"), ("a[]", "2")]);
        one("&&a=1&", &[("a", "1")]);
        one("", &[]);
    }

    #[test]
    fn values_need_not_be_utf8() {
        assert_eq!(parse(b"a=%ff%00")[0].1.as_ref(), [0xff, 0]);
    }

    #[test]
    fn plain_text_is_borrowed() {
        assert!(matches!(parse(b"a=1")[0].1, Cow::Borrowed(_)));
    }

    proptest! {
        #[test]
        fn an_escaped_pair_is_decoded(name in ".{1,8}", value in ".{0,8}") {
            let escape = |text: &str| -> String {
                text.bytes().map(|byte| format!("%{byte:02x}")).collect()
            };
            let query = format!("{}={}", escape(&name), escape(&value));
            let found = parse(query.as_bytes());
            prop_assert_eq!(found.len(), 1);
            prop_assert_eq!(&*found[0].0, name.as_bytes());
            prop_assert_eq!(&*found[0].1, value.as_bytes());
        }

        #[test]
        fn find_agrees_with_parse(query in "([ab=&+%]|%61|%26|ß){0,16}", nth in 0..3usize) {
            let all = parse(query.as_bytes());
            for name in all.iter().map(|(name, _)| &**name).chain([&b"a"[..]]) {
                let mut named = all.iter().filter(|(found, _)| **found == *name);
                let expected = named.nth(nth).map(|(_, value)| &**value);
                let found = find(query.as_bytes(), name, nth);
                prop_assert_eq!(found.as_deref(), expected);
            }
        }

        #[test]
        fn any_query_is_parsed(query in any::<Vec<u8>>()) {
            parse(&query);
        }
    }
}
