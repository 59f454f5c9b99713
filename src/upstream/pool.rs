//! One core's connections, and the way of a request over one of them.
//!
//! Nothing here is shared between threads and nothing waits for a connection to become free: a
//! new one is opened instead. A request is sent a second time only if the origin cannot have
//! acted on the first.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use super::alarm::Alarm;
use super::answer::Asked;
use super::balance::{Candidates, Random};
use super::connection::Connection;
use super::error::{Error, Kind};
use super::exchange::{Exchange, Lease};
use super::inbox::Shared;
use super::server::InFlight;
use super::shelf::{Local, Shelf};
use super::upload::Upload;
use super::{Answer, Outbound, Server, Upstream};
use crate::clock::Clock;

/// One core's connections.
pub struct Pool {
    clock: Clock,
    local: Rc<Local>,
    random: Random,
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
            shelves: RefCell::default(),
        }
    }

    /// Sends a request to one of an upstream's servers and waits for the head of the answer.
    pub async fn forward(
        &self,
        upstream: &Upstream,
        outbound: Outbound<'_>,
    ) -> Result<Answer, Error> {
        let asked = Asked::new(outbound.method, outbound.upgrade);
        // On the heap, for whoever polls a request moves its future about.
        let upload = Box::new(Upload::new(outbound)?);
        let mut candidates = Candidates::of(upstream, &self.random);
        let server = candidates.next().ok_or(Kind::NoServer)?;
        let idle = self.idle_to(upstream, server, !upload.is_repeatable());
        let mut is_new = idle.is_none();
        let lease = match idle {
            Some(lease) => lease,
            None => Box::pin(self.open(upstream, server, candidates.clone())).await?,
        };
        let mut exchange = Exchange::new(lease, upload);
        loop {
            let error = match exchange.head(asked, upstream.response_timeout).await {
                Ok(head) => return Ok(exchange.answer(head)),
                Err(error) => error.at(exchange.server()),
            };
            if std::mem::replace(&mut is_new, true) {
                return Err(error);
            }
            exchange.rewind(error)?;
            exchange.lease = Box::pin(self.open(upstream, server, candidates.clone())).await?;
        }
    }

    /// Closes what is closed already or stood idle for too long. To be called every few seconds.
    pub fn prune(&self) {
        let now = self.clock.now();
        self.local.now.set(now);
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

    fn shelf(&self, upstream: &Upstream, server: &Server) -> Rc<Shelf> {
        let mut shelves = self.shelves.borrow_mut();
        let shelf = shelves
            .entry(server.id())
            .or_insert_with(|| Rc::new(Shelf::new(Rc::clone(&self.local))));
        shelf.bound(upstream.max_idle_per_server);
        Rc::clone(shelf)
    }

    /// A connection that stands idle, if one can be used.
    fn idle_to(&self, upstream: &Upstream, server: &Arc<Server>, once: bool) -> Option<Lease> {
        let shelf = self.shelf(upstream, server);
        Some(Lease {
            connection: shelf.take(once)?,
            shelf,
            in_flight: InFlight::begin(server),
        })
    }

    /// A new connection to `server`, or to the next that can be reached: nothing was sent yet.
    async fn open<'a>(
        &self,
        upstream: &'a Upstream,
        mut server: &'a Arc<Server>,
        mut others: Candidates<'a>,
    ) -> Result<Lease, Error> {
        loop {
            let in_flight = InFlight::begin(server);
            let opening = Connection::open(&server.endpoint);
            let opened = match tokio::time::timeout(upstream.connect_timeout, opening).await {
                Ok(opened) => opened,
                Err(_) => Err(Kind::ConnectTimeout.into()),
            };
            match (opened, others.next()) {
                (Ok(connection), _) => {
                    return Ok(Lease {
                        connection,
                        shelf: self.shelf(upstream, server),
                        in_flight,
                    });
                }
                (Err(_), Some(other)) => server = other,
                (Err(error), None) => return Err(error.at(server)),
            }
        }
    }
}
