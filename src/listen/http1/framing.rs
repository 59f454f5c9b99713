//! A look at the bytes of HTTP/1 before hyper reads them: where does each request end?
//!
//! hyper drops a `Content-Length` beside `Transfer-Encoding` and merges equal `Content-Length`
//! lines, so no later code can refuse them as RFC 9112, section 6.3 lets a server do. It takes a
//! line of trailers that ends in LF alone for the beginning of a longer one, and so a request
//! behind it for trailers. This follows heads and bodies through a connection and spoils the second
//! framing header of a head and such line ends, which hyper then refuses with 400.
//!
//! hyper also responds 400 to a coding that is not `chunked`, where RFC 9112, section 6.1 wants 501.
//! This finds where the last line of such a request must end: see [`ENDING`].
//!
//! What comes behind a whole request is not followed until the response has ended: it may be of a
//! tunnel. See [`FramingStop::Behind`].
//!
//! hyper calls the longest lengths a head that is too large; here they are spoilt like those that
//! no number holds. A head that is refused because it leaves in doubt where its body ends is
//! recognised here too: hyper says so only in the text of its error.
//!
//! Everything else that is wrong is left to hyper: it ends a connection that it reads in another
//! way than this.

const LENGTH: &[u8] = b"content-length";
const CODING: &[u8] = b"transfer-encoding";
const CHUNKED: &[u8] = b"chunked";

/// hyper keeps the two numbers above it for other meanings.
const LONGEST: u64 = u64::MAX - 2;

/// What makes a list of transfer codings, and the request with it, end as hyper likes it. The
/// list has then a meaning that the gateway can refuse by itself.
pub(super) const ENDING: &[u8] = b", chunked\r\n\r\n0\r\n\r\n";

/// No field name holds it, so no parser takes it for one.
const SPOILT: u8 = 0;

/// Where a connection's bytes are.
#[derive(Debug)]
pub(super) struct FramingScanner {
    at: ScanState,
    /// The current head is of HTTP/1.0.
    http10: bool,
    /// The `Content-Length` of the current head, as far as it is read.
    length: Option<u64>,
    chunked: bool,
    /// A head left in doubt where its body ends.
    ambiguous: bool,
}

/// Where a connection's bytes must not be read on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FramingStop {
    /// [`ENDING`] must stand here instead of all that follows.
    Ending(usize),
    /// Behind a whole request: what follows is another only if the response opens no tunnel.
    Behind(usize),
}

#[derive(Clone, Copy, Debug)]
enum ScanState {
    /// Before a request line.
    Start,
    /// Behind a whole request, which is reported at once.
    Behind,
    /// In a request line, behind this byte; CR does not count.
    RequestLine(u8),
    /// In a line of a head of which nothing more is wanted.
    Line,
    /// At the beginning of a field line, or of the empty one.
    Field,
    /// So far into the name of a framing field.
    Name(&'static [u8], usize),
    /// In the value of `Content-Length`.
    Length(Digits),
    /// In the value of `Transfer-Encoding`.
    Coding(Coding),
    /// So many bytes before the end of a body.
    Body(u64),
    /// In the size of a chunk, which is this so far.
    Size(u64),
    /// In the rest of the line with that size.
    Extension(u64),
    /// So many bytes before the next chunk.
    Chunk(u64),
    /// At the beginning of a trailer line, or of the empty one; the last byte was CR.
    Trailer(bool),
    /// In a trailer line; the last byte was CR.
    TrailerLine(bool),
    /// Behind a spoilt trailer line: hyper ends the connection where it finds the end of a trailer
    /// section, which may be far behind the end of this one.
    Lost,
}

/// How far the value of `Content-Length` is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Digits {
    Before,
    Within,
    After,
}

/// How the last transfer coding of a list looks so far: as many letters of `chunked` as its number,
/// or one of these.
type Coding = u8;
const NO_LETTER: Coding = 0;
const CHUNKED_WHOLE: Coding = 7;
const CHUNKED_AND_SPACE: Coding = 8;
const OTHER_CODING: Coding = 9;

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

    /// Whether a head left in doubt where its body ends. hyper refuses such a head.
    pub(super) const fn is_ambiguous(&self) -> bool {
        self.ambiguous
    }

    /// Whether no request is begun, or none but the empty lines before it.
    pub(super) const fn is_between(&self) -> bool {
        matches!(self.at, ScanState::Start)
    }

    /// Follows `bytes`, the next of the connection, and spoils what frames a request twice. Gives
    /// how far they may be read, if not to their end; what is behind a cut must be given again.
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
            at += self.step(rest);
            if matches!(self.at, ScanState::Behind) {
                self.at = ScanState::Start;
                return (at < bytes.len()).then_some(FramingStop::Behind(at));
            }
        }
        None
    }

    /// How many bytes of whole lines of a head need no closer look: nearly all do not.
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

    /// Whether a line of transfer codings ends here with one that is not `chunked`.
    fn is_unknown(&self, bytes: &[u8]) -> bool {
        let ends = matches!(bytes, [b'\r' | b'\n', ..]);
        let chunked = CHUNKED_WHOLE..=CHUNKED_AND_SPACE;
        matches!(self.at, ScanState::Coding(last) if ends && !chunked.contains(&last))
    }

    /// Reads as much as has one meaning; gives how much that was. Nothing only where the state
    /// has changed.
    fn step(&mut self, bytes: &mut [u8]) -> usize {
        let Some(first) = bytes.first().copied() else {
            return 0;
        };
        match self.at {
            ScanState::RequestLine(last) => return self.request_line(bytes, last),
            ScanState::Line => return self.skip_line(bytes, ScanState::Field),
            ScanState::TrailerLine(cr) => return self.trailer_line(bytes, cr),
            ScanState::Lost => return bytes.len(),
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
            ScanState::Trailer(false) if first == b'\n' => {
                if let Some(end) = bytes.first_mut() {
                    *end = SPOILT;
                }
                self.at = ScanState::Lost;
                return 1;
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
            (ScanState::Start, _) => (ScanState::RequestLine(0), 0),
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

    /// hyper refuses a value that is not digits between white space.
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

    /// The length that the next digit makes.
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

    fn request_line(&mut self, bytes: &[u8], last: u8) -> usize {
        let end = memchr::memchr(b'\n', bytes);
        let line = bytes.get(..end.unwrap_or(bytes.len())).unwrap_or_default();
        let last = line.iter().rfind(|byte| **byte != b'\r').unwrap_or(&last);
        self.http10 = *last == b'0';
        self.at = end.map_or(ScanState::RequestLine(*last), |_| ScanState::Field);
        end.map_or(bytes.len(), |end| end + 1)
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

    /// Skips a trailer line, and spoils its end if that is LF alone.
    fn trailer_line(&mut self, bytes: &mut [u8], cr: bool) -> usize {
        let Some(end) = memchr::memchr(b'\n', bytes) else {
            self.at = ScanState::TrailerLine(bytes.last() == Some(&b'\r'));
            return bytes.len();
        };
        let before = end.checked_sub(1).and_then(|before| bytes.get(before));
        let cr = before.map_or(cr, |byte| *byte == b'\r');
        self.at = ScanState::Trailer(false);
        if let Some(lf) = bytes.get_mut(end).filter(|_| !cr) {
            *lf = SPOILT;
            self.at = ScanState::Lost;
        }
        end + 1
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

/// How a transfer coding looks with one more byte.
fn next_coding(coding: Coding, byte: u8) -> Coding {
    match (coding, byte) {
        (_, b',') => NO_LETTER,
        (NO_LETTER, b' ' | b'\t') => NO_LETTER,
        (CHUNKED_WHOLE | CHUNKED_AND_SPACE, b' ' | b'\t') => CHUNKED_AND_SPACE,
        (letters, _) => match CHUNKED.get(usize::from(letters)) {
            Some(letter) if letter.eq_ignore_ascii_case(&byte) => letters + 1,
            _ => OTHER_CODING,
        },
    }
}

/// Whether a line may be one of those that are looked at, or none.
const fn is_framing_header(line: &[u8]) -> bool {
    match line {
        [first, ..] => matches!(first, b'\r' | b'\n' | b'c' | b'C' | b't' | b'T'),
        [] => true,
    }
}

/// A chunk ends in a line end of its own; the last one has no data.
const fn after_size(size: u64) -> ScanState {
    match size {
        0 => ScanState::Trailer(false),
        size => ScanState::Chunk(size.saturating_add(2)),
    }
}

#[cfg(test)]
mod tests;
