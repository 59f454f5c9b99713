//! A request on its way to an origin: its head, and its body with exactly one framing.
//!
//! A body that is not as long as declared is an error, which breaks the connection: it is never
//! padded, cut or completed. Nothing is buffered but one frame, and the last frame of a declared
//! length until the body's end is sure.

use std::io::{self, IoSlice, Write};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use http::HeaderMap;
use http::header::CONTENT_LENGTH;
use http_body::{Body as _, Frame};
use tokio::io::AsyncWrite;

use super::Outbound;
use super::answer::plain_number;
use super::error::{Error, Kind};
use super::head;
use super::headers::{Named, clean_trailers};
use super::stream::Stream;
use crate::body::{Body, BodyError};

/// How often one poll writes, so that an answer is looked for now and then.
const WRITES: usize = 8;

/// A request on its way out.
pub(super) struct Upload {
    /// The head, or what frames the body: `out`, then `data`, then `tail`.
    out: Vec<u8>,
    written: usize,
    data: Bytes,
    tail: &'static [u8],
    body: Body,
    framing: Framing,
    /// The last bytes of a declared length, until it is sure that no more follow.
    last: Option<Bytes>,
    /// The names of trailers that may follow.
    announced: Named,
    /// The whole body was taken.
    taken: bool,
    /// The origin has, or may have, a part of it.
    begun: bool,
    /// It can be sent twice without harm.
    repeatable: bool,
    waits_for_client: bool,
    /// Something was written since the last look.
    moved: bool,
    /// What was written may still wait in the stream.
    unflushed: bool,
}

/// Where a body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// Bytes still to come.
    Length(u64),
    Chunked,
}

/// Why nothing more is sent.
#[derive(Debug)]
pub(super) enum Stopped {
    /// The client's body is not what it should be.
    Body(BodyError),
    /// The origin reads no more; it may have answered all the same.
    Origin(io::Error),
}

/// A body is not as long as declared.
#[derive(Debug)]
pub(super) struct WrongLength;

// === impl Upload ===

impl Upload {
    /// The request with its head as the origin gets it; an error if it cannot be said in HTTP/1.1
    /// with one meaning.
    pub(super) fn new(mut outbound: Outbound<'_>) -> Result<Self, Error> {
        if !head::is_target(&outbound) {
            return Err(Kind::RequestTarget.into());
        }
        let framing = framing(outbound.headers, &outbound.body)?;
        let body = match framing {
            // Complete with its head; whatever the body holds is not sent.
            Framing::Length(0) => Body::Empty,
            _ => std::mem::take(&mut outbound.body),
        };
        let taken = body.is_end_stream() && framing == Framing::Length(0);
        Ok(Self {
            out: head::write(&outbound, framing),
            written: 0,
            data: Bytes::new(),
            tail: b"",
            framing,
            last: None,
            announced: match framing {
                Framing::Chunked => head::announced(outbound.headers),
                Framing::Length(_) => Named::new(),
            },
            taken,
            begun: false,
            // RFC 9110, section 9.2.2.
            repeatable: taken && outbound.method.is_idempotent(),
            waits_for_client: false,
            moved: false,
            unflushed: false,
            body,
        })
    }

    /// The bytes that an origin gets first, up to and with the empty line.
    pub(super) fn into_head(self) -> Vec<u8> {
        self.out
    }

    /// Whether all of it was written.
    pub(super) fn is_done(&self) -> bool {
        self.taken && self.is_written() && !self.unflushed
    }

    /// Whether it can be sent twice without harm.
    pub(super) fn is_repeatable(&self) -> bool {
        self.repeatable
    }

    /// The same once more, if it can be sent twice without harm.
    pub(super) fn copy(&self) -> Option<Self> {
        // Then it has no body, and nothing but its head was ever in `out`.
        self.repeatable.then(|| Self {
            out: self.out.clone(),
            written: 0,
            data: Bytes::new(),
            tail: b"",
            body: Body::Empty,
            framing: self.framing,
            last: None,
            announced: Named::new(),
            taken: true,
            begun: false,
            repeatable: true,
            waits_for_client: false,
            moved: false,
            unflushed: false,
        })
    }

    /// Begins again, for another connection; `false`: the first origin may have acted on it.
    pub(super) fn rewind(&mut self) -> bool {
        if self.begun && !self.repeatable {
            return false;
        }
        // Of a request without a body nothing but the head was ever in `out`.
        self.written = 0;
        self.begun = false;
        self.unflushed = false;
        true
    }

    /// Whether more was sent since the last look: the origin's time begins anew.
    pub(super) fn moved(&mut self) -> bool {
        std::mem::take(&mut self.moved)
    }

    /// Whether the origin cannot be blamed for silence: the client is the slow one.
    pub(super) fn excuses(&self) -> bool {
        !matches!(self.body, Body::Empty) && self.waits_for_client && !self.taken
    }

    /// Sends as much as the client gives and the origin takes.
    pub(super) fn poll_send(
        &mut self,
        stream: &mut Stream,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), Stopped>> {
        for _ in 0..WRITES {
            if !self.taken && self.data.is_empty() && self.tail.is_empty() {
                self.load(cx).map_err(Stopped::Body)?;
            }
            if self.is_written() {
                ready!(self.poll_flush(stream, cx)).map_err(Stopped::Origin)?;
                return if self.taken {
                    Poll::Ready(Ok(()))
                } else {
                    Poll::Pending
                };
            }
            ready!(self.poll_write(stream, cx)).map_err(Stopped::Origin)?;
        }
        if self.is_done() {
            return Poll::Ready(Ok(()));
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn is_written(&self) -> bool {
        self.written == self.out.len() && self.data.is_empty() && self.tail.is_empty()
    }

    fn poll_write(&mut self, stream: &mut Stream, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let out = self.out.get(self.written..).unwrap_or_default();
        let encrypts = stream.encrypts();
        let stream = Pin::new(stream);
        let polled = if self.data.is_empty() && self.tail.is_empty() {
            stream.poll_write(cx, out)
        } else {
            let parts = [out, &self.data, self.tail].map(IoSlice::new);
            stream.poll_write_vectored(cx, &parts)
        };
        match ready!(polled)? {
            0 => Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
            written => {
                self.unflushed = encrypts;
                self.advance(written);
                Poll::Ready(Ok(()))
            }
        }
    }

    /// Only a stream that encrypts holds anything back.
    fn poll_flush(&mut self, stream: &mut Stream, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.unflushed {
            ready!(Pin::new(stream).poll_flush(cx))?;
            self.unflushed = false;
        }
        Poll::Ready(Ok(()))
    }

    fn advance(&mut self, mut written: usize) {
        self.begun = true;
        self.moved = true;
        let out = written.min(self.out.len() - self.written);
        self.written += out;
        written -= out;
        let data = written.min(self.data.len());
        self.data.advance(data);
        written -= data;
        self.tail = self.tail.get(written..).unwrap_or_default();
    }

    /// Takes the next frame of the body, if it is there.
    fn load(&mut self, cx: &mut Context<'_>) -> Result<(), BodyError> {
        while !self.taken && self.data.is_empty() {
            let polled = Pin::new(&mut self.body).poll_frame(cx);
            self.waits_for_client = polled.is_pending();
            match polled {
                Poll::Pending => return Ok(()),
                Poll::Ready(None) => self.end()?,
                Poll::Ready(Some(frame)) => self.take(frame?)?,
            }
        }
        Ok(())
    }

    fn take(&mut self, frame: Frame<Bytes>) -> Result<(), BodyError> {
        match (frame.into_data(), self.framing) {
            (Ok(data), _) if data.is_empty() => {}
            (Ok(data), Framing::Length(left)) => self.take_of(data, left)?,
            (Ok(data), Framing::Chunked) => self.chunk(data),
            (Err(frame), Framing::Chunked) => {
                self.last_chunk(frame.into_trailers().unwrap_or_default());
            }
            // A body of known length has no trailers in HTTP/1.1.
            (Err(_), Framing::Length(_)) => {}
        }
        Ok(())
    }

    fn take_of(&mut self, data: Bytes, left: u64) -> Result<(), BodyError> {
        let left = left.checked_sub(data.len() as u64).ok_or(WrongLength)?;
        self.framing = Framing::Length(left);
        if left > 0 {
            self.data = data;
        } else if self.body.is_end_stream() {
            self.data = data;
            self.taken = true;
        } else {
            self.last = Some(data);
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), BodyError> {
        match self.framing {
            Framing::Length(1..) => return Err(WrongLength.into()),
            Framing::Length(0) => {
                self.data = self.last.take().unwrap_or_default();
                self.taken = true;
            }
            Framing::Chunked => self.last_chunk(HeaderMap::new()),
        }
        Ok(())
    }

    fn chunk(&mut self, data: Bytes) {
        self.forget_written();
        // Writing to memory cannot fail.
        let _ = write!(self.out, "{:x}\r\n", data.len());
        self.data = data;
        self.tail = b"\r\n";
    }

    fn last_chunk(&mut self, mut trailers: HeaderMap) {
        self.forget_written();
        clean_trailers(&mut trailers);
        self.out.extend_from_slice(b"0\r\n");
        for (name, value) in &trailers {
            if self.announced.contains(name) {
                self.out.extend_from_slice(name.as_str().as_bytes());
                self.out.extend_from_slice(b": ");
                self.out.extend_from_slice(value.as_bytes());
                self.out.extend_from_slice(b"\r\n");
            }
        }
        self.out.extend_from_slice(b"\r\n");
        self.taken = true;
    }

    fn forget_written(&mut self) {
        if self.written == self.out.len() {
            self.out.clear();
            self.written = 0;
        }
    }
}

// === impl Stopped ===

impl From<Stopped> for Error {
    fn from(stopped: Stopped) -> Self {
        match stopped {
            Stopped::Body(error) => Error::from(Kind::RequestBody).because(error),
            Stopped::Origin(error) => Error::of_stream(error),
        }
    }
}

// === impl WrongLength ===

impl std::fmt::Display for WrongLength {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the body is not as long as declared")
    }
}

impl std::error::Error for WrongLength {}

/// The one framing of a body: the declared length, the known length, or chunks.
pub(super) fn framing(headers: &HeaderMap, body: &Body) -> Result<Framing, Error> {
    let declared = declared(headers)?;
    let length = if body.is_end_stream() {
        Some(0)
    } else {
        declared.or_else(|| body.size_hint().exact())
    };
    if declared.is_some() && declared != length {
        return Err(unclear());
    }
    Ok(length.map_or(Framing::Chunked, Framing::Length))
}

fn declared(headers: &HeaderMap) -> Result<Option<u64>, Error> {
    let mut lines = headers.get_all(CONTENT_LENGTH).iter();
    match (lines.next(), lines.next()) {
        (None, _) => Ok(None),
        (Some(line), None) => match plain_number(line.as_bytes()) {
            Some(length) => Ok(Some(length)),
            None => Err(unclear()),
        },
        _ => Err(unclear()),
    }
}

fn unclear() -> Error {
    Error::from(Kind::RequestBody).because(WrongLength)
}
