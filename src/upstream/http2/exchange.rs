//! One request and its response on a stream. The flow-control window grows as the client reads. Dropping a
//! body before its end resets the stream. Never retries and never buffers.

use std::error::Error;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::client::ResponseFuture;
use h2::{Reason, RecvStream, SendStream};
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::response::Parts;
use http::{Method, Response, StatusCode};
use http_body::{Frame, SizeHint};

use super::connection::StreamSlot;
use super::upload::H2Upload;
use crate::body::Body;
use crate::upstream::coarse_timer::{CoarseDeadline, CoarseTimer};
use crate::upstream::error::{UpstreamError, UpstreamErrorKind};
use crate::upstream::headers::{clean_trailers, is_hop_by_hop, remove_all};
use crate::upstream::http1::exchange::INFORMATIONAL;
use crate::upstream::http1::response_body::{BodySource, Next, ResponseBody};
use crate::upstream::http1::response_head::{ExpectedResponse, plain_number};
use crate::upstream::{HeadLimits, UpstreamResponse, UpstreamServer};

/// A request on a connection, until its response has ended.
pub(crate) struct H2Exchange {
    upload: Box<H2Upload>,
    stream: SendStream<Bytes>,
    /// Released when the exchange is dropped.
    slot: StreamSlot,
}

/// A stream that waits for its response.
struct PendingResponse {
    response: ResponseFuture,
    informational: u8,
}

/// The head of a response.
struct H2Head {
    status: StatusCode,
    headers: HeaderMap,
    /// The declared length of the body.
    length: Option<u64>,
    /// Whether no body may follow (RFC 9110, section 6.4.1).
    bodiless: bool,
}

/// The source of a body over HTTP/2.
struct Http2Body {
    exchange: H2Exchange,
    body: RecvStream,
    /// The number of declared bytes not yet received. `None` if no length was declared.
    left: Option<u64>,
    /// Whether all data was received. Only trailers may follow.
    all_data: bool,
    is_over: bool,
}

// === impl H2Exchange ===

impl H2Exchange {
    /// Sends a request over a connection and waits for the response head. Returns the request with an error
    /// or a 503 if it can be sent again.
    pub(crate) async fn send(
        mut upload: Box<H2Upload>,
        slot: StreamSlot,
        expected: ExpectedResponse,
        timer: &Rc<CoarseTimer>,
    ) -> Result<(UpstreamResponse, Option<Box<H2Upload>>), (UpstreamError, Option<Box<H2Upload>>)>
    {
        let (head, ended) = upload.head();
        let server = Arc::clone(slot.server());
        let (response, stream) = match slot.connection.open_stream(head, ended) {
            Ok(opened) => opened,
            Err(error) => {
                let again = upload.retryable_error(&error);
                return Err((error.at(&server), again));
            }
        };
        let mut exchange = Self {
            upload,
            stream,
            slot,
        };
        let mut waiting = PendingResponse {
            response,
            informational: 0,
        };
        match exchange.head(&mut waiting, expected, timer).await {
            Ok((head, body)) => {
                let busy = head.status == StatusCode::SERVICE_UNAVAILABLE;
                let copy = busy.then(|| exchange.upload.copy()).flatten();
                Ok((exchange.into_response(head, body, server), copy))
            }
            Err(error) => {
                if is_goaway(&error) {
                    exchange.slot.connection.retire();
                }
                // The request stays incomplete.
                exchange.stream.send_reset(Reason::CANCEL);
                let silent = waiting.informational == 0;
                let again = silent
                    .then(|| exchange.upload.retryable_error(&error))
                    .flatten();
                let too_long = silent && again.is_none();
                let error = match error.kind {
                    UpstreamErrorKind::Refused if too_long => unrepeatable(error),
                    _ => error,
                };
                Err((error.at(&server), again))
            }
        }
    }

    /// Sends the request and waits for the response head. The timeout restarts when the body makes
    /// progress, and does not run while the gateway waits for the client.
    async fn head(
        &mut self,
        waiting: &mut PendingResponse,
        expected: ExpectedResponse,
        timer: &Rc<CoarseTimer>,
    ) -> Result<(H2Head, RecvStream), UpstreamError> {
        let connection = &self.slot.connection;
        let received = connection.received();
        let mut deadline = CoarseDeadline::after(expected.timeout, timer);
        poll_fn(|cx| {
            let sent = self.upload.send(&mut self.stream, cx);
            sent.map_err(UpstreamError::of_request_body)?;
            if let Poll::Ready(response) = waiting.poll(cx) {
                connection.note_received();
                let (parts, body) = response?.into_parts();
                let head = read_head(parts, self.upload.method(), expected.limits)?;
                return Poll::Ready(Ok((head, body)));
            }
            let moved = self.upload.moved();
            if deadline.has_passed(cx, moved, || self.upload.waits_for_client()) {
                // A connection that received nothing during the whole wait may be dead.
                if connection.received() == received {
                    connection.retire();
                }
                return Poll::Ready(Err(UpstreamErrorKind::ResponseTimeout.into()));
            }
            Poll::Pending
        })
        .await
    }

    fn into_response(
        self,
        head: H2Head,
        body: RecvStream,
        server: Arc<UpstreamServer>,
    ) -> UpstreamResponse {
        let body = if head.bodiless || body.is_end_stream() {
            Body::Empty
        } else {
            Body::Stream(Box::pin(ResponseBody::Open(Http2Body {
                exchange: self,
                body,
                left: head.length,
                all_data: false,
                is_over: false,
            })))
        };
        UpstreamResponse::new(head.status, head.headers, body, server)
    }
}

/// Returns the response head for the client, or an error if it is ambiguous. The library has already
/// rejected malformed heads: headers about the connection, several lengths that differ, a body with a
/// length other than declared.
fn read_head(parts: Parts, method: &Method, limits: HeadLimits) -> Result<H2Head, UpstreamError> {
    let (status, mut headers) = (parts.status, parts.headers);
    if list_size(&headers) > limits.bytes {
        return Err(UpstreamErrorKind::HeadTooLarge.into());
    }
    if headers.len() > limits.headers {
        return Err(UpstreamErrorKind::TooManyHeaders.into());
    }
    let mut lengths = headers.get_all(header::CONTENT_LENGTH).iter();
    let length = match (lengths.next(), lengths.next()) {
        (None, _) => None,
        (Some(length), None) => {
            Some(plain_number(length.as_bytes()).ok_or(UpstreamErrorKind::BadResponse)?)
        }
        (Some(_), Some(_)) => return Err(UpstreamErrorKind::BadResponse.into()),
    };
    if status.is_informational() {
        return Err(UpstreamErrorKind::BadResponse.into());
    }
    remove_all(&mut headers, is_hop_by_hop);
    if status == StatusCode::NO_CONTENT {
        headers.remove(header::CONTENT_LENGTH);
    }
    let empty = matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
    Ok(H2Head {
        status,
        headers,
        length,
        bodiless: empty || method == Method::HEAD,
    })
}

/// Returns the size of a header list: names, values and 32 bytes for each header (RFC 9113, section 6.5.2).
fn list_size(headers: &HeaderMap) -> usize {
    let size = |(name, value): (&HeaderName, &HeaderValue)| name.as_str().len() + value.len() + 32;
    headers.iter().map(size).sum()
}

// === impl PendingResponse ===

impl PendingResponse {
    /// Polls the response. Skips informational responses, up to a limit.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Response<RecvStream>, UpstreamError>> {
        while let Some(interim) = ready!(self.response.poll_informational(cx)) {
            let interim = interim.map_err(failed)?;
            self.informational += 1;
            let switches = interim.status() == StatusCode::SWITCHING_PROTOCOLS;
            if switches || self.informational > INFORMATIONAL {
                return Poll::Ready(Err(UpstreamErrorKind::BadResponse.into()));
            }
        }
        Pin::new(&mut self.response).poll(cx).map_err(failed)
    }
}

/// Classifies the error of a stream. RFC 9113, section 8.7 defines which requests the origin server did not
/// process.
fn failed(error: h2::Error) -> UpstreamError {
    let unread = error.reason() == Some(Reason::REFUSED_STREAM) || error.is_go_away();
    let kind = match error.is_remote() {
        true if unread => UpstreamErrorKind::Refused,
        true if error.is_reset() => UpstreamErrorKind::Reset,
        true => UpstreamErrorKind::Closed,
        false if error.is_io() => UpstreamErrorKind::Closed,
        false => UpstreamErrorKind::BadResponse,
    };
    UpstreamError::from(kind).because(error)
}

/// Returns whether the connection accepts no more streams.
fn is_goaway(error: &UpstreamError) -> bool {
    let source = error.source().and_then(<dyn Error>::downcast_ref);
    source.is_some_and(h2::Error::is_go_away)
}

/// Explains a refusal of a request that cannot be sent again because its body is no longer available.
fn unrepeatable(error: UpstreamError) -> UpstreamError {
    let source = error.source().and_then(<dyn Error>::downcast_ref);
    let reason = source.and_then(h2::Error::reason);
    let code = reason.unwrap_or(Reason::REFUSED_STREAM);
    let did = match is_goaway(&error) {
        true => format!("it closed the HTTP/2 connection (GOAWAY, {code:?})"),
        false => format!("it reset the stream ({code:?})"),
    };
    error.because(format!(
        "{did}, and the request body is too large to be kept for another attempt"
    ))
}

// === impl Http2Body ===

impl BodySource for Http2Body {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Next> {
        let H2Exchange { upload, stream, .. } = &mut self.exchange;
        upload
            .send(stream, cx)
            .map_err(UpstreamError::of_request_body)?;
        while !self.all_data {
            let Some(data) = ready!(self.body.poll_data(cx)).transpose()? else {
                self.all_data = true;
                break;
            };
            self.exchange.slot.connection.note_received();
            self.body.flow_control().release_capacity(data.len())?;
            if let Some(left) = &mut self.left {
                *left = left.saturating_sub(data.len() as u64);
            }
            if !data.is_empty() {
                self.is_over = self.body.is_end_stream();
                return Poll::Ready(Some(Ok(Frame::data(data))));
            }
        }
        let mut trailers = ready!(self.body.poll_trailers(cx))?.unwrap_or_default();
        clean_trailers(&mut trailers);
        self.is_over = true;
        let any = !trailers.is_empty();
        Poll::Ready(any.then(|| Ok(Frame::trailers(trailers))))
    }

    fn is_over(&self) -> bool {
        self.is_over
    }

    fn size_hint(&self) -> SizeHint {
        self.left
            .map_or_else(SizeHint::default, SizeHint::with_exact)
    }

    fn server(&self) -> &Arc<UpstreamServer> {
        self.exchange.slot.server()
    }

    fn end(self) {}
}
