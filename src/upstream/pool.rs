//! One core's connections, and the way of a request over one of them.
//!
//! Nothing here is shared between threads and nothing waits for a connection to become free: a
//! new one is opened instead. What is done about a server that fails a request stands in `retry`.

mod multiplex;

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
use super::cargo::Cargo;
use super::connection::Opened;
use super::error::{Error, Kind};
use super::exchange::{Exchange, Lease};
use super::h2::{Seat, Trunks};
use super::inbox::Shared;
use super::retry::{Round, Setback};
use super::server::InFlight;
use super::shelf::{IDLE, Local, Shelf};
use super::upload::Upload;
use super::{Answer, Outbound, Server, Upstream};
use crate::clock::Clock;

/// One core's connections.
pub struct Pool {
    pub(super) clock: Clock,
    pub(super) local: Rc<Local>,
    pub(super) random: Random,
    pub(super) budget: Budget,
    shelves: RefCell<BTreeMap<Way, Rc<Shelf>>>,
    trunks: RefCell<BTreeMap<Way, Rc<Trunks>>>,
}

/// A server's id and that of the security on the way: a connection opened one way is not used for
/// another.
type Way = (u64, u64);

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
            trunks: RefCell::default(),
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
        let cargo = Cargo::new(upstream, outbound)?;
        self.budget.request();
        let chosen = chooser.first().map_err(Error::from)?;
        let trial = chosen.trial;
        match self.attempt(upstream, chosen.in_flight, asked, cargo).await {
            Ok(answer) => {
                answer.server.answered(trial);
                Ok(answer)
            }
            Err(setback) => {
                let round = Round::new(self, chooser, asked);
                Box::pin(round.after(setback, trial)).await
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
        self.trunks.borrow_mut().retain(|_, trunks| {
            trunks.prune(now, IDLE);
            Rc::strong_count(trunks) > 1 || trunks.len() > 0
        });
    }

    /// Closes the idle connections to servers that are gone; those in use close after use.
    pub fn retain(&self, live: &[Arc<Server>]) {
        let is_live = |id: u64| live.iter().any(|server| server.id() == id);
        self.shelves.borrow_mut().retain(|&(id, _), shelf| {
            let is_live = is_live(id);
            if !is_live {
                shelf.close();
            }
            is_live
        });
        self.trunks.borrow_mut().retain(|&(id, _), _| is_live(id));
    }

    /// How many connections stand idle.
    pub fn idle(&self) -> usize {
        let shelves = self.shelves.borrow();
        let idle: usize = shelves.values().map(|shelf| shelf.len()).sum();
        let trunks = self.trunks.borrow();
        idle + trunks.values().map(|trunks| trunks.idle()).sum::<usize>()
    }

    /// Sends a request to one server.
    pub(super) async fn attempt<'a>(
        &self,
        upstream: &Upstream,
        server: InFlight,
        asked: Asked,
        cargo: Cargo<'a>,
    ) -> Result<Answer, Box<Setback<'a>>> {
        match cargo {
            Cargo::Http1(upload) => self.attempt_http1(upstream, server, asked, upload).await,
            cargo => Box::pin(self.multiplex(upstream, server, asked, cargo)).await,
        }
    }

    /// Sends a request to one server over HTTP/1.1. On a connection that stood idle and was closed
    /// at that very moment it is sent again on a new one, if the origin cannot have acted on it.
    async fn attempt_http1<'a>(
        &self,
        upstream: &Upstream,
        server: InFlight,
        asked: Asked,
        upload: Box<Upload>,
    ) -> Result<Answer, Box<Setback<'a>>> {
        let shelf = self.shelf(upstream, server.server());
        let Some(connection) = shelf.take(!upload.is_repeatable()) else {
            let cargo = Cargo::Http1(upload);
            return Box::pin(self.afresh(upstream, shelf, server, asked, cargo)).await;
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
                    Some((server, cargo)) => {
                        let shelf = self.shelf(upstream, server.server());
                        Box::pin(self.afresh(upstream, shelf, server, asked, cargo)).await
                    }
                    None => Err(setback),
                }
            }
        }
    }

    /// Sends a request to one server on a new connection.
    pub(super) async fn afresh<'a>(
        &self,
        upstream: &Upstream,
        shelf: Rc<Shelf>,
        in_flight: InFlight,
        asked: Asked,
        cargo: Cargo<'a>,
    ) -> Result<Answer, Box<Setback<'a>>> {
        let http1 = matches!(cargo, Cargo::Http1(_));
        match connect(upstream, in_flight.server(), http1).await {
            Ok(Opened::Http1(connection)) => {
                let lease = Lease {
                    connection,
                    shelf,
                    in_flight,
                };
                let upload = cargo.into_http1().map_err(Setback::lost)?;
                exchange(upstream, lease, asked, upload).await
            }
            Ok(Opened::Http2(trunk)) => {
                let seat = Seat::new(Rc::new(trunk), in_flight);
                let upload = cargo.into_http2(upstream).map_err(Setback::lost)?;
                self.over(upstream, upload, seat).await
            }
            Err(error) => {
                let error = error.at(in_flight.server());
                Err(Setback::failed(error, Some(cargo)))
            }
        }
    }

    fn shelf(&self, upstream: &Upstream, server: &Server) -> Rc<Shelf> {
        let mut shelves = self.shelves.borrow_mut();
        let shelf = shelves
            .entry(way(upstream, server))
            .or_insert_with(|| Rc::new(Shelf::new(Rc::clone(&self.local))));
        shelf.bound(upstream.max_idle_per_server);
        Rc::clone(shelf)
    }
}

/// A new connection, in time; `http1`: for what only HTTP/1.1 carries.
async fn connect(upstream: &Upstream, server: &Server, http1: bool) -> Result<Opened, Error> {
    let waits = Cell::new(Kind::ConnectTimeout);
    let opening = Opened::to(server, upstream, http1, &waits);
    match tokio::time::timeout(upstream.connect_timeout, opening).await {
        Ok(opened) => opened,
        Err(_) => Err(waits.get().into()),
    }
}

fn way(upstream: &Upstream, server: &Server) -> Way {
    let secure = upstream.tls.as_ref();
    (server.id(), secure.map_or(0, |secure| secure.id()))
}

/// Sends a request over a connection and waits for the head of the answer.
async fn exchange<'a>(
    upstream: &Upstream,
    lease: Lease,
    asked: Asked,
    upload: Box<Upload>,
) -> Result<Answer, Box<Setback<'a>>> {
    let mut exchange = Exchange::new(lease, upload);
    match exchange.head(asked, upstream.response_timeout).await {
        Ok(head) if head.status == StatusCode::SERVICE_UNAVAILABLE => {
            let wanted = head.headers.get(RETRY_AFTER).cloned();
            let upload = exchange.copy();
            let answer = exchange.answer(head);
            match wanted {
                Some(wanted) => Err(Setback::refused(answer, wanted, upload.map(Cargo::Http1))),
                None => Ok(answer),
            }
        }
        Ok(head) => Ok(exchange.answer(head)),
        Err(error) => {
            let error = error.at(exchange.server());
            let upload = exchange.rewind(&error);
            Err(Setback::failed(error, upload.map(Cargo::Http1)))
        }
    }
}
