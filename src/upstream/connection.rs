//! Connections to an origin, ready for a request. Never retries and never pools.

use std::cell::Cell;
use std::fmt;
use std::io;

use super::error::{Error, Kind};
use super::h2::Trunk;
use super::inbox::Inbox;
use super::stream::Stream;
use super::tls::speaks_http2;
use super::{Protocol, Secure, Server, Upstream};
use crate::trust;

/// An open connection; closed when dropped.
pub(super) struct Connection {
    pub(super) stream: Stream,
    pub(super) inbox: Inbox,
}

/// A new connection, by what is spoken over it.
pub(super) enum Opened {
    Http1(Connection),
    Http2(Trunk),
}

/// The origin agreed on TLS, but not on HTTP/2.
#[derive(Debug)]
struct NoHttp2;

// === impl Connection ===

impl Connection {
    fn new(stream: Stream) -> Self {
        Self {
            stream,
            inbox: Inbox::default(),
        }
    }
}

// === impl Opened ===

impl Opened {
    /// A connection to `server` as the upstream wants it; `http1`: for what only HTTP/1.1 carries.
    /// `waits` tells meanwhile what it is if it ends for its length.
    pub(super) async fn to(
        server: &Server,
        upstream: &Upstream,
        http1: bool,
        waits: &Cell<Kind>,
    ) -> Result<Self, Error> {
        let stream = Stream::open(&server.endpoint).await.map_err(unreachable)?;
        let (stream, http2) = match &upstream.tls {
            None => (stream, upstream.protocol == Protocol::Http2),
            Some(secure) => {
                waits.set(Kind::HandshakeTimeout);
                shake(secure, stream, server, http1).await?
            }
        };
        match (upstream.protocol, http2) {
            (_, true) => {
                waits.set(Kind::SettingsTimeout);
                Ok(Self::Http2(Trunk::open(stream).await?))
            }
            (Protocol::Http2, false) => Err(Error::from(Kind::Handshake).because(NoHttp2)),
            (_, false) => Ok(Self::Http1(Connection::new(stream))),
        }
    }
}

// === impl NoHttp2 ===

impl fmt::Display for NoHttp2 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the origin does not offer HTTP/2")
    }
}

impl std::error::Error for NoHttp2 {}

/// A secure stream, and whether HTTP/2 was agreed on.
async fn shake(
    secure: &Secure,
    stream: Stream,
    server: &Server,
    http1: bool,
) -> Result<(Stream, bool), Error> {
    let shaken = secure.connect(stream, server.label(), http1).await;
    let failed = |error| {
        let why = trust::handshake(&error, secure.peer());
        Error::from(Kind::Handshake).because(why)
    };
    let stream = shaken.map_err(failed)?;
    let http2 = speaks_http2(&stream);
    Ok((Stream::Tls(Box::new(stream)), http2))
}

fn unreachable(error: io::Error) -> Error {
    let kind = match error.kind() {
        io::ErrorKind::ConnectionRefused => Kind::ConnectRefused,
        io::ErrorKind::TimedOut => Kind::ConnectTimeout,
        _ => Kind::ConnectFailed,
    };
    Error::from(kind).because(error)
}
