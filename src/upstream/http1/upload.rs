//! Sends a request to an origin server: its head, and its body with exactly one framing.
//!
//! A body with a length other than declared is an error that closes the connection. Nothing is padded or
//! cut. Only one frame is buffered, and the last frame of a declared length is held back until the body
//! has ended.

use std::io::{self, IoSlice, Write};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use http::HeaderMap;
use http::header::CONTENT_LENGTH;
use http_body::{Body as _, Frame};
use memchr::memmem;
use tokio::io::AsyncWrite;

use super::response_head::plain_number;
use crate::body::{Body, BodyError};
use crate::upstream::connection::OriginStream;
use crate::upstream::error::{UpstreamError, UpstreamErrorKind};
use crate::upstream::headers::{Named, clean_trailers};
use crate::upstream::{OutboundRequest, request_head as head};

pub(crate) const WRONG_LENGTH: &str = "the body does not have its declared length";

/// The maximum number of writes per poll before the response is polled.
const WRITES: usize = 8;

/// A request that is being sent.
#[derive(Default)]
pub(crate) struct H1Upload {
    /// The head, or the chunk framing. The order is `out`, `data`, `tail`.
    out: Vec<u8>,
    written: usize,
    data: Bytes,
    tail: &'static [u8],
    body: Body,
    framing: BodyFraming,
    /// The last bytes of a declared length, held back until the end of the body is confirmed.
    last: Option<Bytes>,
    /// The names of trailers that may follow.
    announced: Named,
    /// Whether the whole body was taken.
    taken: bool,
    /// Whether the origin server may have received a part of the request.
    begun: bool,
    /// Whether the request can safely be sent twice.
    repeatable: bool,
    waits_for_client: bool,
    /// Whether bytes were written since the last call of `moved`.
    moved: bool,
    /// Whether written bytes may still be buffered in the stream.
    unflushed: bool,
    /// Whether the origin server stopped reading. It may still respond.
    stopped: bool,
}

/// Where a body ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BodyFraming {
    /// After this number of bytes.
    Length(u64),
    /// After the last chunk.
    #[default]
    Chunked,
}

// === impl H1Upload ===

impl H1Upload {
    /// Creates the request with its final head. An error if HTTP/1.1 cannot express the request
    /// unambiguously.
    pub(crate) fn new(mut outbound: OutboundRequest<'_>) -> Result<Box<Self>, UpstreamError> {
        if !head::is_target(&outbound) {
            return Err(UpstreamErrorKind::RequestTarget.into());
        }
        let framing = framing(outbound.headers, &outbound.body)?;
        let body = match framing {
            // The head is the complete request; the body is not sent.
            BodyFraming::Length(0) => Body::Empty,
            _ => std::mem::take(&mut outbound.body),
        };
        let taken = body.is_end_stream() && framing == BodyFraming::Length(0);
        Ok(Box::new(Self {
            out: head::write(&outbound, framing),
            framing,
            announced: match framing {
                BodyFraming::Chunked => head::announced(outbound.headers),
                BodyFraming::Length(_) => Named::new(),
            },
            taken,
            // RFC 9110, section 9.2.2.
            repeatable: taken && outbound.method.is_idempotent(),
            body,
            ..Self::default()
        }))
    }

    /// Returns the bytes of the head, including the empty line.
    pub(crate) fn into_head(self) -> Vec<u8> {
        self.out
    }

    /// Returns whether the whole request was written.
    pub(crate) fn is_done(&self) -> bool {
        self.taken && self.is_written() && !self.unflushed
    }

    /// Returns whether the request can safely be sent twice.
    pub(crate) fn is_repeatable(&self) -> bool {
        self.repeatable
    }

    /// Returns a copy. `None` if the request must not be sent twice.
    pub(crate) fn copy(&self) -> Option<Box<Self>> {
        // A repeatable request has no body, so `out` contains only the head.
        let copy = || Self {
            out: self.out.clone(),
            framing: self.framing,
            taken: true,
            repeatable: true,
            ..Self::default()
        };
        self.repeatable.then(|| Box::new(copy()))
    }

    /// Replaces the host `old` of a request that was not sent yet, or was restarted.
    pub(crate) fn replace_host(&mut self, old: &str, new: &str) {
        // `Host` follows the request line.
        let old = format!("\r\nhost: {old}\r\n");
        let start = memmem::find(&self.out, b"\r\n").unwrap_or_default();
        let rest = self.out.get(start..).unwrap_or_default();
        if rest.starts_with(old.as_bytes()) {
            let new = format!("\r\nhost: {new}\r\n");
            self.out.splice(start..start + old.len(), new.into_bytes());
        }
    }

    /// Restarts the request for another connection. Returns `false` if an origin server may have processed it.
    pub(crate) fn rewind(&mut self) -> bool {
        if self.begun && !self.repeatable {
            return false;
        }
        // The request has no body, so `out` contains only the head.
        self.written = 0;
        self.begun = false;
        self.unflushed = false;
        self.stopped = false;
        true
    }

    /// Returns whether bytes were sent since the last call, which restarts the response timeout.
    pub(super) fn moved(&mut self) -> bool {
        std::mem::take(&mut self.moved)
    }

    /// Returns whether the request is incomplete because the client is slow.
    pub(super) fn waits_for_client(&self) -> bool {
        self.waits_for_client && !self.taken && !self.stopped
    }

    /// Sends all available bytes that the origin server accepts. An error is caused by the client.
    pub(super) fn send(
        &mut self,
        stream: &mut OriginStream,
        cx: &mut Context<'_>,
    ) -> Result<(), BodyError> {
        for _ in 0..WRITES {
            if self.stopped || self.is_done() {
                return Ok(());
            }
            if !self.taken && self.data.is_empty() && self.tail.is_empty() {
                self.load(cx)?;
            }
            let (written, polled) = if self.is_written() {
                (true, self.poll_flush(stream, cx))
            } else {
                (false, self.poll_write(stream, cx))
            };
            match polled {
                Poll::Ready(Ok(())) if !written => {}
                Poll::Ready(Err(_)) => self.stopped = true,
                _ => return Ok(()),
            }
        }
        if !self.stopped && !self.is_done() {
            cx.waker().wake_by_ref();
        }
        Ok(())
    }

    fn is_written(&self) -> bool {
        self.written == self.out.len() && self.data.is_empty() && self.tail.is_empty()
    }

    fn poll_write(
        &mut self,
        stream: &mut OriginStream,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
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

    /// Flushes the stream. Only an encrypted stream buffers written bytes.
    fn poll_flush(
        &mut self,
        stream: &mut OriginStream,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
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

    /// Takes the next frame of the body, if it is available.
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
            (Ok(data), BodyFraming::Length(left)) => self.take_of(data, left)?,
            (Ok(data), BodyFraming::Chunked) => self.chunk(data),
            (Err(frame), BodyFraming::Chunked) => {
                self.last_chunk(frame.into_trailers().unwrap_or_default());
            }
            // A body of known length has no trailers in HTTP/1.1.
            (Err(_), BodyFraming::Length(_)) => {}
        }
        Ok(())
    }

    fn take_of(&mut self, data: Bytes, left: u64) -> Result<(), BodyError> {
        let left = left.checked_sub(data.len() as u64).ok_or(WRONG_LENGTH)?;
        self.framing = BodyFraming::Length(left);
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
            BodyFraming::Length(1..) => return Err(WRONG_LENGTH.into()),
            BodyFraming::Length(0) => {
                self.data = self.last.take().unwrap_or_default();
                self.taken = true;
            }
            BodyFraming::Chunked => self.last_chunk(HeaderMap::new()),
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
                head::write_line(&mut self.out, name.as_str(), value.as_bytes());
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

/// Returns the framing of a body: the declared length, the known length, or chunked.
pub(crate) fn framing(headers: &HeaderMap, body: &Body) -> Result<BodyFraming, UpstreamError> {
    let declared = declared(headers)?;
    let length = if body.is_end_stream() {
        Some(0)
    } else {
        declared.or_else(|| body.size_hint().exact())
    };
    if declared.is_some() && declared != length {
        return Err(UpstreamError::of_request_body(WRONG_LENGTH));
    }
    Ok(length.map_or(BodyFraming::Chunked, BodyFraming::Length))
}

fn declared(headers: &HeaderMap) -> Result<Option<u64>, UpstreamError> {
    let mut lines = headers.get_all(CONTENT_LENGTH).iter();
    let length = match (lines.next(), lines.next()) {
        (None, _) => return Ok(None),
        (Some(line), None) => plain_number(line.as_bytes()),
        _ => None,
    };
    match length {
        Some(length) => Ok(Some(length)),
        None => Err(UpstreamError::of_request_body(WRONG_LENGTH)),
    }
}
