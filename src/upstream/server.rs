//! Servers and what the whole process knows about each. Never opens a connection.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::Endpoint;

/// One place where an upstream's work is done.
#[derive(Debug)]
pub struct Server {
    /// Where it listens.
    pub endpoint: Endpoint,
    label: Arc<str>,
    id: u64,
    in_flight: AtomicUsize,
}

/// Keeps servers the same across reloads, so that what is known about one outlives a
/// configuration. A server is forgotten when no configuration holds it any more.
#[derive(Debug, Default)]
pub struct Registry {
    servers: Mutex<HashMap<Place, Weak<Server>>>,
}

/// An upstream's name and where a server of it listens.
type Place = (Arc<str>, Endpoint);

/// One request in flight; ends when dropped.
#[derive(Debug)]
pub(super) struct InFlight(Arc<Server>);

// === impl Server ===

impl Server {
    fn new(endpoint: Endpoint) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self {
            label: endpoint.to_string().into(),
            endpoint,
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            in_flight: AtomicUsize::new(0),
        }
    }

    /// The name in logs and metrics.
    pub fn label(&self) -> &Arc<str> {
        &self.label
    }

    /// Requests in flight, of the whole process.
    pub fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// Different for every server that this process ever knew.
    pub(super) fn id(&self) -> u64 {
        self.id
    }
}

// === impl Registry ===

impl Registry {
    /// The server of an upstream at a place: the same one as long as it stays configured.
    pub fn server(&self, upstream: &str, endpoint: impl Into<Endpoint>) -> Arc<Server> {
        let mut servers = self.servers.lock();
        let key: Place = (Arc::from(upstream), endpoint.into());
        if let Some(server) = servers.get(&key).and_then(Weak::upgrade) {
            return server;
        }
        servers.retain(|_, server| server.strong_count() > 0);
        let server = Arc::new(Server::new(key.1.clone()));
        servers.insert(key, Arc::downgrade(&server));
        server
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
