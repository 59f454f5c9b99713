//! `[[upstreams]]`.

use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use super::health::health;
use super::name;
use crate::config::scalar::{
    between, boolean, choice, duration, filled, host_or_none, integer, path, server, size_between,
};
use crate::config::schema::ExampleValue;
use crate::config::section::SectionReader;
use crate::config::{ExprText, Spanned, Text};
use crate::facts::fields;
use crate::upstream::{
    BalancePolicy, BreakerPolicy, HealthPolicy, ServerLocation, UpstreamProtocol,
};

/// One of `[[upstreams]]`.
#[derive(Clone, Debug)]
pub struct UpstreamSettings {
    /// The header of the section.
    pub span: Range<usize>,
    /// The unique name that routes use.
    pub name: Text,
    /// Its servers, at least one in a file without errors.
    pub servers: Vec<UpstreamServerSettings>,
    /// The interval of DNS lookups. Default 10 s.
    pub resolve_interval: Spanned<Duration>,
    /// The balancing policy. Default p2c.
    pub balance: Spanned<BalancePolicy>,
    /// `hash`: the key that selects the server. Default the client's address.
    pub hash_key: Vec<ExprText>,
    /// The protocol to the servers. Default HTTP/1.1.
    pub protocol: Spanned<UpstreamProtocol>,
    /// The TLS settings. Default no TLS.
    pub tls: Spanned<Option<OriginTls>>,
    /// The timeout for establishing a connection. Default 2 s.
    pub connect_timeout: Spanned<Duration>,
    /// The timeout for the head of the response. Default 30 s.
    pub response_timeout: Spanned<Duration>,
    /// The maximum size of a response head in bytes. Default 64 KiB.
    pub max_response_header_bytes: Spanned<u64>,
    /// The maximum number of headers of a response. Default 100.
    pub max_response_headers: Spanned<u32>,
    /// The maximum number of retries per request. Default 1.
    pub retries: Spanned<u32>,
    /// The maximum number of idle connections per server. Default 256.
    pub max_idle_per_server: Spanned<u32>,
    /// Whether requests keep the client's host. Default true.
    pub preserve_host: Spanned<bool>,
    /// The host of health checks, and of requests without `preserve_host`. `None`, the default: found from the routes
    /// and servers.
    pub host: Option<String>,
    /// The health check settings. `None`, the default, disables health checks.
    pub health: Option<HealthPolicy>,
    /// The circuit breaker settings. `None`, the default, disables it.
    pub circuit_breaker: Option<BreakerPolicy>,
}

/// One of `upstreams.servers`.
#[derive(Clone, Debug)]
pub struct UpstreamServerSettings {
    /// Its address.
    pub address: Spanned<ServerLocation>,
    /// Its weight in load balancing. Default 1.
    pub weight: u32,
    /// Whether it gets requests only if no other server is available. Default false.
    pub backup: bool,
}

/// `upstreams.tls`.
#[derive(Clone, Debug, Default)]
pub struct OriginTls {
    /// The name that the certificate must match. Default: the host in `servers`.
    pub server_name: Option<Text>,
    /// A PEM file of trusted authorities. Default: the system's trust store.
    pub ca: Option<Spanned<PathBuf>>,
    /// The span of `verify = false`, which accepts any certificate. `None` if certificates are verified.
    pub unverified: Option<Range<usize>>,
}

const BALANCES: &[(&str, BalancePolicy)] = &[
    ("p2c", BalancePolicy::P2c),
    ("round_robin", BalancePolicy::RoundRobin),
    ("least_requests", BalancePolicy::LeastRequests),
    ("hash", BalancePolicy::Hash),
];
pub(super) const SHORTEST: Duration = Duration::from_millis(1);
pub(super) const LONGEST: Duration = Duration::from_secs(86_400);
/// The shortest interval of a periodic operation.
pub(super) const OFTENEST: Duration = Duration::from_millis(100);

/// The bounds of the maximum size of a response head.
const SMALLEST_HEAD: u64 = 1 << 10;
const LARGEST_HEAD: u64 = 1 << 20;

const PROTOCOLS: &[(&str, UpstreamProtocol)] = &[
    ("http/1.1", UpstreamProtocol::Http1),
    ("h2", UpstreamProtocol::Http2),
    ("auto", UpstreamProtocol::Auto),
];

pub(super) fn upstream(s: &mut SectionReader<'_, '_>) -> UpstreamSettings {
    s.later(&["concurrency"]);
    let bounded = || between(SHORTEST, LONGEST, duration());
    let interval = between(OFTENEST, LONGEST, duration());
    let preserve_host = s.or("preserve_host", boolean(), true);
    UpstreamSettings {
        span: s.span(),
        name: name(s, "\"app\""),
        servers: servers(s),
        resolve_interval: s.or("resolve_interval", interval, Duration::from_secs(10)),
        balance: s.or("balance", choice(BALANCES, &[]), BalancePolicy::P2c),
        hash_key: hash_key(s),
        protocol: s.or("protocol", choice(PROTOCOLS, &[]), UpstreamProtocol::Http1),
        tls: tls(s),
        connect_timeout: s.or("connect_timeout", bounded(), Duration::from_secs(2)),
        response_timeout: s.or("response_timeout", bounded(), Duration::from_secs(30)),
        max_response_header_bytes: s.or(
            "max_response_header_bytes",
            size_between(SMALLEST_HEAD, LARGEST_HEAD),
            64u64 << 10,
        ),
        max_response_headers: s.or("max_response_headers", integer(1..=1000), 100u32),
        retries: s.or("retries", integer(0..=10), 1u32),
        max_idle_per_server: s.or("max_idle_per_server", integer(0..=100_000), 256u32),
        host: host(s, preserve_host.value),
        preserve_host,
        health: s.table("health", health).flatten(),
        circuit_breaker: s.table("circuit_breaker", circuit_breaker),
    }
}

/// Reads `host`. It has an effect only if something uses it.
fn host(s: &mut SectionReader<'_, '_>, preserve_host: bool) -> Option<String> {
    let host = s.or("host", host_or_none(), None);
    if host.value.is_some() && preserve_host && !s.has("health") {
        let message = "`host` has no effect without `health` or `preserve_host = false`";
        s.out
            .error(host.span, message)
            .help("remove it, or write `preserve_host = false` to send this host to the servers");
    }
    host.value
}

fn tls(s: &mut SectionReader<'_, '_>) -> Spanned<Option<OriginTls>> {
    let switch = boolean()
        .map(|on| on.then(OriginTls::default))
        .shown(|tls: &Option<OriginTls>| ExampleValue::Boolean(tls.is_some()));
    s.value_or_table("tls", switch, None, |s| {
        Some(Some(OriginTls {
            server_name: s.optional("server_name", filled()),
            ca: s.optional("ca", path()),
            unverified: unverified(s),
        }))
    })
}

fn unverified(s: &mut SectionReader<'_, '_>) -> Option<Range<usize>> {
    let verify = s.or("verify", boolean(), true);
    (!verify.value).then_some(verify.span)
}

fn servers(s: &mut SectionReader<'_, '_>) -> Vec<UpstreamServerSettings> {
    let plain = |address: Spanned<ServerLocation>| UpstreamServerSettings {
        address,
        weight: 1,
        backup: false,
    };
    let servers = s.array_or_tables("servers", server(), plain, one);
    if s.lacks("servers") {
        s.missing("servers", "[\"127.0.0.1:9000\"]");
    }
    let example = "for example `servers = [\"127.0.0.1:9000\"]`";
    s.not_empty("servers", "an upstream needs at least one server", example);
    // If two servers have one address, the first is kept.
    let mut seen = Vec::new();
    let mut servers = servers.unwrap_or_default();
    servers.retain(|server| {
        let is_new = !seen.contains(&server.address.value);
        seen.push(server.address.value.clone());
        is_new
    });
    servers
}

fn one(s: &mut SectionReader<'_, '_>) -> Option<UpstreamServerSettings> {
    let address = s.required("address", server(), "\"127.0.0.1:9000\"");
    let weight = s.or("weight", integer(1..=100), 1u32);
    let backup = s.or("backup", boolean(), false);
    Some(UpstreamServerSettings {
        address: address?,
        weight: weight.value,
        backup: backup.value,
    })
}

fn hash_key(s: &mut SectionReader<'_, '_>) -> Vec<ExprText> {
    let default = fields::by_id(fields::CLIENT_ADDRESS).name;
    let key = s.array_or("hash_key", filled(), [default.to_owned()]);
    let key = key.into_iter().map(ExprText::written).collect();
    let message = "`hash_key` is empty: all requests would go to one server";
    s.not_empty("hash_key", message, "for example `hash_key = [\"ip.src\"]`");
    key
}

fn circuit_breaker(s: &mut SectionReader<'_, '_>) -> BreakerPolicy {
    let bounded = || between(SHORTEST, LONGEST, duration());
    BreakerPolicy {
        failures: s.or("failures", integer(1..=1000), 5u32).value,
        within: s.or("within", bounded(), Duration::from_secs(10)).value,
        open_for: s.or("open_for", bounded(), Duration::from_secs(5)).value,
    }
}
