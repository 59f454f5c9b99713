//! The servers of an upstream: configured addresses, and the addresses of configured host names. Never
//! selects a server and never opens a connection. A name lookup blocks, so it never runs on a thread
//! that serves requests.

use std::fmt;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::Path;
use std::sync::Arc;

use super::server::{AttemptCounts, ServerRegistry, UpstreamServer};

/// The maximum number of addresses used per host name.
const MOST: usize = 64;

/// A server as written in the configuration.
#[derive(Clone, Debug)]
pub struct ServerSpec {
    /// The address or host name.
    pub at: ServerLocation,
    /// The weight: the server's share of the requests is its weight divided by the sum of all weights.
    pub weight: u32,
    /// Whether the server is used only if no primary is eligible.
    pub backup: bool,
}

/// The address or host name of a configured server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerLocation {
    /// A fixed address.
    Endpoint(ServerEndpoint),
    /// A host name, which is looked up.
    Name(HostPort),
}

/// The address that a server listens on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ServerEndpoint {
    /// An address and a port.
    Tcp(SocketAddr),
    /// A Unix socket.
    Unix(Arc<Path>),
}

/// A host name and a port.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HostPort {
    /// The host.
    pub host: String,
    /// The port.
    pub port: u16,
}

/// A server that can receive requests.
#[derive(Clone, Debug)]
pub(super) struct PoolMember {
    pub(super) server: Arc<UpstreamServer>,
    pub(super) weight: u32,
    /// The server's hash for `hash` balancing, equal in every process.
    pub(super) seed: u64,
}

/// The servers of an upstream at one moment.
#[derive(Debug, Default)]
pub(super) struct MemberList {
    all: Vec<PoolMember>,
    /// The number of primaries, which come before the backups.
    primaries: usize,
    /// The order in which the primaries take turns, by their weights.
    schedule: Vec<usize>,
}

/// A configured server with its attempt counters.
#[derive(Clone, Debug)]
pub(super) struct CountedServer {
    pub(super) spec: ServerSpec,
    pub(super) label: Arc<str>,
    pub(super) counts: Arc<AttemptCounts>,
}

// === impl ServerLocation ===

impl fmt::Display for ServerLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Endpoint(endpoint) => endpoint.fmt(f),
            Self::Name(name) => name.fmt(f),
        }
    }
}

// === impl ServerEndpoint ===

impl From<SocketAddr> for ServerEndpoint {
    fn from(address: SocketAddr) -> Self {
        Self::Tcp(address)
    }
}

impl fmt::Display for ServerEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

// === impl HostPort ===

impl HostPort {
    /// Returns all addresses of the host name, sorted. Blocks on the system's resolver, without a timeout.
    pub fn resolve(&self) -> io::Result<Vec<SocketAddr>> {
        let found = (self.host.as_str(), self.port).to_socket_addrs()?;
        let mut addresses: Vec<_> = found.collect();
        addresses.sort_unstable();
        addresses.dedup();
        addresses.truncate(MOST);
        if addresses.is_empty() {
            return Err(io::Error::new(
                io::ErrorKind::NotFound,
                "the name has no address",
            ));
        }
        Ok(addresses)
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

// === impl MemberList ===

impl MemberList {
    pub(super) fn new(members: impl IntoIterator<Item = (Arc<UpstreamServer>, u32, bool)>) -> Self {
        let mut listed: Vec<_> = members.into_iter().collect();
        // The sort is stable: primaries and backups keep the order of the configuration.
        listed.sort_by_key(|(_, _, backup)| *backup);
        let primaries = listed.iter().filter(|(_, _, backup)| !backup).count();
        let member = |(server, weight, _): (Arc<UpstreamServer>, u32, bool)| PoolMember {
            seed: seed(&server),
            weight: weight.max(1),
            server,
        };
        let all: Vec<PoolMember> = listed.into_iter().map(member).collect();
        Self {
            schedule: schedule(all.get(..primaries).unwrap_or_default()),
            primaries,
            all,
        }
    }

    /// Returns the servers of `specs`, with the last known addresses of host names.
    pub(super) fn of(upstream: &str, specs: &[CountedServer], registry: &ServerRegistry) -> Self {
        let mut listed = Vec::new();
        for counted in specs {
            let endpoints = match &counted.spec.at {
                ServerLocation::Endpoint(endpoint) => vec![endpoint.clone()],
                ServerLocation::Name(name) => {
                    let addresses = registry.addresses(name);
                    addresses.iter().copied().map(ServerEndpoint::Tcp).collect()
                }
            };
            for endpoint in endpoints {
                let server = registry.server(upstream, &counted.label, endpoint);
                listed.push((server, counted.spec.weight, counted.spec.backup));
            }
        }
        Self::new(listed)
    }

    pub(super) fn all(&self) -> &[PoolMember] {
        &self.all
    }

    pub(super) fn primaries(&self) -> &[PoolMember] {
        self.all.get(..self.primaries).unwrap_or_default()
    }

    pub(super) fn is_backup(&self, index: usize) -> bool {
        index >= self.primaries
    }

    /// Returns the index of the primary for this turn.
    pub(super) fn scheduled(&self, turn: usize) -> usize {
        let slot = self.schedule.get(turn % self.schedule.len().max(1));
        slot.copied().unwrap_or_default()
    }
}

/// Smooth weighted round robin (nginx): all add their weight, the largest is next and loses the total.
fn schedule(members: &[PoolMember]) -> Vec<usize> {
    let divisor = members.iter().map(|m| m.weight).fold(0, gcd);
    let weights: Vec<i64> = members
        .iter()
        .map(|member| i64::from(member.weight / divisor.max(1)))
        .collect();
    let total: i64 = weights.iter().sum();
    let mut credit = vec![0; weights.len()];
    let turn = |_| {
        for (own, weight) in credit.iter_mut().zip(&weights) {
            *own += weight;
        }
        // In reverse, because `max_by_key` returns the last of several equal elements.
        let next = credit.iter_mut().enumerate().rev();
        let next = next.max_by_key(|(_, own)| **own);
        next.map_or(0, |(index, own)| {
            *own -= total;
            index
        })
    };
    (0..total).map(turn).collect()
}

fn gcd(a: u32, b: u32) -> u32 {
    match b {
        0 => a,
        b => gcd(b, a % b),
    }
}

/// Depends only on the server's address, so every gateway computes an equal seed.
fn seed(server: &UpstreamServer) -> u64 {
    use std::hash::Hasher;
    let mut hasher = siphasher::sip::SipHasher13::new();
    hasher.write(server.endpoint.to_string().as_bytes());
    hasher.finish()
}
