//! What a client says behind a request for a tunnel and before its answer. Nobody knows yet whether
//! it is HTTP: it is kept as it came, as much as one read brings, and the client waits with the rest.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, ReadBuf};

use super::Watched;

// === impl Watched ===

impl<S: AsyncRead + Unpin> Watched<S> {
    /// Reads what may belong to a tunnel, once: the client waits with the rest.
    pub(super) fn poll_early(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.early.is_empty() {
            // No waker: whoever answers wakes the connection.
            return Poll::Pending;
        }
        let before = buf.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        match buf.filled().len() > before {
            true => {
                self.keep_early(buf, before);
                Poll::Pending
            }
            false => read,
        }
    }

    /// Keeps all that is read behind `from`.
    pub(super) fn keep_early(&mut self, buf: &mut ReadBuf<'_>, from: usize) {
        let early = buf.filled().get(from..).unwrap_or_default();
        self.early.splice(..0, early.iter().copied());
        buf.set_filled(from);
    }

    /// Gives what was kept, now that it is known what it is.
    pub(super) fn read_early(&mut self, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let n = self.early.len().min(buf.remaining());
        buf.put_slice(self.early.get(..n).unwrap_or_default());
        self.early.drain(..n);
        if self.early.is_empty() {
            self.early = Vec::new();
        }
        Poll::Ready(Ok(()))
    }
}
