//! HTTP/2 to an origin server: each connection of a core carries many concurrent requests.
//!
//! `connection` pools the connections to one server, `upload` sends a request, `exchange` is one request
//! with its response. As in HTTP/1, the future that waits for a response drives both directions of its
//! stream; only the frames of a connection have a task. Nothing here selects a server. A request that
//! the origin server refused unprocessed is sent again over another connection.

pub(super) mod connection;
pub(super) mod exchange;
pub(super) mod upload;

use std::rc::Rc;
use std::sync::Arc;

use self::connection::{H2Pool, StreamSlot};
use self::exchange::H2Exchange;
use self::upload::H2Upload;
use super::connection::{OpenedConnection, connect};
use super::error::{UpstreamError, UpstreamErrorKind};
use super::http1::exchange::H1Lease;
use super::http1::response_head::ExpectedResponse;
use super::pool::{Pool, PreparedRequest, exchange, pool_key};
use super::retry::{Attempt, FailedAttempt};
use super::server::ServerInFlight;
use super::{Upstream, UpstreamProtocol, UpstreamServer};

/// How often a request that one server refuses unprocessed is sent to it again. Origin servers that limit the
/// requests per connection refuse the streams above the limit with GOAWAY, so a shared connection may refuse a
/// request several times.
const RESENDS: usize = 5;

/// A connection for a request.
enum Found {
    /// A stream of a connection, and whether the connection is new.
    Http2(StreamSlot, bool),
    /// An idle HTTP/1.1 connection, if it is still usable.
    Idle(ServerInFlight),
    /// A new HTTP/1.1 connection.
    Http1(H1Lease),
}

// === impl Pool ===

impl Pool {
    /// Sends a request to a server that may speak HTTP/2.
    pub(super) async fn multiplex<'a>(
        &self,
        upstream: &Upstream,
        in_flight: ServerInFlight,
        expected: ExpectedResponse,
        request: PreparedRequest<'a>,
    ) -> Attempt<'a> {
        match self.find(upstream, in_flight).await {
            Err(error) => Err(FailedAttempt::new(error, Some(request))),
            Ok(Found::Http2(slot, is_new)) => {
                let upload = request.into_http2(upstream).map_err(FailedAttempt::lost)?;
                self.share(upstream, expected, upload, (slot, is_new)).await
            }
            Ok(Found::Http1(lease)) => {
                let upload = request.into_http1().map_err(FailedAttempt::lost)?;
                exchange(lease, expected, upload).await
            }
            Ok(Found::Idle(in_flight)) => {
                let upload = request.into_http1().map_err(FailedAttempt::lost)?;
                self.attempt_http1(upstream, in_flight, expected, upload)
                    .await
            }
        }
    }

    /// Sends a request over a shared connection. Sends it over another one if the origin server refuses it
    /// unprocessed, or (once) closes a reused connection. The last connection is a new one, on which the request
    /// is the first: a server that processes any request processes this one.
    async fn share<'a>(
        &self,
        upstream: &Upstream,
        expected: ExpectedResponse,
        mut upload: Box<H2Upload>,
        (mut slot, mut is_new): (StreamSlot, bool),
    ) -> Attempt<'a> {
        let mut may_close = true;
        for resend in 1..=RESENDS {
            let server = Arc::clone(slot.server());
            let mut failed = match self.send_over(expected, upload, slot).await {
                Ok(answer) => return Ok(answer),
                Err(failed) => failed,
            };
            failed.was_idle = !is_new;
            upload = match failed.take_unread(may_close) {
                Some(PreparedRequest::Http2(upload)) => upload,
                _ => return Err(failed),
            };
            may_close &= !failed.is(&[UpstreamErrorKind::Closed]);
            let in_flight = ServerInFlight::begin(&server);
            let found = if resend == RESENDS {
                self.open(upstream, in_flight).await
            } else {
                self.find(upstream, in_flight).await
            };
            (slot, is_new) = match found {
                Ok(Found::Http2(slot, is_new)) => (slot, is_new),
                Ok(_) => return Err(failed),
                Err(error) => {
                    let request = PreparedRequest::Http2(upload);
                    return Err(FailedAttempt::new(error, Some(request)));
                }
            };
        }
        self.send_over(expected, upload, slot).await
    }

    /// Sends a request over this connection.
    pub(super) async fn send_over<'a>(
        &self,
        expected: ExpectedResponse,
        upload: Box<H2Upload>,
        slot: StreamSlot,
    ) -> Attempt<'a> {
        match H2Exchange::send(upload, slot, expected, &self.shared.timer).await {
            Ok((answer, copy)) => {
                FailedAttempt::unless_busy(answer, copy.map(PreparedRequest::Http2))
            }
            Err((error, again)) => {
                Err(FailedAttempt::new(error, again.map(PreparedRequest::Http2)))
            }
        }
    }

    /// Finds or opens a connection to a server. Concurrent requests share as few new connections as possible.
    /// A request does not wait again after a connection could not be opened.
    async fn find(
        &self,
        upstream: &Upstream,
        in_flight: ServerInFlight,
    ) -> Result<Found, UpstreamError> {
        let server = in_flight.server();
        let pool = self.h2_pool(upstream, server);
        let mut waited = pool.http1.get();
        loop {
            if let Some(connection) = pool.take() {
                let slot = StreamSlot {
                    connection,
                    in_flight,
                };
                return Ok(Found::Http2(slot, false));
            }
            let may_idle = upstream.protocol == UpstreamProtocol::Auto;
            if may_idle && self.idle_connections(upstream, server).len() > 0 {
                return Ok(Found::Idle(in_flight));
            }
            if waited || !pool.expects_free_stream() {
                break;
            }
            waited = !pool.wait().await;
        }
        self.open(upstream, in_flight).await
    }

    /// Opens a connection to a server. The caller's request is the first on it.
    async fn open(
        &self,
        upstream: &Upstream,
        in_flight: ServerInFlight,
    ) -> Result<Found, UpstreamError> {
        let server = in_flight.server();
        let pool = self.h2_pool(upstream, server);
        let opening = pool.begin();
        let opened = connect(upstream, server, false).await;
        pool.http1
            .set(matches!(opened, Ok(OpenedConnection::Http1(_))));
        match opened.map_err(|error| error.at(server))? {
            OpenedConnection::Http1(connection) => Ok(Found::Http1(H1Lease {
                connection,
                idle: self.idle_connections(upstream, server),
                in_flight,
            })),
            OpenedConnection::Http2(connection) => {
                let connection = pool.put(connection);
                drop(opening);
                let slot = StreamSlot {
                    connection,
                    in_flight,
                };
                Ok(Found::Http2(slot, true))
            }
        }
    }

    fn h2_pool(&self, upstream: &Upstream, server: &UpstreamServer) -> Rc<H2Pool> {
        let mut pools = self.http2.borrow_mut();
        Rc::clone(pools.entry(pool_key(upstream, server)).or_default())
    }
}
