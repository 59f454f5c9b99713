//! The way in: sockets, connection bounds, deadlines, the HTTP server and its drain.
//!
//! One single-threaded runtime a core, each with its own listener, its own [`Deadlines`] and its
//! own [`Drain`]; only the [`Gate`] is shared. A connection goes
//! `bind → accept_loop → Deadlines::watch → (PROXY header, handshake or sniff, under Watch::guard) → serve`.
//! This module never makes a TLS handshake and never decides what a request gets.

mod accept;
mod answer;
mod batch;
mod body;
mod crowd;
mod deadline;
mod descriptors;
mod drain;
mod frames;
mod framing;
mod incoming;
mod io;
mod meter;
mod metered;
mod opened;
mod pace;
mod proxy;
mod serve;
mod slots;
mod sniff;
mod socket;
#[cfg(test)]
mod tests;
mod transfer;

use std::fmt;
use std::time::Duration;

pub use accept::{Gate, Permit, accept_loop, spawn};
pub use body::{Drained, drain_body, read_out};
pub use deadline::{Deadlines, Fate, Fates, Lull, Stay, Watch};
pub use descriptors::{connections_for, raise_descriptors};
pub use drain::{Drain, DrainTrigger};
pub use incoming::{Incoming, TooSlow};
pub use io::Socket;
pub use proxy::{NoHeader, proxy_header};
pub use serve::serve;
pub use sniff::sniff;
pub use socket::{adopt, bind, must_be_free};

/// What a connection may take, in time and in size.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// For a handshake, for the first byte of a connection, and for each whole request head.
    pub header_timeout: Duration,
    /// For a connection between two requests.
    pub idle_timeout: Duration,
    /// Between two reads of a request's body, while somebody waits for it.
    pub request_body_timeout: Duration,
    /// Between two writes to a client that does not read.
    pub response_write_timeout: Duration,
    /// Bytes a second that a client owes while it is waited for; 0: none.
    pub min_rate: u64,
    /// What that is averaged over.
    pub rate_window: Duration,
    /// Bytes of a request head.
    pub max_header_bytes: usize,
    /// Fields of an HTTP/1 request head.
    pub max_headers: usize,
    /// Requests in flight on an HTTP/2 connection.
    pub h2_max_concurrent_streams: u32,
    /// Streams of an HTTP/2 connection that end in 30 s because the client resets them or makes
    /// an error; 0 is no bound.
    pub h2_max_resets: u32,
}

/// What is spoken on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.0 or HTTP/1.1.
    Http1,
    /// HTTP/2, from its preface on.
    Http2,
}

/// What a connection was doing when its time ran out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slow {
    /// The handshake, or whatever else ran under [`Watch::guard`].
    Handshake,
    /// A request head, or the first byte of one.
    Head,
    /// Nothing at all, between two requests.
    Idle,
    /// Taking what it had asked for.
    Reading,
    /// Ending, after it was told to.
    Closing,
}

/// What a client did to an HTTP/2 connection that had to be ended for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken {
    /// The error code of the GOAWAY frame (RFC 9113, 7).
    code: u32,
    /// In a few words, which the client gets too.
    what: &'static str,
}

/// Why a connection ended before its time.
#[derive(Debug)]
pub enum Error {
    /// It was too slow.
    Slow(Slow),
    /// It broke HTTP, its socket failed under HTTP, or a request was not to be answered.
    Http(hyper::Error),
    /// It sent an HTTP/1 head that leaves in doubt where its body ends.
    Framing(hyper::Error),
    /// It broke HTTP/2, or flooded us with it.
    Broken(Broken),
    /// Its socket failed.
    Io(std::io::Error),
}

// === impl Broken ===

impl Broken {
    const PROTOCOL: u32 = 0x1;
    const UNREADABLE: u32 = 0x9;
    const CALM: u32 = 0xb;
    const PREFACE: Self = Self {
        code: Self::PROTOCOL,
        what: "no connection preface",
    };
    const CONNECT: Self = Self {
        code: Self::PROTOCOL,
        what: "CONNECT with a body",
    };
    const WINDOW: Self = Self {
        code: 0x3,
        what: "a window over the largest",
    };
    const CLOSED: Self = Self {
        code: 0x5,
        what: "a frame on a stream that its client ended",
    };
    const SIZE: Self = Self {
        code: 0x6,
        what: "a frame of a wrong size",
    };

    /// More frames of a kind than an honest client sends.
    const fn flood(what: &'static str) -> Self {
        let code = Self::CALM;
        Self { code, what }
    }

    /// What h2 found, by the code that it sent.
    const fn said(code: u32) -> Self {
        let what = match code {
            Self::CALM => "more than h2 allows",
            Self::UNREADABLE => "a head that cannot be decompressed",
            _ => "a protocol error",
        };
        Self { code, what }
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HTTP/2 error {:#x}: {}", self.code, self.what)
    }
}

// === impl Error ===

impl Error {
    /// Whether the client was too slow.
    pub fn is_timeout(&self) -> bool {
        matches!(self, Error::Slow(_))
    }

    /// Whether the client sent a head over the limits.
    pub fn is_head_too_large(&self) -> bool {
        matches!(self, Error::Http(e) if e.is_parse_too_large())
    }

    /// Whether the client sent what is not HTTP.
    pub fn is_malformed(&self) -> bool {
        match self {
            Error::Http(e) => e.is_parse(),
            Error::Framing(_) => true,
            Error::Broken(broken) => broken.code != Broken::CALM,
            _ => false,
        }
    }

    /// Whether it is not beyond doubt where the body of a request ends.
    pub fn is_framing(&self) -> bool {
        matches!(self, Error::Framing(_))
    }

    /// The same with what was wrong with the head that hyper refused. `spoilt`: by [`framing`].
    fn of_head(self, spoilt: bool) -> Self {
        match self {
            Error::Http(e) if e.is_parse() && !e.is_parse_too_large() => {
                match spoilt || tells(&e) {
                    true => Error::Framing(e),
                    false => Error::Http(e),
                }
            }
            other => other,
        }
    }

    /// Whether the client sent more HTTP/2 frames of a kind than anyone needs.
    pub fn is_flood(&self) -> bool {
        matches!(self, Error::Broken(broken) if broken.code == Broken::CALM)
    }

    /// The status that hyper has answered by itself, to a head that nobody else saw.
    pub fn answered(&self) -> Option<u16> {
        match self {
            Error::Http(e) if is_target(e) => Some(414),
            Error::Http(e) if e.is_parse_too_large() => Some(431),
            Error::Http(e) if e.is_parse() => Some(400),
            Error::Framing(_) => Some(400),
            _ => None,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Slow(slow) => slow.fmt(f),
            Error::Http(e) | Error::Framing(e) => e.fmt(f),
            Error::Broken(broken) => broken.fmt(f),
            Error::Io(e) => e.fmt(f),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Slow(_) | Error::Broken(_) => None,
            Error::Http(e) | Error::Framing(e) => Some(e),
            Error::Io(e) => Some(e),
        }
    }
}

/// Whether hyper refuses a framing field: it says which part of a head is wrong in words alone.
fn tells(error: &hyper::Error) -> bool {
    let said = error.to_string();
    said.contains("content-length") || said.contains("transfer-encoding")
}

/// Whether a target is over the 64 KiB that hyper allows: another thing that it says in words alone.
fn is_target(error: &hyper::Error) -> bool {
    error.is_parse_too_large() && error.to_string().contains("URI")
}

impl From<Slow> for Error {
    fn from(slow: Slow) -> Self {
        Error::Slow(slow)
    }
}

// === impl Slow ===

impl fmt::Display for Slow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Slow::Handshake => "the handshake took too long",
            Slow::Head => "the request head took too long",
            Slow::Idle => "the connection was idle for too long",
            Slow::Reading => "the client did not read",
            Slow::Closing => "the connection took too long to close",
        })
    }
}

impl std::error::Error for Slow {}
