//! Requests to servers that may speak HTTP/2: many share a connection, and one that the origin
//! refused unread goes over another.

use std::rc::Rc;
use std::sync::Arc;

use http::StatusCode;
use http::header::RETRY_AFTER;

use super::super::answer::Asked;
use super::super::cargo::Cargo;
use super::super::connection::Opened;
use super::super::error::Error;
use super::super::exchange::Lease;
use super::super::h2::{Exchange, Seat, Trunks, Upload};
use super::super::retry::Setback;
use super::super::server::InFlight;
use super::super::{Answer, Protocol, Server, Upstream};
use super::{Pool, connect, exchange, way};

/// How often one request may be refused unread by one server.
const REFUSALS: usize = 3;

/// A way to a server.
enum Found {
    /// Over a connection that was there before, or not.
    Http2(Seat, bool),
    /// Over an idle connection, if it is still of use.
    Idle(InFlight),
    /// Over a new connection.
    Http1(Lease),
}

// === impl Pool ===

impl Pool {
    /// Sends a request to a server that may speak HTTP/2.
    pub(super) async fn multiplex<'a>(
        &self,
        upstream: &Upstream,
        in_flight: InFlight,
        asked: Asked,
        cargo: Cargo<'a>,
    ) -> Result<Answer, Box<Setback<'a>>> {
        match self.find(upstream, in_flight).await {
            Err(error) => Err(Setback::failed(error, Some(cargo))),
            Ok(Found::Http2(seat, is_new)) => {
                let upload = cargo.into_http2(upstream).map_err(Setback::lost)?;
                self.share(upstream, upload, seat, is_new).await
            }
            Ok(Found::Http1(lease)) => {
                let upload = cargo.into_http1().map_err(Setback::lost)?;
                exchange(upstream, lease, asked, upload).await
            }
            Ok(Found::Idle(in_flight)) => {
                let upload = cargo.into_http1().map_err(Setback::lost)?;
                self.attempt_http1(upstream, in_flight, asked, upload).await
            }
        }
    }

    /// Sends a request over a connection that others use too, or over another one if the origin
    /// refuses it unread, or (once) closes the connection just when it is used again.
    async fn share<'a>(
        &self,
        upstream: &Upstream,
        mut upload: Box<Upload>,
        mut seat: Seat,
        mut is_new: bool,
    ) -> Result<Answer, Box<Setback<'a>>> {
        let mut may_close = true;
        for _ in 0..REFUSALS {
            let server = Arc::clone(seat.server());
            let mut setback = match self.over(upstream, upload, seat).await {
                Ok(answer) => return Ok(answer),
                Err(setback) => setback,
            };
            setback.stood_idle = !is_new;
            upload = match setback.unread(may_close) {
                Some(Cargo::Http2(upload)) => upload,
                _ => return Err(setback),
            };
            may_close &= !setback.has_closed();
            (seat, is_new) = match self.find(upstream, InFlight::begin(&server)).await {
                Ok(Found::Http2(seat, is_new)) => (seat, is_new),
                Ok(_) => return Err(setback),
                Err(error) => return Err(Setback::failed(error, Some(Cargo::Http2(upload)))),
            };
        }
        self.over(upstream, upload, seat).await
    }

    /// Sends a request over this connection.
    pub(super) async fn over<'a>(
        &self,
        upstream: &Upstream,
        upload: Box<Upload>,
        seat: Seat,
    ) -> Result<Answer, Box<Setback<'a>>> {
        let (limit, alarm) = (upstream.response_timeout, &self.local.alarm);
        let sent = Exchange::send(upload, seat, limit, alarm).await;
        let (answer, upload) = sent.map_err(|(error, upload)| {
            let upload = upload.map(Cargo::Http2);
            Setback::failed(error, upload)
        })?;
        let wanted = match answer.response.status() {
            StatusCode::SERVICE_UNAVAILABLE => answer.response.headers().get(RETRY_AFTER),
            _ => None,
        };
        match wanted.cloned() {
            Some(wanted) => Err(Setback::refused(answer, wanted, upload.map(Cargo::Http2))),
            None => Ok(answer),
        }
    }

    /// A way to a server. Requests that come together wait for as few connections as can carry
    /// them, but not again after one that could not be opened.
    async fn find(&self, upstream: &Upstream, in_flight: InFlight) -> Result<Found, Error> {
        let server = in_flight.server();
        let trunks = self.trunks(upstream, server);
        let mut waited = trunks.is_http1();
        loop {
            if let Some(trunk) = trunks.take() {
                return Ok(Found::Http2(Seat::new(trunk, in_flight), false));
            }
            if upstream.protocol == Protocol::Auto && self.shelf(upstream, server).len() > 0 {
                return Ok(Found::Idle(in_flight));
            }
            if waited || !trunks.expects_room() {
                break;
            }
            waited = !trunks.wait().await;
        }
        let opening = trunks.begin();
        let opened = connect(upstream, server, false).await;
        trunks.note(matches!(opened, Ok(Opened::Http1(_))));
        match opened.map_err(|error| error.at(server))? {
            Opened::Http1(connection) => Ok(Found::Http1(Lease {
                connection,
                shelf: self.shelf(upstream, server),
                in_flight,
            })),
            Opened::Http2(trunk) => {
                let seat = Seat::new(trunks.put(trunk), in_flight);
                drop(opening);
                Ok(Found::Http2(seat, true))
            }
        }
    }

    fn trunks(&self, upstream: &Upstream, server: &Server) -> Rc<Trunks> {
        let mut all = self.trunks.borrow_mut();
        Rc::clone(all.entry(way(upstream, server)).or_default())
    }
}
