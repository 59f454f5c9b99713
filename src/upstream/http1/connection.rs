//! The HTTP/1.1 connections of a core: a connection with its unread bytes, and the idle connections to a
//! server. Knows nothing of HTTP, never opens a connection and never sends.
//!
//! Small reads use one buffer that all connections of a core share. Bytes taken from it are copied, so a
//! waiting connection holds no memory. Large reads are passed on without a copy.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::AsyncReadExt;

use crate::clock::Timestamp;
use crate::upstream::connection::OriginStream;
use crate::upstream::pool::CoreShared;

/// The size of the shared buffer and of a connection's first reads.
const FIRST: usize = 16 * 1024;

/// The maximum size of one read, which is also the maximum buffered for a slow client.
const MOST: usize = 256 * 1024;

/// The read size grows after this multiple of itself: the kernel's buffers take half a megabyte even for a
/// slow client.
const GROWS_AFTER: usize = 32;

/// Up to this size, a copy is cheaper than another buffer.
const COPIED: usize = 8 * 1024;

/// The buffer that connections of one core share.
pub(crate) type Shared = Cell<BytesMut>;

/// The unread bytes of one connection.
#[derive(Default)]
pub(crate) struct ReadBuffer {
    bytes: BytesMut,
    /// Whether a part of the buffer was passed on without a copy. The buffer can then not be shared.
    has_shared_parts: bool,
    /// The size of one read.
    size: usize,
    /// The number of bytes read since `size` last grew.
    since: usize,
}

/// An open connection; closed when dropped.
pub(crate) struct H1Connection {
    pub(crate) stream: OriginStream,
    pub(crate) buffer: ReadBuffer,
    /// Whether the origin server accepts another request.
    pub(super) reusable: bool,
}

/// The idle timeout of a connection.
pub(crate) const IDLE: Duration = Duration::from_secs(60);

/// The idle connections to one server, in the order in which they became idle.
pub(crate) struct IdleConnections {
    pub(crate) shared: Rc<CoreShared>,
    /// Each connection with the time at which it became idle.
    idle: RefCell<VecDeque<(H1Connection, Timestamp)>>,
    max: Cell<usize>,
}

// === impl H1Connection ===

impl H1Connection {
    pub(crate) fn new(stream: OriginStream) -> Self {
        Self {
            stream,
            buffer: ReadBuffer::default(),
            reusable: true,
        }
    }
}

// === impl ReadBuffer ===

impl ReadBuffer {
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Reads available bytes. Returns 0 at the end of the stream.
    pub(crate) fn poll_fill(
        &mut self,
        stream: &mut OriginStream,
        shared: &Shared,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        self.make_space(shared);
        let free = self.bytes.capacity() - self.bytes.len();
        let polled = pin!(stream.read_buf(&mut self.bytes)).poll(cx);
        if self.bytes.is_empty() && self.size == FIRST {
            self.give_back(shared);
        }
        let read = ready!(polled)?;
        self.since = self.since.saturating_add(read);
        if read == free && self.since > GROWS_AFTER * self.size {
            self.size = (self.size * 4).min(MOST);
            self.since = 0;
        } else if read < self.size / 8 {
            self.size = FIRST;
        }
        Poll::Ready(Ok(read))
    }

    /// Takes the next `n` bytes, or all if there are fewer.
    pub(crate) fn take(&mut self, n: usize) -> Bytes {
        let n = n.min(self.bytes.len());
        if n > COPIED {
            self.has_shared_parts = true;
            return self.bytes.split_to(n).freeze();
        }
        let taken = Bytes::copy_from_slice(self.bytes.get(..n).unwrap_or_default());
        self.bytes.advance(n);
        taken
    }

    /// Skips the next `n` bytes.
    pub(crate) fn skip(&mut self, n: usize) {
        self.bytes.advance(n.min(self.bytes.len()));
    }

    /// Appends bytes that were not read from a stream.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns an empty buffer to the core.
    pub(crate) fn give_back(&mut self, shared: &Shared) {
        let mut bytes = std::mem::take(&mut self.bytes);
        self.size = 0;
        self.since = 0;
        if !std::mem::take(&mut self.has_shared_parts) && bytes.capacity() <= FIRST {
            bytes.clear();
            shared.set(bytes);
        }
    }

    fn make_space(&mut self, shared: &Shared) {
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
impl From<&[u8]> for ReadBuffer {
    fn from(bytes: &[u8]) -> Self {
        let mut buffer = Self::default();
        buffer.push(bytes);
        buffer
    }
}

// === impl IdleConnections ===

impl IdleConnections {
    pub(crate) fn new(shared: Rc<CoreShared>) -> Self {
        Self {
            shared,
            idle: RefCell::default(),
            max: Cell::new(0),
        }
    }

    /// Takes the connection that was used last, so that the others can expire. Drops connections that the
    /// origin server closed or that received bytes without a request. With `once` (the request cannot be sent
    /// again) this costs a system call.
    pub(crate) fn take(&self, once: bool) -> Option<H1Connection> {
        let mut idle = self.idle.borrow_mut();
        while let Some((mut connection, _)) = idle.pop_back() {
            let stream = &mut connection.stream;
            if (once && stream.is_quiet()) || (!once && stream.seems_quiet()) {
                return Some(connection);
            }
        }
        None
    }

    pub(crate) fn len(&self) -> usize {
        self.idle.borrow().len()
    }

    /// Sets the maximum number of idle connections.
    pub(crate) fn set_limit(&self, max: usize) {
        self.max.set(max);
    }

    pub(crate) fn put(&self, connection: H1Connection) {
        let max = self.max.get();
        if max == 0 {
            return;
        }
        let mut idle = self.idle.borrow_mut();
        while idle.len() >= max {
            idle.pop_front();
        }
        idle.push_back((connection, self.shared.now.get()));
    }

    pub(crate) fn prune(&self, now: Timestamp) {
        let mut idle = self.idle.borrow_mut();
        idle.retain_mut(|(connection, since)| {
            now.since(*since) < IDLE && connection.stream.is_quiet()
        });
    }

    pub(crate) fn close(&self) {
        self.max.set(0);
        self.idle.borrow_mut().clear();
    }
}
