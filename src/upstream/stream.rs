//! The bytes to and from an origin, whatever carries them. Knows nothing of HTTP.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::client::TlsStream;

use super::Endpoint;

/// An open connection; closed when dropped.
#[derive(Debug)]
pub(super) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
    Tls(Box<TlsStream<Stream>>),
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
    pub(super) fn seems_quiet(&mut self) -> bool {
        is_nothing(match self {
            Self::Tcp(stream) => {
                stream.try_io(Interest::READABLE, || peek(SockRef::from(&*stream)))
            }
            Self::Unix(stream) => {
                stream.try_io(Interest::READABLE, || peek(SockRef::from(&*stream)))
            }
            // A ticket for the next session is not an answer.
            Self::Tls(stream) => {
                let cx = &mut Context::from_waker(Waker::noop());
                let mut byte = [0];
                return Pin::new(stream)
                    .poll_read(cx, &mut ReadBuf::new(&mut byte))
                    .is_pending();
            }
        })
    }

    /// Whether what is written may wait for a flush.
    pub(super) fn encrypts(&self) -> bool {
        matches!(self, Self::Tls(_))
    }

    /// The same, asked of the kernel.
    pub(super) fn is_quiet(&mut self) -> bool {
        (!self.encrypts() || self.seems_quiet()) && is_nothing(peek(self.socket()))
    }

    fn socket(&self) -> SockRef<'_> {
        match self {
            Self::Tcp(stream) => SockRef::from(stream),
            Self::Unix(stream) => SockRef::from(stream),
            Self::Tls(stream) => stream.get_ref().0.socket(),
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
            Self::Tls(stream) => Pin::new(stream).poll_read(cx, buf),
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
            Self::Tls(stream) => Pin::new(stream).poll_write(cx, buf),
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
            Self::Tls(stream) => Pin::new(stream).poll_write_vectored(cx, parts),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_flush(cx),
            Self::Unix(stream) => Pin::new(stream).poll_flush(cx),
            Self::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}

fn peek(socket: SockRef<'_>) -> io::Result<usize> {
    socket.peek(&mut [MaybeUninit::uninit()])
}

fn is_nothing(peeked: io::Result<usize>) -> bool {
    peeked.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
}
