//! Reads `[server]` and `[limits]`.

use std::time::Duration;

use crate::config::defaults;
use crate::config::file::{Limits, Server};
use crate::config::scalar::{between, duration, integer, path_or_none, size, size_between};
use crate::config::section::Section;

const DAY: Duration = Duration::from_secs(86_400);
const MILLISECOND: Duration = Duration::from_millis(1);

pub(super) fn server(s: &mut Section<'_, '_>) -> Server {
    Server {
        workers: s.or("workers", integer(0..=1024), defaults::WORKERS),
        drain_timeout: s.or(
            "drain_timeout",
            between(Duration::ZERO, DAY, duration()),
            defaults::DRAIN_TIMEOUT,
        ),
        max_connections: s.or(
            "max_connections",
            integer(1..=10_000_000),
            defaults::MAX_CONNECTIONS,
        ),
        max_held: s.or("max_held", integer(0..=10_000_000), defaults::MAX_HELD),
        secret_file: s.or("secret_file", path_or_none(), None),
    }
}

pub(super) fn limits(s: &mut Section<'_, '_>) -> Limits {
    let timeout = || between(MILLISECOND, DAY, duration());
    Limits {
        header_timeout: s.or("header_timeout", timeout(), defaults::HEADER_TIMEOUT),
        idle_timeout: s.or("idle_timeout", timeout(), defaults::IDLE_TIMEOUT),
        request_body_timeout: s.or(
            "request_body_timeout",
            timeout(),
            defaults::REQUEST_BODY_TIMEOUT,
        ),
        response_write_timeout: s.or(
            "response_write_timeout",
            timeout(),
            defaults::RESPONSE_WRITE_TIMEOUT,
        ),
        min_rate: s.or("min_rate", size(), defaults::MIN_RATE),
        max_header_bytes: s.or(
            "max_header_bytes",
            size_between(256, 16 << 20),
            defaults::MAX_HEADER_BYTES,
        ),
        max_headers: s.or("max_headers", integer(1..=10_000), defaults::MAX_HEADERS),
        max_body_bytes: s.or("max_body_bytes", size(), defaults::MAX_BODY_BYTES),
        max_connections_per_ip: s.or(
            "max_connections_per_ip",
            integer(0..=10_000_000),
            defaults::MAX_CONNECTIONS_PER_IP,
        ),
        h2_max_concurrent_streams: s.or(
            "h2_max_concurrent_streams",
            integer(1..=100_000),
            defaults::H2_MAX_CONCURRENT_STREAMS,
        ),
        h2_max_resets: s.or(
            "h2_max_resets",
            integer(0..=1_000_000),
            defaults::H2_MAX_RESETS,
        ),
    }
}
