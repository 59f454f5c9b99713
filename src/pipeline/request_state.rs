//! The state that lives until a response ends: the leases of its request, the observer of the response and the
//! access log entry. It decides nothing.
//!
//! The request body, the response body and [`DetachOnDisconnect`](super::detached_request::DetachOnDisconnect) share
//! one [`RequestState`].

use std::cell::{Cell, OnceCell};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::Bytes;
use http::{HeaderValue, Method, Response};
use http_body::{Frame, SizeHint};

use super::CoreState;
use super::access_entry;
use super::body::BodyMeter;
use super::imitate::ResponseObserver;
use super::respond::HandledResponse;
use super::tunnel::TunnelEntry;
use crate::action::{GatewayError, RequestInfo};
use crate::body::{Body, BodyError};
use crate::facts::{ClientConnection, RequestFacts};
use crate::listen::{ResponseEnd, ResponseHandle};
use crate::observe::access::AccessEnd;
use crate::observe::activity::ActionClass;
use crate::observe::{AbortReason, ListenerMetrics};
use crate::route::RouteEdits;
use crate::route::edit::HeaderChanges;
use crate::snapshot::Snapshot;
use crate::store::LeaseGuard;
use crate::upstream;

/// The result of polling a body; `None` at its end.
type NextFrame = Option<Result<Frame<Bytes>, BodyError>>;

/// The state of a request that lives until its response ends.
pub struct RequestState {
    /// The core that serves the request.
    pub core: Rc<CoreState>,
    /// The configuration that the request uses from start to end.
    pub snapshot: Arc<Snapshot>,
    /// When the request head was complete.
    pub began: Instant,
    /// The progress of the request body.
    pub meter: BodyMeter,
    /// Whether the request was forwarded by its route: rules may count the response even after a disconnect.
    pub is_countable: Cell<bool>,
    /// Whether the client disconnected before its response.
    pub is_disconnected: Cell<bool>,
    /// Observes the response for `imitate`.
    pub observer: ResponseObserver,
    /// The route's changes to headers and trailers, once the route is known.
    pub edits: OnceCell<Arc<RouteEdits>>,
    /// The access log entry of the tunnel that the response opens. Empty if it opens none.
    pub tunnel: OnceCell<Rc<TunnelEntry>>,
    leases: Cell<Option<LeaseGuard>>,
    metrics: Rc<ListenerMetrics>,
    response: ResponseHandle,
}

/// A response body that writes the access log entry when it ends, for any reason.
pub struct LoggedBody {
    inner: Body,
    sent: u64,
    progress: BodyProgress,
    method: Method,
    status: u16,
    /// The incomplete access log entry. Empty if there is no access log.
    entry: Vec<u8>,
    state: Rc<RequestState>,
}

/// The progress of a response body.
#[derive(Clone, Copy)]
enum BodyProgress {
    Going,
    Ended,
    Cut(AbortReason),
}

// === impl RequestState ===

impl RequestState {
    /// Creates the state of a request that has just arrived.
    pub fn new(
        core: Rc<CoreState>,
        metrics: Rc<ListenerMetrics>,
        response: ResponseHandle,
    ) -> Rc<Self> {
        Rc::new(Self {
            began: core.instant(),
            snapshot: core.snapshot(),
            core,
            meter: BodyMeter::default(),
            is_countable: Cell::new(false),
            is_disconnected: Cell::new(false),
            observer: ResponseObserver::default(),
            edits: OnceCell::new(),
            tunnel: OnceCell::new(),
            leases: Cell::new(None),
            metrics,
            response,
        })
    }

    /// Keeps leases until the response ends or the client disconnects.
    pub fn hold_leases(&self, leases: Option<LeaseGuard>) {
        if leases.is_some() {
            self.leases.set(leases);
        }
    }

    /// Releases the leases now.
    pub fn release_leases(&self) {
        drop(self.leases.take());
    }

    /// Transfers the leases to a tunnel, which outlives the response.
    pub fn take_leases(&self) -> Option<LeaseGuard> {
        self.leases.take()
    }

    /// Applies the route's changes to a frame of the request body.
    pub fn to_origin(&self, next: NextFrame) -> NextFrame {
        self.edited(next, |edits| &edits.request)
    }

    /// Applies the route's changes to a frame of the response body.
    fn to_client(&self, next: NextFrame) -> NextFrame {
        self.edited(next, |edits| &edits.response)
    }

    fn edited(&self, next: NextFrame, of: impl Fn(&RouteEdits) -> &HeaderChanges) -> NextFrame {
        let Some(Ok(frame)) = next else { return next };
        if frame.is_data() {
            return Some(Ok(frame));
        }
        match (self.edits.get(), frame.into_trailers()) {
            (Some(edits), Ok(mut trailers)) => {
                of(edits).strip(&mut trailers);
                let any = !trailers.is_empty();
                any.then(|| Ok(Frame::trailers(trailers)))
            }
            (None, Ok(trailers)) => Some(Ok(Frame::trailers(trailers))),
            (_, Err(frame)) => Some(Ok(frame)),
        }
    }

    /// Refuses a request without rule evaluation and closes its connection. `why` is for the access log.
    pub fn refuse(
        self: &Rc<Self>,
        info: &RequestInfo<'_>,
        connection: &ClientConnection,
        (fault, why): (GatewayError, &'static str),
    ) -> Response<LoggedBody> {
        self.core.activity.count(ActionClass::Own, None);
        let handled = HandledResponse::of_fault(fault, info).closing(true, info);
        let entry = match &self.snapshot.access {
            Some(access) => {
                let ended = (fault.status().as_u16(), why);
                access_entry::of_refused(access, &self.snapshot, info, connection, ended)
            }
            None => Vec::new(),
        };
        self.log((info.method.clone(), info.id), entry, handled)
    }

    /// Wraps a response so that its end is logged with `entry`, and adds the id of the request if clients get it.
    pub fn log(
        self: &Rc<Self>,
        (method, id): (Method, &str),
        entry: Vec<u8>,
        mut handled: HandledResponse,
    ) -> Response<LoggedBody> {
        if let Some(name) = &self.snapshot.settings.logged.request_id_header
            && let Ok(id) = HeaderValue::from_str(id)
        {
            handled.response.headers_mut().insert(name.clone(), id);
        }
        let status = handled.response.status().as_u16();
        handled.response.map(|inner| LoggedBody {
            inner,
            sent: 0,
            progress: BodyProgress::Going,
            method,
            status,
            entry,
            state: self.clone(),
        })
    }

    /// Logs a request during which the gateway panicked, with the data at hand.
    pub fn log_panic(&self, facts: &RequestFacts<'_>) {
        let status = http::StatusCode::INTERNAL_SERVER_ERROR.as_u16();
        let duration = self.core.instant() - self.began;
        self.metrics.request(facts.head.method, status, duration);
        self.core.activity.count(ActionClass::Own, None);
        if let Some(access) = &self.snapshot.access {
            let mut entry = access_entry::of_panic(access, &self.snapshot, facts, status);
            let closing = AccessEnd {
                duration,
                ..AccessEnd::default()
            };
            access.finish(&mut entry, &closing);
        }
    }
}

// === impl LoggedBody ===

impl LoggedBody {
    /// Returns what cut the response short. `None` if it is complete. Called when the body is dropped.
    fn cut(&self) -> Option<AbortReason> {
        let end = self.state.response.end();
        match self.progress {
            BodyProgress::Cut(cut) => Some(cut),
            BodyProgress::Ended if !end.unsent => None,
            BodyProgress::Going if !end.unsent && http_body::Body::is_end_stream(&self.inner) => {
                None
            }
            _ => self.dropped(end),
        }
    }

    /// Why the response body was dropped before its end. `None` if the response has no body (HEAD,
    /// 204, 304).
    fn dropped(&self, end: ResponseEnd) -> Option<AbortReason> {
        let bodiless = self.method == Method::HEAD || matches!(self.status, 204 | 304);
        let cut = match end {
            _ if std::thread::panicking() => AbortReason::Panic,
            _ if self.state.core.cut.get() => AbortReason::Drain,
            ResponseEnd { slow: true, .. } => AbortReason::Slow,
            _ => AbortReason::Client,
        };
        (!bodiless).then_some(cut)
    }

    /// Returns why reading the body failed. Logs it if the origin server caused it.
    fn failed(&self, error: &BodyError) -> AbortReason {
        match error.downcast_ref::<upstream::UpstreamError>() {
            Some(error) if error.is_bad_request() => return AbortReason::RequestBody,
            Some(error) => self.state.core.log_truncated_response(error),
            None => {}
        }
        AbortReason::Upstream
    }

    fn write_entry(&mut self, cut: Option<AbortReason>) {
        let state = &*self.state;
        let duration = state.core.instant() - state.began;
        state.metrics.request(&self.method, self.status, duration);
        let process = &state.core.live.process.metrics;
        process.bytes_in.add(state.meter.bytes.get());
        process.bytes_out.add(self.sent);
        if let Some(cut) = cut {
            process.count_cut(cut);
        }
        let Some(access) = &state.snapshot.access else {
            return;
        };
        if let Some(tunnel) = state.tunnel.get() {
            return tunnel.keep(access, std::mem::take(&mut self.entry));
        }
        let closing = AccessEnd {
            bytes_in: state.meter.bytes.get(),
            bytes_out: self.sent,
            duration,
            cut,
            ended_by: None,
        };
        access.finish(&mut self.entry, &closing);
    }
}

impl Drop for LoggedBody {
    fn drop(&mut self) {
        self.state.release_leases();
        let cut = self.cut();
        self.write_entry(cut);
    }
}

impl http_body::Body for LoggedBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let polled = Pin::new(&mut self.inner).poll_frame(cx);
        let polled = polled.map(|next| self.state.to_client(next));
        match &polled {
            Poll::Ready(Some(Ok(frame))) => {
                self.sent += frame.data_ref().map_or(0, |data| data.len() as u64);
            }
            Poll::Ready(Some(Err(error))) => self.progress = BodyProgress::Cut(self.failed(error)),
            Poll::Ready(None) => self.progress = BodyProgress::Ended,
            Poll::Pending => {}
        }
        let state = &*self.state;
        let clock = &state.core.live.process.clock;
        state.observer.polled(&polled, &self.inner, clock);
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
