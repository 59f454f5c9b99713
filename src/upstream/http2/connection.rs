//! The HTTP/2 connections of a core to one server. The pool never opens a connection itself, but limits how
//! many connections concurrent requests open. Never retries.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use bytes::Bytes;
use h2::SendStream;
use h2::client::{Builder, Connection, ResponseFuture, SendRequest};
use http::Request;
use tokio::sync::Notify;

use crate::clock::Timestamp;
use crate::upstream::connection::{ALERTED, OriginStream};
use crate::upstream::error::{UpstreamError, UpstreamErrorKind};
use crate::upstream::server::ServerInFlight;
use crate::upstream::{HeadLimits, UpstreamServer};

/// The maximum number of streams per connection, even if the origin server allows more.
const STREAMS: u32 = 100;

/// The smallest limit of the library for response heads. It is large, because connections outlive a reload that
/// raises the limit of an upstream.
const SMALLEST_HEAD_LIMIT: usize = 256 * 1024;

/// The maximum number of bytes that an origin server may send ahead of a slow client.
const STREAM_WINDOW: u32 = 256 * 1024;

/// Space for all streams: one slow client must not block the others.
const CONNECTION_WINDOW: u32 = STREAMS * STREAM_WINDOW;

/// The maximum number of request bytes buffered per stream for a slow origin server.
const SEND_BUFFER: usize = 256 * 1024;

/// An open connection. It closes when this is dropped and its streams have ended.
pub(crate) struct H2Connection {
    sender: RefCell<SendRequest<Bytes>>,
    /// Whether the connection accepts no more requests.
    closed: Rc<Cell<bool>>,
    received: Cell<u64>,
}

/// The connections to one server.
#[derive(Default)]
pub(crate) struct H2Pool {
    /// The open connections. Each stream holds its connection, so the `Rc` counts the streams.
    pub(crate) open: RefCell<Vec<Rc<H2Connection>>>,
    /// The time at which all connections were found idle. `None` if one is in use.
    idle_since: Cell<Option<Timestamp>>,
    /// How many connections are being opened.
    opening: Cell<usize>,
    /// Cloned by each request that waits for a connection being opened.
    waiting: Rc<()>,
    /// The number of concurrent streams that the last connection allowed. `None` before the first.
    capacity: Cell<Option<usize>>,
    /// How many connections were opened so far.
    opened: Cell<u64>,
    finished: Notify,
    /// Whether the server last selected HTTP/1.1.
    pub(super) http1: Cell<bool>,
}

/// One stream of a connection. The slot is free when this is dropped.
pub(crate) struct StreamSlot {
    pub(crate) connection: Rc<H2Connection>,
    pub(crate) in_flight: ServerInFlight,
}

/// A connection that is being opened. Requests may wait for it until this is dropped.
pub(super) struct PendingConnection<'a>(&'a H2Pool);

// === impl H2Connection ===

impl H2Connection {
    /// Opens a connection. Waits for the origin server's settings, which confirm HTTP/2 and set the number of
    /// concurrent streams before the first request.
    pub(crate) async fn open(
        stream: OriginStream,
        limits: HeadLimits,
    ) -> Result<Self, UpstreamError> {
        let opening = builder(limits).handshake(stream).await;
        let (sender, mut connection) = opening.map_err(no_http2)?;
        poll_fn(|cx| poll_settings(&mut connection, cx)).await?;
        let closed = Rc::<Cell<bool>>::default();
        let ended = Rc::clone(&closed);
        // Drives the connection until it ends. Each of its streams receives the error.
        tokio::task::spawn_local(async move {
            let _ = connection.await;
            ended.set(true);
        });
        Ok(Self {
            sender: RefCell::new(sender),
            closed,
            received: Cell::new(0),
        })
    }

    /// Returns the number of concurrent streams.
    fn capacity(&self) -> usize {
        let sender = self.sender.borrow();
        sender.current_max_send_streams().min(STREAMS as usize)
    }

    /// Accepts no more requests.
    pub(super) fn retire(&self) {
        self.closed.set(true);
    }

    /// Returns a counter that changes whenever a stream receives something from the origin server.
    pub(super) fn received(&self) -> u64 {
        self.received.get()
    }

    pub(super) fn note_received(&self) {
        self.received.set(self.received.get().wrapping_add(1));
    }

    /// Opens a stream. After an error, nothing of the request was sent.
    pub(super) fn open_stream(
        &self,
        request: Request<()>,
        ended: bool,
    ) -> Result<(ResponseFuture, SendStream<Bytes>), UpstreamError> {
        let mut sender = self.sender.borrow_mut();
        let refused = |error| {
            self.retire();
            UpstreamError::from(UpstreamErrorKind::Refused).because(error)
        };
        match sender.poll_ready(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Ok(())) => sender.send_request(request, ended).map_err(refused),
            Poll::Ready(Err(error)) => Err(refused(error)),
            // Reset streams still take up slots.
            Poll::Pending => Err(UpstreamErrorKind::Refused.into()),
        }
    }
}

/// The library limits what an origin server can cause: the size of heads and windows, CONTINUATION frames,
/// pings and settings (one acknowledgement at a time), resets, empty frames.
///
/// Its limit for heads is above that of the upstream, which each exchange checks: the library reports a head that is
/// too large like any other malformed one.
fn builder(limits: HeadLimits) -> Builder {
    let head_bytes = limits.bytes.saturating_mul(2).max(SMALLEST_HEAD_LIMIT);
    let mut builder = Builder::new();
    builder
        // Zero until the settings arrive, so that opening can wait for them.
        .initial_max_send_streams(0)
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_header_list_size(u32::try_from(head_bytes).unwrap_or(u32::MAX))
        .max_send_buffer_size(SEND_BUFFER)
        .enable_push(false);
    builder
}

fn poll_settings(
    connection: &mut Connection<OriginStream>,
    cx: &mut Context<'_>,
) -> Poll<Result<(), UpstreamError>> {
    let polled = Pin::new(&mut *connection).poll(cx);
    if connection.max_concurrent_send_streams() > 0 {
        return Poll::Ready(Ok(()));
    }
    match ready!(polled) {
        Ok(()) => Poll::Ready(Err(UpstreamErrorKind::NoHttp2.into())),
        Err(error) => Poll::Ready(Err(no_http2(error))),
    }
}

fn no_http2(error: h2::Error) -> UpstreamError {
    match error.get_io().map(io::Error::kind) {
        Some(ALERTED) => UpstreamError::from(UpstreamErrorKind::Handshake).because(error),
        Some(_) => UpstreamError::from(UpstreamErrorKind::NoHttp2).because(error),
        // Which HTTP/2 rule another protocol violates is not useful.
        None => UpstreamErrorKind::NoHttp2.into(),
    }
}

// === impl H2Pool ===

impl H2Pool {
    /// Returns a connection with a free stream. `None` if there is none.
    pub(super) fn take(&self) -> Option<Rc<H2Connection>> {
        self.drop_closed();
        let open = self.open.borrow();
        let mut open = open.iter();
        open.find(|it| streams(it) < it.capacity()).cloned()
    }

    /// Adds a new connection.
    pub(super) fn put(&self, connection: H2Connection) -> Rc<H2Connection> {
        let connection = Rc::new(connection);
        self.capacity.set(Some(connection.capacity()));
        self.opened.set(self.opened.get() + 1);
        self.open.borrow_mut().push(Rc::clone(&connection));
        self.idle_since.set(None);
        connection
    }

    /// Starts to open a connection that other requests may wait for.
    pub(super) fn begin(&self) -> PendingConnection<'_> {
        self.opening.set(self.opening.get() + 1);
        PendingConnection(self)
    }

    /// Returns whether a connection being opened will have a free stream for one more request.
    pub(super) fn expects_free_stream(&self) -> bool {
        let opening = self.opening.get();
        let waiting = Rc::strong_count(&self.waiting) - 1;
        let capacity = self.capacity.get().unwrap_or(STREAMS as usize);
        opening + waiting < opening.saturating_mul(capacity)
    }

    /// Waits until a connection is opened or failed to open. Returns whether one was opened.
    pub(super) async fn wait(&self) -> bool {
        let before = self.opened.get();
        let _waiting = Rc::clone(&self.waiting);
        self.finished.notified().await;
        self.opened.get() > before
    }

    /// Closes all connections if none was used for `limit`. Returns whether any is left.
    pub(crate) fn prune(&self, now: Timestamp, limit: Duration) -> bool {
        self.drop_closed();
        let mut open = self.open.borrow_mut();
        if open.iter().any(|it| streams(it) > 0) {
            self.idle_since.set(None);
        } else {
            let since = self.idle_since.get().unwrap_or(now);
            self.idle_since.set(Some(since));
            if now.since(since) >= limit {
                open.clear();
            }
        }
        !open.is_empty()
    }

    fn drop_closed(&self) {
        self.open.borrow_mut().retain(|it| !it.closed.get());
    }
}

fn streams(connection: &Rc<H2Connection>) -> usize {
    Rc::strong_count(connection) - 1
}

// === impl PendingConnection ===

impl Drop for PendingConnection<'_> {
    fn drop(&mut self) {
        self.0.opening.set(self.0.opening.get().saturating_sub(1));
        self.0.finished.notify_waiters();
    }
}

// === impl StreamSlot ===

impl StreamSlot {
    pub(super) fn server(&self) -> &Arc<UpstreamServer> {
        self.in_flight.server()
    }
}
