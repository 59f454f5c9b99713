//! The servers of an upstream: those in its configuration, and those that its names lead to. Never
//! chooses one and never opens a connection. A look-up blocks, so it never runs on a thread that
//! serves requests.

use std::fmt;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::Path;
use std::sync::Arc;

use super::server::{AttemptCounts, ServerRegistry, UpstreamServer};

/// The most addresses of one name that are used.
const MOST: usize = 64;

/// A server as it is configured.
#[derive(Clone, Debug)]
pub struct ServerSpec {
    /// Where it is.
    pub at: ServerLocation,
    /// Its share of the requests, beside those of the others.
    pub weight: u32,
    /// It is used only if no other is left.
    pub backup: bool,
}

/// Where a configured server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerLocation {
    /// At one place that does not change.
    Endpoint(ServerEndpoint),
    /// Wherever a name leads to.
    Name(HostPort),
}

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ServerEndpoint {
    /// An address and a port.
    Tcp(SocketAddr),
    /// A socket in the file system.
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

/// A server that requests can go to.
#[derive(Clone, Debug)]
pub(super) struct PoolMember {
    pub(super) server: Arc<UpstreamServer>,
    pub(super) weight: u32,
    /// What it is known by to those who choose by hash: the same in every process.
    pub(super) seed: u64,
}

/// The servers of one moment.
#[derive(Debug, Default)]
pub(super) struct MemberList {
    all: Vec<PoolMember>,
    /// So many of them come before the backups.
    primaries: usize,
    /// The order in which the primaries take turns, by their weights.
    schedule: Vec<usize>,
}

/// A place with the counts that belong to it.
#[derive(Clone, Debug)]
pub(super) struct CountedServer {
    pub(super) place: ServerSpec,
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
    /// All its addresses, in an order that does not depend on the answer's. Waits for the system's
    /// resolver, however long that takes.
    pub fn resolve(&self) -> io::Result<Vec<SocketAddr>> {
        let found = (self.host.as_str(), self.port).to_socket_addrs()?;
        let mut addresses: Vec<_> = found.collect();
        addresses.sort_unstable();
        addresses.dedup();
        addresses.truncate(MOST);
        if addresses.is_empty() {
            return Err(io::Error::new(io::ErrorKind::NotFound, "it has no address"));
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
        // Stable: among the primaries, and among the backups, the order of the file.
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

    /// The servers that `places` lead to by what is known of their names.
    pub(super) fn of(upstream: &str, places: &[CountedServer], registry: &ServerRegistry) -> Self {
        let mut listed = Vec::new();
        for counted in places {
            let endpoints = match &counted.place.at {
                ServerLocation::Endpoint(endpoint) => vec![endpoint.clone()],
                ServerLocation::Name(name) => {
                    let addresses = registry.addresses(name);
                    addresses.iter().copied().map(ServerEndpoint::Tcp).collect()
                }
            };
            for endpoint in endpoints {
                let server = registry.server(upstream, &counted.label, endpoint);
                listed.push((server, counted.place.weight, counted.place.backup));
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

    /// Whose turn it is among the primaries.
    pub(super) fn scheduled(&self, turn: usize) -> usize {
        let slot = self.schedule.get(turn % self.schedule.len().max(1));
        slot.copied().unwrap_or_default()
    }
}

/// The smooth order of nginx: each turn all gain their weight, the richest goes and pays for all.
fn schedule(members: &[PoolMember]) -> Vec<usize> {
    let divisor = members.iter().map(|m| m.weight).fold(0, gcd);
    let weights: Vec<i64> = members
        .iter()
        .map(|member| i64::from(member.weight / divisor.max(1)))
        .collect();
    let total: i64 = weights.iter().sum();
    let mut wealth = vec![0; weights.len()];
    let turn = |_| {
        for (own, weight) in wealth.iter_mut().zip(&weights) {
            *own += weight;
        }
        // Backwards, because `max_by_key` finds the last of several.
        let richest = wealth.iter_mut().enumerate().rev();
        let richest = richest.max_by_key(|(_, own)| **own);
        richest.map_or(0, |(index, own)| {
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

/// From where it listens alone, so that every gateway finds the same.
fn seed(server: &UpstreamServer) -> u64 {
    use std::hash::Hasher;
    let mut hasher = siphasher::sip::SipHasher13::new();
    hasher.write(server.endpoint.to_string().as_bytes());
    hasher.finish()
}
