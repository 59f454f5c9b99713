//! The bytes of an upgraded connection. Knows nothing of what flows through it.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::server::InFlight;
use super::stream::Stream;

/// An upgraded connection to an origin: in flight until it is dropped.
#[derive(Debug)]
pub struct Tunnel {
    early: Bytes,
    stream: Stream,
    _in_flight: InFlight,
}

// === impl Tunnel ===

impl Tunnel {
    /// `early` is what the origin sent right behind its 101.
    pub(super) fn new(stream: Stream, early: Bytes, in_flight: InFlight) -> Self {
        Self {
            early,
            stream,
            _in_flight: in_flight,
        }
    }
}

impl AsyncRead for Tunnel {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.early.is_empty() {
            return Pin::new(&mut self.stream).poll_read(cx, buf);
        }
        let n = self.early.len().min(buf.remaining());
        buf.put_slice(self.early.get(..n).unwrap_or_default());
        self.early.advance(n);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Tunnel {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
