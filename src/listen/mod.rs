//! Everything between a client's socket and a request: sockets, connection limits, timers, the HTTP server and
//! its drain.
//!
//! Each core has a single-threaded runtime with a listener, [`ConnectionTimers`] and a [`CoreDrain`]; only the
//! [`ConnectionLimit`] is shared. A connection passes through `bind → accept_loop → ConnectionTimers::start →
//! (PROXY header, handshake or sniff, under ConnectionTimer::guard) → serve`. This module performs no TLS
//! handshake and makes no decision about a request.

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
mod unread_body;

use std::time::Duration;

pub use accept::{ConnectionLimit, ConnectionPermit, accept_loop, spawn};
pub use client_socket::ClientSocket;
pub use drain::{CoreDrain, DrainTrigger};
pub use first_bytes::{proxy_header, sniff};
pub use request_body::{
    DrainOutcome, PutBack, RequestBody, TooSlow, collect_body, drain_body, read_out,
};
pub use serve::{RequestHandler, serve};
pub use socket::{adopt, bind, connections_for, must_be_free, raise_descriptors};
pub use timers::{ConnectionTimer, ConnectionTimers, ResponseEnd, ResponseHandle, TunnelGuard};

/// The timeouts and size limits of a connection.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionLimits {
    /// The timeout of a handshake, of the first byte of a connection, and of each complete request head.
    pub header_timeout: Duration,
    /// The timeout of a connection between two requests.
    pub idle_timeout: Duration,
    /// The timeout between two reads of a request body, while the gateway waits for it.
    pub request_body_timeout: Duration,
    /// The timeout between two writes to a client that does not read.
    pub response_write_timeout: Duration,
    /// The minimum rate of a client in bytes per second while the gateway waits for it; 0 for none.
    pub min_rate: u64,
    /// The time over which `min_rate` is averaged.
    pub rate_window: Duration,
    /// The maximum size of a request head, in bytes.
    pub max_header_bytes: usize,
    /// The maximum number of headers of an HTTP/1 request head.
    pub max_headers: usize,
    /// The maximum number of requests in flight on an HTTP/2 connection.
    pub h2_max_concurrent_streams: u32,
    /// The maximum number of streams of an HTTP/2 connection that end within 30 s because the client resets them
    /// or makes an error; 0 for no limit.
    pub h2_max_resets: u32,
    /// How much of a request body that nothing needs is read.
    pub linger: LingerLimits,
}

/// How much of a request body that nothing needs is read, so that the client sees the response. Zero reads nothing.
#[derive(Clone, Copy, Debug)]
pub struct LingerLimits {
    /// The maximum number of bytes, from the beginning of the response.
    pub bytes: u64,
    /// The maximum time, from the beginning of the response.
    pub time: Duration,
}

/// The HTTP version of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpVersion {
    /// HTTP/1.0 or HTTP/1.1.
    Http1,
    /// HTTP/2, from its preface on.
    Http2,
}

/// The phase of a connection that timed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlowPhase {
    /// The handshake, or something else under [`ConnectionTimer::guard`].
    Handshake,
    /// A request head, or the first byte of one.
    Head,
    /// Between two requests.
    Idle,
    /// The client reading a response.
    Reading,
    /// Closing, after the gateway has decided to.
    Closing,
}

/// A violation of HTTP/2 by which the connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct H2Violation {
    /// The error code of the GOAWAY frame (RFC 9113, 7).
    code: u32,
    /// A short description, which is sent to the client too.
    what: &'static str,
}

/// An error of a client, for the metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientFault {
    /// The client was too slow.
    Timeout,
    /// A head exceeds the limits.
    HeadTooLarge,
    /// The end of a request body is ambiguous.
    Framing,
    /// The client sent bytes that are not HTTP.
    Malformed,
    /// The client sent more HTTP/2 frames of one type than any client needs.
    Flood,
}

/// Why a connection ended early.
#[derive(Debug)]
pub enum ServeError {
    /// The client was too slow.
    Slow(SlowPhase),
    /// The client sent an HTTP/1 head that hyper refused with this status before any handler saw it.
    Head(ClientFault, u16),
    /// The client violated HTTP/2, or flooded the gateway with frames.
    Http2(H2Violation),
    /// The socket failed during HTTP, or a request got no response.
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
    const WINDOW: Self = Self::new(0x3, "a flow-control window above the maximum");
    const CLOSED: Self = Self::new(0x5, "a frame on a stream that the client has closed");
    const SIZE: Self = Self::new(0x6, "a frame of an invalid size");

    const fn new(code: u32, what: &'static str) -> Self {
        Self { code, what }
    }

    /// Creates the violation of too many frames of one type.
    const fn flood(what: &'static str) -> Self {
        Self::new(Self::ENHANCE_YOUR_CALM, what)
    }

    /// Creates the violation that h2 found, from the error code that it sent.
    const fn from_code(code: u32) -> Self {
        let what = match code {
            Self::ENHANCE_YOUR_CALM => "more than the HTTP/2 library allows",
            Self::COMPRESSION_ERROR => "a head that cannot be decompressed",
            _ => "a protocol error",
        };
        Self::new(code, what)
    }
}

// === impl ServeError ===

impl ServeError {
    /// Returns the client's error. `None` if the connection just failed.
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

    /// Returns the status that hyper has sent for a head that no handler saw. `None` if it sent none.
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
