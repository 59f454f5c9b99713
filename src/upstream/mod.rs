//! The way out: upstreams over HTTP/1.1 and HTTP/2, with one pool of connections a core.
//!
//! A caller hands an [`OutboundRequest`] to [`Pool::forward`]; an [`UpstreamResponse`] or an [`UpstreamError`] comes back.
//! Nothing here knows rules, routes or configuration files, nothing buffers a body, and nothing on
//! the path of a request takes a lock.
//!
//! `http1` and `http2` send a request and read its response, over whatever `connection` carries
//! it, from the one task that waits. `request_head` and `headers` decide what an origin sees.

mod balance;
mod coarse_timer;
mod connection;
mod error;
mod headers;
pub mod http1;
mod http2;
mod members;
mod pool;
mod request_head;
mod retry;
mod server;
mod server_health;
mod tls;
mod tunnel;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use arc_swap::ArcSwap;
use http::{HeaderMap, Method, Response, StatusCode, Version};

use self::members::{CountedServer, MemberList};
use self::server_health::mark;
use crate::body::Body;
use crate::route::edit::HeaderChanges;

pub use error::UpstreamError;
pub use headers::ForwardedHeaders;
pub use members::{HostPort, ServerEndpoint, ServerLocation, ServerSpec};
pub use pool::Pool;
pub use server::{ServerFigures, ServerRegistry, UpstreamServer};
pub use server_health::CheckResult;
pub use tls::{KnownTls, TlsError, TrustedRoots, UpstreamTls, is_name};
pub use tunnel::{OriginTunnel, WebSocketKey};

/// A named group of servers that do the same work, shared by all cores. Nothing of it changes but
/// where its names lead.
#[derive(Debug)]
pub struct Upstream {
    /// The name, for logs and metrics.
    pub name: Arc<str>,
    /// How a server is chosen.
    pub balance: BalancePolicy,
    /// What is spoken to them.
    pub protocol: UpstreamProtocol,
    /// How the way to them is secured; `None`: it is not.
    pub tls: Option<Arc<UpstreamTls>>,
    /// How long one connection may take to open, with its handshake.
    pub connect_timeout: Duration,
    /// How long an origin may take to begin its answer; it runs again whenever more of the
    /// request's body was sent, and stands still while the client is the slow one.
    pub response_timeout: Duration,
    /// How many idle connections a core keeps to each server.
    pub max_idle_per_server: usize,
    /// How often a request is sent again, where that is safe and the budget allows it.
    pub retries: u32,
    /// How servers are checked; `None`: they are not.
    pub health: Option<HealthPolicy>,
    /// When a server that fails gets no requests for a while; `None`: never for that.
    pub breaker: Option<BreakerPolicy>,
    /// How often names are looked up.
    pub resolve_interval: Duration,
    members: ArcSwap<MemberList>,
    places: Vec<CountedServer>,
    turn: AtomicUsize,
    /// The same for requests whose server cannot be used.
    detour: AtomicUsize,
}

/// How a server is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BalancePolicy {
    /// Each in turn.
    RoundRobin,
    /// Two at random, the one with fewer requests in flight.
    #[default]
    P2c,
    /// The one with the fewest requests in flight.
    LeastRequests,
    /// The same one for the same [`OutboundRequest::key`].
    Hash,
}

/// How servers are checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthPolicy {
    /// What is asked for.
    pub path: String,
    /// The time between two checks of a server.
    pub interval: Duration,
    /// How long one may take.
    pub timeout: Duration,
    /// So many that pass in a row make a server healthy.
    pub healthy: u32,
    /// So many that fail in a row make it unhealthy.
    pub unhealthy: u32,
}

/// When a server that fails gets no requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BreakerPolicy {
    /// After so many failures
    pub failures: u32,
    /// within this time,
    pub within: Duration,
    /// for so long. Then one request decides.
    pub open_for: Duration,
}

/// Who came and who went when a name was looked up.
#[derive(Clone, Debug, Default)]
pub struct MemberChange {
    /// Servers that requests can go to from now on.
    pub joined: Vec<Arc<UpstreamServer>>,
    /// Servers that get no more requests; those in flight end.
    pub left: Vec<Arc<UpstreamServer>>,
}

/// What is spoken to an upstream's servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UpstreamProtocol {
    /// HTTP/1.1.
    #[default]
    Http1,
    /// HTTP/2: agreed on with TLS, known before without.
    Http2,
    /// What an origin prefers with TLS, HTTP/1.1 without.
    Auto,
}

/// A request on its way to an origin, as the client sent it. What the origin may see of it is
/// decided here.
pub struct OutboundRequest<'a> {
    /// The method.
    pub method: &'a Method,
    /// The target in origin form: the path and the query.
    pub target: &'a str,
    /// The client's validated fields.
    pub headers: &'a HeaderMap,
    /// What its route changes in them, after all that is done to them here; `None`: nothing.
    pub edits: Option<&'a HeaderChanges>,
    /// The version in which they came.
    pub version: Version,
    /// What the origin is told about who asks.
    pub forwarding: ForwardedHeaders<'a>,
    /// The body.
    pub body: Body,
    /// Whether it is a validated WebSocket handshake, so that a 101 may come back.
    pub upgrade: bool,
    /// Requests with the same one go to the same server, if the upstream balances by hash.
    pub key: u64,
}

/// What an origin answered.
pub struct UpstreamResponse {
    /// The answer, hop-by-hop fields removed. Its body is an error if the origin's is cut short.
    pub response: Response<Body>,
    /// Who answered.
    pub server: Arc<UpstreamServer>,
    /// After a 101: the bytes to and from the origin.
    pub upgraded: Option<OriginTunnel>,
}

// === impl Upstream ===

impl Upstream {
    /// Adds the servers at `places`, which `registry` shares with other upstreams of this name.
    /// Names lead to where the registry last knew them.
    pub fn with_servers(self, places: Vec<ServerSpec>, registry: &ServerRegistry) -> Self {
        let counted = |place: ServerSpec| {
            let label: Arc<str> = place.at.to_string().into();
            let counts = registry.counts(&self.name, &label);
            CountedServer {
                place,
                label,
                counts,
            }
        };
        let places: Vec<_> = places.into_iter().map(counted).collect();
        Self {
            members: ArcSwap::from_pointee(MemberList::of(&self.name, &places, registry)),
            places,
            ..self
        }
    }

    /// An upstream with the default settings, which the caller may change, and no servers yet.
    pub fn without_servers(name: impl Into<Arc<str>>) -> Self {
        Self {
            members: ArcSwap::default(),
            name: name.into(),
            balance: BalancePolicy::default(),
            protocol: UpstreamProtocol::default(),
            tls: None,
            connect_timeout: Duration::from_secs(2),
            response_timeout: Duration::from_secs(30),
            max_idle_per_server: 256,
            retries: 1,
            health: None,
            breaker: None,
            resolve_interval: Duration::from_secs(10),
            places: Vec::new(),
            turn: AtomicUsize::new(0),
            detour: AtomicUsize::new(0),
        }
    }

    /// The servers that requests can go to now, backups last.
    pub fn servers(&self) -> Vec<Arc<UpstreamServer>> {
        let members = self.members.load();
        let servers = members.all().iter().map(|m| Arc::clone(&m.server));
        servers.collect()
    }

    /// What its servers are called in logs and metrics: as they are configured.
    pub fn labels(&self) -> impl Iterator<Item = &str> {
        self.places.iter().map(|counted| &*counted.label)
    }

    /// The names that are to be looked up.
    pub fn names(&self) -> impl Iterator<Item = &HostPort> {
        self.places
            .iter()
            .filter_map(|counted| match &counted.place.at {
                ServerLocation::Name(name) => Some(name),
                ServerLocation::Endpoint(_) => None,
            })
    }

    /// Takes in where names lead by now.
    pub fn follow(&self, registry: &ServerRegistry) -> MemberChange {
        let before = self.servers();
        let members = MemberList::of(&self.name, &self.places, registry);
        self.members.store(Arc::new(members));
        let after = self.servers();
        let only = |these: &[Arc<UpstreamServer>],
                    those: &[Arc<UpstreamServer>]|
         -> Vec<Arc<UpstreamServer>> {
            let mut only = these.to_vec();
            only.retain(|one| !those.iter().any(|other| Arc::ptr_eq(one, other)));
            only
        };
        MemberChange {
            joined: only(&after, &before),
            left: only(&before, &after),
        }
    }

    /// What became of requests, by the name under which a server is configured.
    pub fn figures(&self) -> Vec<(Arc<str>, ServerFigures)> {
        let servers = self.servers();
        let figures = |counted: &CountedServer| {
            let mut figures = counted.counts.figures();
            for server in servers.iter().filter(|s| *s.label() == counted.label) {
                figures.in_flight += server.in_flight();
                figures.healthy += usize::from(server.health.is_clear(self.heeded()));
            }
            (counted.label.clone(), figures)
        };
        self.places.iter().map(figures).collect()
    }

    /// What counts against a server here.
    fn heeded(&self) -> u8 {
        let mut heeded = mark::EJECTED | mark::BUSY;
        if self.health.is_some() {
            heeded |= mark::UNHEALTHY;
        }
        if self.breaker.is_some() {
            heeded |= mark::OPEN;
        }
        heeded
    }
}

// === impl UpstreamResponse ===

impl UpstreamResponse {
    fn new(
        status: StatusCode,
        headers: HeaderMap,
        body: Body,
        server: Arc<UpstreamServer>,
    ) -> Self {
        let mut response = Response::new(body);
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        Self {
            response,
            server,
            upgraded: None,
        }
    }
}
