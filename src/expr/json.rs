//! One value in a JSON text (RFC 8259), found by a path and not copied. The whole text must be
//! valid. Nothing recurses: depth is counted, so that hostile text costs no stack. Of two members
//! with one name the last counts, as for most parsers.

mod scan;

use std::borrow::Cow;

use self::scan::Scan;

/// A step from a container to one of its values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The member of this name.
    Name(Box<[u8]>),
    /// The element at this place, from 0.
    At(usize),
}

/// A value as it stands in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Raw<'t>(&'t [u8]);

/// The value at `path`; `None` if the text is not JSON or has no such value.
pub(super) fn find<'t>(text: &'t [u8], path: &[Step]) -> Option<Raw<'t>> {
    // RFC 8259 §8.1: UTF-8, no byte order mark; the scan refuses the mark as no value.
    std::str::from_utf8(text).ok()?;
    let mut value = Scan::new(text).whole()?;
    for step in path {
        value = within(value, step)?;
    }
    Some(Raw(value))
}

/// The part of a valid container that `step` leads to.
fn within<'t>(container: &'t [u8], step: &Step) -> Option<&'t [u8]> {
    let mut scan = Scan::new(container);
    match (container.first()?, step) {
        (b'{', Step::Name(wanted)) => {
            let mut found = None;
            while let Some((name, value)) = scan.member() {
                if is(name, wanted) {
                    found = Some(value);
                }
            }
            found
        }
        (b'[', Step::At(at)) => {
            let elements = std::iter::from_fn(move || scan.element());
            elements.into_iter().nth(*at)
        }
        _ => None,
    }
}

/// Whether a string, as it stands between its quotes, means `wanted`.
fn is(name: &[u8], wanted: &[u8]) -> bool {
    match name.contains(&b'\\') {
        true => unescape(name).is_some_and(|name| *name == *wanted),
        false => name == wanted,
    }
}

// === impl Raw ===

impl<'t> Raw<'t> {
    /// The string, if it is one; borrowed unless it has escapes.
    pub(super) fn text(self) -> Option<Cow<'t, [u8]>> {
        let body = self.0.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
        match body.contains(&b'\\') {
            true => unescape(body).map(Cow::Owned),
            false => Some(Cow::Borrowed(body)),
        }
    }

    /// The integer, if it is one that has 64 bits; `1.0` and `1e3` are none.
    pub(super) fn int(self) -> Option<i64> {
        self.digits()?.parse().ok()
    }

    /// A string as it is, an integer or a boolean as text.
    pub(super) fn plain(self) -> Option<Cow<'t, [u8]>> {
        match self.0 {
            b"true" | b"false" => Some(Cow::Borrowed(self.0)),
            _ => match self.digits() {
                Some(digits) => Some(Cow::Borrowed(digits.as_bytes())),
                None => self.text(),
            },
        }
    }

    fn digits(self) -> Option<&'t str> {
        let digits = self.0.strip_prefix(b"-").unwrap_or(self.0);
        let plain = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
        std::str::from_utf8(self.0).ok().filter(|_| plain)
    }
}

/// Undoes the escapes of a valid string; `None` where half a surrogate pair stands alone.
fn unescape(body: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(body.len());
    let mut rest = body;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        let (plain, escape) = rest.split_at_checked(at)?;
        out.extend_from_slice(plain);
        rest = undo(escape.get(1..)?, &mut out)?;
    }
    out.extend_from_slice(rest);
    Some(out)
}

/// Undoes what follows a backslash and gives what follows that.
fn undo<'t>(escape: &'t [u8], out: &mut Vec<u8>) -> Option<&'t [u8]> {
    let (letter, rest) = escape.split_first()?;
    let byte = match letter {
        b'b' => 8,
        b'f' => 12,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'u' => {
            let (point, rest) = point(rest)?;
            out.extend_from_slice(point.encode_utf8(&mut [0; 4]).as_bytes());
            return Some(rest);
        }
        other => *other,
    };
    out.push(byte);
    Some(rest)
}

/// The character after `\u`: four digits, or a surrogate pair in two escapes (RFC 8259 §7).
fn point(digits: &[u8]) -> Option<(char, &[u8])> {
    let (first, rest) = unit(digits)?;
    if let Some(point) = char::from_u32(first) {
        return Some((point, rest));
    }
    let (second, rest) = unit(rest.strip_prefix(b"\\u")?)?;
    let high = first.checked_sub(0xd800).filter(|high| *high < 0x400)?;
    let low = second.checked_sub(0xdc00).filter(|low| *low < 0x400)?;
    Some((char::from_u32(0x10000 + (high << 10) + low)?, rest))
}

fn unit(digits: &[u8]) -> Option<(u32, &[u8])> {
    let (digits, rest) = digits.split_at_checked(4)?;
    let value = digits.iter().try_fold(0, |sum, &digit| {
        Some(sum * 16 + char::from(digit).to_digit(16)?)
    })?;
    Some((value, rest))
}
