//! What a client says behind a request whose answer has not ended. Nobody knows yet whether it is
//! HTTP or of a tunnel: it is kept as it came, a little of it, and the client waits with the rest.
//! hyper is not given it, so hyper goes on to look whether the client has left.

use std::io;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, ReadBuf};

use super::{Cut, ENDING, Watched};

/// No more is read once there is this much.
const MOST: usize = 4096;

/// Bytes that were read and are not given on yet.
#[derive(Debug, Default)]
pub(super) struct Early {
    bytes: Vec<u8>,
    given: usize,
}

// === impl Early ===

impl Early {
    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The next of them, `most` at the most.
    fn next(&mut self, most: usize) -> &mut [u8] {
        let end = self.bytes.len().min(self.given.saturating_add(most));
        self.bytes.get_mut(self.given..end).unwrap_or_default()
    }

    fn give(&mut self, bytes: usize) {
        self.given += bytes;
        if self.given >= self.bytes.len() {
            *self = Self::default();
        }
    }
}

// === impl Watched ===

impl<S: AsyncRead + Unpin> Watched<S> {
    /// Reads what is behind the request in flight, for later. Ready: the client has left.
    pub(super) fn poll_early(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        // Beyond it no waker: the end of the request wakes the connection.
        while self.early.bytes.len() < MOST {
            let before = buf.filled().len();
            let read = Pin::new(&mut self.stream).poll_read(cx, buf);
            if buf.filled().len() == before {
                return read;
            }
            self.keep_early(buf, before);
        }
        Poll::Pending
    }

    /// Keeps all that is read behind `from`.
    pub(super) fn keep_early(&mut self, buf: &mut ReadBuf<'_>, from: usize) {
        let early = buf.filled().get(from..).unwrap_or_default();
        self.early.bytes.extend_from_slice(early);
        buf.set_filled(from);
        self.signal.behind.store(true, Ordering::Relaxed);
    }

    /// Gives what was kept, now that it is known what it is: a request at the most, or all.
    pub(super) fn read_early(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut early = std::mem::take(&mut self.early);
        let bytes = early.next(buf.remaining());
        let cut = self.heard(bytes);
        let end = match cut {
            Some(Cut::Ending(end) | Cut::Behind(end)) => end,
            None => bytes.len(),
        };
        buf.put_slice(bytes.get(..end).unwrap_or_default());
        if let Some(Cut::Ending(_)) = cut {
            return self.poll_instead(cx, buf, ENDING);
        }
        early.give(end);
        let behind = !early.is_empty();
        self.signal.behind.store(behind, Ordering::Relaxed);
        self.early = early;
        Poll::Ready(Ok(()))
    }
}
