//! A response body from an origin server: its end, the chunked coding (RFC 9112, section 7.1), and its
//! connection, which returns to the pool after the body. Dropping a body before its end closes the
//! connection. Never buffers.
//!
//! The decoder is a state machine without I/O. It accepts one spelling of each element, and never waits for
//! more bytes than necessary.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::HeaderMap;
use http::header::{HeaderName, HeaderValue};
use http_body::{Frame, SizeHint};

use super::connection::ReadBuffer;
use super::exchange::H1Exchange;
use crate::body::BodyError;
use crate::upstream::UpstreamServer;
use crate::upstream::error::UpstreamError;
use crate::upstream::headers::clean_trailers;

/// The maximum size of all chunk extensions of one body.
const EXTENSION_BYTES: u16 = 16 * 1024;

/// The maximum size of the trailers.
const TRAILER_BYTES: usize = 64 * 1024;
const TRAILER_FIELDS: usize = 100;

/// The maximum number of hexadecimal digits in a chunk size, enough for a `u64`.
const SIZE_DIGITS: u8 = 16;

const CLOSED: &str = "the connection closed before the end of the body";
const BAD_CHUNK: &str = "a chunk of the body is malformed";

/// The next frame of a body; `None` at the end.
pub(crate) type Next = Option<Result<Frame<Bytes>, BodyError>>;

/// Where the frames of a response body come from.
pub(crate) trait BodySource: Unpin {
    /// Polls the next frame, and sends the rest of the request meanwhile.
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Next>;
    /// Returns whether no frame follows.
    fn is_over(&self) -> bool;
    fn size_hint(&self) -> SizeHint;
    fn server(&self) -> &Arc<UpstreamServer>;
    /// Called after the last frame.
    fn end(self);
}

/// A response body received over HTTP/1.1 or HTTP/2.
pub(crate) enum ResponseBody<S> {
    Open(S),
    /// The error that ended the body, until the reader receives it.
    Broken(BodyError),
    Ended,
}

/// The source of a body over HTTP/1.1.
pub(super) struct Http1Body {
    pub(super) exchange: H1Exchange,
    pub(super) length: BodyEnd,
}

/// Where a body ends.
#[derive(Debug)]
pub(crate) enum BodyEnd {
    /// After this number of bytes.
    Exact(u64),
    Chunked(ChunkedDecoder),
    /// At the end of its connection.
    Close,
}

/// Decodes the chunked coding.
#[derive(Debug, Default)]
pub(crate) struct ChunkedDecoder {
    state: State,
    /// The size of a chunk while it is parsed, then the number of unread bytes in it.
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

// === impl ResponseBody ===

impl<S: BodySource> http_body::Body for ResponseBody<S> {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Next> {
        let this = self.get_mut();
        let Self::Open(source) = this else {
            return Poll::Ready(match std::mem::replace(this, Self::Ended) {
                Self::Broken(error) => Some(Err(error)),
                _ => None,
            });
        };
        let next = match ready!(source.poll_next(cx)) {
            // Delayed by one poll, so that the client first receives the data before the error. If its connection
            // closed without data, the client might send the request again.
            Some(Err(error)) => {
                *this = Self::Broken(UpstreamError::of_body(error, source.server()).into());
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            next => next,
        };
        // Readers stop polling once `is_end_stream` returns true.
        if (next.is_none() || source.is_over())
            && let Self::Open(source) = std::mem::replace(this, Self::Ended)
        {
            source.end();
        }
        Poll::Ready(next)
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Ended)
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Open(source) => source.size_hint(),
            _ => SizeHint::default(),
        }
    }
}

// === impl Http1Body ===

impl BodySource for Http1Body {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Next> {
        let sent = self.exchange.send(cx);
        sent.map_err(UpstreamError::of_request_body)?;
        loop {
            let buffer = &mut self.exchange.lease.connection.buffer;
            if let Some(frame) = self.length.take(buffer)? {
                return Poll::Ready(Some(Ok(frame)));
            }
            if self.is_over() {
                return Poll::Ready(None);
            }
            if ready!(self.exchange.poll_fill(cx)).map_err(closed)? == 0 {
                return Poll::Ready(match self.length {
                    BodyEnd::Close => None,
                    _ => Some(Err(CLOSED.into())),
                });
            }
        }
    }

    fn is_over(&self) -> bool {
        self.length.is_over()
    }

    fn size_hint(&self) -> SizeHint {
        match self.length {
            BodyEnd::Exact(left) => SizeHint::with_exact(left),
            _ => SizeHint::default(),
        }
    }

    fn server(&self) -> &Arc<UpstreamServer> {
        self.exchange.server()
    }

    fn end(self) {
        if self.length.is_over() {
            self.exchange.end();
        }
    }
}

/// Shortens the error of an end without `close_notify`, which in rustls contains a link to its manual.
fn closed(error: io::Error) -> BodyError {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => CLOSED.into(),
        _ => error.into(),
    }
}

// === impl BodyEnd ===

impl BodyEnd {
    /// Takes the next frame of the body from the buffer. `None` if more bytes are needed.
    pub(super) fn take(
        &mut self,
        buffer: &mut ReadBuffer,
    ) -> Result<Option<Frame<Bytes>>, BodyError> {
        let data = match self {
            Self::Exact(left) => take_up_to(buffer, left),
            Self::Close => buffer.take(usize::MAX),
            Self::Chunked(chunked) => return Ok(chunked.next(buffer)?),
        };
        Ok((!data.is_empty()).then(|| Frame::data(data)))
    }

    /// Returns whether the body is complete.
    pub(super) fn is_over(&self) -> bool {
        match self {
            Self::Exact(left) => *left == 0,
            Self::Chunked(chunked) => chunked.is_over(),
            Self::Close => false,
        }
    }
}

/// Takes at most `left` bytes and subtracts their number from `left`.
fn take_up_to(buffer: &mut ReadBuffer, left: &mut u64) -> Bytes {
    let data = buffer.take(usize::try_from(*left).unwrap_or(usize::MAX));
    *left -= data.len() as u64;
    data
}

// === impl ChunkedDecoder ===

impl ChunkedDecoder {
    pub(crate) fn is_over(&self) -> bool {
        self.state == State::End
    }

    /// Takes the next data, or the trailers that are forwarded to the client. `None` if more bytes are needed
    /// or the body is complete.
    pub(crate) fn next(
        &mut self,
        buffer: &mut ReadBuffer,
    ) -> Result<Option<Frame<Bytes>>, &'static str> {
        loop {
            match self.state {
                State::End => return Ok(None),
                State::Trailers => return self.trailers(buffer).ok_or(BAD_CHUNK),
                State::Data if buffer.is_empty() => return Ok(None),
                State::Data => return Ok(Some(Frame::data(self.data(buffer)))),
                _ => {}
            }
            let Some(&byte) = buffer.bytes().first() else {
                return Ok(None);
            };
            buffer.skip(1);
            self.state = self.next_state(byte).ok_or(BAD_CHUNK)?;
        }
    }

    fn data(&mut self, buffer: &mut ReadBuffer) -> Bytes {
        let data = take_up_to(buffer, &mut self.left);
        if self.left == 0 {
            self.state = State::DataCr;
        }
        data
    }

    /// Returns the state after one byte that is not data. `None` if it is malformed.
    fn next_state(&mut self, byte: u8) -> Option<State> {
        match (self.state, byte) {
            (State::Size, b'\r' | b' ' | b'\t' | b';') if self.digits == 0 => None,
            (State::Size | State::Space | State::Extension, b'\r') => Some(State::SizeLf),
            (State::Size | State::Space, b';') => Some(State::Extension),
            (State::Size | State::Space, b' ' | b'\t') => self.extend(State::Space),
            (State::Size, byte) => self.digit(byte),
            (State::Extension, b'\t' | b' '..=b'~' | 0x80..) => self.extend(State::Extension),
            (State::SizeLf, b'\n') if self.left == 0 => Some(State::Trailers),
            (State::SizeLf, b'\n') => Some(State::Data),
            (State::DataCr, b'\r') => Some(State::DataLf),
            (State::DataLf, b'\n') => {
                self.digits = 0;
                Some(State::Size)
            }
            _ => None,
        }
    }

    fn digit(&mut self, byte: u8) -> Option<State> {
        let digit = char::from(byte).to_digit(16)?;
        self.digits += 1;
        self.left = (self.left << 4) | u64::from(digit);
        (self.digits <= SIZE_DIGITS).then_some(State::Size)
    }

    fn extend(&mut self, state: State) -> Option<State> {
        self.extension += 1;
        (self.extension <= EXTENSION_BYTES).then_some(state)
    }

    /// Parses the trailers. `None` if they are malformed, `Some(None)` if they are incomplete or empty.
    fn trailers(&mut self, buffer: &mut ReadBuffer) -> Option<Option<Frame<Bytes>>> {
        let mut fields = [httparse::EMPTY_HEADER; TRAILER_FIELDS];
        let bytes = buffer.bytes();
        let (length, mut trailers) = match httparse::parse_headers(bytes, &mut fields) {
            Ok(httparse::Status::Complete((length, fields))) if length <= TRAILER_BYTES => {
                (length, collect(fields)?)
            }
            Ok(httparse::Status::Partial) if bytes.len() < TRAILER_BYTES => return Some(None),
            _ => return None,
        };
        buffer.skip(length);
        self.state = State::End;
        clean_trailers(&mut trailers);
        Some((!trailers.is_empty()).then(|| Frame::trailers(trailers)))
    }
}

fn collect(fields: &[httparse::Header<'_>]) -> Option<HeaderMap> {
    let mut trailers = HeaderMap::new();
    for field in fields {
        let name = HeaderName::from_bytes(field.name.as_bytes()).ok()?;
        trailers.append(name, HeaderValue::from_bytes(field.value).ok()?);
    }
    Some(trailers)
}
