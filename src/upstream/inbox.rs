//! Bytes that came from an origin and were not taken yet. Knows nothing of HTTP.
//!
//! Small reads land in one buffer that all connections of a core share: what is taken from it is
//! copied, so a connection that waits holds no memory. Large ones are handed on as they are.

use std::cell::Cell;
use std::future::Future;
use std::io;
use std::pin::pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::AsyncReadExt;

use super::stream::Stream;

/// The size of the shared buffer and of a connection's first reads.
const FIRST: usize = 16 * 1024;

/// The most that is read at once, and so the most that waits for a slow client.
const MOST: usize = 256 * 1024;

/// The size grows after so many times as much: half a megabyte goes into the kernel's buffers,
/// however slow a client then is.
const GROWS_AFTER: usize = 32;

/// Up to here a copy is cheaper than another buffer.
const COPIED: usize = 8 * 1024;

/// The buffer that connections of one core share.
pub(super) type Shared = Cell<BytesMut>;

/// The unread bytes of one connection.
#[derive(Default)]
pub(super) struct Inbox {
    bytes: BytesMut,
    /// Somebody holds a part of the buffer: it cannot be shared any more.
    lent: bool,
    /// How much is read at once.
    size: usize,
    /// How much was read since that grew.
    since: usize,
}

// === impl Inbox ===

impl Inbox {
    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Reads what is there to read; zero at the end of the stream.
    pub(super) fn poll_fill(
        &mut self,
        stream: &mut Stream,
        shared: &Shared,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        self.make_room(shared);
        let room = self.bytes.capacity() - self.bytes.len();
        let polled = pin!(stream.read_buf(&mut self.bytes)).poll(cx);
        if self.bytes.is_empty() && self.size == FIRST {
            self.give_back(shared);
        }
        let read = ready!(polled)?;
        self.since = self.since.saturating_add(read);
        if read == room && self.since > GROWS_AFTER * self.size {
            self.size = (self.size * 4).min(MOST);
            self.since = 0;
        } else if read < self.size / 8 {
            self.size = FIRST;
        }
        Poll::Ready(Ok(read))
    }

    /// The next `n` bytes, or as many as there are.
    pub(super) fn take(&mut self, n: usize) -> Bytes {
        let n = n.min(self.bytes.len());
        if n > COPIED {
            self.lent = true;
            return self.bytes.split_to(n).freeze();
        }
        let taken = Bytes::copy_from_slice(self.bytes.get(..n).unwrap_or_default());
        self.bytes.advance(n);
        taken
    }

    /// Passes over the next `n` bytes.
    pub(super) fn skip(&mut self, n: usize) {
        self.bytes.advance(n.min(self.bytes.len()));
    }

    /// Takes bytes in that came some other way.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Lets go of an empty buffer.
    pub(super) fn give_back(&mut self, shared: &Shared) {
        let mut bytes = std::mem::take(&mut self.bytes);
        self.size = 0;
        self.since = 0;
        if !std::mem::take(&mut self.lent) && bytes.capacity() <= FIRST {
            bytes.clear();
            shared.set(bytes);
        }
    }

    fn make_room(&mut self, shared: &Shared) {
        self.size = self.size.max(FIRST);
        if self.bytes.capacity() == 0 && self.size == FIRST {
            self.bytes = shared.take();
        }
        if self.bytes.capacity() - self.bytes.len() < self.size / 2 {
            self.bytes.reserve(self.size);
        }
    }
}

#[cfg(test)]
impl From<&[u8]> for Inbox {
    fn from(bytes: &[u8]) -> Self {
        let mut inbox = Self::default();
        inbox.push(bytes);
        inbox
    }
}
