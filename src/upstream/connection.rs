//! One connection to an origin. Never retries and never pools.

use std::io;

use super::Endpoint;
use super::error::{Error, Kind};
use super::inbox::Inbox;
use super::stream::Stream;

/// An open connection; closed when dropped.
pub(super) struct Connection {
    pub(super) stream: Stream,
    pub(super) inbox: Inbox,
}

// === impl Connection ===

impl Connection {
    pub(super) async fn open(endpoint: &Endpoint) -> Result<Self, Error> {
        let stream = Stream::open(endpoint).await.map_err(unreachable)?;
        Ok(Self {
            stream,
            inbox: Inbox::default(),
        })
    }
}

fn unreachable(error: io::Error) -> Error {
    let kind = match error.kind() {
        io::ErrorKind::ConnectionRefused => Kind::ConnectRefused,
        io::ErrorKind::TimedOut => Kind::ConnectTimeout,
        _ => Kind::ConnectFailed,
    };
    Error::from(kind).because(error)
}
