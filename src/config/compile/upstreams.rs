//! `[[upstreams]]`. No name is looked up here.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use super::keys::Keys;
use super::{Context, origins};
use crate::config::Spanned;
use crate::config::file::{self, Address};
use crate::rules::{Key, Missing};
use crate::snapshot::Target;
use crate::upstream::{At, Balance, Breaker, Endpoint, Health, Name, Place, Upstream};

/// The longest path that the kernel takes for a socket, without the byte that ends it.
const LONGEST_SOCKET: usize = 107;

/// The upstreams by name, each with what its requests are kept together by.
#[derive(Default)]
pub struct Upstreams(HashMap<String, (Arc<Upstream>, Option<Arc<Key>>)>);

// === impl Upstreams ===

impl Upstreams {
    /// Where what is forwarded to `name` goes.
    pub fn target(&self, name: &str) -> Option<Target> {
        let (upstream, hash_key) = self.0.get(name)?.clone();
        Some(Target::Upstream { upstream, hash_key })
    }

    /// All of them, by name.
    pub fn into_all(self) -> Vec<Arc<Upstream>> {
        let mut all: Vec<_> = self.0.into_values().map(|(upstream, _)| upstream).collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }
}

/// Builds the upstreams. A server that was there before keeps what is known of it.
pub fn upstreams(written: &[file::Upstream], keys: &Keys<'_>, cx: &mut Context<'_>) -> Upstreams {
    let mut built = HashMap::new();
    for one in written {
        // It is looked at even where nothing is chosen by it, so that its mistakes are told.
        let parts = keys.parts(&one.hash_key, cx);
        let parts = parts.filter(|_| one.balance.value == file::Balance::Hash);
        let key = parts.map(|parts| {
            let missing = Missing::Group;
            Arc::new(Key { parts, missing })
        });
        let upstream = Arc::new(upstream(one, cx));
        built.insert(one.name.value.clone(), (upstream, key));
    }
    Upstreams(built)
}

fn upstream(written: &file::Upstream, cx: &mut Context<'_>) -> Upstream {
    let servers = written.servers.iter();
    let places = servers.filter_map(|server| place(server, cx)).collect();
    let registry = &cx.lasting.servers;
    let mut upstream = Upstream::new(written.name.value.as_str(), places, registry);
    upstream.balance = match written.balance.value {
        file::Balance::P2c => Balance::P2c,
        file::Balance::RoundRobin => Balance::RoundRobin,
        file::Balance::LeastRequests => Balance::LeastRequests,
        file::Balance::Hash => Balance::Hash,
    };
    (upstream.protocol, upstream.tls) = origins::speech(written, cx);
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
    upstream
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
