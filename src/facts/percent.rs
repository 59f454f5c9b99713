//! Percent-decoding, once. A broken escape stays as it is written; nothing is refused here.

use std::borrow::Cow;

/// What `+` stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plus {
    /// A space, as in a form.
    Space,
    /// Itself.
    Itself,
}

/// `text` without its escapes; borrowed if it has none.
#[inline]
pub fn decode(text: &[u8], plus: Plus) -> Cow<'_, [u8]> {
    let spaces = plus == Plus::Space;
    match text.iter().any(|&b| b == b'%' || spaces && b == b'+') {
        true => Cow::Owned(decoded(text, spaces)),
        false => Cow::Borrowed(text),
    }
}

#[inline(never)]
fn decoded(text: &[u8], spaces: bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((byte, after)) = rest.split_first() {
        let (byte, after) = match (byte, after) {
            (b'+', _) if spaces => (b' ', after),
            (b'%', [high, low, tail @ ..]) => match escaped(*high, *low) {
                Some(decoded) => (decoded, tail),
                None => (b'%', after),
            },
            _ => (*byte, after),
        };
        out.push(byte);
        rest = after;
    }
    out
}

fn escaped(high: u8, low: u8) -> Option<u8> {
    let high = char::from(high).to_digit(16)?;
    let low = char::from(low).to_digit(16)?;
    u8::try_from(high * 16 + low).ok()
}
