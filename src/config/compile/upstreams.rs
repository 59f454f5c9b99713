//! `[[upstreams]]`. Host names are not resolved here.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use super::keys::KeyCompiler;
use super::{CompileContext, origins};
use crate::config::blueprint::UpstreamBlueprint;
use crate::config::file;
use crate::route::HostPattern;
use crate::rules::{Key, MissingPart};
use crate::upstream::{
    BalancePolicy, HeadLimits, OriginHost, ServerEndpoint, ServerLocation, ServerSpec, Upstream,
};

/// The longest path of a Unix socket that the kernel accepts, in bytes without the final NUL.
const LONGEST_SOCKET: usize = 107;

/// The upstreams, sorted by name.
#[derive(Default)]
pub struct UpstreamBlueprints(pub Vec<UpstreamBlueprint>);

// === impl UpstreamBlueprints ===

impl UpstreamBlueprints {
    /// Returns the index of the upstream with this name.
    pub fn index(&self, name: &str) -> Option<usize> {
        let by_name = |one: &UpstreamBlueprint| (*one.upstream.name).cmp(name);
        self.0.binary_search_by(by_name).ok()
    }
}

/// Compiles the upstreams. If two have one name, which is an error, the last one is kept. The first concrete host
/// of a route to an upstream is the default host of its health checks.
pub fn upstreams(
    written: &[file::UpstreamSettings],
    routes: &[file::RouteSettings],
    keys: &KeyCompiler<'_>,
    cx: &mut CompileContext<'_>,
) -> UpstreamBlueprints {
    let mut compiled = BTreeMap::new();
    for one in written {
        // Compile the key even if the balance policy ignores it, so that its errors are reported.
        let parts = keys.parts(&one.hash_key, cx);
        let parts = parts.filter(|_| one.balance.value == BalancePolicy::Hash);
        let hash_key = parts.map(|parts| {
            let missing = MissingPart::Group;
            Arc::new(Key { parts, missing })
        });
        let routed = routed_host(&one.name.value, routes);
        compiled.insert(&one.name.value, upstream(one, routed, hash_key, cx));
    }
    UpstreamBlueprints(compiled.into_values().collect())
}

fn upstream(
    written: &file::UpstreamSettings,
    routed_host: Option<&str>,
    hash_key: Option<Arc<Key>>,
    cx: &mut CompileContext<'_>,
) -> UpstreamBlueprint {
    let servers = written.servers.iter();
    let servers = servers
        .filter_map(|server| server_spec(server, cx))
        .collect();
    let mut upstream = Upstream::without_servers(written.name.value.as_str());
    let (protocol, tls) = origins::speech(written, cx);
    upstream.protocol = protocol;
    upstream.balance = written.balance.value;
    upstream.resolve_interval = written.resolve_interval.value;
    upstream.connect_timeout = written.connect_timeout.value;
    upstream.response_timeout = written.response_timeout.value;
    upstream.response_head = HeadLimits {
        bytes: written.max_response_header_bytes.value as usize,
        headers: written.max_response_headers.value as usize,
    };
    upstream.retries = written.retries.value;
    upstream.max_idle_per_server = written.max_idle_per_server.value as usize;
    upstream.host = match &written.host {
        _ if written.preserve_host.value => OriginHost::Client,
        Some(host) => OriginHost::Fixed(host.as_str().into()),
        None => OriginHost::Server,
    };
    upstream.health = written.health.clone();
    if let Some(health) = &mut upstream.health {
        let default = written.host.as_deref().or(routed_host);
        health.host = health.host.take().or_else(|| default.map(Into::into));
    }
    upstream.breaker = written.circuit_breaker.clone();
    UpstreamBlueprint {
        upstream,
        servers,
        tls,
        hash_key,
    }
}

/// Returns the first host of a route to this upstream that is one name.
fn routed_host<'r>(upstream: &str, routes: &'r [file::RouteSettings]) -> Option<&'r str> {
    let leads_here = |route: &&file::RouteSettings| match &route.target {
        Some(file::RouteTargetSettings::Upstream(name)) => name.value == upstream,
        _ => false,
    };
    let hosts = routes.iter().filter(leads_here).flat_map(|r| &r.hosts);
    let mut hosts = hosts.map(|host| host.value.as_str());
    hosts.find(|host| matches!(HostPattern::parse(host), Ok(HostPattern::Exact(..))))
}

fn server_spec(
    server: &file::UpstreamServerSettings,
    cx: &mut CompileContext<'_>,
) -> Option<ServerSpec> {
    let at = match &server.address.value {
        ServerLocation::Endpoint(ServerEndpoint::Unix(path)) => {
            ServerLocation::Endpoint(socket(path, &server.address.span, cx)?)
        }
        at => at.clone(),
    };
    Some(ServerSpec {
        at,
        weight: server.weight,
        backup: server.backup,
    })
}

fn socket(path: &Path, span: &Range<usize>, cx: &mut CompileContext<'_>) -> Option<ServerEndpoint> {
    let path = cx.resolve(path);
    let length = path.as_os_str().len();
    if length > LONGEST_SOCKET {
        let message = format!("the socket path is too long: {length} bytes");
        cx.diagnostics
            .error(span.clone(), message)
            .help(format!("the maximum is {LONGEST_SOCKET} bytes"));
        return None;
    }
    Some(ServerEndpoint::Unix(path.into()))
}
