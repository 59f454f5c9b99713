//! Sends a request over a stream: its head, its body as fast as the origin server accepts it, its
//! trailers. A body with a length other than declared resets the stream.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::SendStream;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{Method, Request, Uri, Version};
use http_body::{Body as _, Frame};

use crate::body::{Body, BodyError};
use crate::upstream::OutboundRequest;
use crate::upstream::error::{UpstreamError, UpstreamErrorKind};
use crate::upstream::headers::clean_trailers;
use crate::upstream::http1::upload::{BodyFraming, WRONG_LENGTH, framing};
use crate::upstream::request_head::{self as head, HeaderSpelling};

/// The maximum number of sends per poll before the response is polled.
const SENDS: usize = 16;

/// The maximum number of body bytes kept in case the origin server refuses the request unprocessed.
const KEPT: usize = 64 * 1024;

/// A request that is being sent.
#[derive(Default)]
pub(crate) struct H2Upload {
    head: Request<()>,
    body: Body,
    /// The number of declared bytes not yet taken from the body. `None` if no length was declared.
    left: Option<u64>,
    /// Data that was taken from the body and not sent yet.
    data: Bytes,
    trailers: HeaderMap,
    /// Whether the whole body was taken.
    taken: bool,
    done: bool,
    /// The body data taken so far, for a retry. `None` if it exceeds the limit.
    kept: Option<VecDeque<Bytes>>,
    kept_bytes: usize,
    /// The kept data that is sent again before the rest of the body.
    again: VecDeque<Bytes>,
    idempotent: bool,
    waits_for_client: bool,
    /// Whether bytes were sent since the last call of `moved`.
    moved: bool,
    /// Whether the origin server stopped reading. It may still respond.
    stopped: bool,
}

// === impl H2Upload ===

impl H2Upload {
    pub(crate) fn new(
        mut outbound: OutboundRequest<'_>,
        secure: bool,
    ) -> Result<Box<Self>, UpstreamError> {
        if !head::is_target(&outbound) {
            return Err(UpstreamErrorKind::RequestTarget.into());
        }
        let framing = framing(outbound.headers, &outbound.body)?;
        let head = write_head(&outbound, framing, secure)?;
        let (body, left) = match framing {
            BodyFraming::Length(0) => (Body::Empty, None),
            BodyFraming::Length(length) => (std::mem::take(&mut outbound.body), Some(length)),
            BodyFraming::Chunked => (std::mem::take(&mut outbound.body), None),
        };
        Ok(Box::new(Self {
            taken: body.is_end_stream(),
            head,
            body,
            left,
            kept: Some(VecDeque::new()),
            // RFC 9110, section 9.2.2.
            idempotent: outbound.method.is_idempotent(),
            ..Self::default()
        }))
    }

    pub(super) fn method(&self) -> &Method {
        self.head.method()
    }

    /// Replaces the host `old` of a request that was not sent yet, or was restarted.
    pub(crate) fn replace_host(&mut self, old: &str, new: &str) {
        let uri = self.head.uri_mut();
        if uri.authority().is_some_and(|host| host.as_str() == old) {
            let mut parts = uri.clone().into_parts();
            parts.authority = Authority::try_from(new).ok();
            // A server's name is a valid authority.
            *uri = Uri::from_parts(parts).unwrap_or_else(|_| uri.clone());
        }
    }

    /// Returns the head, and whether it is the complete request.
    pub(super) fn head(&mut self) -> (Request<()>, bool) {
        self.done = self.taken && self.again.is_empty() && self.data.is_empty();
        (self.head.clone(), self.done)
    }

    /// Returns the request for another connection after it failed with `error`. `None` if the origin server may
    /// have processed it and it must not be repeated, or if too much of its body was sent to keep.
    pub(super) fn retryable_error(mut self: Box<Self>, error: &UpstreamError) -> Option<Box<Self>> {
        let repeatable = match error.kind {
            UpstreamErrorKind::Refused => true,
            UpstreamErrorKind::Closed | UpstreamErrorKind::Reset => self.is_repeatable(),
            _ => error.is_timeout() && self.is_repeatable(),
        };
        (repeatable && self.rewind()).then_some(self)
    }

    /// Returns a copy. `None` if the request must not be sent twice.
    pub(super) fn copy(&self) -> Option<Box<Self>> {
        self.is_repeatable().then(|| {
            Box::new(Self {
                head: self.head.clone(),
                taken: true,
                kept: Some(VecDeque::new()),
                idempotent: true,
                ..Self::default()
            })
        })
    }

    /// Returns whether the request can safely be sent twice, even if it was processed.
    fn is_repeatable(&self) -> bool {
        self.idempotent && matches!(self.body, Body::Empty)
    }

    /// Restarts the request. Returns `false` if the body data taken so far is no longer available.
    fn rewind(&mut self) -> bool {
        let Some(kept) = &self.kept else {
            return false;
        };
        self.again.clone_from(kept);
        self.data = Bytes::new();
        self.done = false;
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
        stream: &mut SendStream<Bytes>,
        cx: &mut Context<'_>,
    ) -> Result<(), BodyError> {
        for _ in 0..SENDS {
            if self.done || self.stopped {
                return Ok(());
            }
            if self.data.is_empty() && self.poll_load(cx)?.is_pending() {
                return Ok(());
            }
            match self.poll_give(stream, cx) {
                Poll::Ready(given) => self.stopped = given.is_none(),
                Poll::Pending => return Ok(()),
            }
        }
        cx.waker().wake_by_ref();
        Ok(())
    }

    /// Takes the next data of the body, or detects its end.
    fn poll_load(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BodyError>> {
        while self.data.is_empty() {
            if let Some(data) = self.again.pop_front() {
                self.data = data;
                break;
            }
            if self.taken {
                break;
            }
            let polled = Pin::new(&mut self.body).poll_frame(cx);
            self.waits_for_client = polled.is_pending();
            match ready!(polled) {
                None => self.end()?,
                Some(frame) => self.take(frame?)?,
            }
        }
        Poll::Ready(Ok(()))
    }

    fn take(&mut self, frame: Frame<Bytes>) -> Result<(), BodyError> {
        match frame.into_data() {
            Ok(data) => {
                if let Some(left) = &mut self.left {
                    *left = left.checked_sub(data.len() as u64).ok_or(WRONG_LENGTH)?;
                }
                self.keep(&data);
                self.data = data;
                if self.body.is_end_stream() {
                    self.end()?;
                }
            }
            Err(frame) => {
                self.trailers = frame.into_trailers().unwrap_or_default();
                clean_trailers(&mut self.trailers);
                self.end()?;
            }
        }
        Ok(())
    }

    fn keep(&mut self, data: &Bytes) {
        self.kept_bytes += data.len();
        match &mut self.kept {
            Some(kept) if self.kept_bytes <= KEPT => kept.push_back(data.clone()),
            kept => *kept = None,
        }
    }

    fn end(&mut self) -> Result<(), BodyError> {
        if self.left.is_some_and(|left| left > 0) {
            return Err(WRONG_LENGTH.into());
        }
        self.taken = true;
        Ok(())
    }

    /// Sends as much data as the stream's capacity allows, and the end. `None` if the origin server stopped.
    fn poll_give(
        &mut self,
        stream: &mut SendStream<Bytes>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<()>> {
        let last = self.taken && self.again.is_empty();
        if !self.data.is_empty() {
            let Some(window) = ready!(poll_capacity(stream, self.data.len(), cx)) else {
                return Poll::Ready(None);
            };
            let data = self.data.split_to(window.min(self.data.len()));
            let end = last && self.data.is_empty() && self.trailers.is_empty();
            self.moved = true;
            self.done = end;
            return Poll::Ready(stream.send_data(data, end).ok());
        }
        if !last {
            return Poll::Ready(Some(()));
        }
        self.moved = true;
        self.done = true;
        let sent = if self.trailers.is_empty() {
            stream.send_data(Bytes::new(), true)
        } else {
            stream.send_trailers(self.trailers.clone())
        };
        Poll::Ready(sent.ok())
    }
}

/// Returns how many of `wanted` bytes the stream accepts now. `None` if the origin server stopped reading.
fn poll_capacity(
    stream: &mut SendStream<Bytes>,
    wanted: usize,
    cx: &mut Context<'_>,
) -> Poll<Option<usize>> {
    stream.reserve_capacity(wanted);
    while stream.capacity() == 0 {
        if !matches!(ready!(stream.poll_capacity(cx)), Some(Ok(_))) {
            return Poll::Ready(None);
        }
    }
    Poll::Ready(Some(stream.capacity()))
}

/// Returns the head of a request. An error if HTTP/2 cannot express it.
fn write_head(
    outbound: &OutboundRequest<'_>,
    framing: BodyFraming,
    secure: bool,
) -> Result<Request<()>, UpstreamError> {
    let mut request = Request::new(());
    let uri = uri(outbound, secure).ok_or(UpstreamErrorKind::RequestTarget)?;
    *request.version_mut() = match uri.authority() {
        Some(_) => Version::HTTP_2,
        // The library accepts a request of another version without an authority.
        None => Version::HTTP_11,
    };
    *request.method_mut() = outbound.method.clone();
    *request.uri_mut() = uri;
    let fields = HeaderMap::with_capacity(outbound.headers.len() + 8);
    *request.headers_mut() = head::fields(fields, outbound, framing);
    Ok(request)
}

/// Returns the URI, without an authority if an HTTP/1.0 client sent no host. `None` if it is invalid.
fn uri(outbound: &OutboundRequest<'_>, secure: bool) -> Option<Uri> {
    let target = Bytes::copy_from_slice(outbound.target.as_bytes());
    let mut parts = http::uri::Parts::default();
    parts.path_and_query = Some(PathAndQuery::from_maybe_shared(target).ok()?);
    let host = head::host(outbound);
    if !host.is_empty() {
        parts.authority = Some(Authority::try_from(host).ok()?);
        parts.scheme = Some(if secure { Scheme::HTTPS } else { Scheme::HTTP });
    }
    Uri::from_parts(parts).ok()
}

impl HeaderSpelling for HeaderMap {
    const JOINS_COOKIES: bool = false;

    fn field(&mut self, name: &'static str, value: &[u8]) {
        // All values are already validated.
        if let Ok(value) = HeaderValue::from_bytes(value) {
            self.append(HeaderName::from_static(name), value);
        }
    }

    fn pass(&mut self, name: &HeaderName, value: &HeaderValue) {
        self.append(name.clone(), value.clone());
    }

    fn connection(&mut self, _: bool, trailers: bool) {
        if trailers {
            self.insert(header::TE, HeaderValue::from_static("trailers"));
        }
    }

    fn endless(&mut self) {}
}
