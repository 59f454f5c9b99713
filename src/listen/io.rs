//! A connection's stream as the deadlines see it: every read and every blocked write leaves a
//! mark. It holds no bytes and changes none.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::accept::Permit;

/// Marks that a stream leaves for the sweeper. Atomic because hyper wants a stream that can
/// become a tunnel to be `Send`; all on one core, so relaxed.
#[derive(Debug)]
pub(super) struct Signal {
    heard: AtomicBool,
    blocked: AtomicBool,
    wrote: AtomicBool,
    /// Held here so that a tunnel keeps its place.
    _permit: Permit,
}

/// A stream that leaves marks.
#[derive(Debug)]
pub(super) struct Watched<S> {
    stream: S,
    signal: Arc<Signal>,
}

// === impl Signal ===

impl Signal {
    pub(super) fn new(permit: Permit) -> Self {
        Self {
            heard: AtomicBool::new(false),
            blocked: AtomicBool::new(false),
            wrote: AtomicBool::new(false),
            _permit: permit,
        }
    }

    /// Whether bytes were read since the last call.
    pub(super) fn take_heard(&self) -> bool {
        take(&self.heard)
    }

    /// Whether a client that is slow to read took some bytes since the last call.
    pub(super) fn take_progress(&self) -> bool {
        let wrote = take(&self.wrote);
        wrote && self.blocked.load(Ordering::Relaxed)
    }

    fn note_write<T>(&self, written: &Poll<T>) {
        self.blocked.store(written.is_pending(), Ordering::Relaxed);
        if written.is_ready() {
            self.wrote.store(true, Ordering::Relaxed);
        }
    }
}

// === impl Watched ===

impl<S> Watched<S> {
    pub(super) fn new(stream: S, signal: Arc<Signal>) -> Self {
        Self { stream, signal }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        if buf.filled().len() > before {
            self.signal.heard.store(true, Ordering::Relaxed);
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.signal.note_write(&written);
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.signal.note_write(&written);
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// Both on one thread, so no read-modify-write is needed.
fn take(flag: &AtomicBool) -> bool {
    let was = flag.load(Ordering::Relaxed);
    if was {
        flag.store(false, Ordering::Relaxed);
    }
    was
}
