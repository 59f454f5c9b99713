//! The way out: upstreams over HTTP/1.1, with one keep-alive pool a core.
//!
//! A caller hands an [`Outbound`] to [`Pool::forward`]; an [`Answer`] or an [`Error`] comes back.
//! Nothing here knows rules, routes or configuration files, nothing buffers a body, and nothing on
//! the path of a request takes a lock.
//!
//! The codec is our own: `head` writes, `answer` and `chunked` read, `upload` and `download` carry
//! bodies, `exchange` drives both directions of one `connection`, whatever `stream` carries it, from
//! the one task that waits.

mod alarm;
mod answer;
mod balance;
mod chunked;
mod connection;
mod download;
mod endpoint;
mod error;
mod exchange;
mod head;
mod headers;
mod inbox;
mod pool;
mod server;
mod shelf;
mod stream;
mod tunnel;
mod upload;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use http::{HeaderMap, Method, Response, Version};

use crate::body::Body;
use crate::route::edit::Fields;

pub use endpoint::Endpoint;
pub use error::Error;
pub use headers::Forwarding;
pub use pool::Pool;
pub use server::{Registry, Server};
pub use tunnel::Tunnel;

/// A named group of servers that do the same work. Immutable, shared by all cores.
#[derive(Debug)]
pub struct Upstream {
    /// The name, for logs and metrics.
    pub name: Arc<str>,
    /// Where requests can go.
    pub servers: Vec<Arc<Server>>,
    /// How a server is chosen.
    pub balance: Balance,
    /// How long one connection may take to open.
    pub connect_timeout: Duration,
    /// How long an origin may take to begin its answer; it runs again whenever more of the
    /// request's body was sent, and stands still while the client is the slow one.
    pub response_timeout: Duration,
    /// How many idle connections a core keeps to each server.
    pub max_idle_per_server: usize,
    turn: AtomicUsize,
}

/// How a server is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Balance {
    /// Each in turn.
    RoundRobin,
    /// Two at random, the one with fewer requests in flight.
    #[default]
    P2c,
}

/// A request on its way to an origin, as the client sent it. What the origin may see of it is
/// decided here.
pub struct Outbound<'a> {
    /// The method.
    pub method: &'a Method,
    /// The target in origin form: the path and the query.
    pub target: &'a str,
    /// The client's validated fields.
    pub headers: &'a HeaderMap,
    /// What its route changes in them, after all that is done to them here; `None`: nothing.
    pub edits: Option<&'a Fields>,
    /// The version in which they came.
    pub version: Version,
    /// What the origin is told about who asks.
    pub forwarding: Forwarding<'a>,
    /// The body.
    pub body: Body,
    /// Whether it is a validated WebSocket handshake, so that a 101 may come back.
    pub upgrade: bool,
}

/// What an origin answered.
pub struct Answer {
    /// The answer, hop-by-hop fields removed. Its body is an error if the origin's is cut short.
    pub response: Response<Body>,
    /// Who answered.
    pub server: Arc<Server>,
    /// After a 101: the bytes to and from the origin.
    pub upgraded: Option<Tunnel>,
}

// === impl Upstream ===

impl Upstream {
    /// An upstream with the default settings, which the caller may change.
    pub fn new(name: impl Into<Arc<str>>, servers: Vec<Arc<Server>>) -> Self {
        Self {
            name: name.into(),
            servers,
            balance: Balance::default(),
            connect_timeout: Duration::from_secs(2),
            response_timeout: Duration::from_secs(30),
            max_idle_per_server: 256,
            turn: AtomicUsize::new(0),
        }
    }
}
