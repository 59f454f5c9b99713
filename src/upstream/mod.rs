//! Sends requests to upstreams over HTTP/1.1 and HTTP/2, with one connection pool per core.
//!
//! A caller passes an [`OutboundRequest`] to [`Pool::forward`], which returns an [`UpstreamResponse`] or an
//! [`UpstreamError`]. Nothing here knows rules, routes or configuration files or buffers a body, and no
//! request takes a lock.
//!
//! `http1` and `http2` send a request and read its response over a `connection`, in the task that waits
//! for the response. `request_head` and `headers` decide which headers an origin server receives.

mod balance;
mod coarse_timer;
mod connection;
mod error;
mod headers;
mod health_check;
pub mod http1;
mod http2;
mod latency_counts;
mod members;
mod origin_host;
mod own_cookies;
mod pool;
mod request_head;
mod retry;
mod server;
mod server_health;
mod server_status;
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
pub use headers::{CredentialHeaders, ForwardedHeaders};
pub use health_check::{CheckResult, HealthPolicy, StatusRange};
pub use latency_counts::{LATENCY_BOUNDS, LatencyFigures, p99};
pub use members::{HostPort, ServerEndpoint, ServerLocation, ServerSpec};
pub use origin_host::OriginHost;
pub use pool::Pool;
pub use server::{ServerFigures, ServerRegistry, UpstreamServer};
pub use server_status::ServerStatus;
pub use tls::{KnownTls, TlsError, TrustedRoots, UpstreamTls, is_name};
pub use tunnel::{OriginTunnel, WebSocketKey};

/// A named group of servers with one balancing and health policy, shared by all cores. It is immutable
/// except for the addresses of its host names.
#[derive(Debug)]
pub struct Upstream {
    /// The name, for logs and metrics.
    pub name: Arc<str>,
    /// How a server is chosen.
    pub balance: BalancePolicy,
    /// The HTTP version that the gateway uses with the servers.
    pub protocol: UpstreamProtocol,
    /// The TLS settings for connections to the servers. `None` for plain connections.
    pub tls: Option<Arc<UpstreamTls>>,
    /// The host that the servers receive.
    pub host: OriginHost,
    /// The timeout for opening one connection, TLS handshake included.
    pub connect_timeout: Duration,
    /// The timeout for the start of a response. It restarts whenever more of the request body is sent, and
    /// does not run while the gateway waits for the client.
    pub response_timeout: Duration,
    /// The limits of a response head.
    pub response_head: HeadLimits,
    /// The maximum number of idle connections per core and server.
    pub max_idle_per_server: usize,
    /// The maximum number of retries of one request. Retries must be safe and within the budget.
    pub retries: u32,
    /// The health checks. `None` for no health checks.
    pub health: Option<HealthPolicy>,
    /// The circuit breaker. `None` for no circuit breaker.
    pub breaker: Option<BreakerPolicy>,
    /// The interval between two lookups of a host name.
    pub resolve_interval: Duration,
    members: ArcSwap<MemberList>,
    specs: Vec<CountedServer>,
    turn: AtomicUsize,
    /// The `turn` counter for requests with an ineligible scheduled server.
    fallback_turn: AtomicUsize,
}

/// How the upstream selects a server for a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BalancePolicy {
    /// All servers in turn, by weight.
    RoundRobin,
    /// Of two random servers, the one with fewer requests in flight.
    #[default]
    P2c,
    /// The server with the fewest requests in flight.
    LeastRequests,
    /// Always one server for equal values of [`OutboundRequest::key`].
    Hash,
}

/// The circuit breaker settings of an upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BreakerPolicy {
    /// The number of failures that opens the circuit.
    pub failures: u32,
    /// The period over which failures are counted.
    pub within: Duration,
    /// How long the circuit stays open. Then one trial request decides.
    pub open_for: Duration,
}

/// The servers added and removed when a host name resolved to new addresses.
#[derive(Clone, Debug, Default)]
pub struct MemberChange {
    /// Servers that receive requests from now on.
    pub joined: Vec<Arc<UpstreamServer>>,
    /// Servers that receive no new requests. Requests in flight continue.
    pub left: Vec<Arc<UpstreamServer>>,
}

/// The HTTP version that the gateway uses with an upstream's servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UpstreamProtocol {
    /// HTTP/1.1.
    #[default]
    Http1,
    /// HTTP/2: negotiated by ALPN with TLS, with prior knowledge without TLS.
    Http2,
    /// The version that the server selects with TLS, HTTP/1.1 without TLS.
    Auto,
}

/// A request to an origin server, as the client sent it. This module decides which headers the origin
/// server receives.
pub struct OutboundRequest<'a> {
    /// The method.
    pub method: &'a Method,
    /// The target in origin form: the path and the query.
    pub target: &'a str,
    /// The client's validated headers.
    pub headers: &'a HeaderMap,
    /// The header changes of the route, applied last. `None` if the route has none.
    pub edits: Option<&'a HeaderChanges>,
    /// The HTTP version of the client's request.
    pub version: Version,
    /// The host for the origin server. `None` for the client's. A host in `edits` takes precedence.
    pub host: Option<Arc<str>>,
    /// The values of the forwarding headers.
    pub forwarding: ForwardedHeaders<'a>,
    /// The body.
    pub body: Body,
    /// Whether the request is a validated WebSocket handshake, so that a 101 response is allowed.
    pub upgrade: bool,
    /// The hash key: with [`BalancePolicy::Hash`], requests with equal keys go to one server.
    pub key: u64,
    /// The timeout for the response head. `None` for that of the upstream.
    pub response_timeout: Option<Duration>,
}

/// The limits of a response head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadLimits {
    /// The maximum size in bytes.
    pub bytes: usize,
    /// The maximum number of headers.
    pub headers: usize,
}

/// The response of an origin server.
pub struct UpstreamResponse {
    /// The response without hop-by-hop headers. Its body ends with an error if the origin server's body does.
    pub response: Response<Body>,
    /// The server that sent the response.
    pub server: Arc<UpstreamServer>,
    /// The number of times that the request was sent to a server.
    pub attempts: u32,
    /// The tunnel to the origin server after a 101 response, otherwise `None`.
    pub upgraded: Option<OriginTunnel>,
}

// === impl Upstream ===

impl Upstream {
    /// Adds the servers in `specs`. Upstreams of this name share them through `registry`, which also
    /// provides the last known addresses of host names.
    pub fn with_servers(self, specs: Vec<ServerSpec>, registry: &ServerRegistry) -> Self {
        let counted = |spec: ServerSpec| {
            let label: Arc<str> = spec.at.to_string().into();
            let counts = registry.counts(&self.name, &label);
            CountedServer {
                spec,
                label,
                counts,
            }
        };
        let specs: Vec<_> = specs.into_iter().map(counted).collect();
        Self {
            members: ArcSwap::from_pointee(MemberList::of(&self.name, &specs, registry)),
            specs,
            ..self
        }
    }

    /// Creates an upstream with the default settings, which the caller may change, and without servers.
    pub fn without_servers(name: impl Into<Arc<str>>) -> Self {
        Self {
            members: ArcSwap::default(),
            name: name.into(),
            balance: BalancePolicy::default(),
            protocol: UpstreamProtocol::default(),
            tls: None,
            host: OriginHost::default(),
            connect_timeout: Duration::from_secs(2),
            response_timeout: Duration::from_secs(30),
            response_head: HeadLimits::default(),
            max_idle_per_server: 256,
            retries: 1,
            health: None,
            breaker: None,
            resolve_interval: Duration::from_secs(10),
            specs: Vec::new(),
            turn: AtomicUsize::new(0),
            fallback_turn: AtomicUsize::new(0),
        }
    }

    /// Returns the servers that can receive requests now, backups last.
    pub fn servers(&self) -> Vec<Arc<UpstreamServer>> {
        let members = self.members.load();
        let servers = members.all().iter().map(|m| Arc::clone(&m.server));
        servers.collect()
    }

    /// Returns the names of the servers in logs and metrics, as written in the configuration.
    pub fn labels(&self) -> impl Iterator<Item = &str> {
        self.specs.iter().map(|counted| &*counted.label)
    }

    /// Returns the host names to look up.
    pub fn names(&self) -> impl Iterator<Item = &HostPort> {
        self.specs
            .iter()
            .filter_map(|counted| match &counted.spec.at {
                ServerLocation::Name(name) => Some(name),
                ServerLocation::Endpoint(_) => None,
            })
    }

    /// Updates the servers with the current addresses of host names.
    pub fn follow(&self, registry: &ServerRegistry) -> MemberChange {
        let before = self.servers();
        let members = MemberList::of(&self.name, &self.specs, registry);
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

    /// Returns the number of attempts by outcome for each configured server.
    pub fn figures(&self) -> Vec<(Arc<str>, ServerFigures)> {
        let servers = self.servers();
        let figures = |counted: &CountedServer| {
            let mut figures = counted.counts.figures();
            for server in servers.iter().filter(|s| *s.label() == counted.label) {
                figures.in_flight += server.in_flight();
                let avoided = self.relevant_marks() & !mark::DRAINED;
                figures.healthy += usize::from(server.health.is_clear(avoided));
            }
            (counted.label.clone(), figures)
        };
        self.specs.iter().map(figures).collect()
    }

    /// Returns the marks that make a server ineligible in this upstream.
    fn relevant_marks(&self) -> u8 {
        let mut relevant = mark::EJECTED | mark::BUSY | mark::DRAINED;
        if self.health.is_some() {
            relevant |= mark::UNHEALTHY;
        }
        if self.breaker.is_some() {
            relevant |= mark::OPEN;
        }
        relevant
    }
}

// === impl BalancePolicy ===

impl BalancePolicy {
    /// The name in gateway.toml.
    pub const fn name(self) -> &'static str {
        match self {
            Self::RoundRobin => "round_robin",
            Self::P2c => "p2c",
            Self::LeastRequests => "least_requests",
            Self::Hash => "hash",
        }
    }
}

// === impl HeadLimits ===

impl Default for HeadLimits {
    fn default() -> Self {
        Self {
            bytes: 64 * 1024,
            headers: 100,
        }
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
            attempts: 1,
            upgraded: None,
        }
    }
}
