//! One connection to an origin. Never retries and never pools.

use std::io;
use std::mem::MaybeUninit;
use std::net::SocketAddr;

use socket2::SockRef;
use tokio::io::Interest;
use tokio::net::TcpStream;

use super::error::{Error, Kind};
use super::inbox::Inbox;

/// An open connection; closed when dropped.
pub(super) struct Connection {
    pub(super) stream: TcpStream,
    pub(super) inbox: Inbox,
}

// === impl Connection ===

impl Connection {
    pub(super) async fn open(address: SocketAddr) -> Result<Self, Error> {
        let stream = TcpStream::connect(address).await.map_err(unreachable)?;
        stream.set_nodelay(true).map_err(unreachable)?;
        Ok(Self {
            stream,
            inbox: Inbox::default(),
        })
    }

    /// Whether the runtime has heard nothing of an idle connection: neither its end nor bytes
    /// that nobody asked for. Asks the kernel only if there was something to hear.
    pub(super) fn seems_quiet(&self) -> bool {
        let peeked = self
            .stream
            .try_io(Interest::READABLE, || peek(&self.stream));
        is_nothing(peeked)
    }

    /// The same, asked of the kernel.
    pub(super) fn is_quiet(&self) -> bool {
        is_nothing(peek(&self.stream))
    }
}

fn peek(stream: &TcpStream) -> io::Result<usize> {
    SockRef::from(stream).peek(&mut [MaybeUninit::uninit()])
}

fn is_nothing(peeked: io::Result<usize>) -> bool {
    peeked.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
}

fn unreachable(error: io::Error) -> Error {
    let kind = match error.kind() {
        io::ErrorKind::ConnectionRefused => Kind::ConnectRefused,
        io::ErrorKind::TimedOut => Kind::ConnectTimeout,
        _ => Kind::ConnectFailed,
    };
    Error::from(kind).because(error)
}
