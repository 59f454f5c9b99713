//! Functions from a string to a string. Each borrows its input if it does not change it.

use std::borrow::Cow;

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use super::json::{self, JsonStep};
use super::replace::ReplaceCall;

/// The most layers of encoding that `url_decode(…, "r")` decodes, so that a hostile value cannot
/// make it quadratic.
const MAX_LAYERS: usize = 16;
/// The longest token, in bytes; a longer one has no claims.
const MAX_TOKEN: usize = 8 << 10;
/// Decodes Base64 (RFC 4648 §4) with or without padding, whatever the trailing bits are.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// One function, with its parameters.
#[derive(Clone, Debug)]
pub(super) enum TransformCall {
    Lower,
    Upper,
    /// The start and the exclusive end in bytes; negative numbers count from the end.
    Substring(i64, Option<i64>),
    RemoveBytes(Box<[u8]>),
    UrlDecode {
        recursive: bool,
        unicode: bool,
    },
    Base64,
    Replace(Box<ReplaceCall>),
    /// A string in a JSON text.
    Json(Box<[JsonStep]>),
    /// A claim of a JSON web token.
    Claim(Box<[JsonStep]>),
}

// === impl TransformCall ===

impl TransformCall {
    /// The changed value. `None` if there is no result.
    pub(super) fn apply<'a>(&self, value: Cow<'a, [u8]>) -> Option<Cow<'a, [u8]>> {
        Some(match self {
            TransformCall::Lower => lower(value),
            TransformCall::Upper => upper(value),
            TransformCall::Substring(from, to) => substring(value, *from, *to),
            TransformCall::RemoveBytes(unwanted) => remove(value, unwanted),
            TransformCall::UrlDecode { recursive, unicode } => {
                url_decode(value, *recursive, *unicode)
            }
            TransformCall::Base64 => Cow::Owned(decode_base64(&value)?),
            TransformCall::Replace(replace) => return replace.apply(value),
            TransformCall::Json(path) => json_text(value, path)?,
            TransformCall::Claim(path) => Cow::Owned(claim(&value, path)?),
        })
    }
}

fn json_text<'a>(value: Cow<'a, [u8]>, path: &[JsonStep]) -> Option<Cow<'a, [u8]>> {
    match value {
        Cow::Borrowed(text) => json::find(text, path)?.text(),
        Cow::Owned(text) => {
            let found = json::find(&text, path)?.text()?;
            Some(Cow::Owned(found.into_owned()))
        }
    }
}

fn lower(value: Cow<[u8]>) -> Cow<[u8]> {
    if value.iter().any(u8::is_ascii_uppercase) {
        Cow::Owned(value.to_ascii_lowercase())
    } else {
        value
    }
}

fn upper(value: Cow<[u8]>) -> Cow<[u8]> {
    if value.iter().any(u8::is_ascii_lowercase) {
        Cow::Owned(value.to_ascii_uppercase())
    } else {
        value
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

/// The position of `at` in `len` bytes, clamped to them.
fn position(at: i64, len: usize) -> usize {
    let distance = usize::try_from(at.unsigned_abs()).unwrap_or(usize::MAX);
    if at < 0 {
        len.saturating_sub(distance)
    } else {
        distance.min(len)
    }
}

fn remove<'a>(value: Cow<'a, [u8]>, unwanted: &[u8]) -> Cow<'a, [u8]> {
    if value.iter().any(|byte| unwanted.contains(byte)) {
        Cow::Owned(
            value
                .iter()
                .copied()
                .filter(|byte| !unwanted.contains(byte))
                .collect(),
        )
    } else {
        value
    }
}

fn url_decode(mut value: Cow<[u8]>, recursive: bool, unicode: bool) -> Cow<[u8]> {
    let layers = if recursive { MAX_LAYERS } else { 1 };
    for _ in 0..layers {
        let decoded = match percent_decode(&value, true, unicode) {
            Cow::Owned(decoded) if *decoded != *value => decoded,
            _ => break,
        };
        value = Cow::Owned(decoded);
    }
    value
}

/// Decodes the percent-escapes of `text` once; borrowed if it has none. `spaces`: a `+` is a space.
/// `unicode`: `%uXXXX` is an escape too. A broken escape stays as written.
#[inline]
pub fn percent_decode(text: &[u8], spaces: bool, unicode: bool) -> Cow<'_, [u8]> {
    if text.iter().any(|&b| b == b'%' || spaces && b == b'+') {
        Cow::Owned(percent_decoded(text, spaces, unicode))
    } else {
        Cow::Borrowed(text)
    }
}

#[inline(never)]
fn percent_decoded(text: &[u8], spaces: bool, unicode: bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        let (byte, after) = match (byte, after) {
            (b'+', _) if spaces => (b' ', after),
            (b'%', [b'u' | b'U', tail @ ..]) if unicode => match code_point(tail) {
                Some((point, tail)) => {
                    out.extend_from_slice(point.encode_utf8(&mut [0; 4]).as_bytes());
                    rest = tail;
                    continue;
                }
                None => (byte, after),
            },
            (b'%', [high, low, tail @ ..]) => match hex(&[*high, *low]) {
                Some(code) => (code as u8, tail),
                None => (byte, after),
            },
            _ => (byte, after),
        };
        out.push(byte);
        rest = after;
    }
    out
}

/// The character of four hexadecimal digits, and the rest.
fn code_point(digits: &[u8]) -> Option<(char, &[u8])> {
    let (digits, rest) = digits.split_at_checked(4)?;
    Some((char::from_u32(hex(digits)?)?, rest))
}

pub(super) fn hex(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0, |sum, &digit| {
        Some(sum * 16 + char::from(digit).to_digit(16)?)
    })
}

/// Decodes Base64 in either alphabet, with or without padding: a client that hides something in
/// Base64 chooses the form. `None` if it is not Base64.
pub(super) fn decode_base64(text: &[u8]) -> Option<Vec<u8>> {
    // Padding is only valid if it fills the last group.
    if text.ends_with(b"=") && !text.len().is_multiple_of(4) {
        return None;
    }
    let standard = |byte: &u8| match byte {
        b'-' => b'+',
        b'_' => b'/',
        byte => *byte,
    };
    let text: Vec<u8> = text.iter().map(standard).collect();
    BASE64.decode(text).ok()
}

/// The claim at `path` of a signed token (RFC 7515 §3.1), with or without `Bearer ` before it: a
/// string, or the text of an integer or boolean. The signature is not verified: any client can
/// write a token, so a claim identifies a client only if the origin server refuses unsigned tokens.
pub(super) fn claim(token: &[u8], path: &[JsonStep]) -> Option<Vec<u8>> {
    let token = bare(token);
    if token.len() > MAX_TOKEN {
        return None;
    }
    let mut parts = token.split(|byte| *byte == b'.');
    let (_header, claims, _signature) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() {
        return None;
    }
    let claims = decode_base64(claims)?;
    let claim = json::find(&claims, path)?.plain()?;
    Some(claim.into_owned())
}

/// Removes the scheme, which is case-insensitive (RFC 9110 §11.1).
fn bare(token: &[u8]) -> &[u8] {
    match token.split_at_checked("bearer ".len()) {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case(b"bearer ") => rest.trim_ascii_start(),
        _ => token,
    }
}
