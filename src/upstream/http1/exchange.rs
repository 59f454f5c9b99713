//! One request and its response over one connection. There is no task and no channel: the future that waits
//! for the response drives both directions. Never retries.

use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use http::StatusCode;

use super::connection::{H1Connection, IdleConnections};
use super::response_body::{BodyEnd, Http1Body, ResponseBody};
use super::response_head::{self, ExpectedResponse, ResponseHead};
use super::upload::H1Upload;
use crate::body::{Body, BodyError};
use crate::upstream::coarse_timer::CoarseDeadline;
use crate::upstream::error::{UpstreamError, UpstreamErrorKind};
use crate::upstream::server::ServerInFlight;
use crate::upstream::{OriginTunnel, UpstreamResponse, UpstreamServer};

/// The maximum number of informational responses to skip.
pub(crate) const INFORMATIONAL: u8 = 16;

/// A connection in use, and the pool that it returns to.
pub(crate) struct H1Lease {
    pub(crate) connection: H1Connection,
    pub(crate) idle: Rc<IdleConnections>,
    pub(crate) in_flight: ServerInFlight,
}

/// A request on a connection, until its response has ended.
pub(crate) struct H1Exchange {
    pub(super) lease: H1Lease,
    pub(crate) upload: Box<H1Upload>,
    /// Whether a byte of the response was received.
    answered: bool,
    informational: u8,
}

// === impl H1Exchange ===

impl H1Exchange {
    pub(crate) fn new(lease: H1Lease, upload: Box<H1Upload>) -> Self {
        Self {
            lease,
            upload,
            answered: false,
            informational: 0,
        }
    }

    /// Sends the request with its body and waits for the response head. The timeout restarts when the
    /// body makes progress, and does not run while the gateway waits for the client.
    pub(crate) async fn head(
        &mut self,
        expected: ExpectedResponse,
    ) -> Result<ResponseHead, UpstreamError> {
        let mut deadline = CoarseDeadline::after(expected.timeout, &self.lease.idle.shared.timer);
        poll_fn(|cx| {
            if let Poll::Ready(head) = self.poll_head(expected, cx) {
                return Poll::Ready(head);
            }
            let moved = self.upload.moved();
            if deadline.has_passed(cx, moved, || self.upload.waits_for_client()) {
                return Poll::Ready(Err(UpstreamErrorKind::ResponseTimeout.into()));
            }
            Poll::Pending
        })
        .await
    }

    /// Returns the request for another connection after this one failed with `error`. `None` if the origin
    /// server sent a byte, or may have processed a request that must not be repeated.
    pub(crate) fn rewind(mut self, error: &UpstreamError) -> Option<Box<H1Upload>> {
        let silent =
            (error.kind == UpstreamErrorKind::Closed || error.is_timeout()) && !self.answered;
        (silent && self.upload.rewind()).then_some(self.upload)
    }

    pub(crate) fn server(&self) -> &Arc<UpstreamServer> {
        self.lease.in_flight.server()
    }

    /// Returns the response with this head.
    pub(crate) fn into_response(mut self, head: ResponseHead) -> UpstreamResponse {
        let server = Arc::clone(self.server());
        self.lease.connection.reusable = head.keeps;
        let buffer = &mut self.lease.connection.buffer;
        let mut upgraded = None;
        let body = match head.length {
            _ if head.status == StatusCode::SWITCHING_PROTOCOLS => {
                upgraded = Some(self.into_tunnel());
                Body::Empty
            }
            BodyEnd::Exact(0) => {
                self.end();
                Body::Empty
            }
            BodyEnd::Exact(length) if length <= buffer.bytes().len() as u64 => {
                let body = buffer.take(usize::try_from(length).unwrap_or(usize::MAX));
                self.end();
                Body::Whole(body)
            }
            length => {
                let exchange = self;
                Body::Stream(Box::pin(ResponseBody::Open(Http1Body { exchange, length })))
            }
        };
        let mut response = UpstreamResponse {
            upgraded,
            ..UpstreamResponse::new(head.status, head.headers, body, server)
        };
        if let Some(reason) = head.reason {
            response.response.extensions_mut().insert(reason);
        }
        response
    }

    /// Ends the exchange after the whole response. An origin server that responded before it received the
    /// whole request may never read the rest, so the connection is then closed.
    pub(super) fn end(self) {
        let H1Lease {
            mut connection,
            idle,
            ..
        } = self.lease;
        if connection.reusable && connection.buffer.is_empty() && self.upload.is_done() {
            connection.buffer.give_back(&idle.shared.buffer);
            idle.put(connection);
        }
    }

    /// Sends more of the request, if any is left.
    pub(super) fn send(&mut self, cx: &mut Context<'_>) -> Result<(), BodyError> {
        self.upload.send(&mut self.lease.connection.stream, cx)
    }

    /// Reads more of the response. Returns 0 at the end of the stream.
    pub(super) fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let H1Connection { stream, buffer, .. } = &mut self.lease.connection;
        buffer.poll_fill(stream, &self.lease.idle.shared.buffer, cx)
    }

    fn poll_head(
        &mut self,
        expected: ExpectedResponse,
        cx: &mut Context<'_>,
    ) -> Poll<Result<ResponseHead, UpstreamError>> {
        self.send(cx).map_err(UpstreamError::of_request_body)?;
        loop {
            let closed = |error| UpstreamError::from(UpstreamErrorKind::Closed).because(error);
            let read = ready!(self.poll_fill(cx)).map_err(closed)?;
            if read == 0 {
                return Poll::Ready(Err(UpstreamErrorKind::Closed.into()));
            }
            if let Some(head) = self.read_head(expected, read).transpose() {
                return Poll::Ready(head);
            }
        }
    }

    /// Returns the response head if it is complete, after `read` more bytes. `None` if it is not.
    fn read_head(
        &mut self,
        expected: ExpectedResponse,
        read: usize,
    ) -> Result<Option<ResponseHead>, UpstreamError> {
        let bytes = self.lease.connection.buffer.bytes();
        let new = bytes.get(bytes.len() - read..).unwrap_or_default();
        // A head ends with a line feed, so bytes without one need no parsing.
        if std::mem::replace(&mut self.answered, true) && !new.contains(&b'\n') {
            if bytes.len() < expected.limits.bytes {
                return Ok(None);
            }
            return Err(UpstreamErrorKind::HeadTooLarge.into());
        }
        while let Some(head) = response_head::read(&mut self.lease.connection.buffer, expected)? {
            if head.is_final() {
                return Ok(Some(head));
            }
            self.informational += 1;
            if self.informational > INFORMATIONAL {
                return Err(UpstreamErrorKind::BadResponse.into());
            }
        }
        Ok(None)
    }

    fn into_tunnel(self) -> OriginTunnel {
        let mut connection = self.lease.connection;
        let early = connection.buffer.take(usize::MAX);
        OriginTunnel::new(connection.stream, early, self.lease.in_flight)
    }
}
