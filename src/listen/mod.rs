//! Everything between a client's socket and a request: sockets, connection bounds, timers, the HTTP
//! server and its drain.
//!
//! One single-threaded runtime a core, each with its own listener, its own [`ConnectionTimers`] and
//! its own [`CoreDrain`]; only the [`ConnectionLimit`] is shared. A connection goes `bind → accept_loop →
//! ConnectionTimers::start → (PROXY header, handshake or sniff, under ConnectionTimer::guard) →
//! serve`. This module never makes a TLS handshake and never decides what a request gets.

mod accept;
mod client_socket;
mod connection_state;
mod drain;
mod first_bytes;
mod http1;
mod http2;
mod min_rate;
mod request_body;
mod response;
mod serve;
mod socket;
#[cfg(test)]
mod tests;
mod timers;

use std::time::Duration;

pub use accept::{ConnectionLimit, ConnectionPermit, accept_loop, spawn};
pub use client_socket::ClientSocket;
pub use drain::{CoreDrain, DrainTrigger};
pub use first_bytes::{proxy_header, sniff};
pub use request_body::{DrainOutcome, RequestBody, TooSlow, drain_body, read_out};
pub use serve::{RequestHandler, serve};
pub use socket::{adopt, bind, connections_for, must_be_free, raise_descriptors};
pub use timers::{ConnectionTimer, ConnectionTimers, ResponseEnd, ResponseHandle, TunnelGuard};

/// What a connection may take, in time and in size.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionLimits {
    /// For a handshake, for the first byte of a connection, and for each whole request head.
    pub header_timeout: Duration,
    /// For a connection between two requests.
    pub idle_timeout: Duration,
    /// Between two reads of a request's body, while the gateway waits for it.
    pub request_body_timeout: Duration,
    /// Between two writes to a client that does not read.
    pub response_write_timeout: Duration,
    /// Bytes a second that a client owes while it is waited for; 0 is no minimum.
    pub min_rate: u64,
    /// What `min_rate` is averaged over.
    pub rate_window: Duration,
    /// Bytes of a request head.
    pub max_header_bytes: usize,
    /// Headers of an HTTP/1 request head.
    pub max_headers: usize,
    /// Requests in flight on an HTTP/2 connection.
    pub h2_max_concurrent_streams: u32,
    /// Streams of an HTTP/2 connection that end in 30 s because the client resets them or makes
    /// an error; 0 is no bound.
    pub h2_max_resets: u32,
}

/// What is spoken on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpVersion {
    /// HTTP/1.0 or HTTP/1.1.
    Http1,
    /// HTTP/2, from its preface on.
    Http2,
}

/// What a connection was doing when its time ran out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlowPhase {
    /// The handshake, or something else under [`ConnectionTimer::guard`].
    Handshake,
    /// A request head, or the first byte of one.
    Head,
    /// Nothing, between two requests.
    Idle,
    /// Taking a response.
    Reading,
    /// Ending, after the gateway decided so.
    Closing,
}

/// How a client violated HTTP/2, so that the connection had to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct H2Violation {
    /// The error code of the GOAWAY frame (RFC 9113, 7).
    code: u32,
    /// A short description, which the client gets too.
    what: &'static str,
}

/// What a client did wrong, for the counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientFault {
    /// The client was too slow.
    Timeout,
    /// A head is over the limits.
    HeadTooLarge,
    /// It is in doubt where the body of a request ends.
    Framing,
    /// The client sent what is not HTTP.
    Malformed,
    /// The client sent more HTTP/2 frames of a kind than any client needs.
    Flood,
}

/// Why a connection ended before its time.
#[derive(Debug)]
pub enum ServeError {
    /// The client was too slow.
    Slow(SlowPhase),
    /// The client sent an HTTP/1 head that hyper refused with a status, so that no handler saw it.
    Head(ClientFault, u16),
    /// The client violated HTTP/2, or flooded the gateway with frames.
    Http2(H2Violation),
    /// The socket failed under HTTP, or a request got no response.
    Http(hyper::Error),
    /// The socket failed.
    Io(std::io::Error),
}

// === impl H2Violation ===

impl H2Violation {
    const PROTOCOL_ERROR: u32 = 0x1;
    const COMPRESSION_ERROR: u32 = 0x9;
    const ENHANCE_YOUR_CALM: u32 = 0xb;

    const PREFACE: Self = Self::new(Self::PROTOCOL_ERROR, "no connection preface");
    const CONNECT: Self = Self::new(Self::PROTOCOL_ERROR, "CONNECT with a body");
    const WINDOW: Self = Self::new(0x3, "a window over the largest");
    const CLOSED: Self = Self::new(0x5, "a frame on a stream that its client ended");
    const SIZE: Self = Self::new(0x6, "a frame of a wrong size");

    const fn new(code: u32, what: &'static str) -> Self {
        Self { code, what }
    }

    /// More frames of a kind than an honest client sends.
    const fn flood(what: &'static str) -> Self {
        Self::new(Self::ENHANCE_YOUR_CALM, what)
    }

    /// What h2 found, by the code that it sent.
    const fn from_code(code: u32) -> Self {
        let what = match code {
            Self::ENHANCE_YOUR_CALM => "more than h2 allows",
            Self::COMPRESSION_ERROR => "a head that cannot be decompressed",
            _ => "a protocol error",
        };
        Self::new(code, what)
    }
}

// === impl ServeError ===

impl ServeError {
    /// What the client did wrong. `None` if the connection just failed.
    pub fn fault(&self) -> Option<ClientFault> {
        Some(match self {
            ServeError::Slow(_) => ClientFault::Timeout,
            ServeError::Head(fault, _) => *fault,
            ServeError::Http2(violation) if violation.code == H2Violation::ENHANCE_YOUR_CALM => {
                ClientFault::Flood
            }
            ServeError::Http2(_) => ClientFault::Malformed,
            ServeError::Http(_) | ServeError::Io(_) => return None,
        })
    }

    /// The status that hyper has sent by itself, for a head that no handler saw.
    pub fn status(&self) -> Option<u16> {
        match self {
            ServeError::Head(_, status) => Some(*status),
            _ => None,
        }
    }
}

impl From<SlowPhase> for ServeError {
    fn from(slow: SlowPhase) -> Self {
        ServeError::Slow(slow)
    }
}
