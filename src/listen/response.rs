//! Wraps one response for hyper: counts it until it has ended, and sends it over HTTP/2 in pieces, so that a
//! client's reading can be observed.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{CONNECTION, EXPECT};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Version};
use http_body::{Body, Frame, SizeHint};
use hyper::ext::ReasonPhrase;

use super::connection_state::ConnectionState;
use super::min_rate::{Direction, Transfer, TransferHandle};
use super::serve::RequestHandler;
use super::timers::{RequestInFlight, ResponseHandle};
use super::unread_body::UploadGuard;
use super::{HttpVersion, RequestBody};

/// The size from which an HTTP/1 response is long, in bytes.
const LONG: usize = 64 * 1024;

/// The maximum number of bytes passed to a stream at once: a frame of the default size (RFC 9113, section 4.2).
const PIECE: usize = 16 * 1024;

/// The maximum number of bytes passed to a slow client's stream at once: at the default minimum rate, the client
/// reads them in a third of the default timeout.
const SMALL_PIECE: usize = 1024;

/// The result of polling a body.
type Polled<E> = Poll<Option<Result<Frame<Bytes>, E>>>;

/// A response body, with the request in flight that it ends.
pub(super) struct TrackedBody<B> {
    /// Dropped first: on drop it queries its [`ResponseHandle`].
    body: B,
    pacing: Pacing,
    in_flight: RequestInFlight,
}

/// How a response is passed to hyper.
enum Pacing {
    /// A client that does not read blocks the socket.
    Http1(Http1Pacing),
    /// A client that does not read keeps its windows closed.
    Http2(Http2Pacing),
}

/// An HTTP/1 response: unread bytes would accumulate in hyper's buffer.
#[derive(Default)]
struct Http1Pacing {
    given: usize,
    last: usize,
    /// Whether a poll was deferred since the last frame, so that the frame is written before the next.
    paused: bool,
}

/// An HTTP/2 response, in pieces so small that slow reading can be observed.
struct Http2Pacing {
    transfer: TransferHandle,
    /// Bytes of the body that are not passed on yet.
    rest: Bytes,
    /// The size of the last piece beyond the client's initial window.
    size: usize,
}

/// Runs the streams of a connection on this core, each until its client is too slow: only aborting its task
/// resets a stream that waits for its window.
#[derive(Clone, Default)]
pub(super) struct StreamTasks(Rc<Cell<Option<Rc<Transfer>>>>);

/// Creates the future of a response, counted until it has ended. `stream` is that of the response, in HTTP/2.
/// Without a response hyper closes the connection, or resets the stream with INTERNAL_ERROR, which unlike
/// REFUSED_STREAM does not invite a client to retry.
pub(super) fn respond<H: RequestHandler>(
    state: &Rc<ConnectionState>,
    stream: Option<TransferHandle>,
    handler: &Rc<H>,
    request: Request<hyper::body::Incoming>,
) -> impl Future<Output = Result<Response<TrackedBody<H::Body>>, &'static str>> + use<H> {
    let protocol = match stream {
        Some(_) => HttpVersion::Http2,
        None => HttpVersion::Http1,
    };
    let has_body = !request.body().is_end_stream();
    let upload = has_body.then(|| state.transfer(Direction::FromClient));
    let in_flight = state.begin_request(protocol, has_body);
    let uploading = UploadGuard::new(upload.as_ref());
    // hyper drops a response that opens a tunnel, with all that the response holds, as soon as it gets it.
    let opens = protocol == HttpVersion::Http2 && request.method() == Method::CONNECT;
    let tunnel = opens.then(|| in_flight.tunnel_guard());
    let (version, waits) = (
        request.version(),
        has_body && expects_continue(request.headers()),
    );
    let request = request.map(|body| RequestBody::new(body, upload, tunnel).unasked(waits));
    let handle = ResponseHandle::new(state, stream.as_ref());
    let handler = handler.clone();
    async move {
        let Some(mut response) = handler.handle(request, handle).await else {
            return Err("the request gets no response");
        };
        // The body was not polled yet: the client's windows may be closed.
        stream.as_deref().inspect(|stream| stream.waits.set(true));
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            in_flight.marks.tunnel.set(true);
            in_flight.marks.busy.set(false);
        } else {
            uploading.begin_response();
            if protocol == HttpVersion::Http1 {
                finish_http1_head(&mut response, version, in_flight.is_draining());
            }
        }
        Ok(response.map(|body| TrackedBody {
            body,
            pacing: Pacing::new(stream),
            in_flight,
        }))
    }
}

/// Completes the head of an HTTP/1 response. `drains` is whether the connection closes because of a drain.
fn finish_http1_head<B>(response: &mut Response<B>, client: Version, drains: bool) {
    let headers = response.headers_mut();
    if drains {
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    if client == Version::HTTP_10 && headers.contains_key(CONNECTION) {
        // hyper appends `keep-alive` to an HTTP/1.1 response for a client that asked for it, even to `close`.
        *response.version_mut() = Version::HTTP_10;
    }
    if response.status().canonical_reason().is_none() {
        // hyper would send `<none>`.
        let unnamed = || ReasonPhrase::from_static(b"");
        response.extensions_mut().get_or_insert_with(unnamed);
    }
}

/// Returns whether the client may wait for 100 Continue before it sends the body (RFC 9110, 10.1.1).
fn expects_continue(headers: &HeaderMap) -> bool {
    headers.contains_key(EXPECT)
}

// === impl TrackedBody ===

impl<B: Body<Data = Bytes> + Unpin> Body for TrackedBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Polled<B::Error> {
        let Self {
            body,
            pacing,
            in_flight,
        } = &mut *self;
        match pacing {
            Pacing::Http1(pacing) => pacing.poll_next(in_flight, || Pin::new(body).poll_frame(cx)),
            Pacing::Http2(pacing) => pacing.poll_next(cx, body, in_flight),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream() && self.pacing.unsent_bytes() == 0
    }

    fn size_hint(&self) -> SizeHint {
        let (hint, rest) = (self.body.size_hint(), self.pacing.unsent_bytes());
        let mut whole = SizeHint::new();
        whole.set_lower(hint.lower() + rest);
        if let Some(upper) = hint.upper() {
            whole.set_upper(upper + rest);
        }
        whole
    }
}

// === impl Pacing ===

impl Pacing {
    fn new(stream: Option<TransferHandle>) -> Self {
        match stream {
            None => Pacing::Http1(Http1Pacing::default()),
            Some(transfer) => Pacing::Http2(Http2Pacing {
                transfer,
                rest: Bytes::new(),
                size: 0,
            }),
        }
    }

    /// Returns the number of bytes of the body that are not passed on yet.
    fn unsent_bytes(&self) -> u64 {
        match self {
            Pacing::Http1(_) => 0,
            Pacing::Http2(pacing) => pacing.rest.len() as u64,
        }
    }
}

// === impl Http1Pacing ===

impl Http1Pacing {
    /// hyper buffers up to the maximum head size, which is more than most responses. Of a longer response it
    /// gets one frame at a time, and none while the socket is blocked.
    fn poll_next<E>(
        &mut self,
        in_flight: &RequestInFlight,
        poll_body: impl FnOnce() -> Polled<E>,
    ) -> Polled<E> {
        let long = self.given > LONG && self.last < LONG;
        self.paused = in_flight.marks.blocked.get() || (long && !self.paused);
        if self.paused {
            in_flight.held_back.set(true);
            return Poll::Pending;
        }
        let polled = poll_body();
        if let Poll::Ready(Some(Ok(frame))) = &polled {
            self.last = frame.data_ref().map_or(0, Bytes::len);
            self.given += self.last;
        }
        polled
    }
}

// === impl Http2Pacing ===

impl Http2Pacing {
    /// hyper polls for a piece as soon as h2 has the previous one, of which only a byte may have fitted into the
    /// client's windows.
    fn poll_next<B: Body<Data = Bytes> + Unpin>(
        &mut self,
        cx: &mut Context<'_>,
        body: &mut B,
        in_flight: &RequestInFlight,
    ) -> Polled<B::Error> {
        let frame = if self.rest.is_empty() {
            Pin::new(&mut *body).poll_frame(cx)
        } else {
            Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut self.rest)))))
        };
        let frame = frame.map_ok(|frame| {
            frame.map_data(|mut data| {
                self.cut(&mut data, body, in_flight);
                self.transfer.moved(data.len());
                in_flight.window.sent(data.len());
                data
            })
        });
        self.transfer.unsent.set(!self.rest.is_empty());
        self.transfer.waits.set(frame.is_ready());
        frame
    }

    /// Returns how much is passed to h2 at once, because h2 does not report how much was sent: the client's
    /// initial window first; then little, and more each time while the client reads quickly.
    fn piece(&mut self, in_flight: &RequestInFlight) -> usize {
        let first = in_flight.window.of_stream();
        let left = first.saturating_sub(self.transfer.bytes.get());
        if left > 0 {
            return usize::try_from(left).map_or(PIECE, |left| left.clamp(SMALL_PIECE, PIECE));
        }
        self.size = if self.transfer.lags() {
            SMALL_PIECE
        } else {
            (2 * self.size).clamp(SMALL_PIECE, PIECE)
        };
        self.size
    }

    /// Keeps back bytes beyond one piece. Of the last piece that a slow client may have to wait for, it keeps
    /// the last byte, which h2 accepts only when the others are sent: a response that ends in h2 cannot be
    /// observed.
    fn cut(&mut self, data: &mut Bytes, body: &impl Body, in_flight: &RequestInFlight) {
        let (length, piece) = (data.len(), self.piece(in_flight));
        if length > piece {
            self.rest = data.split_off(piece);
        } else if length > 1
            && !in_flight.window.fits(self.transfer.bytes.get(), length)
            && body.size_hint().upper().is_none_or(|left| left == 0)
        {
            self.rest = data.split_off(length - 1);
        }
    }
}

// === impl StreamTasks ===

impl StreamTasks {
    /// Registers the response of the stream that hyper spawns next: it calls the service first.
    pub(super) fn expect(&self, response: &TransferHandle) {
        self.0.set(Some(response.transfer.clone()));
    }
}

impl<F: Future<Output = ()> + 'static> hyper::rt::Executor<F> for StreamTasks {
    fn execute(&self, future: F) {
        let task = tokio::task::spawn_local(future);
        if let Some(response) = self.0.take() {
            response.abort_when_slow(task.abort_handle());
        }
    }
}
