//! The one normal form of a path, so that `//login`, `/./login` and `/%6cogin` are all `/login`.
//!
//! Escapes of unreserved characters are decoded and the others written in upper case, bytes that a
//! path cannot contain are escaped, empty segments are dropped, then dot segments are resolved (RFC
//! 3986, sections 5.2.4 and 6.2.2). `%2F` stays: it is not a separator. A path that an origin
//! server could read as another path is refused, never repaired. Queries are not changed here.

use std::borrow::Cow;

/// Why a path has no normal form; [`PathError::reason`] is the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "see `reason`")]
pub enum PathError {
    Relative,
    Escape,
    Nul,
    Control,
    Backslash,
    Delimiter,
    /// A segment that an origin server could read as `.` or `..`: `..%2f`, `%2e%2e%5c`, `..;a`.
    HiddenDots,
    /// A segment of only parameters before another segment: an origin server that removes
    /// parameters and drops empty segments reads `/;a/b` as `/b`.
    Nameless,
}

// === impl PathError ===

impl PathError {
    /// A description without a full stop.
    pub const fn reason(self) -> &'static str {
        match self {
            PathError::Relative => "the path does not start with `/`",
            PathError::Escape => "the path has a `%` without two hexadecimal digits",
            PathError::Nul => "the path has `%00`",
            PathError::Control => "the path has a space or a control character",
            PathError::Backslash => "the path has a `\\`, which some origin servers read as `/`",
            PathError::Delimiter => "the path has a `?` or `#`",
            PathError::HiddenDots => "the path hides a dot segment, such as `..%2f`",
            PathError::Nameless => "the path has a segment with only parameters, such as `/;a/b`",
        }
    }
}

/// The normal form of `path`; borrowed if it is normal already.
pub fn normalise(path: &str) -> Result<Cow<'_, str>, PathError> {
    if is_plain(path.as_bytes()) {
        return Ok(Cow::Borrowed(path));
    }
    let built = build(path)?;
    Ok(if built == path {
        Cow::Borrowed(path)
    } else {
        Cow::Owned(built)
    })
}

/// A quick check that `path` is in normal form. `false` means that it may still be.
fn is_plain(path: &[u8]) -> bool {
    let mut last = 0;
    for &byte in path {
        let starts_odd = last == b'/' && matches!(byte, b'/' | b'.' | b';');
        if starts_odd || !is_allowed_byte(byte) && byte != b'/' {
            return false;
        }
        last = byte;
    }
    path.first() == Some(&b'/')
}

fn build(path: &str) -> Result<String, PathError> {
    let segments = path.strip_prefix('/').ok_or(PathError::Relative)?;
    let mut out = String::with_capacity(path.len());
    let mut directory = false;
    let (mut nameless, mut before_another) = (false, false);
    for segment in segments.split('/') {
        let start = out.len();
        out.push('/');
        push_segment(&mut out, segment)?;
        before_another |= nameless;
        let segment = out.get(start + 1..).unwrap_or_default();
        nameless = is_nameless(segment);
        let kind = kind(segment)?;
        directory = kind != SegmentKind::Name;
        if directory {
            out.truncate(start);
        }
        if kind == SegmentKind::Up {
            out.truncate(out.rfind('/').unwrap_or(0));
        }
    }
    if directory {
        out.push('/');
    }
    match before_another {
        // Checked last, so that every spelling of a path has an equal error.
        true => Err(PathError::Nameless),
        false => Ok(out),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum SegmentKind {
    Name,
    Stay,
    Up,
}

fn kind(segment: &str) -> Result<SegmentKind, PathError> {
    match segment {
        "" | "." => Ok(SegmentKind::Stay),
        ".." => Ok(SegmentKind::Up),
        name if hides_dots(name) => Err(PathError::HiddenDots),
        _ => Ok(SegmentKind::Name),
    }
}

/// Whether an origin server that decodes `%2F` or `%5C`, or removes path parameters, would see a
/// dot segment.
fn hides_dots(segment: &str) -> bool {
    segment
        .split("%2F")
        .flat_map(|part| part.split("%5C"))
        .any(|part| matches!(without_parameters(part), "." | ".."))
}

/// Whether a segment is empty for an origin server that removes path parameters.
fn is_nameless(segment: &str) -> bool {
    !segment.is_empty() && without_parameters(segment).is_empty()
}

fn without_parameters(part: &str) -> &str {
    let part = part.split_once(';').map_or(part, |(name, _)| name);
    part.split_once("%3B").map_or(part, |(name, _)| name)
}

fn push_segment(out: &mut String, segment: &str) -> Result<(), PathError> {
    let mut bytes = segment.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'%' => push_decoded(out, decode(bytes.next(), bytes.next())?)?,
            b'\\' => return Err(PathError::Backslash),
            b'?' | b'#' => return Err(PathError::Delimiter),
            0..=b' ' | 0x7f => return Err(PathError::Control),
            _ if is_allowed_byte(byte) => out.push(char::from(byte)),
            _ => push_escape(out, byte),
        }
    }
    Ok(())
}

fn push_decoded(out: &mut String, byte: u8) -> Result<(), PathError> {
    match byte {
        0 => return Err(PathError::Nul),
        _ if is_unreserved(byte) => out.push(char::from(byte)),
        _ => push_escape(out, byte),
    }
    Ok(())
}

fn push_escape(out: &mut String, byte: u8) {
    out.push('%');
    for digit in [byte >> 4, byte & 15] {
        let digit = char::from_digit(u32::from(digit), 16).unwrap_or('0');
        out.push(digit.to_ascii_uppercase());
    }
}

fn decode(high: Option<u8>, low: Option<u8>) -> Result<u8, PathError> {
    let digit = |byte: Option<u8>| byte.and_then(|b| char::from(b).to_digit(16));
    match (digit(high), digit(low)) {
        (Some(high), Some(low)) => u8::try_from(high * 16 + low).map_err(|_| PathError::Escape),
        _ => Err(PathError::Escape),
    }
}

const fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// Whether a byte needs no escape in a segment: `pchar` of RFC 3986 without escapes, and the
/// brackets, which are reserved and so not equal to their escapes.
fn is_allowed_byte(byte: u8) -> bool {
    STANDS.get(usize::from(byte)).copied().unwrap_or(false)
}

static STANDS: [bool; 256] = stands();

#[allow(clippy::indexing_slicing)] // in a constant: a wrong index does not compile
const fn stands() -> [bool; 256] {
    let mut table = [false; 256];
    let mut byte = 0u8;
    while byte < 0x80 {
        table[byte as usize] = is_unreserved(byte)
            || matches!(byte, b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*')
            || matches!(byte, b'+' | b',' | b';' | b'=' | b':' | b'@' | b'[' | b']');
        byte += 1;
    }
    table
}

#[cfg(test)]
mod tests;
