//! Values that remember where they were written, and the way from a decoded string back to the
//! bytes of its literal.

use std::ops::Range;

use super::ConfigSource;

/// A value and its place in the file, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spanned<T> {
    /// The value.
    pub value: T,
    /// Where the whole literal is, quotes included; for a default, the section it belongs to.
    pub span: Range<usize>,
}

/// A string as written: an expression, a path, a name.
pub type Text = Spanned<String>;

// === impl Spanned ===

impl<T> Spanned<T> {
    /// A value at a place.
    pub const fn new(value: T, span: Range<usize>) -> Self {
        Self { value, span }
    }

    /// The same place with another value.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Spanned<U> {
        Spanned::new(f(self.value), self.span)
    }
}

impl Spanned<String> {
    /// Where in the file the bytes `range` of the decoded value were written (TOML 1.1, "String").
    /// An escape belongs to a range as a whole; an empty range stays empty.
    pub fn inner(&self, source: &ConfigSource, range: Range<usize>) -> Range<usize> {
        let Some(literal) = source.text.get(self.span.clone()) else {
            return self.span.clone();
        };
        let start = self.written_offset(literal, range.start);
        if range.end <= range.start {
            return start.start..start.start;
        }
        let last = self.written_offset(literal, range.end - 1);
        start.start..last.end.max(start.start)
    }

    /// The bytes of the file that gave the value's byte at `offset`.
    fn written_offset(&self, literal: &str, offset: usize) -> Range<usize> {
        let (quotes, escapes) = (quotes(literal), literal.starts_with('"'));
        let body_end = literal.len().saturating_sub(quotes);
        let (mut written, mut decoded) = (quotes, 0);
        if quotes == 3 {
            // A newline right after three opening quotes is not part of the value.
            written += newline_len(literal.get(quotes..).unwrap_or_default());
        }
        while written < body_end {
            let rest = literal.get(written..body_end).unwrap_or_default();
            let (from, to) = first_piece(rest, escapes);
            if offset < decoded + to {
                let start = self.span.start + written;
                return start..start + from;
            }
            written += from;
            decoded += to;
        }
        let end = self.span.start + body_end;
        end..end
    }
}

/// The bytes of a literal's opening quotes. A bare key is a value too: it has no quotes.
fn quotes(literal: &str) -> usize {
    let long = literal.starts_with("\"\"\"") || literal.starts_with("'''");
    match long && literal.len() >= 6 {
        true => 3,
        false => usize::from(literal.starts_with(['"', '\''])),
    }
}

/// How many bytes of a literal give how many bytes of the value, for the first character or escape
/// of `rest`. The parser gives CRLF as it stands.
fn first_piece(rest: &str, escapes: bool) -> (usize, usize) {
    let Some(after) = rest.strip_prefix('\\').filter(|_| escapes) else {
        let len = rest.chars().next().map_or(1, char::len_utf8);
        return (len, len);
    };
    let digits = match after.chars().next() {
        Some('x') => 2,
        Some('u') => 4,
        Some('U') => 8,
        Some(c) if c.is_whitespace() => {
            // A backslash at the end of a line swallows all white space up to the next character.
            let kept = after.trim_start_matches([' ', '\t', '\r', '\n']);
            return (1 + after.len() - kept.len(), 0);
        }
        _ => 0,
    };
    let code = after.get(1..=digits);
    let code = code.and_then(|code| u32::from_str_radix(code, 16).ok());
    let decoded = code.and_then(char::from_u32).map_or(1, char::len_utf8);
    (2 + digits, decoded)
}

fn newline_len(text: &str) -> usize {
    if text.starts_with("\r\n") {
        2
    } else {
        usize::from(text.starts_with('\n'))
    }
}
