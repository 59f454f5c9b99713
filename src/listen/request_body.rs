//! A request body as received from the client: hyper's body with a minimum rate. It reads nothing ahead, but
//! returns what its reader puts back.
//!
//! An unwanted body is read and dropped up to a limit: HTTP/1 has no other method to reach the next request on a
//! connection (RFC 9112, 9.3). If a body is never read to its end, the connection must close after the response:
//! hyper does so, and never parses the rest as a request.

use std::cell::Cell;
use std::fmt;
use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use hyper::body::Incoming;

use super::min_rate::TransferHandle;
use super::timers::TunnelGuard;
use super::unread_body::UnreadBody;
use crate::body::BodyError;

/// A request body. What is not read of it is read and dropped after the response has begun. It fails with [`TooSlow`] if its client is below the minimum rate.
pub struct RequestBody {
    body: Option<Incoming>,
    /// What was read of the body and put back, as far as it was not read again. `None` if nothing was read before.
    put_back: Option<Box<PutBack>>,
    /// The rate of the body. `None` if there is no body.
    transfer: Option<TransferHandle>,
    tunnel: Option<TunnelGuard>,
    /// Whether the client may wait for 100 Continue.
    unasked: bool,
}

/// What was read of a body, to be read again.
#[derive(Debug, Default)]
pub struct PutBack {
    /// The first bytes.
    pub start: Bytes,
    /// The bytes after `start`.
    pub rest: Bytes,
    /// The trailers, if the body was read to its end and has any.
    pub trailers: Option<HeaderMap>,
}

/// The client sent its body too slowly.
#[derive(Debug)]
pub struct TooSlow;

/// The result of draining an unwanted body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DrainOutcome {
    /// The body was read to its end; the connection can continue.
    Whole,
    /// The body is longer than allowed; the connection must close after the response.
    TooLong,
    /// The body did not arrive in time; the connection must close after the response.
    TooSlow,
    /// The body was cut short or is malformed; the connection must close after the response.
    Broken,
}

/// Reads and drops `body`, up to `max_bytes` and for at most `within`.
///
/// Not for a request with `Expect: 100-continue` and a body that was not polled yet: reading makes hyper request
/// the body. Drop such a body and close.
/// `read` counts the bytes.
pub async fn drain_body(
    body: &mut RequestBody,
    max_bytes: u64,
    within: Duration,
    read: &Cell<u64>,
) -> DrainOutcome {
    if body.is_end_stream() {
        return DrainOutcome::Whole;
    }
    tokio::time::timeout(within, read_out(body, max_bytes, read))
        .await
        .unwrap_or(DrainOutcome::TooSlow)
}

/// Reads and drops `body`, up to `max_bytes` and as long as its client keeps the minimum rate. A body with a
/// larger declared length is not read. `read` counts the bytes.
pub async fn read_out(body: &mut RequestBody, max_bytes: u64, read: &Cell<u64>) -> DrainOutcome {
    read_each(body, max_bytes, read, |_| true).await
}

/// Reads `body` as [`read_out`] does, and appends its bytes to `content`. `may_hold` decides whether `content` may
/// reach a length; if it may not, the body is too long.
pub async fn collect_body(
    body: &mut RequestBody,
    max_bytes: u64,
    read: &Cell<u64>,
    content: &mut Vec<u8>,
    mut may_hold: impl FnMut(usize) -> bool,
) -> DrainOutcome {
    read_each(body, max_bytes, read, |data| {
        let is_held = may_hold(content.len() + data.len());
        if is_held {
            content.extend_from_slice(data);
        }
        is_held
    })
    .await
}

async fn read_each(
    body: &mut RequestBody,
    max_bytes: u64,
    read: &Cell<u64>,
    mut take: impl FnMut(&[u8]) -> bool,
) -> DrainOutcome {
    if body.size_hint().lower() > max_bytes {
        return DrainOutcome::TooLong;
    }
    while let Some(frame) = body.frame().await {
        let frame = match frame {
            Ok(frame) => frame,
            Err(error) if error.is::<TooSlow>() => return DrainOutcome::TooSlow,
            Err(_) => return DrainOutcome::Broken,
        };
        let bytes = frame.data_ref().map_or(0, |data| data.len() as u64);
        read.set(read.get() + bytes);
        if read.get() > max_bytes || !frame.data_ref().is_none_or(|data| take(data)) {
            return DrainOutcome::TooLong;
        }
    }
    DrainOutcome::Whole
}

// === impl RequestBody ===

impl RequestBody {
    pub(super) fn new(
        body: Incoming,
        transfer: Option<TransferHandle>,
        tunnel: Option<TunnelGuard>,
    ) -> Self {
        Self {
            body: Some(body),
            put_back: None,
            transfer,
            tunnel,
            unasked: false,
        }
    }

    /// Sets whether the client may wait for 100 Continue.
    pub(super) fn unasked(mut self, unasked: bool) -> Self {
        self.unasked = unasked;
        self
    }

    /// Drops the body, and its rest is not read.
    pub(super) fn forget(mut self) {
        self.transfer = None;
    }

    /// Puts back what was read, so that the next reader gets the whole body.
    pub fn put_back(&mut self, read: PutBack) {
        self.put_back = Some(Box::new(read));
    }

    /// Returns whether a part of the body was read and put back. The client then sends the rest without being
    /// asked.
    pub fn is_begun(&self) -> bool {
        self.put_back.is_some()
    }

    /// Returns the guard that a tunnel must hold. `None` if the stream cannot become a tunnel, or is a whole
    /// connection.
    pub fn tunnel_guard(&mut self) -> Option<TunnelGuard> {
        self.tunnel.take()
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if let Some(frame) = self.put_back.as_mut().and_then(|read| read.next()) {
            return Poll::Ready(Some(Ok(frame)));
        }
        self.unasked = false;
        let Some(body) = &mut self.body else {
            return Poll::Ready(None);
        };
        let polled = Pin::new(body).poll_frame(cx);
        let Some(transfer) = &self.transfer else {
            return polled.map_err(Into::into);
        };
        match &polled {
            // Bytes that arrived after the deadline cannot be distinguished from missing ones.
            _ if transfer.slow.get() => return Poll::Ready(Some(Err(TooSlow.into()))),
            Poll::Pending => {
                transfer.wake_when_slow(cx);
                transfer.waits.set(true);
            }
            Poll::Ready(Some(Ok(frame))) => {
                transfer.moved(frame.data_ref().map_or(0, Bytes::len));
            }
            Poll::Ready(Some(Err(error))) => {
                if is_malformed(error) {
                    transfer.report_malformed();
                }
                self.transfer = None;
            }
            Poll::Ready(None) => self.transfer = None,
        }
        polled.map_err(Into::into)
    }

    fn is_end_stream(&self) -> bool {
        let again = self.put_back.as_ref();
        again.is_none_or(|read| read.is_empty())
            && self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let hint = self.body.as_ref().map(Body::size_hint).unwrap_or_default();
        match &self.put_back {
            Some(read) => read.before(hint),
            None => hint,
        }
    }
}

impl Drop for RequestBody {
    /// Leaves an unread rest to the response. The rest of a body that the client may not have begun is not read: reading
    /// would request it.
    fn drop(&mut self) {
        let Some(transfer) = self.transfer.take() else {
            return;
        };
        let unread = self.body.take().filter(|body| !body.is_end_stream());
        if let Some(body) = unread.filter(|_| !self.unasked) {
            UnreadBody::keep(body, transfer);
        }
    }
}

// === impl PutBack ===

impl PutBack {
    fn is_empty(&self) -> bool {
        self.start.is_empty() && self.rest.is_empty() && self.trailers.is_none()
    }

    fn next(&mut self) -> Option<Frame<Bytes>> {
        for bytes in [&mut self.start, &mut self.rest] {
            if !bytes.is_empty() {
                return Some(Frame::data(std::mem::take(bytes)));
            }
        }
        self.trailers.take().map(Frame::trailers)
    }

    /// Returns the size of this and of a rest with the size `after`.
    fn before(&self, after: SizeHint) -> SizeHint {
        let bytes = (self.start.len() + self.rest.len()) as u64;
        let mut whole = SizeHint::new();
        whole.set_lower(after.lower() + bytes);
        if let Some(upper) = after.upper() {
            whole.set_upper(upper + bytes);
        }
        whole
    }
}

/// Returns whether the chunks of an HTTP/1 body are malformed, which hyper shows only in its error's source. A
/// truncated body is not malformed.
fn is_malformed(error: &hyper::Error) -> bool {
    let why = std::error::Error::source(error).and_then(|why| why.downcast_ref::<io::Error>());
    why.is_some_and(|why| matches!(why.kind(), ErrorKind::InvalidInput | ErrorKind::InvalidData))
}

// === impl TooSlow ===

impl fmt::Display for TooSlow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the request body arrived too slowly")
    }
}

impl std::error::Error for TooSlow {}
