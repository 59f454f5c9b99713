//! Finds one value in a JSON text (RFC 8259) by a path, without copying. The whole text must be
//! valid. Depth is limited, so that hostile text costs little stack. A name on the path that occurs
//! twice in its object is ambiguous, because parsers differ: the value is missing.

use std::borrow::Cow;

use super::transform::hex;

/// The deepest nesting; deeper texts are invalid.
const MAX_DEPTH: u32 = 64;

/// A step from a container to one of its values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum JsonStep {
    /// The member of this name.
    Name(Box<[u8]>),
    /// The element at this index, from 0.
    At(usize),
}

/// A value as written in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RawJson<'t>(&'t [u8]);

/// A scanner that validates JSON text and finds where values end.
struct Scan<'t> {
    text: &'t [u8],
    at: usize,
}

/// The value at `path`. `None` if the text is not JSON or has no such value.
pub(crate) fn find<'t>(text: &'t [u8], path: &[JsonStep]) -> Option<RawJson<'t>> {
    // RFC 8259 §8.1: UTF-8 without a byte order mark, which the scan refuses because it starts no value.
    std::str::from_utf8(text).ok()?;
    let mut value = Scan::new(text).whole()?;
    for step in path {
        value = within(value, step)?;
    }
    Some(RawJson(value))
}

/// The part of a valid container that `step` selects. `None` if there is none.
fn within<'t>(container: &'t [u8], step: &JsonStep) -> Option<&'t [u8]> {
    let mut scan = Scan::new(container);
    match (container.first()?, step) {
        (b'{', JsonStep::Name(wanted)) => {
            let mut found = None;
            while let Some((name, value)) = scan.member() {
                if is(name, wanted) && found.replace(value).is_some() {
                    return None;
                }
            }
            found
        }
        (b'[', JsonStep::At(at)) => {
            let elements = std::iter::from_fn(move || scan.element());
            elements.into_iter().nth(*at)
        }
        _ => None,
    }
}

/// Whether a string, as written between its quotes, decodes to `wanted`.
fn is(name: &[u8], wanted: &[u8]) -> bool {
    if name.contains(&b'\\') {
        unescape(name).is_some_and(|name| *name == *wanted)
    } else {
        name == wanted
    }
}

// === impl RawJson ===

impl<'t> RawJson<'t> {
    /// The string; borrowed unless it has escapes. `None` if it is not a string.
    pub(crate) fn text(self) -> Option<Cow<'t, [u8]>> {
        let body = self.0.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
        if body.contains(&b'\\') {
            unescape(body).map(Cow::Owned)
        } else {
            Some(Cow::Borrowed(body))
        }
    }

    /// The integer. `None` if it is not one of 64 bits; `1.0` and `1e3` are not integers.
    pub(crate) fn int(self) -> Option<i64> {
        self.digits()?.parse().ok()
    }

    /// The text of a string, an integer or a boolean. `None` for other values.
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

// === impl Scan ===

impl<'t> Scan<'t> {
    fn new(text: &'t [u8]) -> Scan<'t> {
        Scan { text, at: 0 }
    }

    /// The text's only value, without surrounding whitespace.
    fn whole(&mut self) -> Option<&'t [u8]> {
        let value = self.value()?;
        self.space();
        (self.at == self.text.len()).then_some(value)
    }

    /// The next member of a valid object: its name between the quotes, and its value.
    fn member(&mut self) -> Option<(&'t [u8], &'t [u8])> {
        self.next_in_container(b'}')?;
        let start = self.at + 1;
        self.string()?;
        let name = self.text.get(start..self.at - 1)?;
        self.space();
        self.expect(b':')?;
        Some((name, self.value()?))
    }

    /// The next element of a valid array.
    fn element(&mut self) -> Option<&'t [u8]> {
        self.next_in_container(b']')?;
        self.value()
    }

    /// Skips the opening bracket or a comma. `None` at the closing bracket.
    fn next_in_container(&mut self, close: u8) -> Option<()> {
        self.space();
        self.at += 1;
        self.space();
        (self.peek()? != close).then_some(())
    }

    /// The next value, with everything in it.
    fn value(&mut self) -> Option<&'t [u8]> {
        self.space();
        let start = self.at;
        self.skip_value(MAX_DEPTH)?;
        self.text.get(start..self.at)
    }

    /// Skips a value, which is nested `depth` levels deep.
    fn skip_value(&mut self, depth: u32) -> Option<()> {
        self.space();
        match self.peek()? {
            b'{' => self.skip_container(b'}', depth.checked_sub(1)?),
            b'[' => self.skip_container(b']', depth.checked_sub(1)?),
            b'"' => self.string(),
            b't' => self.word(b"true"),
            b'f' => self.word(b"false"),
            b'n' => self.word(b"null"),
            _ => self.number(),
        }
    }

    fn skip_container(&mut self, close: u8, depth: u32) -> Option<()> {
        self.at += 1;
        self.space();
        if self.take(close) {
            return Some(());
        }
        loop {
            if close == b'}' {
                self.space();
                self.string()?;
                self.space();
                self.expect(b':')?;
            }
            self.skip_value(depth)?;
            self.space();
            if self.take(close) {
                return Some(());
            }
            self.expect(b',')?;
        }
    }

    fn string(&mut self) -> Option<()> {
        self.expect(b'"')?;
        loop {
            let byte = self.peek()?;
            self.at += 1;
            match byte {
                b'"' => return Some(()),
                b'\\' => self.escape()?,
                0..0x20 => return None,
                _ => {}
            }
        }
    }

    fn escape(&mut self) -> Option<()> {
        let letter = self.peek()?;
        self.at += 1;
        match letter {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(()),
            b'u' => {
                let digits = self.text.get(self.at..self.at + 4)?;
                self.at += 4;
                digits.iter().all(u8::is_ascii_hexdigit).then_some(())
            }
            _ => None,
        }
    }

    /// RFC 8259 §6.
    fn number(&mut self) -> Option<()> {
        self.take(b'-');
        match self.peek()? {
            b'0' => self.at += 1,
            _ => self.digits()?,
        }
        if self.take(b'.') {
            self.digits()?;
        }
        if self.take(b'e') || self.take(b'E') {
            let _ = self.take(b'+') || self.take(b'-');
            self.digits()?;
        }
        Some(())
    }

    fn digits(&mut self) -> Option<()> {
        let rest = self.text.get(self.at..)?;
        let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += count;
        (count > 0).then_some(())
    }

    fn word(&mut self, word: &[u8]) -> Option<()> {
        let found = self.text.get(self.at..)?.starts_with(word);
        self.at += word.len();
        found.then_some(())
    }

    fn space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        self.take(byte).then_some(())
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }
}

/// Decodes the escapes of a valid string. `None` if half of a surrogate pair is missing.
pub fn unescape(body: &[u8]) -> Option<Vec<u8>> {
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

/// Decodes the escape after a backslash and returns the rest.
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
    Some((hex(digits)?, rest))
}
