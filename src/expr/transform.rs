//! Functions from a string to a string. Each borrows what it does not change.

use std::borrow::Cow;

use super::json::{self, Step};
use super::replace::Replace;
use super::{base64, claim};

/// How many layers of encoding `url_decode(…, "r")` undoes, so that a hostile value cannot make
/// it quadratic.
const MAX_LAYERS: usize = 16;

/// One function, with its settings.
#[derive(Clone, Debug)]
pub(super) enum Transform {
    Lower,
    Upper,
    /// From a byte to before another; negative counts from the end.
    Substring(i64, Option<i64>),
    RemoveBytes(Box<[u8]>),
    UrlDecode {
        recursive: bool,
        unicode: bool,
    },
    Base64,
    Replace(Box<Replace>),
    /// A string in a JSON text.
    Json(Box<[Step]>),
    /// A claim of a JSON web token.
    Claim(Box<[Step]>),
}

// === impl Transform ===

impl Transform {
    /// The changed value; `None` where there is none to be had.
    pub(super) fn apply<'a>(&self, value: Cow<'a, [u8]>) -> Option<Cow<'a, [u8]>> {
        Some(match self {
            Transform::Lower => lower(value),
            Transform::Upper => upper(value),
            Transform::Substring(from, to) => substring(value, *from, *to),
            Transform::RemoveBytes(unwanted) => remove(value, unwanted),
            Transform::UrlDecode { recursive, unicode } => url_decode(value, *recursive, *unicode),
            Transform::Base64 => Cow::Owned(base64::decode(&value)?),
            Transform::Replace(replace) => return replace.apply(value),
            Transform::Json(path) => json_text(value, path)?,
            Transform::Claim(path) => Cow::Owned(claim::claim(&value, path)?),
        })
    }
}

fn json_text<'a>(value: Cow<'a, [u8]>, path: &[Step]) -> Option<Cow<'a, [u8]>> {
    match value {
        Cow::Borrowed(text) => json::find(text, path)?.text(),
        Cow::Owned(text) => {
            let found = json::find(&text, path)?.text()?;
            Some(Cow::Owned(found.into_owned()))
        }
    }
}

fn lower(value: Cow<[u8]>) -> Cow<[u8]> {
    match value.iter().any(u8::is_ascii_uppercase) {
        true => Cow::Owned(value.to_ascii_lowercase()),
        false => value,
    }
}

fn upper(value: Cow<[u8]>) -> Cow<[u8]> {
    match value.iter().any(u8::is_ascii_lowercase) {
        true => Cow::Owned(value.to_ascii_uppercase()),
        false => value,
    }
}

fn substring(value: Cow<[u8]>, from: i64, to: Option<i64>) -> Cow<[u8]> {
    let from = position(from, value.len());
    let to = to
        .map_or(value.len(), |to| position(to, value.len()))
        .max(from);
    match value {
        Cow::Borrowed(bytes) => Cow::Borrowed(bytes.get(from..to).unwrap_or_default()),
        Cow::Owned(bytes) => Cow::Owned(bytes.get(from..to).unwrap_or_default().to_vec()),
    }
}

/// Where `at` points in `len` bytes, kept within them.
fn position(at: i64, len: usize) -> usize {
    let distance = usize::try_from(at.unsigned_abs()).unwrap_or(usize::MAX);
    match at < 0 {
        true => len.saturating_sub(distance),
        false => distance.min(len),
    }
}

fn remove<'a>(value: Cow<'a, [u8]>, unwanted: &[u8]) -> Cow<'a, [u8]> {
    match value.iter().any(|byte| unwanted.contains(byte)) {
        true => Cow::Owned(
            value
                .iter()
                .copied()
                .filter(|byte| !unwanted.contains(byte))
                .collect(),
        ),
        false => value,
    }
}

fn url_decode(mut value: Cow<[u8]>, recursive: bool, unicode: bool) -> Cow<[u8]> {
    let layers = if recursive { MAX_LAYERS } else { 1 };
    for _ in 0..layers {
        match decode_layer(&value, unicode) {
            Some(decoded) => value = Cow::Owned(decoded),
            None => break,
        }
    }
    value
}

/// `None` when there is nothing to decode.
fn decode_layer(value: &[u8], unicode: bool) -> Option<Vec<u8>> {
    if !value.iter().any(|byte| matches!(byte, b'%' | b'+')) {
        return None;
    }
    let mut out = Vec::with_capacity(value.len());
    let mut rest = value;
    while let Some((&first, after)) = rest.split_first() {
        rest = match first {
            b'+' => push(&mut out, b' ', after),
            b'%' => escape(&mut out, after, unicode),
            byte => push(&mut out, byte, after),
        };
    }
    (out != value).then_some(out)
}

fn push<'a>(out: &mut Vec<u8>, byte: u8, rest: &'a [u8]) -> &'a [u8] {
    out.push(byte);
    rest
}

/// Decodes what follows a `%`; a broken escape stays as it is.
fn escape<'a>(out: &mut Vec<u8>, rest: &'a [u8], unicode: bool) -> &'a [u8] {
    if let Some(byte) = hex(rest, 2).and_then(|code| u8::try_from(code).ok()) {
        return push(out, byte, rest.get(2..).unwrap_or_default());
    }
    let point = match rest.split_first() {
        Some((b'u' | b'U', digits)) if unicode => hex(digits, 4).and_then(char::from_u32),
        _ => None,
    };
    match point {
        Some(point) => {
            out.extend_from_slice(point.encode_utf8(&mut [0; 4]).as_bytes());
            rest.get(5..).unwrap_or_default()
        }
        None => push(out, b'%', rest),
    }
}

fn hex(digits: &[u8], len: usize) -> Option<u32> {
    let digits = digits.get(..len)?;
    digits.iter().try_fold(0, |sum, &digit| {
        Some(sum * 16 + char::from(digit).to_digit(16)?)
    })
}
