//! The upstream connections of one core, and how a request uses them.
//!
//! Nothing is shared between threads. A request never waits for a connection to become free: it opens a
//! new one. `retry` decides whether a failed request is sent again.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use http::StatusCode;

use super::balance::{BalanceState, SmallRng};
use super::coarse_timer::CoarseTimer;
use super::connection::{OpenedConnection, connect};
use super::error::{UpstreamError, UpstreamErrorKind};
use super::http1::connection::{IDLE, IdleConnections, Shared};
use super::http1::exchange::{H1Exchange, H1Lease};
use super::http1::response_head::ExpectedResponse;
use super::http1::upload::H1Upload;
use super::http2::connection::{H2Pool, StreamSlot};
use super::http2::upload::H2Upload;
use super::retry::{Attempt, FailedAttempt, RetryBudget, RetryLoop};
use super::server::ServerInFlight;
use super::{OutboundRequest, Upstream, UpstreamProtocol, UpstreamResponse, UpstreamServer};
use crate::clock::{Clock, Timestamp};

/// The upstream connections of one core.
pub struct Pool {
    pub(super) clock: Clock,
    pub(super) shared: Rc<CoreShared>,
    random: SmallRng,
    pub(super) budget: RetryBudget,
    pub(super) http1: RefCell<BTreeMap<PoolKey, Rc<IdleConnections>>>,
    pub(super) http2: RefCell<BTreeMap<PoolKey, Rc<H2Pool>>>,
}

/// The state that all exchanges of a core share.
pub(super) struct CoreShared {
    /// The time of the last pruning. It is precise enough for the age of idle connections and saves a clock
    /// read per request.
    pub(super) now: Cell<Timestamp>,
    pub(super) timer: Rc<CoarseTimer>,
    pub(super) buffer: Shared,
}

/// The id of a server and of its TLS settings, so that a connection is only reused with equal settings.
type PoolKey = (u64, u64);

/// A request in the form for its connection's HTTP version.
pub(super) enum PreparedRequest<'a> {
    Http1(Box<H1Upload>),
    Http2(Box<H2Upload>),
    /// The origin server selects the version, so both forms are possible.
    Either(Box<OutboundRequest<'a>>),
}

// === impl Pool ===

impl Pool {
    /// Creates an empty pool for the calling thread.
    pub fn new(clock: Clock) -> Self {
        Self {
            shared: Rc::new(CoreShared {
                now: Cell::new(clock.now()),
                timer: Rc::default(),
                buffer: Shared::default(),
            }),
            clock,
            random: SmallRng::new(),
            budget: RetryBudget::new(),
            http1: RefCell::default(),
            http2: RefCell::default(),
        }
    }

    /// Sends a request to one of an upstream's servers and waits for the response head. Retries on another
    /// server if the first one fails and a retry is safe.
    pub async fn forward(
        &self,
        upstream: &Upstream,
        mut outbound: OutboundRequest<'_>,
    ) -> Result<UpstreamResponse, UpstreamError> {
        let mut expected = ExpectedResponse::new(outbound.method, outbound.upgrade, upstream);
        expected.timeout = outbound.response_timeout.unwrap_or(expected.timeout);
        let chooser = BalanceState {
            upstream,
            key: outbound.key,
            random: &self.random,
            clock: &self.clock,
        };
        self.budget.add_request();
        let chosen = chooser.first().map_err(UpstreamError::no_server)?;
        outbound.host = upstream.host_for(chosen.in_flight.server());
        let request = PreparedRequest::new(upstream, outbound)?;
        let trial = chosen.trial;
        let attempt = self.attempt(upstream, chosen.in_flight, expected, request);
        match attempt.await {
            Ok(answer) => {
                answer.server.responded(trial);
                Ok(answer)
            }
            Err(failed) => {
                let retries = RetryLoop::new(self, chooser, expected);
                Box::pin(retries.run(failed, trial)).await
            }
        }
    }

    /// Closes connections that the origin server closed or that exceeded the idle timeout. Must be called every
    /// few seconds.
    pub fn prune(&self) {
        let now = self.clock.now();
        self.shared.now.set(now);
        self.budget.refill();
        self.http1.borrow_mut().retain(|_, idle| {
            idle.prune(now);
            Rc::strong_count(idle) > 1 || idle.len() > 0
        });
        self.http2
            .borrow_mut()
            .retain(|_, pool| pool.prune(now, IDLE) || Rc::strong_count(pool) > 1);
    }

    /// Closes the idle connections to servers not in `live`. Connections in use close after their request.
    pub fn retain(&self, live: &[Arc<UpstreamServer>]) {
        let is_live = |id: u64| live.iter().any(|server| server.id() == id);
        self.http1.borrow_mut().retain(|&(id, _), idle| {
            let is_live = is_live(id);
            if !is_live {
                idle.close();
            }
            is_live
        });
        self.http2.borrow_mut().retain(|&(id, _), _| is_live(id));
    }

    /// Sends a request to one server.
    pub(super) async fn attempt<'a>(
        &self,
        upstream: &Upstream,
        server: ServerInFlight,
        expected: ExpectedResponse,
        request: PreparedRequest<'a>,
    ) -> Attempt<'a> {
        match request {
            PreparedRequest::Http1(upload) => {
                self.attempt_http1(upstream, server, expected, upload).await
            }
            request => Box::pin(self.multiplex(upstream, server, expected, request)).await,
        }
    }

    /// Sends a request to one server over HTTP/1.1. If an idle connection closes while the request is sent,
    /// the request is sent again on a new one, unless the origin server may have processed it.
    pub(super) async fn attempt_http1<'a>(
        &self,
        upstream: &Upstream,
        in_flight: ServerInFlight,
        expected: ExpectedResponse,
        upload: Box<H1Upload>,
    ) -> Attempt<'a> {
        let idle = self.idle_connections(upstream, in_flight.server());
        let Some(connection) = idle.take(!upload.is_repeatable()) else {
            let request = PreparedRequest::Http1(upload);
            return Box::pin(self.open_and_send(upstream, idle, in_flight, expected, request))
                .await;
        };
        let lease = H1Lease {
            connection,
            idle,
            in_flight,
        };
        let mut failed = match exchange(lease, expected, upload).await {
            Ok(answer) => return Ok(answer),
            Err(failed) => failed,
        };
        failed.was_idle = true;
        match failed.take_closed() {
            Some((in_flight, request)) => {
                let idle = self.idle_connections(upstream, in_flight.server());
                Box::pin(self.open_and_send(upstream, idle, in_flight, expected, request)).await
            }
            None => Err(failed),
        }
    }

    /// Sends a request to one server on a new connection.
    pub(super) async fn open_and_send<'a>(
        &self,
        upstream: &Upstream,
        idle: Rc<IdleConnections>,
        in_flight: ServerInFlight,
        expected: ExpectedResponse,
        request: PreparedRequest<'a>,
    ) -> Attempt<'a> {
        let http1 = matches!(request, PreparedRequest::Http1(_));
        match connect(upstream, in_flight.server(), http1).await {
            Ok(OpenedConnection::Http1(connection)) => {
                let lease = H1Lease {
                    connection,
                    idle,
                    in_flight,
                };
                let upload = request.into_http1().map_err(FailedAttempt::lost)?;
                exchange(lease, expected, upload).await
            }
            Ok(OpenedConnection::Http2(connection)) => {
                let slot = StreamSlot {
                    connection: Rc::new(connection),
                    in_flight,
                };
                let upload = request.into_http2(upstream).map_err(FailedAttempt::lost)?;
                self.send_over(expected, upload, slot).await
            }
            Err(error) => {
                let error = error.at(in_flight.server());
                Err(FailedAttempt::new(error, Some(request)))
            }
        }
    }

    pub(super) fn idle_connections(
        &self,
        upstream: &Upstream,
        server: &UpstreamServer,
    ) -> Rc<IdleConnections> {
        let mut http1 = self.http1.borrow_mut();
        let idle = http1
            .entry(pool_key(upstream, server))
            .or_insert_with(|| Rc::new(IdleConnections::new(Rc::clone(&self.shared))));
        idle.set_limit(upstream.max_idle_per_server);
        Rc::clone(idle)
    }
}

pub(super) fn pool_key(upstream: &Upstream, server: &UpstreamServer) -> PoolKey {
    let secure = upstream.tls.as_ref();
    (server.id(), secure.map_or(0, |secure| secure.id))
}

/// Sends a request over a connection and waits for the head of the response.
pub(super) async fn exchange<'a>(
    lease: H1Lease,
    expected: ExpectedResponse,
    upload: Box<H1Upload>,
) -> Attempt<'a> {
    let mut exchange = H1Exchange::new(lease, upload);
    match exchange.head(expected).await {
        Ok(head) if head.status == StatusCode::SERVICE_UNAVAILABLE => {
            let copy = exchange.upload.copy().map(PreparedRequest::Http1);
            FailedAttempt::unless_busy(exchange.into_response(head), copy)
        }
        Ok(head) => Ok(exchange.into_response(head)),
        Err(error) => {
            let error = error.at(exchange.server());
            let request = exchange.rewind(&error).map(PreparedRequest::Http1);
            Err(FailedAttempt::new(error, request))
        }
    }
}

// === impl PreparedRequest ===

impl<'a> PreparedRequest<'a> {
    /// Prepares a request. The upload is boxed, because the future of a request is moved often.
    pub(super) fn new(
        upstream: &Upstream,
        outbound: OutboundRequest<'a>,
    ) -> Result<Self, UpstreamError> {
        match upstream.protocol {
            // RFC 9113, section 8.6: HTTP/2 has no `Upgrade`.
            UpstreamProtocol::Http2 if outbound.upgrade => Err(UpstreamErrorKind::NoUpgrade.into()),
            UpstreamProtocol::Http2 => {
                H2Upload::new(outbound, upstream.tls.is_some()).map(Self::Http2)
            }
            UpstreamProtocol::Auto if !outbound.upgrade => Ok(Self::Either(Box::new(outbound))),
            _ => H1Upload::new(outbound).map(Self::Http1),
        }
    }

    /// Replaces the host `old`, which is the name of a server, by that of another server. A host that the route set
    /// stays.
    pub(super) fn replace_host(&mut self, old: &str, new: Arc<str>) {
        match self {
            Self::Http1(upload) => upload.replace_host(old, &new),
            Self::Http2(upload) => upload.replace_host(old, &new),
            Self::Either(outbound) => outbound.host = Some(new),
        }
    }

    /// Returns the request for an HTTP/1.1 connection.
    pub(super) fn into_http1(self) -> Result<Box<H1Upload>, UpstreamError> {
        match self {
            Self::Http1(upload) => Ok(upload),
            Self::Either(outbound) => H1Upload::new(*outbound),
            Self::Http2(_) => Err(UpstreamErrorKind::Handshake.into()),
        }
    }

    /// Returns the request for an HTTP/2 connection.
    pub(super) fn into_http2(self, upstream: &Upstream) -> Result<Box<H2Upload>, UpstreamError> {
        match self {
            Self::Http2(upload) => Ok(upload),
            Self::Either(outbound) => H2Upload::new(*outbound, upstream.tls.is_some()),
            Self::Http1(_) => Err(UpstreamErrorKind::Handshake.into()),
        }
    }
}
