//! Values that remember where they were written, and the way from a decoded string back to the
//! bytes of its literal.

use std::ops::Range;

use super::Source;

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

/// One step of decoding a literal: how many bytes of the file gave how many bytes of the value.
struct Piece {
    written: usize,
    decoded: usize,
}

/// The four ways TOML writes a string.
#[derive(Clone, Copy)]
struct Form {
    /// Bytes of the opening quotes.
    quotes: usize,
    /// Backslashes mean something.
    escapes: bool,
}

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
    pub fn inner(&self, source: &Source, range: Range<usize>) -> Range<usize> {
        let Some(literal) = source.text.get(self.span.clone()) else {
            return self.span.clone();
        };
        let form = Form::of(literal);
        let start = self.written_offset(literal, form, range.start);
        if range.end <= range.start {
            return start.start..start.start;
        }
        let last = self.written_offset(literal, form, range.end - 1);
        start.start..last.end.max(start.start)
    }

    /// The bytes of the file that gave the value's byte at `offset`.
    fn written_offset(&self, literal: &str, form: Form, offset: usize) -> Range<usize> {
        let mut written = form.body_start(literal);
        let mut decoded = 0;
        let body_end = literal.len().saturating_sub(form.quotes);
        while written < body_end {
            let rest = literal.get(written..body_end).unwrap_or_default();
            let piece = Piece::next(rest, form);
            if offset < decoded + piece.decoded {
                let start = self.span.start + written;
                return start..start + piece.written;
            }
            written += piece.written;
            decoded += piece.decoded;
        }
        let end = self.span.start + body_end;
        end..end
    }
}

// === impl Form ===

impl Form {
    fn of(literal: &str) -> Self {
        let escapes = literal.starts_with('"');
        let long =
            literal.len() >= 6 && (literal.starts_with("\"\"\"") || literal.starts_with("'''"));
        // A bare key is a value too: it has no quotes.
        let quoted = escapes || literal.starts_with('\'');
        Self {
            quotes: if long { 3 } else { usize::from(quoted) },
            escapes,
        }
    }

    /// A newline right after three opening quotes is not part of the value.
    fn body_start(self, literal: &str) -> usize {
        let rest = literal.get(self.quotes..).unwrap_or_default();
        let newline = match self.quotes {
            3 => newline_len(rest),
            _ => 0,
        };
        self.quotes + newline
    }
}

// === impl Piece ===

impl Piece {
    /// The first piece of a literal's body.
    fn next(rest: &str, form: Form) -> Self {
        match rest.strip_prefix('\\') {
            Some(after) if form.escapes => Self::escape(after),
            // The parser gives CRLF as it stands.
            _ => Self::plain(rest),
        }
    }

    fn plain(rest: &str) -> Self {
        let len = rest.chars().next().map_or(1, char::len_utf8);
        Self {
            written: len,
            decoded: len,
        }
    }

    fn escape(after: &str) -> Self {
        let (digits, code) = match after.chars().next() {
            Some('x') => (2, after.get(1..3)),
            Some('u') => (4, after.get(1..5)),
            Some('U') => (8, after.get(1..9)),
            Some(c) if c.is_whitespace() => return Self::continuation(after),
            _ => (0, None),
        };
        let decoded = code
            .and_then(|code| u32::from_str_radix(code, 16).ok())
            .and_then(char::from_u32)
            .map_or(1, char::len_utf8);
        Self {
            written: 2 + digits,
            decoded,
        }
    }

    /// A backslash at the end of a line swallows all white space up to the next character.
    fn continuation(after: &str) -> Self {
        let kept = after.trim_start_matches([' ', '\t', '\r', '\n']);
        Self {
            written: 1 + after.len() - kept.len(),
            decoded: 0,
        }
    }
}

fn newline_len(text: &str) -> usize {
    if text.starts_with("\r\n") {
        2
    } else {
        usize::from(text.starts_with('\n'))
    }
}
