//! Comparisons with short literals. A length that the compiler knows turns a call of `memcmp` into
//! one or two loads.

use super::super::set::StringSet;
use super::super::term::Bytes;
use super::Check;
use super::bytes::on;

/// Calls `$known::<N>` for a length up to sixteen, `$other` for any other.
macro_rules! by_length {
    ($literal:expr, $known:ident($($known_arg:expr),*), $other:expr) => {
        by_length!(@ $literal, $known($($known_arg),*), $other,
            1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16)
    };
    (@ $literal:expr, $known:ident $args:tt, $other:expr, $($n:literal)*) => {
        match $literal { $($n => $known::<$n> $args,)* _ => $other }
    };
}

/// The whole string is `literal`.
pub(super) fn equal(term: Bytes, literal: Box<[u8]>) -> Check {
    by_length!(literal.len(), equal_known(term, &literal), {
        on(term, move |text| *text == *literal)
    })
}

/// The string starts with `literal`.
pub(super) fn prefix(term: Bytes, literal: Box<[u8]>) -> Check {
    by_length!(literal.len(), prefix_known(term, &literal), {
        on(term, move |text| text.starts_with(&literal))
    })
}

/// The string is in `set`. Sets of codes, such as countries, have values of one length.
pub(super) fn member(term: Bytes, set: StringSet) -> Check {
    by_length!(set.one_length(), member_known(term, &set), {
        on(term, move |text| set.contains(text))
    })
}

fn equal_known<const N: usize>(term: Bytes, literal: &[u8]) -> Check {
    match <[u8; N]>::try_from(literal) {
        Ok(literal) => on(term, move |text| is(text, &literal)),
        Err(_) => on(term, |_| false),
    }
}

fn prefix_known<const N: usize>(term: Bytes, literal: &[u8]) -> Check {
    match <[u8; N]>::try_from(literal) {
        Ok(literal) => on(term, move |text| text.first_chunk() == Some(&literal)),
        Err(_) => on(term, |_| false),
    }
}

fn member_known<const N: usize>(term: Bytes, set: &StringSet) -> Check {
    let values = set.few().unwrap_or_default().iter();
    let values: Vec<[u8; N]> = values
        .filter_map(|value| (&**value).try_into().ok())
        .collect();
    on(term, move |text| values.iter().any(|value| is(text, value)))
}

#[inline]
fn is<const N: usize>(text: &[u8], literal: &[u8; N]) -> bool {
    <&[u8; N]>::try_from(text).is_ok_and(|text| text == literal)
}
