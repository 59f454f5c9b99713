//! The stream of an HTTP/2 connection, with a meter and batched writes.
//!
//! Once the meter has found a violation, h2 reads nothing more, and the driver ends the connection with
//! [`MeteredStream::send_goaway`]. It changes no byte, except where h2 ends the connection for a head that it
//! cannot decode and sends the wrong error code, and where h2 accepts malformed trailers.

use std::cell::{Cell, RefCell, RefMut};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};

use super::frames::{FrameHeader, GOAWAY, flag};
use super::meter::H2Meter;
use crate::listen::H2Violation;
use crate::listen::connection_state::ConnectionState;

/// The maximum number of buffered bytes.
const BATCH: usize = 64 * 1024;

thread_local! {
    /// A buffer is empty except during a poll, or while its client is slow: the connections of a core share one,
    /// and an idle connection holds none.
    static SPARE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// A stream with a meter. Clones share the stream: one for hyper, one for the driver.
pub(super) struct MeteredStream<S> {
    shared: Rc<RefCell<MeteredShared<S>>>,
    state: Rc<ConnectionState>,
}

struct MeteredShared<S> {
    stream: BatchedStream<S>,
    meter: H2Meter,
    /// Whether the client has ended its side.
    client_ended: bool,
}

/// A stream that buffers writes and sends them once after each poll of the connection.
///
/// h2 writes and flushes once for every DATA frame that is not tiny. Here both only fill a bounded buffer, and
/// the driver calls [`BatchedStream::poll_send`] after each poll. A full buffer is sent immediately, and refuses
/// more while the socket is blocked.
#[derive(Debug)]
struct BatchedStream<S> {
    stream: S,
    held: Vec<u8>,
    /// Whether the stream was written to and not flushed since.
    unflushed: bool,
    /// Whether a write was refused, so that its task waits until the buffer accepts more.
    refused: bool,
}

// === impl MeteredStream ===

impl<S> MeteredStream<S> {
    pub(super) fn new(stream: S, state: Rc<ConnectionState>, max_resets: u32) -> Self {
        let shared = MeteredShared {
            stream: BatchedStream::new(stream),
            meter: H2Meter::new(max_resets, state.timers.now.get()),
            client_ended: false,
        };
        Self {
            shared: Rc::new(RefCell::new(shared)),
            state,
        }
    }

    /// Returns the meter, for the driver.
    pub(super) fn meter(&self) -> RefMut<'_, H2Meter> {
        RefMut::map(self.shared.borrow_mut(), |shared| &mut shared.meter)
    }

    /// Records that hyper has ended the connection without an error.
    pub(super) fn ended(&self) {
        let shared = &mut *self.shared.borrow_mut();
        if !shared.client_ended {
            shared.meter.ended();
        }
    }

    /// Returns the underlying stream after HTTP has ended. `None` while hyper has a clone.
    pub(super) fn into_stream(self) -> Option<S> {
        let shared = Rc::into_inner(self.shared)?;
        Some(shared.into_inner().stream.stream)
    }
}

impl<S: AsyncWrite + Unpin> MeteredStream<S> {
    /// Sends the buffered bytes. If pending, the task is woken when the socket accepts more.
    pub(super) fn poll_send(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.shared.borrow_mut().stream.poll_send(cx)
    }

    /// Sends GOAWAY unless a frame is incomplete, and closes the write direction.
    pub(super) async fn send_goaway(&mut self) -> io::Result<()> {
        let goaway = self.meter().goaway().unwrap_or_default();
        self.shared.borrow_mut().stream.held.extend(goaway);
        self.shutdown().await
    }
}

impl<S> Clone for MeteredStream<S> {
    fn clone(&self) -> Self {
        Self {
            shared: self.shared.clone(),
            state: self.state.clone(),
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for MeteredStream<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let MeteredShared {
            stream,
            meter,
            client_ended,
        } = &mut *self.shared.borrow_mut();
        if meter.is_violated() {
            // No waker: the driver checks after each poll.
            return Poll::Pending;
        }
        let before = buf.filled().len();
        let read = Pin::new(&mut stream.stream).poll_read(cx, buf);
        let bytes = buf.filled().get(before..).unwrap_or_default();
        if bytes.is_empty() {
            *client_ended = read.is_ready();
            return read;
        }
        let good = meter.receive(bytes, self.state.timers.now.get());
        self.state.marks.received.set(true);
        self.state.set_open_head(meter.open_head());
        self.state.unread.set(meter.unread() as u64);
        self.state.window.allow(meter.windows());
        for flags in meter.take_malformed() {
            // Trailers without END_STREAM are malformed too, so h2 resets the stream.
            if let Some(flags) = buf.filled_mut().get_mut(before + flags) {
                *flags &= !flag::END_STREAM;
            }
        }
        buf.set_filled(before + good);
        if good == 0 {
            // An empty read would mean the end of the stream.
            return Poll::Pending;
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for MeteredStream<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let MeteredShared { stream, meter, .. } = &mut *self.shared.borrow_mut();
        let amended = FrameHeader::goaway(buf).and_then(|frame| amended(meter, buf, &frame));
        let buf = amended.as_deref().unwrap_or(buf);
        let written = Pin::new(stream).poll_write(cx, buf);
        if let Poll::Ready(Ok(n)) = written {
            meter.send(buf.get(..n).unwrap_or_default());
        }
        written
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.shared.borrow_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.shared.borrow_mut().stream).poll_shutdown(cx)
    }
}

/// Returns the replacement for `bytes`, which begin with GOAWAY. `None` if they are sent unchanged.
fn amended(meter: &H2Meter, bytes: &[u8], goaway: &FrameHeader) -> Option<Vec<u8>> {
    if !meter.is_unreadable(goaway) {
        return None;
    }
    let mut bytes = bytes.to_vec();
    let code = bytes.get_mut(GOAWAY - 4..GOAWAY)?;
    code.copy_from_slice(&H2Violation::COMPRESSION_ERROR.to_be_bytes());
    Some(bytes)
}

// === impl BatchedStream ===

impl<S> BatchedStream<S> {
    fn new(stream: S) -> Self {
        Self {
            stream,
            held: Vec::new(),
            unflushed: false,
            refused: false,
        }
    }

    /// Removes the sent bytes. An empty buffer is returned to the core.
    fn forget(&mut self, sent: usize) {
        self.held.drain(..sent.min(self.held.len()));
        if self.held.is_empty() && self.held.capacity() > 0 {
            SPARE.set(std::mem::take(&mut self.held));
        }
    }
}

impl<S: AsyncWrite + Unpin> BatchedStream<S> {
    /// Sends the buffered bytes. If pending, the task is woken when the socket accepts more.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_send_all(cx))?;
        if std::mem::take(&mut self.refused) {
            // The socket accepted all bytes since it refused the write, so it will not wake the task again.
            cx.waker().wake_by_ref();
        }
        Poll::Ready(Ok(()))
    }

    fn poll_send_all(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_drain(cx))?;
        if self.unflushed {
            ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
            self.unflushed = false;
        }
        Poll::Ready(Ok(()))
    }

    /// Writes the buffered bytes, as far as the stream accepts them.
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
}

impl<S: AsyncWrite + Unpin> AsyncWrite for BatchedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.held.len() >= BATCH {
            if let Poll::Ready(Err(e)) = self.poll_drain(cx) {
                return Poll::Ready(Err(e));
            }
            if self.held.len() >= BATCH {
                self.refused = true;
                return Poll::Pending;
            }
        }
        if self.held.capacity() == 0 {
            self.held = SPARE.take();
        }
        let taken = buf.len().min(BATCH - self.held.len());
        let bytes = buf.get(..taken).unwrap_or_default();
        self.held.extend_from_slice(bytes);
        Poll::Ready(Ok(taken))
    }

    /// Does nothing: the driver sends after each poll.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_send_all(cx))?;
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests;
