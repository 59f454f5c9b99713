//! A client's socket, and the flags through which it and the stream on it inform the sweeper.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::accept::ConnectionPermit;

/// The observed state of a connection's socket.
#[derive(Debug)]
pub(super) struct SocketMarks {
    /// Whether bytes of an incomplete request were read.
    pub(super) received: AtomicFlag,
    /// Whether the socket accepts no more bytes until the client reads.
    pub(super) blocked: AtomicFlag,
    /// Whether the connection has become a tunnel.
    pub(super) tunnel: AtomicFlag,
    /// Whether an HTTP/1 request is in flight: bytes after it wait for its response.
    pub(super) busy: AtomicFlag,
    /// Whether bytes follow the request in flight.
    pub(super) behind: AtomicFlag,
    /// Whether unsent bytes are discarded when the socket closes.
    pub(super) given_up: AtomicFlag,
    /// Kept here so that a tunnel keeps it.
    pub(super) permit: ConnectionPermit,
    written: AtomicU64,
}

/// A flag. Atomic because hyper requires a stream that can become a tunnel to be `Send`; all uses are on one
/// core, so it is relaxed and without read-modify-write.
#[derive(Debug, Default)]
pub(super) struct AtomicFlag(AtomicBool);

/// A client's socket that records the client's reads.
#[derive(Debug)]
pub struct ClientSocket {
    tcp: TcpStream,
    marks: Arc<SocketMarks>,
}

// === impl SocketMarks ===

impl SocketMarks {
    pub(super) fn new(permit: ConnectionPermit) -> Self {
        Self {
            received: AtomicFlag::default(),
            blocked: AtomicFlag::default(),
            tunnel: AtomicFlag::default(),
            busy: AtomicFlag::default(),
            behind: AtomicFlag::default(),
            given_up: AtomicFlag::default(),
            permit,
            written: AtomicU64::new(0),
        }
    }

    /// Returns the number of bytes written so far.
    pub(super) fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    fn note_write(&self, polled: &Poll<io::Result<usize>>) {
        self.blocked.set(polled.is_pending());
        if let Poll::Ready(Ok(bytes)) = polled {
            let written = self.written().wrapping_add(*bytes as u64);
            self.written.store(written, Ordering::Relaxed);
        }
    }
}

// === impl AtomicFlag ===

impl AtomicFlag {
    pub(super) fn get(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub(super) fn set(&self, value: bool) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// Clears the flag. Returns whether it was set.
    pub(super) fn take(&self) -> bool {
        let set = self.get();
        if set {
            self.set(false);
        }
        set
    }
}

// === impl ClientSocket ===

impl ClientSocket {
    pub(super) fn new(tcp: TcpStream, marks: Arc<SocketMarks>) -> Self {
        Self { tcp, marks }
    }
}

impl Drop for ClientSocket {
    fn drop(&mut self) {
        if self.marks.given_up.get() {
            // Reset the connection: otherwise the kernel would keep the unsent bytes, and the client would not
            // see the end. It fails only on a closed socket.
            let _ = SockRef::from(&self.tcp).set_linger(Some(Duration::ZERO));
        }
    }
}

impl AsyncRead for ClientSocket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_read(cx, buf)
    }
}

impl AsyncWrite for ClientSocket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.tcp).poll_write(cx, buf);
        self.marks.note_write(&written);
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.tcp).poll_write_vectored(cx, bufs);
        self.marks.note_write(&written);
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.tcp.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_shutdown(cx)
    }
}
