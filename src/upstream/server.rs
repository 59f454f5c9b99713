//! The servers of upstreams and their state, shared by all cores. Never opens a connection.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use http::StatusCode;
use parking_lot::Mutex;

use super::latency_counts::{LatencyCounts, LatencyFigures};
use super::server_health::{ServerHealth, TrialClaim, mark};
use super::server_status::HealthNote;
use super::{HostPort, KnownTls, ServerEndpoint};
use crate::clock::Timestamp;

/// One address of an upstream.
#[derive(Debug)]
pub struct UpstreamServer {
    /// The address that the server listens on.
    pub endpoint: ServerEndpoint,
    pub(super) health: ServerHealth,
    pub(super) counts: Arc<AttemptCounts>,
    upstream: Arc<str>,
    label: Arc<str>,
    id: u64,
    in_flight: AtomicUsize,
    pub(super) note: Mutex<HealthNote>,
}

/// Keeps servers across reloads, so that their health and counters survive a new configuration. A server
/// is dropped when no configuration contains it any more.
#[derive(Debug, Default)]
pub struct ServerRegistry {
    servers: Mutex<HashMap<Place, Weak<UpstreamServer>>>,
    counts: Mutex<HashMap<Labelled, Weak<AttemptCounts>>>,
    names: Mutex<HashMap<HostPort, Arc<[SocketAddr]>>>,
    /// The TLS settings in use.
    pub tls: KnownTls,
}

/// The name of an upstream, the label of a server, and its address.
type Place = (Arc<str>, Arc<str>, ServerEndpoint);

/// The name of an upstream and the label of a server.
type Labelled = (Arc<str>, Arc<str>);

/// The attempts at one configured server by outcome, and whether it is drained. They are kept when the addresses of
/// its host name change.
#[derive(Debug, Default)]
pub(super) struct AttemptCounts {
    outcomes: [AtomicU64; 5],
    latencies: LatencyCounts,
    /// Whether an operator drains the server.
    is_drained: AtomicBool,
}

/// How one attempt ended.
#[derive(Clone, Copy, Debug)]
pub(super) enum AttemptOutcome {
    /// The server sent a response.
    Ok,
    /// No connection could be opened.
    ConnectError,
    /// The connection broke, or the bytes received are not a valid response.
    Error,
    /// The server exceeded a timeout.
    Timeout,
    /// The request was sent again after this server failed. Counted in addition to the failure.
    Retried,
}

/// The counters of a configured server at one moment. `AttemptOutcome` explains them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs)]
pub struct ServerFigures {
    /// Requests in flight.
    pub in_flight: usize,
    /// Eligible addresses, without any mark.
    pub healthy: usize,
    pub ok: u64,
    pub connect_error: u64,
    pub error: u64,
    pub timeout: u64,
    pub retried: u64,
    /// The latencies of the responses with each class of status codes, `1xx` first.
    pub latencies: [LatencyFigures; 5],
}

/// Counts one request in flight until dropped.
#[derive(Debug)]
pub(super) struct ServerInFlight(Arc<UpstreamServer>);

/// The one trial request of a server. If dropped before a result, another request may try the server.
#[derive(Debug)]
pub(super) struct TrialRequest {
    server: Arc<UpstreamServer>,
    claim: Option<TrialClaim>,
}

// === impl UpstreamServer ===

impl UpstreamServer {
    fn new((upstream, label, endpoint): Place, counts: Arc<AttemptCounts>) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let health = ServerHealth::default();
        health.set_drained(counts.is_drained());
        Self {
            endpoint,
            health,
            counts,
            upstream,
            label,
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            in_flight: AtomicUsize::new(0),
            note: Mutex::default(),
        }
    }

    /// Returns the name of the upstream.
    pub fn upstream(&self) -> &Arc<str> {
        &self.upstream
    }

    /// Returns the name in logs and metrics, as written in the configuration.
    pub fn label(&self) -> &Arc<str> {
        &self.label
    }

    /// Returns the number of requests in flight in the whole process.
    pub fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// Returns one word for why the server is not eligible. `None` if it has no mark.
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

    /// Counts the time until the response head of a request.
    pub fn count_latency(&self, status: StatusCode, latency: Duration) {
        self.counts.latencies.add(status, latency);
    }

    /// Counts a response. `trial` is set if the request was the server's trial request.
    pub(super) fn responded(&self, trial: Option<TrialRequest>) {
        self.counts.add(AttemptOutcome::Ok);
        self.health.succeeded(TrialRequest::end(trial));
    }

    /// Returns an id that is unique in the process.
    pub fn id(&self) -> u64 {
        self.id
    }
}

// === impl ServerRegistry ===

impl ServerRegistry {
    /// Returns the server of an upstream with an address; `label` is its name in logs and metrics. Returns
    /// the existing server while a configuration contains it.
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

    /// Returns the attempt counters of the server that is configured as `label`.
    pub(super) fn counts(&self, upstream: &str, label: &str) -> Arc<AttemptCounts> {
        let key = (Arc::from(upstream), Arc::from(label));
        shared(&self.counts, &key, AttemptCounts::default)
    }

    /// Stops or resumes sending requests to the server that is configured as `label`. Requests in flight finish. A
    /// reload keeps the state.
    pub fn set_drained(&self, upstream: &str, label: &str, drained: bool) {
        let counts = self.counts(upstream, label);
        // Set before the servers: a new address that is created meanwhile reads it.
        counts.is_drained.store(drained, Ordering::Relaxed);
        for ((of, own, _), server) in self.servers.lock().iter() {
            if **of == *upstream
                && **own == *label
                && let Some(server) = server.upgrade()
            {
                server.health.set_drained(drained);
            }
        }
    }

    /// Returns the last known addresses of a host name, none if no lookup succeeded.
    pub fn addresses(&self, name: &HostPort) -> Arc<[SocketAddr]> {
        self.names.lock().get(name).cloned().unwrap_or_default()
    }

    /// Stores the addresses of a host name, at least one. Returns whether they changed.
    pub fn found(&self, name: &HostPort, addresses: Vec<SocketAddr>) -> bool {
        let mut names = self.names.lock();
        if addresses.is_empty() || names.get(name).is_some_and(|old| **old == *addresses) {
            return false;
        }
        names.insert(name.clone(), addresses.into());
        true
    }

    /// Drops the addresses of all host names except `live`.
    pub fn keep_names(&self, live: &[&HostPort]) {
        self.names.lock().retain(|name, _| live.contains(&name));
    }
}

/// Returns the value of a key if it is still in use, or else a new one.
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
    /// Starts a trial. `None` if another request is already trying the server.
    pub(super) fn begin(server: &Arc<UpstreamServer>, now: Timestamp) -> Option<Self> {
        let claim = server.health.claim(now)?;
        Some(Self {
            server: Arc::clone(server),
            claim: Some(claim),
        })
    }

    /// Ends a trial with a result. Returns whether there was a trial.
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
        if let Some(count) = self.outcomes.get(outcome as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn is_drained(&self) -> bool {
        self.is_drained.load(Ordering::Relaxed)
    }

    /// Returns the counters. Figures that are not counted here are zero.
    pub(super) fn figures(&self) -> ServerFigures {
        let counts = self.outcomes.each_ref();
        let read = counts.map(|count| count.load(Ordering::Relaxed));
        let [ok, connect_error, error, timeout, retried] = read;
        ServerFigures {
            ok,
            connect_error,
            error,
            timeout,
            retried,
            latencies: self.latencies.figures(),
            ..ServerFigures::default()
        }
    }
}
