//! Values with their spans, and the mapping from a decoded string back to the bytes of its literal.

use std::ops::Range;

use super::{ConfigSource, environment};

/// A value and its span in the source, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spanned<T> {
    /// The value.
    pub value: T,
    /// The span of the whole literal, quotes included; for a default, the span of its section.
    pub span: Range<usize>,
}

/// A string as written: an expression, a path or a name.
pub type Text = Spanned<String>;

// === impl Spanned ===

impl<T> Spanned<T> {
    /// Creates a value with a span.
    pub const fn new(value: T, span: Range<usize>) -> Self {
        Self { value, span }
    }

    /// Converts the value and keeps the span.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Spanned<U> {
        Spanned::new(f(self.value), self.span)
    }
}

impl Spanned<String> {
    /// Returns the span of the bytes `range` of the decoded value (TOML 1.1, "String"). A range
    /// includes an escape as a whole; an empty range stays empty.
    pub fn inner(&self, source: &ConfigSource, range: Range<usize>) -> Range<usize> {
        within_literal(&self.span, source, range)
    }
}

/// Returns the span of the bytes `range` of the string that the literal at `literal` encodes.
pub(super) fn within_literal(
    literal: &Range<usize>,
    source: &ConfigSource,
    range: Range<usize>,
) -> Range<usize> {
    let Some(text) = source.text.get(literal.clone()) else {
        return literal.clone();
    };
    // The value has other offsets than the literal.
    if environment::has_reference(text) {
        return literal.clone();
    }
    let start = written_offset(literal.start, text, range.start);
    if range.end <= range.start {
        return start.start..start.start;
    }
    let last = written_offset(literal.start, text, range.end - 1);
    start.start..last.end.max(start.start)
}

/// Returns the bytes of the file that encode the byte at `offset` of a string. Its literal starts at
/// `file_offset`.
fn written_offset(file_offset: usize, literal: &str, offset: usize) -> Range<usize> {
    let (quotes, escapes) = (quotes(literal), literal.starts_with('"'));
    let body_end = literal.len().saturating_sub(quotes);
    let (mut written, mut decoded) = (quotes, 0);
    if quotes == 3 {
        // A newline directly after three opening quotes is not part of the value.
        written += newline_len(literal.get(quotes..).unwrap_or_default());
    }
    while written < body_end {
        let rest = literal.get(written..body_end).unwrap_or_default();
        let (from, to) = first_piece(rest, escapes);
        if offset < decoded + to {
            let start = file_offset + written;
            return start..start + from;
        }
        written += from;
        decoded += to;
    }
    let end = file_offset + body_end;
    end..end
}

/// Returns the length of a literal's opening quotes in bytes. A bare key is a value without quotes.
fn quotes(literal: &str) -> usize {
    let long = literal.starts_with("\"\"\"") || literal.starts_with("'''");
    if long && literal.len() >= 6 {
        3
    } else {
        usize::from(literal.starts_with(['"', '\'']))
    }
}

/// Returns the lengths in the literal and in the value of the first character or escape of `rest`.
/// The parser keeps CRLF unchanged.
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
            // A backslash at the end of a line removes all white space up to the next character.
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
