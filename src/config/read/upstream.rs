//! Reads `[[upstreams]]`.

use std::net::SocketAddr;
use std::time::Duration;

use super::name;
use crate::config::Spanned;
use crate::config::defaults;
use crate::config::file::{Balance, Upstream};
use crate::config::scalar::{between, choice, duration, integer, server};
use crate::config::section::Section;

const BALANCES: &[(&str, Balance)] = &[("p2c", Balance::P2c), ("round_robin", Balance::RoundRobin)];
const SHORTEST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_secs(86_400);

const PROTOCOLS: &[(&str, ())] = &[("http/1.1", ())];

pub(super) fn upstream(s: &mut Section<'_, '_>) -> Upstream {
    s.later(&[
        "resolve_interval",
        "hash_key",
        "tls",
        "retries",
        "health",
        "circuit_breaker",
        "concurrency",
    ]);
    s.or("protocol", choice(PROTOCOLS, &["h2", "auto"]), ());
    let timeout = || between(SHORTEST, LONGEST, duration());
    Upstream {
        span: s.span(),
        name: name(s, "\"app\""),
        servers: servers(s),
        balance: s.or(
            "balance",
            choice(BALANCES, &["least_requests", "hash"]),
            defaults::BALANCE,
        ),
        connect_timeout: s.or("connect_timeout", timeout(), defaults::CONNECT_TIMEOUT),
        response_timeout: s.or("response_timeout", timeout(), defaults::RESPONSE_TIMEOUT),
        max_idle_per_server: s.or(
            "max_idle_per_server",
            integer(0..=100_000),
            defaults::MAX_IDLE_PER_SERVER,
        ),
    }
}

fn servers(s: &mut Section<'_, '_>) -> Vec<Spanned<SocketAddr>> {
    let servers = s.array("servers", server());
    if s.lacks("servers") {
        s.missing("servers", "[\"127.0.0.1:9000\"]");
    }
    if s.is_empty("servers") {
        let span = s.key_span("servers").unwrap_or(s.span());
        s.out
            .error(span, "an upstream needs a server")
            .help("for example `servers = [\"127.0.0.1:9000\"]`");
    }
    servers.unwrap_or_default()
}
