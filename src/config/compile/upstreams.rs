//! `[[upstreams]]`. No name is looked up here.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::keys::Keys;
use super::{Context, origins};
use crate::config::Spanned;
use crate::config::blueprint::UpstreamBlueprint;
use crate::config::file::{self, Address};
use crate::rules::{Key, Missing};
use crate::upstream::{At, Balance, Breaker, Endpoint, Health, Name, Place, Upstream};

/// The longest path that the kernel takes for a socket, without the byte that ends it.
const LONGEST_SOCKET: usize = 107;

/// The upstreams, sorted by name.
#[derive(Default)]
pub struct Upstreams(pub Vec<UpstreamBlueprint>);

// === impl Upstreams ===

impl Upstreams {
    /// The index of the upstream with this name.
    pub fn index(&self, name: &str) -> Option<usize> {
        let by_name = |one: &UpstreamBlueprint| (*one.upstream.name).cmp(name);
        self.0.binary_search_by(by_name).ok()
    }
}

/// Compiles the upstreams. Of two with the same name, which is an error, the last remains.
pub fn upstreams(written: &[file::Upstream], keys: &Keys<'_>, cx: &mut Context<'_>) -> Upstreams {
    let mut compiled = BTreeMap::new();
    for one in written {
        // It is compiled even where nothing is chosen by it, so that its mistakes are reported.
        let parts = keys.parts(&one.hash_key, cx);
        let parts = parts.filter(|_| one.balance.value == file::Balance::Hash);
        let hash_key = parts.map(|parts| {
            let missing = Missing::Group;
            Arc::new(Key { parts, missing })
        });
        compiled.insert(&one.name.value, upstream(one, hash_key, cx));
    }
    Upstreams(compiled.into_values().collect())
}

fn upstream(
    written: &file::Upstream,
    hash_key: Option<Arc<Key>>,
    cx: &mut Context<'_>,
) -> UpstreamBlueprint {
    let servers = written.servers.iter();
    let servers = servers.filter_map(|server| place(server, cx)).collect();
    let mut upstream = Upstream::without_servers(written.name.value.as_str());
    let (protocol, tls) = origins::speech(written, cx);
    upstream.protocol = protocol;
    upstream.balance = match written.balance.value {
        file::Balance::P2c => Balance::P2c,
        file::Balance::RoundRobin => Balance::RoundRobin,
        file::Balance::LeastRequests => Balance::LeastRequests,
        file::Balance::Hash => Balance::Hash,
    };
    upstream.resolve_interval = written.resolve_interval.value;
    upstream.connect_timeout = written.connect_timeout.value;
    upstream.response_timeout = written.response_timeout.value;
    upstream.retries = written.retries.value;
    upstream.max_idle_per_server = written.max_idle_per_server.value as usize;
    upstream.health = written.health.as_ref().map(|health| Health {
        path: health.path.value.clone(),
        interval: health.interval.value,
        timeout: health.timeout.value,
        healthy: health.healthy.value,
        unhealthy: health.unhealthy.value,
    });
    upstream.breaker = written.circuit_breaker.as_ref().map(|breaker| Breaker {
        failures: breaker.failures.value,
        within: breaker.within.value,
        open_for: breaker.open_for.value,
    });
    UpstreamBlueprint {
        upstream,
        servers,
        tls,
        hash_key,
    }
}

fn place(server: &file::Member, cx: &mut Context<'_>) -> Option<Place> {
    let at = match &server.address.value {
        Address::Socket(address) => At::Endpoint(Endpoint::Tcp(*address)),
        Address::Name(host, port) => At::Name(Name {
            host: host.clone(),
            port: *port,
        }),
        Address::Unix(path) => At::Endpoint(socket(path, &server.address, cx)?),
    };
    Some(Place {
        at,
        weight: server.weight.value,
        backup: server.backup.value,
    })
}

fn socket(path: &Path, written: &Spanned<Address>, cx: &mut Context<'_>) -> Option<Endpoint> {
    let path = cx.resolve(path);
    let length = path.as_os_str().len();
    if length > LONGEST_SOCKET {
        let message = format!("the path of this socket has {length} bytes");
        cx.diagnostics
            .error(written.span.clone(), message)
            .help(format!("the kernel takes {LONGEST_SOCKET} at most"));
        return None;
    }
    Some(Endpoint::Unix(path.into()))
}
