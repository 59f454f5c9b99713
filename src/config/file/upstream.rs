//! `[[upstreams]]`.

use std::net::SocketAddr;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use crate::config::{Spanned, Text};

/// One of `[[upstreams]]`.
#[derive(Clone, Debug)]
pub struct Upstream {
    /// The header of the section.
    pub span: Range<usize>,
    /// What routes call it; unique.
    pub name: Text,
    /// Its servers, at least one in a file without errors.
    pub servers: Vec<Member>,
    /// How often names are looked up. Default 10 s.
    pub resolve_interval: Spanned<Duration>,
    /// How a server is chosen. Default p2c.
    pub balance: Spanned<Balance>,
    /// `hash`: what requests share that go to the same server. Default the client's address.
    pub hash_key: Vec<Text>,
    /// What is spoken to them. Default HTTP/1.1.
    pub protocol: Spanned<OriginProtocol>,
    /// Whether it is spoken over TLS. Default not.
    pub tls: Spanned<Option<OriginTls>>,
    /// For a connection to be made. Default 2 s.
    pub connect_timeout: Spanned<Duration>,
    /// For the head of the response. Default 30 s.
    pub response_timeout: Spanned<Duration>,
    /// How often a request may be sent again. Default 1.
    pub retries: Spanned<u32>,
    /// Idle connections kept to each server. Default 256.
    pub max_idle_per_server: Spanned<u32>,
    /// How servers are checked. Default not at all.
    pub health: Option<Health>,
    /// When a failing server gets no requests. Default never.
    pub circuit_breaker: Option<CircuitBreaker>,
}

/// One of `upstreams.servers`.
#[derive(Clone, Debug)]
pub struct Member {
    /// Where it is.
    pub address: Spanned<Address>,
    /// Its share of the requests. Default 1.
    pub weight: Spanned<u32>,
    /// Only if no other is left. Default no.
    pub backup: Spanned<bool>,
}

/// Where a server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// An address and a port.
    Socket(SocketAddr),
    /// A host name and a port.
    Name(String, u16),
    /// A socket in the file system.
    Unix(PathBuf),
}

/// What is spoken to an origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OriginProtocol {
    /// HTTP/1.1.
    Http11,
    /// HTTP/2.
    H2,
    /// HTTP/2 if it can be agreed on.
    Auto,
}

/// `upstreams.tls`.
#[derive(Clone, Debug, Default)]
pub struct OriginTls {
    /// Who the origin must be. Default: what `servers` says.
    pub server_name: Option<Text>,
    /// Who may vouch for it. Default: whom the system trusts.
    pub ca: Option<Spanned<PathBuf>>,
    /// Given as `verify = false`: nobody has to vouch for it.
    pub unverified: Option<Range<usize>>,
}

/// How a server is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Balance {
    /// The less busy of two drawn at random.
    P2c,
    /// Each in turn.
    RoundRobin,
    /// The least busy.
    LeastRequests,
    /// The same for the same key.
    Hash,
}

/// `upstreams.health`.
#[derive(Clone, Debug)]
pub struct Health {
    /// What is asked for.
    pub path: Text,
    /// Between two checks. Default 5 s.
    pub interval: Spanned<Duration>,
    /// For one check. Default 1 s.
    pub timeout: Spanned<Duration>,
    /// Checks in a row that must pass. Default 2.
    pub healthy: Spanned<u32>,
    /// Checks in a row that must fail. Default 3.
    pub unhealthy: Spanned<u32>,
}

/// `upstreams.circuit_breaker`.
#[derive(Clone, Debug)]
pub struct CircuitBreaker {
    /// So many failures open the circuit. Default 5.
    pub failures: Spanned<u32>,
    /// The time within which they count. Default 10 s.
    pub within: Spanned<Duration>,
    /// How long it stays open. Default 5 s.
    pub open_for: Spanned<Duration>,
}
