//! `[server]` and `[limits]`.

use std::path::PathBuf;
use std::time::Duration;

use crate::config::Spanned;

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
