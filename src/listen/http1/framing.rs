//! Scans the bytes of HTTP/1 before hyper reads them, to find where each request ends.
//!
//! hyper drops a `Content-Length` next to `Transfer-Encoding` and merges equal `Content-Length` lines, so later
//! code cannot refuse them as RFC 9112, section 6.3 allows. It parses a trailer line that ends in LF alone as
//! the beginning of a longer one, and so a request after it as trailers. The scanner follows heads and bodies
//! through a connection and invalidates the second framing header of a head and such line ends, which hyper then
//! refuses with 400: see [`BROKEN`].
//!
//! hyper refuses `"`, `<`, `>` and invalid UTF-8 in a query, which many clients send as they are. The scanner finds them,
//! so that they are percent-encoded before hyper reads them: see [`super::query`].
//!
//! hyper also responds 400 to a coding that is not `chunked`, but RFC 9112, section 6.1 requires 501. The
//! scanner finds where the last line of such a request must end: see [`ENDING`].
//!
//! Bytes after a complete request are not scanned until the response has ended, because they may belong to a
//! tunnel. See [`FramingStop::Behind`].
//!
//! hyper reports the largest lengths as a head that is too large; here they are invalidated like those that
//! overflow. The scanner also recognizes a head that is refused because the end of its body is ambiguous: hyper
//! shows that only in the text of its error.
//!
//! All other errors are left to hyper: it ends a connection that it parses differently from the scanner.

mod coding;

use super::query::{is_unescaped_in_query, unescaped_in_query};
use coding::{CHUNKED_AND_SPACE, CHUNKED_WHOLE, Coding, NO_LETTER, is_framing_header, next_coding};

const LENGTH: &[u8] = b"content-length";
const CODING: &[u8] = b"transfer-encoding";

/// The maximum length: hyper reserves the two numbers above it.
const LONGEST: u64 = u64::MAX - 2;

/// Ends a list of transfer codings and the request so that hyper accepts it. The gateway can then refuse the
/// list itself.
pub(super) const ENDING: &[u8] = b", chunked\r\n\r\n0\r\n\r\n";

/// Replaces the rest of a trailer section with an invalid line end: hyper refuses it immediately, in the last line and in
/// any other.
pub(super) const BROKEN: &[u8] = b"\r\0";

/// The byte that invalidates a header: no field name contains it.
const SPOILT: u8 = 0;

/// The position in a connection's bytes.
#[derive(Debug)]
pub(super) struct FramingScanner {
    at: ScanState,
    /// Whether the current head is HTTP/1.0.
    http10: bool,
    /// The `Content-Length` of the current head, as far as it is read.
    length: Option<u64>,
    chunked: bool,
    /// Whether a head left the end of its body ambiguous.
    ambiguous: bool,
}

/// A position where reading must stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FramingStop {
    /// [`ENDING`] must replace all following bytes.
    Ending(usize),
    /// [`BROKEN`] must replace all following bytes.
    Broken(usize),
    /// The next byte, and others of the query, must be percent-encoded: see [`super::query`].
    Query(usize),
    /// After a complete request: the next bytes are another request only if the response opens no tunnel.
    Behind(usize),
}

#[derive(Clone, Copy, Debug)]
enum ScanState {
    /// Before a request line.
    Start,
    /// After a complete request, which is reported immediately.
    Behind,
    /// In a request line, after this byte; CR is ignored. `true` after a `?`.
    RequestLine(u8, bool),
    /// In a header line that needs no further scanning.
    Line,
    /// At the beginning of a header line, or of the empty line.
    Field,
    /// In the name of a framing header, after this many bytes.
    Name(&'static [u8], usize),
    /// In the value of `Content-Length`.
    Length(Digits),
    /// In the value of `Transfer-Encoding`.
    Coding(Coding),
    /// This many bytes before the end of a body.
    Body(u64),
    /// In the size of a chunk, with its value so far.
    Size(u64),
    /// In the rest of the line after that size.
    Extension(u64),
    /// This many bytes before the next chunk.
    Chunk(u64),
    /// At the beginning of a trailer line, or of the empty line; `true` if the last byte was CR.
    Trailer(bool),
    /// In a trailer line; `true` if the last byte was CR.
    TrailerLine(bool),
}

/// The position in the value of `Content-Length`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Digits {
    Before,
    Within,
    After,
}

// === impl FramingStop ===

impl FramingStop {
    /// Returns the number of bytes before the stop.
    pub(super) const fn at(self) -> usize {
        let (Self::Ending(at) | Self::Broken(at) | Self::Query(at) | Self::Behind(at)) = self;
        at
    }
}

// === impl FramingScanner ===

impl FramingScanner {
    pub(super) const fn new() -> Self {
        Self {
            at: ScanState::Start,
            http10: false,
            length: None,
            chunked: false,
            ambiguous: false,
        }
    }

    /// Returns whether a head left the end of its body ambiguous. hyper refuses such a head.
    pub(super) const fn is_ambiguous(&self) -> bool {
        self.ambiguous
    }

    /// Returns whether no request has begun, apart from empty lines before it.
    pub(super) const fn is_between(&self) -> bool {
        matches!(self.at, ScanState::Start)
    }

    /// Scans `bytes`, the next of the connection, and invalidates what frames a request twice. Returns where
    /// reading must stop. `None` for no stop. Bytes after a stop must be passed again.
    pub(super) fn follow(&mut self, bytes: &mut [u8]) -> Option<FramingStop> {
        let mut at = 0;
        while let Some(rest) = bytes.get_mut(at..).filter(|rest| !rest.is_empty()) {
            let plain = self.plain_lines(rest);
            at += plain;
            if plain > 0 {
                continue;
            }
            if self.is_unknown(rest) {
                return Some(FramingStop::Ending(at));
            }
            if self.is_bare_end(rest) {
                return Some(FramingStop::Broken(at));
            }
            if self.is_unescaped(rest) {
                return Some(FramingStop::Query(at));
            }
            at += self.step(rest);
            if matches!(self.at, ScanState::Behind) {
                self.at = ScanState::Start;
                return (at < bytes.len()).then_some(FramingStop::Behind(at));
            }
        }
        None
    }

    /// Returns the number of bytes in complete header lines that need no closer scan, which nearly all are.
    fn plain_lines(&self, bytes: &[u8]) -> usize {
        let mut read = 0;
        if !matches!(self.at, ScanState::Field) {
            return read;
        }
        while let Some(rest) = bytes.get(read..).filter(|rest| !is_framing_header(rest)) {
            match memchr::memchr(b'\n', rest) {
                Some(end) => read += end + 1,
                None => break,
            }
        }
        read
    }

    /// Returns whether a line of transfer codings ends here with one that is not `chunked`.
    fn is_unknown(&self, bytes: &[u8]) -> bool {
        let ends = matches!(bytes, [b'\r' | b'\n', ..]);
        let chunked = CHUNKED_WHOLE..=CHUNKED_AND_SPACE;
        matches!(self.at, ScanState::Coding(last) if ends && !chunked.contains(&last))
    }

    /// Returns whether a line of the trailer section ends here in LF alone.
    fn is_bare_end(&self, bytes: &[u8]) -> bool {
        let is_bare = matches!(
            self.at,
            ScanState::Trailer(false) | ScanState::TrailerLine(false)
        );
        is_bare && bytes.first() == Some(&b'\n')
    }

    /// Returns whether the query of a request line has a byte here that must be escaped.
    fn is_unescaped(&self, bytes: &[u8]) -> bool {
        let first = bytes.first().filter(|byte| is_unescaped_in_query(**byte));
        matches!(self.at, ScanState::RequestLine(_, true)) && first.is_some()
    }

    /// Consumes bytes of one meaning and returns their number. Zero only if the state has changed.
    fn step(&mut self, bytes: &mut [u8]) -> usize {
        let Some(first) = bytes.first().copied() else {
            return 0;
        };
        match self.at {
            ScanState::RequestLine(last, query) => return self.request_line(bytes, last, query),
            ScanState::Line => return self.skip_line(bytes, ScanState::Field),
            ScanState::TrailerLine(cr) => return self.trailer_line(bytes, cr),
            ScanState::Extension(size) => return self.skip_line(bytes, after_size(size)),
            ScanState::Body(left) => {
                return self.skip(bytes, left, ScanState::Body, ScanState::Behind);
            }
            ScanState::Chunk(left) => {
                return self.skip(bytes, left, ScanState::Chunk, ScanState::Size(0));
            }
            ScanState::Name(name, length) if name.len() == length && first == b':' => {
                let unknown = self.http10 && name == CODING;
                if unknown || self.chunked || self.length.is_some() {
                    self.spoil(bytes);
                }
            }
            ScanState::Length(_) if first.is_ascii_digit() && self.longer(first) > LONGEST => {
                self.spoil(bytes);
            }
            _ => {}
        }
        self.take(first)
    }

    fn spoil(&mut self, bytes: &mut [u8]) {
        if let Some(first) = bytes.first_mut() {
            *first = SPOILT;
        }
        self.ambiguous = true;
    }

    fn take(&mut self, byte: u8) -> usize {
        let (next, read) = match (self.at, byte) {
            (ScanState::Start | ScanState::Field, b'\r') => return 1,
            (ScanState::Start, b'\n') => return 1,
            (ScanState::Start, _) => (ScanState::RequestLine(0, false), 0),
            (ScanState::Field, b'\n') => (self.end_head(), 1),
            (ScanState::Field, b'c' | b'C') => (ScanState::Name(LENGTH, 1), 1),
            (ScanState::Field, b't' | b'T') => (ScanState::Name(CODING, 1), 1),
            (ScanState::Name(name, length), _) => self.name(name, length, byte),
            (ScanState::Length(digits), _) => (self.length(digits, byte), 1),
            (ScanState::Coding(_), b'\r' | b'\n') => (ScanState::Line, 0),
            (ScanState::Coding(coding), _) => (ScanState::Coding(next_coding(coding, byte)), 1),
            (ScanState::Size(size), b'\n') => (after_size(size), 1),
            (ScanState::Size(size), _) => match char::from(byte).to_digit(16) {
                Some(digit) => (
                    ScanState::Size(size.saturating_mul(16) | u64::from(digit)),
                    1,
                ),
                None => (ScanState::Extension(size), 0),
            },
            (ScanState::Trailer(_), b'\n') => (ScanState::Behind, 1),
            (ScanState::Trailer(false), b'\r') => (ScanState::Trailer(true), 1),
            (ScanState::Trailer(_), _) => (ScanState::TrailerLine(false), 0),
            _ => (ScanState::Line, 0),
        };
        self.at = next;
        read
    }

    fn name(&mut self, name: &'static [u8], length: usize, byte: u8) -> (ScanState, usize) {
        match name.get(length) {
            Some(wanted) if wanted.eq_ignore_ascii_case(&byte) => {
                (ScanState::Name(name, length + 1), 1)
            }
            None if byte == b':' && name == LENGTH => {
                self.length = Some(0);
                (ScanState::Length(Digits::Before), 1)
            }
            None if byte == b':' => {
                self.chunked = true;
                (ScanState::Coding(NO_LETTER), 1)
            }
            _ => (ScanState::Line, 0),
        }
    }

    /// Scans a byte of `Content-Length`. hyper refuses a value that is not digits between white space.
    fn length(&mut self, digits: Digits, byte: u8) -> ScanState {
        let (next, valid) = match (byte, digits) {
            (b'\n', digits) => (None, digits != Digits::Before),
            (b'\r', digits) => (Some(digits), true),
            (b' ' | b'\t', Digits::Within) => (Some(Digits::After), true),
            (b' ' | b'\t', digits) => (Some(digits), true),
            (b'0'..=b'9', digits) => {
                self.length = Some(self.longer(byte));
                (Some(Digits::Within), digits != Digits::After)
            }
            _ => (Some(digits), false),
        };
        self.ambiguous |= !valid;
        next.map_or(ScanState::Field, ScanState::Length)
    }

    /// Returns the length with the next digit appended.
    fn longer(&self, digit: u8) -> u64 {
        let length = self.length.unwrap_or(0).saturating_mul(10);
        length.saturating_add(u64::from(digit.saturating_sub(b'0')))
    }

    fn end_head(&mut self) -> ScanState {
        let length = self.length.take().unwrap_or(0);
        match (std::mem::take(&mut self.chunked), length) {
            (true, _) => ScanState::Size(0),
            (false, 0) => ScanState::Behind,
            (false, length) => ScanState::Body(length),
        }
    }

    /// Reads to the end of the line, or to a byte of its query that must be escaped.
    fn request_line(&mut self, bytes: &[u8], last: u8, query: bool) -> usize {
        let end = memchr::memchr(b'\n', bytes);
        let line = bytes.get(..end.unwrap_or(bytes.len())).unwrap_or_default();
        let begin = if query {
            Some(0)
        } else {
            memchr::memchr(b'?', line)
        };
        let escape = begin.and_then(|begin| unescaped_in_query(line, begin));
        let read = line.get(..escape.unwrap_or(line.len())).unwrap_or_default();
        let last = read.iter().rfind(|byte| **byte != b'\r').unwrap_or(&last);
        self.http10 = *last == b'0';
        self.at = match (end, escape) {
            (Some(_), None) => ScanState::Field,
            _ => ScanState::RequestLine(*last, begin.is_some()),
        };
        let line_end = end.filter(|_| escape.is_none());
        line_end.map_or(read.len(), |end| end + 1)
    }

    fn skip_line(&mut self, bytes: &[u8], then: ScanState) -> usize {
        match memchr::memchr(b'\n', bytes) {
            Some(end) => {
                self.at = then;
                end + 1
            }
            None => bytes.len(),
        }
    }

    /// Reads a trailer line, but not its end if that is LF alone.
    fn trailer_line(&mut self, bytes: &[u8], cr: bool) -> usize {
        let Some(end) = memchr::memchr(b'\n', bytes) else {
            self.at = ScanState::TrailerLine(bytes.last() == Some(&b'\r'));
            return bytes.len();
        };
        let before = end.checked_sub(1).and_then(|before| bytes.get(before));
        let cr = before.map_or(cr, |byte| *byte == b'\r');
        self.at = if cr {
            ScanState::Trailer(false)
        } else {
            ScanState::TrailerLine(false)
        };
        end + usize::from(cr)
    }

    fn skip(
        &mut self,
        bytes: &[u8],
        left: u64,
        more: fn(u64) -> ScanState,
        then: ScanState,
    ) -> usize {
        let read = usize::try_from(left).map_or(bytes.len(), |left| left.min(bytes.len()));
        let left = left - read as u64;
        self.at = if left == 0 { then } else { more(left) };
        read
    }
}

/// Returns the state after a chunk size. A chunk ends in a line end; the last one has no data.
const fn after_size(size: u64) -> ScanState {
    match size {
        0 => ScanState::Trailer(false),
        size => ScanState::Chunk(size.saturating_add(2)),
    }
}

#[cfg(test)]
mod tests;
