//! The chunked coding of an answer (RFC 9112, section 7.1): a state machine without I/O. It
//! accepts one spelling of each thing, and never waits for more than it must.

use bytes::Bytes;
use http::HeaderMap;
use http::header::{HeaderName, HeaderValue};

use super::headers::clean_trailers;
use super::inbox::Inbox;

/// The largest extensions of one body, all together.
const EXTENSION_BYTES: u16 = 16 * 1024;

/// The largest trailers.
const TRAILER_BYTES: usize = 64 * 1024;
const TRAILER_FIELDS: usize = 100;

/// A size never has more hexadecimal digits than a `u64`.
const SIZE_DIGITS: u8 = 16;

/// Takes a body out of its chunks.
#[derive(Debug, Default)]
pub(super) struct Chunked {
    state: State,
    /// The size of a chunk while it is read, then what is left of it.
    left: u64,
    digits: u8,
    extension: u16,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Size,
    Space,
    Extension,
    SizeLf,
    Data,
    DataCr,
    DataLf,
    Trailers,
    End,
}

/// What came next.
#[derive(Debug)]
pub(super) enum Part {
    Data(Bytes),
    /// The end, with trailers that a client may see.
    Trailers(HeaderMap),
    End,
    /// More bytes are needed.
    Nothing,
}

/// Not the chunked coding.
#[derive(Debug)]
pub(super) struct BadChunk;

// === impl Chunked ===

impl Chunked {
    pub(super) fn is_over(&self) -> bool {
        self.state == State::End
    }

    /// Takes the next part.
    pub(super) fn next(&mut self, inbox: &mut Inbox) -> Result<Part, BadChunk> {
        loop {
            match self.state {
                State::End => return Ok(Part::End),
                State::Trailers => return self.trailers(inbox),
                State::Data if inbox.is_empty() => return Ok(Part::Nothing),
                State::Data => return Ok(Part::Data(self.data(inbox))),
                _ => {}
            }
            let Some(&byte) = inbox.bytes().first() else {
                return Ok(Part::Nothing);
            };
            inbox.skip(1);
            self.state = self.frame(byte)?;
        }
    }

    fn data(&mut self, inbox: &mut Inbox) -> Bytes {
        let data = inbox.take(usize::try_from(self.left).unwrap_or(usize::MAX));
        self.left -= data.len() as u64;
        if self.left == 0 {
            self.state = State::DataCr;
        }
        data
    }

    /// The state behind one byte that is not data.
    fn frame(&mut self, byte: u8) -> Result<State, BadChunk> {
        match (self.state, byte) {
            (State::Size, b'\r' | b' ' | b'\t' | b';') if self.digits == 0 => Err(BadChunk),
            (State::Size | State::Space | State::Extension, b'\r') => Ok(State::SizeLf),
            (State::Size | State::Space, b';') => Ok(State::Extension),
            (State::Size | State::Space, b' ' | b'\t') => self.extend(State::Space),
            (State::Size, byte) => self.digit(byte),
            (State::Extension, b'\t' | b' '..=b'~' | 0x80..) => self.extend(State::Extension),
            (State::SizeLf, b'\n') if self.left == 0 => Ok(State::Trailers),
            (State::SizeLf, b'\n') => Ok(State::Data),
            (State::DataCr, b'\r') => Ok(State::DataLf),
            (State::DataLf, b'\n') => {
                self.digits = 0;
                Ok(State::Size)
            }
            _ => Err(BadChunk),
        }
    }

    fn digit(&mut self, byte: u8) -> Result<State, BadChunk> {
        let digit = char::from(byte).to_digit(16).ok_or(BadChunk)?;
        if self.digits == SIZE_DIGITS {
            return Err(BadChunk);
        }
        self.digits += 1;
        self.left = (self.left << 4) | u64::from(digit);
        Ok(State::Size)
    }

    fn extend(&mut self, state: State) -> Result<State, BadChunk> {
        self.extension += 1;
        if self.extension > EXTENSION_BYTES {
            return Err(BadChunk);
        }
        Ok(state)
    }

    fn trailers(&mut self, inbox: &mut Inbox) -> Result<Part, BadChunk> {
        let mut fields = [httparse::EMPTY_HEADER; TRAILER_FIELDS];
        let bytes = inbox.bytes();
        let (length, mut trailers) = match httparse::parse_headers(bytes, &mut fields) {
            Ok(httparse::Status::Complete((length, fields))) if length <= TRAILER_BYTES => {
                (length, collect(fields)?)
            }
            Ok(httparse::Status::Partial) if bytes.len() < TRAILER_BYTES => {
                return Ok(Part::Nothing);
            }
            _ => return Err(BadChunk),
        };
        inbox.skip(length);
        self.state = State::End;
        clean_trailers(&mut trailers);
        Ok(if trailers.is_empty() {
            Part::End
        } else {
            Part::Trailers(trailers)
        })
    }
}

fn collect(fields: &[httparse::Header<'_>]) -> Result<HeaderMap, BadChunk> {
    let mut trailers = HeaderMap::new();
    for field in fields {
        let name = HeaderName::from_bytes(field.name.as_bytes()).map_err(|_| BadChunk)?;
        let value = HeaderValue::from_bytes(field.value).map_err(|_| BadChunk)?;
        trailers.append(name, value);
    }
    Ok(trailers)
}

// === impl BadChunk ===

impl std::fmt::Display for BadChunk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the body's chunks are malformed")
    }
}

impl std::error::Error for BadChunk {}
