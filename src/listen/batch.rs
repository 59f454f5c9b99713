//! Writes of an HTTP/2 connection, gathered and sent once after each poll of it.
//!
//! h2 writes and flushes once for every DATA frame that is not tiny. Here both only fill a bounded
//! buffer, and the driver of the connection calls [`Batched::poll_send`] after each poll. A full
//! buffer is sent at once, and refuses more while the socket does.

use std::cell::{Cell, RefCell};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes held back at the most.
const ROOM: usize = 64 * 1024;

thread_local! {
    /// A buffer is empty but for the length of a poll, or while its client is slow: the
    /// connections of a core share one, and an idle connection holds none.
    static SPARE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// A stream with gathered writes. Clones are the same stream: one for hyper, one for the driver.
#[derive(Debug)]
pub(super) struct Batched<S>(Rc<RefCell<Batch<S>>>);

#[derive(Debug)]
struct Batch<S> {
    stream: S,
    held: Vec<u8>,
    /// The stream was written to and not flushed since.
    unflushed: bool,
    /// A write was turned away, and its writer waits for room.
    refused: bool,
}

// === impl Batched ===

impl<S: AsyncWrite + Unpin> Batched<S> {
    pub(super) fn new(stream: S) -> Self {
        Self(Rc::new(RefCell::new(Batch {
            stream,
            held: Vec::new(),
            unflushed: false,
            refused: false,
        })))
    }

    /// Sends what was gathered. Pending: the task is woken when the socket takes more.
    pub(super) fn poll_send(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let batch = &mut *self.0.borrow_mut();
        ready!(batch.poll_flush(cx))?;
        if std::mem::take(&mut batch.refused) {
            // The socket took all since it turned the writer away, so it will not call again.
            cx.waker().wake_by_ref();
        }
        Poll::Ready(Ok(()))
    }
}

impl<S> Clone for Batched<S> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Batched<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0.borrow_mut().stream).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Batched<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.0.borrow_mut().poll_write(cx, buf)
    }

    /// Nothing: the driver sends after each poll.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let batch = &mut *self.0.borrow_mut();
        ready!(batch.poll_flush(cx))?;
        Pin::new(&mut batch.stream).poll_shutdown(cx)
    }
}

// === impl Batch ===

impl<S: AsyncWrite + Unpin> Batch<S> {
    fn poll_write(&mut self, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        if self.held.len() >= ROOM {
            if let Poll::Ready(Err(e)) = self.poll_drain(cx) {
                return Poll::Ready(Err(e));
            }
            if self.held.len() >= ROOM {
                self.refused = true;
                return Poll::Pending;
            }
        }
        if self.held.capacity() == 0 {
            self.held = SPARE.take();
        }
        let taken = buf.len().min(ROOM - self.held.len());
        self.held
            .extend_from_slice(buf.get(..taken).unwrap_or_default());
        Poll::Ready(Ok(taken))
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_drain(cx))?;
        if self.unflushed {
            ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
            self.unflushed = false;
        }
        Poll::Ready(Ok(()))
    }

    /// Writes what is held, as far as the stream takes it.
    fn poll_drain(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut sent = 0;
        let outcome = loop {
            let rest = self.held.get(sent..).unwrap_or_default();
            if rest.is_empty() {
                break Poll::Ready(Ok(()));
            }
            self.unflushed = true;
            match Pin::new(&mut self.stream).poll_write(cx, rest) {
                Poll::Ready(Ok(0)) => break Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(n)) => sent += n,
                Poll::Ready(Err(e)) => break Poll::Ready(Err(e)),
                Poll::Pending => break Poll::Pending,
            }
        };
        self.forget(sent);
        outcome
    }

    fn forget(&mut self, sent: usize) {
        self.held.drain(..sent.min(self.held.len()));
        if self.held.is_empty() && self.held.capacity() > 0 {
            SPARE.set(std::mem::take(&mut self.held));
        }
    }
}
