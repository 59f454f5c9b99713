//! Request bodies: counted, limited and streamed to the origin server, or read and discarded.

use std::cell::Cell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Version;
use http::header::EXPECT;
use http_body::{Body as _, Frame, SizeHint};

use super::request_context::RequestContext;
use super::request_state::RequestState;
use crate::body::{Body, BodyError};
use crate::listen::{DrainOutcome, RequestBody, TooSlow, collect_body, drain_body, read_out};

/// The maximum number of bytes of an unwanted body that are read to keep the connection open.
const UNWANTED: u64 = 64 << 10;
/// The timeout of that read.
const UNWANTED_WAIT: Duration = Duration::from_secs(1);
/// The maximum body of a shadowed request if `max_body_bytes` sets none: an origin server would read it, and no
/// byte of it is kept.
const SHADOWED: u64 = 1 << 30;

/// The state of a request body during and after reading.
#[derive(Default)]
pub struct BodyMeter {
    /// The maximum size in bytes, once the route is known. `None` for no limit.
    pub max: Cell<Option<u64>>,
    /// The number of bytes that have arrived.
    pub bytes: Cell<u64>,
    /// Whether the body exceeded its limit.
    pub too_large: Cell<bool>,
    /// Whether the body arrived too slowly.
    pub too_slow: Cell<bool>,
    /// When the body was read to its end. `None` before.
    pub ended: Cell<Option<Instant>>,
}

/// A request body that is counted and limited while it streams.
struct Metered {
    incoming: RequestBody,
    state: Rc<RequestState>,
    max: u64,
}

/// A request body that the gateway has read and discarded, completely or in part.
pub struct DiscardedBody {
    /// How much of the body was read.
    pub drained: DrainOutcome,
    /// The body. Its rest is read after the response has begun.
    pub incoming: RequestBody,
}

/// Wraps a request body for forwarding to an origin server.
pub fn streamed(incoming: RequestBody, state: &Rc<RequestState>) -> Body {
    if incoming.is_end_stream() {
        return Body::Empty;
    }
    Body::stream(Metered {
        incoming,
        state: state.clone(),
        max: state.meter.max.get().unwrap_or(u64::MAX),
    })
}

/// Reads the body of a request to which the gateway responds itself, up to a limit.
pub async fn discard(request: &RequestContext<'_, '_>, mut incoming: RequestBody) -> DiscardedBody {
    let (headers, meter) = (request.info.headers, &request.state.meter);
    // Reading would request a body that the client has not sent yet (RFC 9110, 10.1.1).
    let is_unasked = headers.contains_key(EXPECT) && !incoming.is_begun();
    let drained = if is_unasked && !incoming.is_end_stream() {
        DrainOutcome::TooSlow
    } else {
        drain_body(&mut incoming, UNWANTED, UNWANTED_WAIT, &meter.bytes).await
    };
    DiscardedBody { drained, incoming }
}

/// Reads the whole body of a request to which the gateway responds itself. `None` if it has more than `max` bytes or
/// more than `may_hold` allows, or if it did not arrive.
pub async fn read(
    request: &RequestContext<'_, '_>,
    mut incoming: RequestBody,
    max: u64,
    may_hold: impl FnMut(usize) -> bool,
) -> (DiscardedBody, Option<Vec<u8>>) {
    // An HTTP/2 client that waits for 100 Continue never gets one.
    let expects =
        request.info.headers.contains_key(EXPECT) && request.info.version == Version::HTTP_2;
    if expects && !incoming.is_begun() && !incoming.is_end_stream() {
        return (discard(request, incoming).await, None);
    }
    let mut content = Vec::new();
    let read = &request.state.meter.bytes;
    let drained = collect_body(&mut incoming, max, read, &mut content, may_hold).await;
    let content = (drained == DrainOutcome::Whole).then_some(content);
    (DiscardedBody { drained, incoming }, content)
}

/// Reads the body of a shadowed request as an origin server would.
pub async fn swallow(state: &RequestState, mut incoming: RequestBody) -> DiscardedBody {
    let max = state.meter.max.get().unwrap_or(SHADOWED);
    let drained = read_out(&mut incoming, max, &state.meter.bytes).await;
    DiscardedBody { drained, incoming }
}

// === impl Metered ===

impl http_body::Body for Metered {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let frame = ready!(Pin::new(&mut self.incoming).poll_frame(cx));
        if frame.is_none() || self.incoming.is_end_stream() {
            let now = self.state.core.instant();
            self.state.meter.ended.set(Some(now));
        }
        let meter = &self.state.meter;
        let data = match &frame {
            Some(Ok(frame)) => frame.data_ref(),
            Some(Err(error)) => {
                meter.too_slow.set(error.is::<TooSlow>());
                return Poll::Ready(frame);
            }
            None => return Poll::Ready(None),
        };
        let bytes = meter.bytes.get() + data.map_or(0, |data| data.len() as u64);
        meter.bytes.set(bytes);
        if bytes > self.max {
            meter.too_large.set(true);
            return Poll::Ready(Some(Err("the body is larger than allowed".into())));
        }
        Poll::Ready(self.state.to_origin(frame))
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}
