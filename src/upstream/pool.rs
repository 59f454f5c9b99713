//! One core's connections, and the way of a request over one of them.
//!
//! Nothing here is shared between threads and nothing waits for a connection to become free: a
//! new one is opened instead. What is done about a server that fails a request stands in `retry`.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use http::StatusCode;
use http::header::RETRY_AFTER;

use super::alarm::Alarm;
use super::answer::Asked;
use super::balance::{Chooser, Random};
use super::budget::Budget;
use super::connection::Connection;
use super::error::{Error, Kind};
use super::exchange::{Exchange, Lease};
use super::inbox::Shared;
use super::retry::{Round, Setback};
use super::server::InFlight;
use super::shelf::{Local, Shelf};
use super::upload::Upload;
use super::{Answer, Outbound, Server, Upstream};
use crate::clock::Clock;

/// One core's connections.
pub struct Pool {
    pub(super) clock: Clock,
    pub(super) local: Rc<Local>,
    pub(super) random: Random,
    pub(super) budget: Budget,
    shelves: RefCell<BTreeMap<u64, Rc<Shelf>>>,
}

// === impl Pool ===

impl Pool {
    /// An empty pool, for the thread that calls.
    pub fn new(clock: Clock) -> Self {
        Self {
            local: Rc::new(Local {
                now: Cell::new(clock.now()),
                alarm: Rc::new(Alarm::default()),
                buffer: Shared::default(),
            }),
            clock,
            random: Random::new(),
            budget: Budget::new(),
            shelves: RefCell::default(),
        }
    }

    /// Sends a request to one of an upstream's servers, to another if that is safe and the first
    /// fails it, and waits for the head of the answer.
    pub async fn forward(
        &self,
        upstream: &Upstream,
        outbound: Outbound<'_>,
    ) -> Result<Answer, Error> {
        let asked = Asked::new(outbound.method, outbound.upgrade);
        let chooser = Chooser {
            upstream,
            key: outbound.key,
            random: &self.random,
            clock: &self.clock,
        };
        // On the heap, for whoever polls a request moves its future about.
        let upload = Box::new(Upload::new(outbound)?);
        self.budget.request();
        let chosen = chooser.first().map_err(Error::from)?;
        let tried = chosen.tried;
        match self
            .attempt(upstream, chosen.in_flight, asked, upload)
            .await
        {
            Ok(answer) => {
                answer.server.answered(tried);
                Ok(answer)
            }
            Err(setback) => {
                let round = Round::new(self, chooser, asked);
                Box::pin(round.after(setback, tried)).await
            }
        }
    }

    /// Closes what is closed already or stood idle for too long. To be called every few seconds.
    pub fn prune(&self) {
        let now = self.clock.now();
        self.local.now.set(now);
        self.budget.refill();
        self.shelves.borrow_mut().retain(|_, shelf| {
            shelf.prune(now);
            Rc::strong_count(shelf) > 1 || shelf.len() > 0
        });
    }

    /// Closes the idle connections to servers that are gone; those in use close after use.
    pub fn retain(&self, live: &[Arc<Server>]) {
        self.shelves.borrow_mut().retain(|&id, shelf| {
            let is_live = live.iter().any(|server| server.id() == id);
            if !is_live {
                shelf.close();
            }
            is_live
        });
    }

    /// How many connections stand idle.
    pub fn idle(&self) -> usize {
        let shelves = self.shelves.borrow();
        shelves.values().map(|shelf| shelf.len()).sum()
    }

    /// Sends a request to one server. On a connection that stood idle and was closed at that very
    /// moment it is sent again on a new one, if the origin cannot have acted on it.
    pub(super) async fn attempt(
        &self,
        upstream: &Upstream,
        server: InFlight,
        asked: Asked,
        upload: Box<Upload>,
    ) -> Result<Answer, Box<Setback>> {
        let shelf = self.shelf(upstream, server.server());
        let Some(connection) = shelf.take(!upload.is_repeatable()) else {
            return Box::pin(self.afresh(upstream, shelf, server, asked, upload)).await;
        };
        let lease = Lease {
            connection,
            shelf,
            in_flight: server,
        };
        match exchange(upstream, lease, asked, upload).await {
            Ok(answer) => Ok(answer),
            Err(mut setback) => {
                setback.stood_idle = true;
                match setback.again() {
                    Some((server, upload)) => {
                        let shelf = self.shelf(upstream, server.server());
                        Box::pin(self.afresh(upstream, shelf, server, asked, upload)).await
                    }
                    None => Err(setback),
                }
            }
        }
    }

    /// The same on a new connection.
    pub(super) async fn afresh(
        &self,
        upstream: &Upstream,
        shelf: Rc<Shelf>,
        in_flight: InFlight,
        asked: Asked,
        upload: Box<Upload>,
    ) -> Result<Answer, Box<Setback>> {
        let opening = Connection::open(&in_flight.server().endpoint);
        let opened = match tokio::time::timeout(upstream.connect_timeout, opening).await {
            Ok(opened) => opened,
            Err(_) => Err(Kind::ConnectTimeout.into()),
        };
        match opened {
            Ok(connection) => {
                let lease = Lease {
                    connection,
                    shelf,
                    in_flight,
                };
                exchange(upstream, lease, asked, upload).await
            }
            Err(error) => {
                let error = error.at(in_flight.server());
                Err(Setback::failed(error, Some(upload)))
            }
        }
    }

    fn shelf(&self, upstream: &Upstream, server: &Server) -> Rc<Shelf> {
        let mut shelves = self.shelves.borrow_mut();
        let shelf = shelves
            .entry(server.id())
            .or_insert_with(|| Rc::new(Shelf::new(Rc::clone(&self.local))));
        shelf.bound(upstream.max_idle_per_server);
        Rc::clone(shelf)
    }
}

/// Sends a request over a connection and waits for the head of the answer.
async fn exchange(
    upstream: &Upstream,
    lease: Lease,
    asked: Asked,
    upload: Box<Upload>,
) -> Result<Answer, Box<Setback>> {
    let mut exchange = Exchange::new(lease, upload);
    match exchange.head(asked, upstream.response_timeout).await {
        Ok(head) if head.status == StatusCode::SERVICE_UNAVAILABLE => {
            let wanted = head.headers.get(RETRY_AFTER).cloned();
            let upload = exchange.copy();
            let answer = exchange.answer(head);
            match wanted {
                Some(wanted) => Err(Setback::refused(answer, wanted, upload)),
                None => Ok(answer),
            }
        }
        Ok(head) => Ok(exchange.answer(head)),
        Err(error) => {
            let error = error.at(exchange.server());
            let upload = exchange.rewind(&error);
            Err(Setback::failed(error, upload))
        }
    }
}
