//! Reads `[[upstreams]]`.

use std::ops::Range;
use std::time::Duration;

use super::name;
use crate::config::defaults;
use crate::config::file::{
    Address, Balance, CircuitBreaker, Health, Member, OriginProtocol, OriginTls, Upstream,
};
use crate::config::scalar::{
    between, boolean, choice, duration, filled, integer, path, server, target_path,
};
use crate::config::schema::Value;
use crate::config::section::Section;
use crate::config::{Spanned, Text};

const BALANCES: &[(&str, Balance)] = &[
    ("p2c", Balance::P2c),
    ("round_robin", Balance::RoundRobin),
    ("least_requests", Balance::LeastRequests),
    ("hash", Balance::Hash),
];
const SHORTEST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_secs(86_400);
/// What is done again and again is not done more often than this.
const OFTENEST: Duration = Duration::from_millis(100);

const PROTOCOLS: &[(&str, OriginProtocol)] = &[
    ("http/1.1", OriginProtocol::Http11),
    ("h2", OriginProtocol::H2),
    ("auto", OriginProtocol::Auto),
];

pub(super) fn upstream(s: &mut Section<'_, '_>) -> Upstream {
    s.later(&["concurrency"]);
    let balance = s.or("balance", choice(BALANCES, &[]), defaults::BALANCE);
    let bounded = || between(SHORTEST, LONGEST, duration());
    let interval = between(OFTENEST, LONGEST, duration());
    Upstream {
        span: s.span(),
        name: name(s, "\"app\""),
        servers: servers(s),
        resolve_interval: s.or("resolve_interval", interval, defaults::RESOLVE_INTERVAL),
        hash_key: hash_key(s, &balance),
        balance,
        protocol: s.or(
            "protocol",
            choice(PROTOCOLS, &[]),
            defaults::ORIGIN_PROTOCOL,
        ),
        tls: tls(s),
        connect_timeout: s.or("connect_timeout", bounded(), defaults::CONNECT_TIMEOUT),
        response_timeout: s.or("response_timeout", bounded(), defaults::RESPONSE_TIMEOUT),
        retries: s.or("retries", integer(0..=10), defaults::RETRIES),
        max_idle_per_server: s.or(
            "max_idle_per_server",
            integer(0..=100_000),
            defaults::MAX_IDLE_PER_SERVER,
        ),
        health: s.table("health", health).flatten(),
        circuit_breaker: s.table("circuit_breaker", circuit_breaker),
    }
}

fn tls(s: &mut Section<'_, '_>) -> Spanned<Option<OriginTls>> {
    let switch = boolean()
        .map(|on| on.then(OriginTls::default))
        .shown(|tls: &Option<OriginTls>| Value::Boolean(tls.is_some()));
    s.value_or_table("tls", switch, None, |s| {
        Some(Some(OriginTls {
            server_name: s.optional("server_name", filled()),
            ca: s.optional("ca", path()),
            unverified: unverified(s),
        }))
    })
}

fn unverified(s: &mut Section<'_, '_>) -> Option<Range<usize>> {
    let verify = s.or("verify", boolean(), defaults::VERIFY);
    (!verify.value).then_some(verify.span)
}

fn servers(s: &mut Section<'_, '_>) -> Vec<Member> {
    let plain = |address: Spanned<Address>| Member {
        weight: Spanned::new(defaults::WEIGHT, address.span.clone()),
        backup: Spanned::new(defaults::BACKUP, address.span.clone()),
        address,
    };
    let servers = s.array_or_tables("servers", server(), plain, one);
    if s.lacks("servers") {
        s.missing("servers", "[\"127.0.0.1:9000\"]");
    }
    if s.is_empty("servers") {
        let span = s.key_span("servers").unwrap_or(s.span());
        s.out
            .error(span, "an upstream needs a server")
            .help("for example `servers = [\"127.0.0.1:9000\"]`");
    }
    different(s, servers.unwrap_or_default())
}

fn one(s: &mut Section<'_, '_>) -> Option<Member> {
    let address = s.required("address", server(), "\"127.0.0.1:9000\"");
    let weight = s.or("weight", integer(1..=100), defaults::WEIGHT);
    let backup = s.or("backup", boolean(), defaults::BACKUP);
    Some(Member {
        address: address?,
        weight,
        backup,
    })
}

/// The servers without those that were there before.
fn different(s: &mut Section<'_, '_>, servers: Vec<Member>) -> Vec<Member> {
    let mut seen: Vec<Member> = Vec::new();
    for server in servers {
        let address = &server.address;
        match seen.iter().find(|old| old.address.value == address.value) {
            None => seen.push(server),
            Some(first) => {
                let message = "this server is there already; it is left out";
                s.out
                    .warning(address.span.clone(), message)
                    .related(first.address.span.clone(), "here")
                    .help("`{ address = \"…\", weight = 2 }` sends it twice as much");
            }
        }
    }
    seen
}

fn hash_key(s: &mut Section<'_, '_>, balance: &Spanned<Balance>) -> Vec<Text> {
    let default = defaults::HASH_KEY.map(str::to_owned);
    let key = s.array_or("hash_key", filled(), default);
    let span = s.key_span("hash_key").unwrap_or(s.span());
    if s.is_empty("hash_key") {
        s.out
            .error(span, "a key without parts is the same for everybody")
            .help("for example `hash_key = [\"ip.src\"]`");
    } else if balance.value != Balance::Hash
        && !s.refused("balance", balance)
        && !key.iter().map(|part| &part.value).eq(defaults::HASH_KEY)
    {
        s.out
            .warning(span, "`hash_key` does nothing without `balance = \"hash\"`")
            .help("add `balance = \"hash\"`, or remove `hash_key`");
    }
    key
}

fn health(s: &mut Section<'_, '_>) -> Option<Health> {
    let path = s.required("path", target_path(), "\"/healthz\"");
    let interval = between(OFTENEST, LONGEST, duration());
    let timeout = between(SHORTEST, LONGEST, duration());
    let times = || integer(1..=100);
    let interval = s.or("interval", interval, defaults::HEALTH_INTERVAL);
    let timeout = s.or("timeout", timeout, defaults::HEALTH_TIMEOUT);
    patient(s, &interval, &timeout);
    let healthy = s.or("healthy", times(), defaults::HEALTHY);
    let unhealthy = s.or("unhealthy", times(), defaults::UNHEALTHY);
    Some(Health {
        path: path?,
        interval,
        timeout,
        healthy,
        unhealthy,
    })
}

/// A check that may take longer than the time between two keeps the next one waiting.
fn patient(s: &mut Section<'_, '_>, interval: &Spanned<Duration>, timeout: &Spanned<Duration>) {
    if timeout.value <= interval.value {
        return;
    }
    let written = ["timeout", "interval"].into_iter();
    let span = written.filter_map(|key| s.key_span(key)).next();
    s.out
        .warning(
            span.unwrap_or(s.span()),
            "a check may take longer than the time between two: they come later than `interval` says",
        )
        .help("use a `timeout` that is not above `interval`");
}

fn circuit_breaker(s: &mut Section<'_, '_>) -> CircuitBreaker {
    let bounded = || between(SHORTEST, LONGEST, duration());
    CircuitBreaker {
        failures: s.or("failures", integer(1..=1000), defaults::FAILURES),
        within: s.or("within", bounded(), defaults::FAILURES_WITHIN),
        open_for: s.or("open_for", bounded(), defaults::OPEN_FOR),
    }
}
