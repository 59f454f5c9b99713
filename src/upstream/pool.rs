//! One core's connections, and the way of a request over one of them.
//!
//! Nothing here is shared between threads and nothing waits for a connection to become free: a
//! new one is opened instead. A request is sent a second time only if the origin cannot have
//! acted on the first.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use http::{Request, Response, StatusCode, Version};

use super::balance::{Candidates, Random};
use super::download::{self, Lease};
use super::error::{Error, Kind};
use super::exchange::{self, Connection, Failure, Received, Switched};
use super::server::InFlight;
use super::shelf::Shelf;
use super::upload::{Meter, Upload};
use super::{Answer, Outbound, Server, Tunnel, Upstream, headers, response};
use crate::body::Body;
use crate::clock::{Clock, Timestamp};

/// One core's connections.
pub struct Pool {
    clock: Clock,
    now: Rc<Cell<Timestamp>>,
    random: Random,
    shelves: RefCell<BTreeMap<u64, Rc<Shelf>>>,
}

/// A request that waits for its answer, and what becomes of the connection afterwards.
struct Attempt {
    connection: Connection,
    shelf: Rc<Shelf>,
    in_flight: InFlight,
}

// === impl Pool ===

impl Pool {
    /// An empty pool, for the thread that calls.
    pub fn new(clock: Clock) -> Self {
        Self {
            now: Rc::new(Cell::new(clock.now())),
            clock,
            random: Random::new(),
            shelves: RefCell::default(),
        }
    }

    /// Sends a request to one of an upstream's servers and waits for the head of the answer.
    pub async fn forward(&self, upstream: &Upstream, outbound: Outbound) -> Result<Answer, Error> {
        let upgrade = outbound.upgrade;
        let mut request = Upload::frame(outbound.request)?;
        let mut candidates = Candidates::of(upstream, &self.random);
        let server = candidates.next().ok_or(Kind::NoServer)?;

        let shelf = self.shelf(upstream, server);
        if shelf.len() > 0 && !Upload::is_repeatable(&request) {
            // It can be sent once only: let the tasks of the connections hear of a close first.
            tokio::task::yield_now().await;
        }
        if let Some(connection) = shelf.take() {
            let copy = Upload::copy(&request);
            let attempt = Attempt::new(connection, shelf, server);
            match attempt.send(upstream, request, upgrade).await {
                Ok(answer) => return Ok(answer),
                Err(failure) => request = failure.retry(copy).map_err(|e| e.at(server))?,
            }
        }
        let attempt = self.open(upstream, server, candidates).await?;
        let server = Arc::clone(attempt.in_flight.server());
        let answer = attempt.send(upstream, request, upgrade).await;
        answer.map_err(|failure| failure.error.at(&server))
    }

    /// Closes what is closed already or stood idle for too long. To be called every few seconds.
    pub fn prune(&self) {
        let now = self.clock.now();
        self.now.set(now);
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
            .or_insert_with(|| Rc::new(Shelf::new(Rc::clone(&self.now))));
        shelf.bound(upstream.max_idle_per_server);
        Rc::clone(shelf)
    }

    /// A new connection to `server`, or to the next that can be reached: nothing was sent yet.
    async fn open<'a>(
        &self,
        upstream: &'a Upstream,
        mut server: &'a Arc<Server>,
        mut others: Candidates<'a>,
    ) -> Result<Attempt, Error> {
        loop {
            let in_flight = InFlight::begin(server);
            let opening = Connection::open(server.address);
            let opened = match tokio::time::timeout(upstream.connect_timeout, opening).await {
                Ok(opened) => opened,
                Err(_) => Err(Kind::ConnectTimeout.into()),
            };
            match (opened, others.next()) {
                (Ok(connection), _) => {
                    let shelf = self.shelf(upstream, server);
                    return Ok(Attempt {
                        connection,
                        shelf,
                        in_flight,
                    });
                }
                (Err(_), Some(other)) => server = other,
                (Err(error), None) => return Err(error.at(server)),
            }
        }
    }
}

// === impl Attempt ===

impl Attempt {
    fn new(connection: Connection, shelf: Rc<Shelf>, server: &Arc<Server>) -> Self {
        Self {
            connection,
            shelf,
            in_flight: InFlight::begin(server),
        }
    }

    async fn send(
        mut self,
        upstream: &Upstream,
        request: Request<Upload>,
        upgrade: bool,
    ) -> Result<Answer, Failure> {
        let meter = request.body().meter();
        let exchange = self.exchange(request, upgrade);
        let answered = within(upstream.response_timeout, meter.as_deref(), exchange).await;
        let (response, switched) = answered.ok_or(Error::from(Kind::ResponseTimeout))??;
        let server = Arc::clone(self.in_flight.server());
        let (response, upgraded) = match switched {
            Some((stream, early)) => (
                finished(response).map(|_| Body::Empty),
                Some(Tunnel::new(stream, early, self.in_flight)),
            ),
            None => (self.receive(response, meter), None),
        };
        Ok(Answer {
            response,
            server,
            upgraded,
        })
    }

    async fn exchange(
        &mut self,
        request: Request<Upload>,
        upgrade: bool,
    ) -> Result<(Response<Received>, Option<Switched>), Failure> {
        let mut response = self.connection.send(request).await?;
        response::check(response.status(), response.headers(), upgrade)?;
        let switched = match response.status() {
            StatusCode::SWITCHING_PROTOCOLS => Some(exchange::upgraded(&mut response).await?),
            _ => None,
        };
        Ok((response, switched))
    }

    fn receive(self, response: Response<Received>, meter: Option<Rc<Meter>>) -> Response<Body> {
        let lease = Lease {
            connection: self.connection,
            shelf: self.shelf,
            meter,
            _in_flight: self.in_flight,
            // The codec would answer an HTTP/1.0 origin in kind, where no body can be chunked.
            reusable: response.version() == Version::HTTP_11,
        };
        finished(response).map(|received| download::body(received, lease))
    }
}

// === impl Failure ===

impl Failure {
    /// What to send on a new connection after an idle one failed: the request itself if nothing
    /// of it was sent, its copy if the origin closed before it answered.
    fn retry(self, copy: Option<Request<Upload>>) -> Result<Request<Upload>, Error> {
        match (self.unsent, copy) {
            (Some(unsent), _) => Ok(*unsent),
            (None, Some(copy)) if self.error.is_closed() => Ok(copy),
            _ => Err(self.error),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self {
            error,
            unsent: None,
        }
    }
}

/// The head as a client may see it.
fn finished<B>(mut response: Response<B>) -> Response<B> {
    let status = response.status();
    headers::inbound_headers(response.headers_mut(), status);
    *response.version_mut() = Version::HTTP_11;
    response
}

/// What `answer` gives, or `None` if it takes longer than `limit` and the request's body is no
/// excuse.
async fn within<F: Future>(limit: Duration, meter: Option<&Meter>, answer: F) -> Option<F::Output> {
    let limit = limit.max(Duration::from_millis(1));
    let mut answer = pin!(answer);
    let mut timer = pin!(tokio::time::sleep(limit));
    let mut seen = 0;
    poll_fn(|cx| {
        if let Poll::Ready(answer) = answer.as_mut().poll(cx) {
            return Poll::Ready(Some(answer));
        }
        while timer.as_mut().poll(cx).is_ready() {
            if !meter.is_some_and(|meter| meter.excuses(&mut seen)) {
                return Poll::Ready(None);
            }
            let next = timer.deadline() + limit;
            timer.as_mut().reset(next);
        }
        Poll::Pending
    })
    .await
}
