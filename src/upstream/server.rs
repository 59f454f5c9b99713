//! Servers and what the whole process knows about each. Never opens a connection.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::standing::{Claim, Standing, mark};
use super::{Endpoint, Known, Name, Tally, tally};
use crate::clock::Timestamp;

/// One place where an upstream's work is done.
#[derive(Debug)]
pub struct Server {
    /// Where it listens.
    pub endpoint: Endpoint,
    pub(super) standing: Standing,
    pub(super) tally: Arc<Tally>,
    upstream: Arc<str>,
    label: Arc<str>,
    id: u64,
    in_flight: AtomicUsize,
}

/// Keeps servers the same across reloads, so that what is known about one outlives a
/// configuration. A server is forgotten when no configuration holds it any more.
#[derive(Debug, Default)]
pub struct Registry {
    servers: Mutex<HashMap<Place, Weak<Server>>>,
    tallies: Mutex<HashMap<Labelled, Weak<Tally>>>,
    names: Mutex<HashMap<Name, Arc<[SocketAddr]>>>,
    /// How the ways to them are secured.
    pub tls: Known,
}

/// An upstream's name, a server's label in it and where it listens.
type Place = (Arc<str>, Arc<str>, Endpoint);

/// An upstream's name and a server's label in it.
type Labelled = (Arc<str>, Arc<str>);

/// One request in flight; ends when dropped.
#[derive(Debug)]
pub(super) struct InFlight(Arc<Server>);

/// The one request that a server is tried with; given back when dropped before it decided.
#[derive(Debug)]
pub(super) struct Trial {
    server: Arc<Server>,
    claim: Option<Claim>,
}

// === impl Server ===

impl Server {
    fn new((upstream, label, endpoint): Place, tally: Arc<Tally>) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self {
            endpoint,
            standing: Standing::default(),
            tally,
            upstream,
            label,
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            in_flight: AtomicUsize::new(0),
        }
    }

    /// The name of its upstream.
    pub fn upstream(&self) -> &Arc<str> {
        &self.upstream
    }

    /// The name in logs and metrics: as it is configured.
    pub fn label(&self) -> &Arc<str> {
        &self.label
    }

    /// Requests in flight, of the whole process.
    pub fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// Why requests may go elsewhere, in one word; `None`: nothing is known against it.
    pub fn trouble(&self) -> Option<&'static str> {
        let marks = self.standing.marks();
        let kinds = [
            (mark::UNHEALTHY, "unhealthy"),
            (mark::OPEN, "circuit_open"),
            (mark::EJECTED, "failing"),
            (mark::BUSY, "busy"),
        ];
        let mut kinds = kinds.into_iter();
        let found = kinds.find(|(kind, _)| marks & kind != 0);
        found.map(|(_, word)| word)
    }

    /// It answered. `trial`: the request was to decide about it.
    pub(super) fn answered(&self, trial: Option<Trial>) {
        self.tally.count(tally::Result::Ok);
        self.standing.succeeded(Trial::end(trial));
    }

    /// Different for every server that this process ever knew.
    pub fn id(&self) -> u64 {
        self.id
    }
}

// === impl Registry ===

impl Registry {
    /// The server of an upstream at a place: the same one as long as it stays configured.
    pub fn server(&self, upstream: &str, endpoint: impl Into<Endpoint>) -> Arc<Server> {
        let endpoint = endpoint.into();
        self.labelled(upstream, &endpoint.to_string(), endpoint)
    }

    /// The same, known to logs and metrics by `label`.
    pub(super) fn labelled(&self, upstream: &str, label: &str, endpoint: Endpoint) -> Arc<Server> {
        let mut servers = self.servers.lock();
        let key: Place = (Arc::from(upstream), Arc::from(label), endpoint);
        if let Some(server) = servers.get(&key).and_then(Weak::upgrade) {
            return server;
        }
        servers.retain(|_, server| server.strong_count() > 0);
        let tally = self.tally(upstream, label);
        let server = Arc::new(Server::new(key.clone(), tally));
        servers.insert(key, Arc::downgrade(&server));
        server
    }

    /// The counts of what is configured under `label`.
    pub(super) fn tally(&self, upstream: &str, label: &str) -> Arc<Tally> {
        let mut tallies = self.tallies.lock();
        let key = (Arc::from(upstream), Arc::from(label));
        if let Some(tally) = tallies.get(&key).and_then(Weak::upgrade) {
            return tally;
        }
        tallies.retain(|_, tally| tally.strong_count() > 0);
        let tally = Arc::new(Tally::default());
        tallies.insert(key, Arc::downgrade(&tally));
        tally
    }

    /// The addresses that a name had last; none if it was never found.
    pub fn addresses(&self, name: &Name) -> Arc<[SocketAddr]> {
        self.names.lock().get(name).cloned().unwrap_or_default()
    }

    /// Takes in the addresses of a name, at least one; whether they are others than before.
    pub fn found(&self, name: &Name, addresses: Vec<SocketAddr>) -> bool {
        let mut names = self.names.lock();
        if addresses.is_empty() || names.get(name).is_some_and(|old| **old == *addresses) {
            return false;
        }
        names.insert(name.clone(), addresses.into());
        true
    }

    /// Forgets the addresses of all names but these.
    pub fn keep_names(&self, live: &[&Name]) {
        self.names.lock().retain(|name, _| live.contains(&name));
    }
}

// === impl Trial ===

impl Trial {
    /// Tries a server, if no other request does.
    pub(super) fn begin(server: &Arc<Server>, now: Timestamp) -> Option<Self> {
        let claim = server.standing.claim(now)?;
        Some(Self {
            server: Arc::clone(server),
            claim: Some(claim),
        })
    }

    /// The server is decided about; whether there was a trial at all.
    pub(super) fn end(trial: Option<Self>) -> bool {
        trial.is_some_and(|mut trial| trial.claim.take().is_some())
    }
}

impl Drop for Trial {
    fn drop(&mut self) {
        if let Some(claim) = self.claim.take() {
            self.server.standing.release(claim);
        }
    }
}

// === impl InFlight ===

impl InFlight {
    pub(super) fn begin(server: &Arc<Server>) -> Self {
        server.in_flight.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(server))
    }

    pub(super) fn server(&self) -> &Arc<Server> {
        &self.0
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}
