//! Servers, and what the whole process knows about each. Never opens a connection.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::server_health::{ServerHealth, TrialClaim, mark};
use super::{HostPort, KnownTls, ServerEndpoint};
use crate::clock::Timestamp;

/// One place where an upstream's work is done.
#[derive(Debug)]
pub struct UpstreamServer {
    /// Where it listens.
    pub endpoint: ServerEndpoint,
    pub(super) health: ServerHealth,
    pub(super) counts: Arc<AttemptCounts>,
    upstream: Arc<str>,
    label: Arc<str>,
    id: u64,
    in_flight: AtomicUsize,
}

/// Keeps servers the same across reloads, so that what is known about one outlives a
/// configuration. A server is forgotten when no configuration holds it any more.
#[derive(Debug, Default)]
pub struct ServerRegistry {
    servers: Mutex<HashMap<Place, Weak<UpstreamServer>>>,
    counts: Mutex<HashMap<Labelled, Weak<AttemptCounts>>>,
    names: Mutex<HashMap<HostPort, Arc<[SocketAddr]>>>,
    /// How the ways to them are secured.
    pub tls: KnownTls,
}

/// An upstream's name, a server's label in it and where it listens.
type Place = (Arc<str>, Arc<str>, ServerEndpoint);

/// An upstream's name and a server's label in it.
type Labelled = (Arc<str>, Arc<str>);

/// The attempts at one configured server by outcome. They go on while the addresses behind its name
/// change.
#[derive(Debug, Default)]
pub(super) struct AttemptCounts([AtomicU64; 5]);

/// How one attempt ended.
#[derive(Clone, Copy, Debug)]
pub(super) enum AttemptOutcome {
    /// A response came.
    Ok,
    /// No connection could be made.
    ConnectError,
    /// The connection broke, or what came was no response.
    Error,
    /// The server took too long.
    Timeout,
    /// The request was sent again after this server failed it. Counted in addition.
    Retried,
}

/// The numbers of a configured server at one moment. `Outcome` explains the counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs)]
pub struct ServerFigures {
    /// Requests in flight.
    pub in_flight: usize,
    /// Addresses that take requests, with nothing known against them.
    pub healthy: usize,
    pub ok: u64,
    pub connect_error: u64,
    pub error: u64,
    pub timeout: u64,
    pub retried: u64,
}

/// One request in flight; ends when dropped.
#[derive(Debug)]
pub(super) struct ServerInFlight(Arc<UpstreamServer>);

/// The one request that a server is tried with; given back when dropped before it decided.
#[derive(Debug)]
pub(super) struct TrialRequest {
    server: Arc<UpstreamServer>,
    claim: Option<TrialClaim>,
}

// === impl UpstreamServer ===

impl UpstreamServer {
    fn new((upstream, label, endpoint): Place, counts: Arc<AttemptCounts>) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self {
            endpoint,
            health: ServerHealth::default(),
            counts,
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
        let marks = self.health.marks();
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
    pub(super) fn responded(&self, trial: Option<TrialRequest>) {
        self.counts.add(AttemptOutcome::Ok);
        self.health.succeeded(TrialRequest::end(trial));
    }

    /// Different for every server that this process ever knew.
    pub fn id(&self) -> u64 {
        self.id
    }
}

// === impl ServerRegistry ===

impl ServerRegistry {
    /// The server of an upstream at a place, known to logs and metrics by `label`: the same one as
    /// long as it stays configured.
    pub(super) fn server(
        &self,
        upstream: &str,
        label: &str,
        endpoint: ServerEndpoint,
    ) -> Arc<UpstreamServer> {
        let counts = self.counts(upstream, label);
        let key: Place = (Arc::from(upstream), Arc::from(label), endpoint);
        shared(&self.servers, &key, || {
            UpstreamServer::new(key.clone(), counts)
        })
    }

    /// The counts of the server that is configured under `label`.
    pub(super) fn counts(&self, upstream: &str, label: &str) -> Arc<AttemptCounts> {
        let key = (Arc::from(upstream), Arc::from(label));
        shared(&self.counts, &key, AttemptCounts::default)
    }

    /// The addresses that a name had last; none if it was never found.
    pub fn addresses(&self, name: &HostPort) -> Arc<[SocketAddr]> {
        self.names.lock().get(name).cloned().unwrap_or_default()
    }

    /// Takes in the addresses of a name, at least one; whether they are others than before.
    pub fn found(&self, name: &HostPort, addresses: Vec<SocketAddr>) -> bool {
        let mut names = self.names.lock();
        if addresses.is_empty() || names.get(name).is_some_and(|old| **old == *addresses) {
            return false;
        }
        names.insert(name.clone(), addresses.into());
        true
    }

    /// Forgets the addresses of all names but these.
    pub fn keep_names(&self, live: &[&HostPort]) {
        self.names.lock().retain(|name, _| live.contains(&name));
    }
}

/// The value of a key if it is still in use, or a new one.
fn shared<K: Clone + Eq + Hash, V>(
    map: &Mutex<HashMap<K, Weak<V>>>,
    key: &K,
    new: impl FnOnce() -> V,
) -> Arc<V> {
    let mut map = map.lock();
    if let Some(value) = map.get(key).and_then(Weak::upgrade) {
        return value;
    }
    map.retain(|_, value| value.strong_count() > 0);
    let value = Arc::new(new());
    map.insert(key.clone(), Arc::downgrade(&value));
    value
}

// === impl TrialRequest ===

impl TrialRequest {
    /// Tries a server, if no other request does.
    pub(super) fn begin(server: &Arc<UpstreamServer>, now: Timestamp) -> Option<Self> {
        let claim = server.health.claim(now)?;
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

impl Drop for TrialRequest {
    fn drop(&mut self) {
        if let Some(claim) = self.claim.take() {
            self.server.health.release(claim);
        }
    }
}

// === impl ServerInFlight ===

impl ServerInFlight {
    pub(super) fn begin(server: &Arc<UpstreamServer>) -> Self {
        server.in_flight.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(server))
    }

    pub(super) fn server(&self) -> &Arc<UpstreamServer> {
        &self.0
    }
}

impl Drop for ServerInFlight {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

// === impl AttemptCounts ===

impl AttemptCounts {
    pub(super) fn add(&self, outcome: AttemptOutcome) {
        if let Some(count) = self.0.get(outcome as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The counts, with zeros for what they do not know.
    pub(super) fn figures(&self) -> ServerFigures {
        let read = self.0.each_ref().map(|count| count.load(Ordering::Relaxed));
        let [ok, connect_error, error, timeout, retried] = read;
        ServerFigures {
            ok,
            connect_error,
            error,
            timeout,
            retried,
            ..ServerFigures::default()
        }
    }
}
