//! Connections to an origin server over TCP, a Unix socket or TLS. Knows only the negotiated version of
//! HTTP. Never retries and never pools.

use std::cell::Cell;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::client::TlsStream;

use super::error::{UpstreamError, UpstreamErrorKind};
use super::http1::connection::H1Connection;
use super::http2::connection::H2Connection;
use super::{ServerEndpoint, Upstream, UpstreamProtocol, UpstreamServer, UpstreamTls};
use crate::trust::{self, TlsPeer};

/// The error kind of a read that ends with a TLS alert.
pub(super) const ALERTED: io::ErrorKind = io::ErrorKind::ConnectionAborted;

/// The byte stream to an origin server. The connection closes when this is dropped.
#[derive(Debug)]
pub(super) enum OriginStream {
    Tcp(TcpStream),
    Unix(UnixStream),
    Tls(Box<TlsStream<OriginStream>>),
}

/// A new connection, by the negotiated HTTP version.
pub(super) enum OpenedConnection {
    Http1(H1Connection),
    Http2(H2Connection),
}

/// Opens a connection within `connect_timeout`. `http1` is set if the request needs HTTP/1.1.
pub(super) async fn connect(
    upstream: &Upstream,
    server: &UpstreamServer,
    http1: bool,
) -> Result<OpenedConnection, UpstreamError> {
    let timeout_kind = Cell::new(UpstreamErrorKind::ConnectTimeout);
    let opening = open(server, upstream, http1, &timeout_kind);
    match tokio::time::timeout(upstream.connect_timeout, opening).await {
        Ok(opened) => opened,
        Err(_) => Err(timeout_kind.get().into()),
    }
}

/// Opens a connection. `timeout_kind` is always the error for a timeout in the current step.
async fn open(
    server: &UpstreamServer,
    upstream: &Upstream,
    http1: bool,
    timeout_kind: &Cell<UpstreamErrorKind>,
) -> Result<OpenedConnection, UpstreamError> {
    let stream = OriginStream::open(&server.endpoint)
        .await
        .map_err(unreachable)?;
    let (stream, http2) = match &upstream.tls {
        None => (stream, upstream.protocol == UpstreamProtocol::Http2),
        Some(secure) => {
            timeout_kind.set(UpstreamErrorKind::HandshakeTimeout);
            shake_hands(secure, stream, server, http1).await?
        }
    };
    if http2 {
        timeout_kind.set(UpstreamErrorKind::SettingsTimeout);
        let opened = H2Connection::open(stream, upstream.response_head).await?;
        return Ok(OpenedConnection::Http2(opened));
    }
    match upstream.protocol {
        UpstreamProtocol::Http2 => Err(UpstreamError::from(UpstreamErrorKind::Handshake)
            .because("the origin server does not offer HTTP/2")),
        _ => Ok(OpenedConnection::Http1(H1Connection::new(stream))),
    }
}

/// Returns the encrypted stream, and whether the origin server selected HTTP/2.
async fn shake_hands(
    secure: &UpstreamTls,
    stream: OriginStream,
    server: &UpstreamServer,
    http1: bool,
) -> Result<(OriginStream, bool), UpstreamError> {
    let connected = secure.connect(stream, server.label(), http1).await;
    let stream = connected.map_err(|error| {
        let why = trust::handshake(&error, secure.peer());
        UpstreamError::from(UpstreamErrorKind::Handshake).because(why)
    })?;
    let http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    Ok((OriginStream::Tls(Box::new(stream)), http2))
}

fn unreachable(error: io::Error) -> UpstreamError {
    let kind = match error.kind() {
        io::ErrorKind::ConnectionRefused => UpstreamErrorKind::ConnectRefused,
        io::ErrorKind::TimedOut => UpstreamErrorKind::ConnectTimeout,
        _ => UpstreamErrorKind::ConnectFailed,
    };
    UpstreamError::from(kind).because(error)
}

// === impl OriginStream ===

impl OriginStream {
    pub(super) async fn open(endpoint: &ServerEndpoint) -> io::Result<Self> {
        match endpoint {
            ServerEndpoint::Tcp(address) => {
                let stream = TcpStream::connect(address).await?;
                stream.set_nodelay(true)?;
                Ok(Self::Tcp(stream))
            }
            ServerEndpoint::Unix(path) => UnixStream::connect(path).await.map(Self::Unix),
        }
    }

    /// Returns whether the runtime has seen neither an end nor unexpected bytes on an idle connection. Makes a
    /// system call only if the runtime has seen an event.
    pub(super) fn seems_quiet(&mut self) -> bool {
        is_nothing(match self {
            Self::Tcp(stream) => {
                stream.try_io(Interest::READABLE, || peek(SockRef::from(&*stream)))
            }
            Self::Unix(stream) => {
                stream.try_io(Interest::READABLE, || peek(SockRef::from(&*stream)))
            }
            // A TLS session ticket is not a response.
            Self::Tls(stream) => {
                let cx = &mut Context::from_waker(Waker::noop());
                let mut byte = [0];
                return Pin::new(stream)
                    .poll_read(cx, &mut ReadBuf::new(&mut byte))
                    .is_pending();
            }
        })
    }

    /// Returns whether the stream may buffer written bytes until a flush.
    pub(super) fn encrypts(&self) -> bool {
        matches!(self, Self::Tls(_))
    }

    /// Returns whether an idle connection has neither ended nor unexpected bytes. Always makes a system call.
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

/// Calls a method of the inner stream.
macro_rules! inner {
    ($stream:ident, $method:ident, $($argument:expr),*) => {
        match $stream.get_mut() {
            OriginStream::Tcp(stream) => Pin::new(stream).$method($($argument),*),
            OriginStream::Unix(stream) => Pin::new(stream).$method($($argument),*),
            OriginStream::Tls(stream) => Pin::new(stream).$method($($argument),*),
        }
    };
}

impl AsyncRead for OriginStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        inner!(self, poll_read, cx, buf).map_err(alert_in_words)
    }
}

impl AsyncWrite for OriginStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        inner!(self, poll_write, cx, buf)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        inner!(self, poll_write_vectored, cx, parts)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        inner!(self, poll_flush, cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        inner!(self, poll_shutdown, cx)
    }
}

/// Converts a TLS alert to a text here, because h2 keeps only the kind and the text of an error.
fn alert_in_words(error: io::Error) -> io::Error {
    match trust::alert(&error, TlsPeer::Origin { ca: false }) {
        Some(words) => io::Error::new(ALERTED, words),
        None => error,
    }
}

fn peek(socket: SockRef<'_>) -> io::Result<usize> {
    socket.peek(&mut [MaybeUninit::uninit()])
}

fn is_nothing(peeked: io::Result<usize>) -> bool {
    peeked.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
}
