//! The bytes to and from an origin, whatever carries them. Knows nothing of HTTP.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll};

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

use super::Endpoint;

/// An open connection; closed when dropped.
#[derive(Debug)]
pub(super) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

// === impl Stream ===

impl Stream {
    pub(super) async fn open(endpoint: &Endpoint) -> io::Result<Self> {
        match endpoint {
            Endpoint::Tcp(address) => {
                let stream = TcpStream::connect(address).await?;
                stream.set_nodelay(true)?;
                Ok(Self::Tcp(stream))
            }
            Endpoint::Unix(path) => UnixStream::connect(path).await.map(Self::Unix),
        }
    }

    /// Whether the runtime has heard nothing of an idle connection: neither its end nor bytes
    /// that nobody asked for. Asks the kernel only if there was something to hear.
    pub(super) fn seems_quiet(&self) -> bool {
        let look = || peek(self.socket());
        is_nothing(match self {
            Self::Tcp(stream) => stream.try_io(Interest::READABLE, look),
            Self::Unix(stream) => stream.try_io(Interest::READABLE, look),
        })
    }

    /// The same, asked of the kernel.
    pub(super) fn is_quiet(&self) -> bool {
        is_nothing(peek(self.socket()))
    }

    fn socket(&self) -> SockRef<'_> {
        match self {
            Self::Tcp(stream) => SockRef::from(stream),
            Self::Unix(stream) => SockRef::from(stream),
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::Unix(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_write(cx, buf),
            Self::Unix(stream) => Pin::new(stream).poll_write(cx, buf),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_write_vectored(cx, parts),
            Self::Unix(stream) => Pin::new(stream).poll_write_vectored(cx, parts),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_flush(cx),
            Self::Unix(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}

fn peek(socket: SockRef<'_>) -> io::Result<usize> {
    socket.peek(&mut [MaybeUninit::uninit()])
}

fn is_nothing(peeked: io::Result<usize>) -> bool {
    peeked.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
}
