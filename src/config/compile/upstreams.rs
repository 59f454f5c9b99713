//! `[[upstreams]]`. No name is looked up here.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use super::keys::Keys;
use super::{Context, origins};
use crate::config::blueprint::UpstreamBlueprint;
use crate::config::file;
use crate::rules::{Key, Missing};
use crate::upstream::{At, Balance, Endpoint, Place, Upstream};

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
        let parts = parts.filter(|_| one.balance.value == Balance::Hash);
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
    upstream.balance = written.balance.value;
    upstream.resolve_interval = written.resolve_interval.value;
    upstream.connect_timeout = written.connect_timeout.value;
    upstream.response_timeout = written.response_timeout.value;
    upstream.retries = written.retries.value;
    upstream.max_idle_per_server = written.max_idle_per_server.value as usize;
    upstream.health = written.health.clone();
    upstream.breaker = written.circuit_breaker.clone();
    UpstreamBlueprint {
        upstream,
        servers,
        tls,
        hash_key,
    }
}

fn place(server: &file::Member, cx: &mut Context<'_>) -> Option<Place> {
    let at = match &server.address.value {
        At::Endpoint(Endpoint::Unix(path)) => At::Endpoint(socket(path, &server.address.span, cx)?),
        at => at.clone(),
    };
    Some(Place {
        at,
        weight: server.weight,
        backup: server.backup,
    })
}

fn socket(path: &Path, span: &Range<usize>, cx: &mut Context<'_>) -> Option<Endpoint> {
    let path = cx.resolve(path);
    let length = path.as_os_str().len();
    if length > LONGEST_SOCKET {
        let message = format!("the path of this socket has {length} bytes");
        cx.diagnostics
            .error(span.clone(), message)
            .help(format!("the kernel takes {LONGEST_SOCKET} at most"));
        return None;
    }
    Some(Endpoint::Unix(path.into()))
}
