//! `[server]` and `[limits]`.

use std::path::PathBuf;
use std::time::Duration;

use crate::config::Spanned;
use crate::config::scalar::{between, duration, integer, path_or_none, size, size_between};
use crate::config::section::Section;

/// `[server]`.
#[derive(Clone, Debug)]
pub struct Server {
    /// Threads that serve; 0 is one per core. Default 0.
    pub workers: Spanned<u32>,
    /// How long open requests may take after a signal to stop. Default 30 s.
    pub drain_timeout: Spanned<Duration>,
    /// Connections at once, over all listeners. Default 100,000.
    pub max_connections: Spanned<u32>,
    /// Requests that rules hold at once. Default 10,000.
    pub max_held: Spanned<u32>,
    /// Where the secret of this gateway is; `None`: made at each start. Default none.
    pub secret_file: Spanned<Option<PathBuf>>,
}

/// `[limits]`: per connection and per request.
#[derive(Clone, Debug)]
pub struct Limits {
    /// For the whole request head, from its first byte, and for the handshake. Default 10 s.
    pub header_timeout: Spanned<Duration>,
    /// How long a connection may stay without a request. Default 75 s.
    pub idle_timeout: Spanned<Duration>,
    /// Between two reads of a request body. Default 30 s.
    pub request_body_timeout: Spanned<Duration>,
    /// Between two writes to a client. Default 30 s.
    pub response_write_timeout: Spanned<Duration>,
    /// Bytes a second of a body that is sent or read; 0 is off. Default 100.
    pub min_rate: Spanned<u64>,
    /// Bytes of a request head. Default 32 KiB.
    pub max_header_bytes: Spanned<u64>,
    /// Header lines of a request. Default 100.
    pub max_headers: Spanned<u32>,
    /// Bytes of a request body; 0 is unlimited. Default 0.
    pub max_body_bytes: Spanned<u64>,
    /// Connections at once of one address, by the prefixes of `[client_ip]`; 0 is unlimited.
    /// Default 0.
    pub max_connections_per_ip: Spanned<u32>,
    /// Streams at once on an HTTP/2 connection. Default 128.
    pub h2_max_concurrent_streams: Spanned<u32>,
    /// Streams of an HTTP/2 connection that end in 30 s because the client resets them or makes
    /// an error, before GOAWAY; 0 is unlimited. Default 100.
    pub h2_max_resets: Spanned<u32>,
}

const DAY: Duration = Duration::from_secs(86_400);
const MILLISECOND: Duration = Duration::from_millis(1);

pub(super) fn server(s: &mut Section<'_, '_>) -> Server {
    Server {
        workers: s.or("workers", integer(0..=1024), 0u32),
        drain_timeout: s.or(
            "drain_timeout",
            between(Duration::ZERO, DAY, duration()),
            Duration::from_secs(30),
        ),
        max_connections: s.or("max_connections", integer(1..=10_000_000), 100_000u32),
        max_held: s.or("max_held", integer(0..=10_000_000), 10_000u32),
        secret_file: s.or("secret_file", path_or_none(), None),
    }
}

pub(super) fn limits(s: &mut Section<'_, '_>) -> Limits {
    let timeout = || between(MILLISECOND, DAY, duration());
    Limits {
        header_timeout: s.or("header_timeout", timeout(), Duration::from_secs(10)),
        idle_timeout: s.or("idle_timeout", timeout(), Duration::from_secs(75)),
        request_body_timeout: s.or("request_body_timeout", timeout(), Duration::from_secs(30)),
        response_write_timeout: s.or("response_write_timeout", timeout(), Duration::from_secs(30)),
        min_rate: s.or("min_rate", size(), 100u64),
        max_header_bytes: s.or("max_header_bytes", size_between(256, 16 << 20), 32u64 << 10),
        max_headers: s.or("max_headers", integer(1..=10_000), 100u32),
        max_body_bytes: s.or("max_body_bytes", size(), 0u64),
        max_connections_per_ip: s.or("max_connections_per_ip", integer(0..=10_000_000), 0u32),
        h2_max_concurrent_streams: s.or("h2_max_concurrent_streams", integer(1..=100_000), 128u32),
        h2_max_resets: s.or("h2_max_resets", integer(0..=1_000_000), 100u32),
    }
}
