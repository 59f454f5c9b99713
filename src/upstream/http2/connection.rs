//! The HTTP/2 connections of a core to one server. The pool never opens a connection itself, but
//! keeps requests that arrive together from opening one each. Never retries.

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
use crate::upstream::UpstreamServer;
use crate::upstream::connection::{ALERTED, OriginStream};
use crate::upstream::error::{UpstreamError, UpstreamErrorKind};
use crate::upstream::http1::response_head::HEAD_BYTES;
use crate::upstream::server::ServerInFlight;

/// Requests that share a connection, also where an origin would take more.
const STREAMS: u32 = 100;

/// What an origin may send ahead of a slow client.
const STREAM_WINDOW: u32 = 256 * 1024;

/// Room for all of them: one slow client must not hold up the others.
const CONNECTION_WINDOW: u32 = STREAMS * STREAM_WINDOW;

/// What a stream may hold of a request that its origin is slow to take.
const SEND_BUFFER: usize = 256 * 1024;

/// An open connection. It closes when this is dropped and its streams have ended.
pub(crate) struct H2Connection {
    sender: RefCell<SendRequest<Bytes>>,
    /// It takes no more requests.
    closed: Rc<Cell<bool>>,
    received: Cell<u64>,
}

/// The connections to one server.
#[derive(Default)]
pub(crate) struct H2Pool {
    /// Each is also held by its streams, so its `Rc` counts them.
    pub(crate) open: RefCell<Vec<Rc<H2Connection>>>,
    /// When all of them were found idle.
    idle_since: Cell<Option<Timestamp>>,
    /// How many connections are being opened.
    opening: Cell<usize>,
    /// Cloned by each request that waits for one of them.
    waiting: Rc<()>,
    /// How many streams the last connection allowed at once; `None` before the first.
    capacity: Cell<Option<usize>>,
    /// How many connections were opened so far.
    opened: Cell<u64>,
    finished: Notify,
    /// The server chose HTTP/1.1 last.
    pub(super) http1: Cell<bool>,
}

/// One stream of a connection; free when dropped.
pub(crate) struct StreamSlot {
    pub(crate) connection: Rc<H2Connection>,
    pub(crate) in_flight: ServerInFlight,
}

/// A connection that is being opened. Requests may wait for it until this is dropped.
pub(super) struct PendingConnection<'a>(&'a H2Pool);

// === impl H2Connection ===

impl H2Connection {
    /// Ready when the origin has sent its settings: it speaks HTTP/2, and how many requests it
    /// takes at once is known before the first.
    pub(crate) async fn open(stream: OriginStream) -> Result<Self, UpstreamError> {
        let (sender, mut connection) = builder().handshake(stream).await.map_err(no_http2)?;
        poll_fn(|cx| poll_settings(&mut connection, cx)).await?;
        let closed = Rc::<Cell<bool>>::default();
        let ended = Rc::clone(&closed);
        // Moves the frames until the connection ends. Each of its streams gets the error.
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

    /// How many streams it allows at once.
    fn capacity(&self) -> usize {
        let sender = self.sender.borrow();
        sender.current_max_send_streams().min(STREAMS as usize)
    }

    /// Takes no more requests.
    pub(super) fn retire(&self) {
        self.closed.set(true);
    }

    /// A number that changes whenever a stream gets something from the origin.
    pub(super) fn received(&self) -> u64 {
        self.received.get()
    }

    pub(super) fn note_received(&self) {
        self.received.set(self.received.get().wrapping_add(1));
    }

    /// Opens a stream. An error: nothing of the request was sent.
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
            // Streams that were reset have not left yet.
            Poll::Pending => Err(UpstreamErrorKind::Refused.into()),
        }
    }
}

/// The library bounds what an origin can make us hold or do: the size of heads and windows, frames
/// that continue a head, pings and settings (one acknowledgement waits at a time), resets, empty frames.
fn builder() -> Builder {
    let mut builder = Builder::new();
    builder
        // Until its settings come, so that they can be waited for.
        .initial_max_send_streams(0)
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_header_list_size(HEAD_BYTES as u32)
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
        // Which rule of HTTP/2 another protocol breaks says nothing.
        None => UpstreamErrorKind::NoHttp2.into(),
    }
}

// === impl H2Pool ===

impl H2Pool {
    /// A connection that has a stream left.
    pub(super) fn take(&self) -> Option<Rc<H2Connection>> {
        self.drop_closed();
        let open = self.open.borrow();
        let mut open = open.iter();
        open.find(|it| streams(it) < it.capacity()).cloned()
    }

    /// Keeps a new connection.
    pub(super) fn put(&self, connection: H2Connection) -> Rc<H2Connection> {
        let connection = Rc::new(connection);
        self.capacity.set(Some(connection.capacity()));
        self.opened.set(self.opened.get() + 1);
        self.open.borrow_mut().push(Rc::clone(&connection));
        self.idle_since.set(None);
        connection
    }

    /// Begins to open a connection, for which other requests may wait.
    pub(super) fn begin(&self) -> PendingConnection<'_> {
        self.opening.set(self.opening.get() + 1);
        PendingConnection(self)
    }

    /// Whether a connection that is being opened will have a stream left for one more request.
    pub(super) fn expects_free_stream(&self) -> bool {
        let opening = self.opening.get();
        let waiting = Rc::strong_count(&self.waiting) - 1;
        let capacity = self.capacity.get().unwrap_or(STREAMS as usize);
        opening + waiting < opening.saturating_mul(capacity)
    }

    /// Waits until a connection is opened or fails to open. Returns whether one was opened.
    pub(super) async fn wait(&self) -> bool {
        let before = self.opened.get();
        let _waiting = Rc::clone(&self.waiting);
        self.finished.notified().await;
        self.opened.get() > before
    }

    /// Closes all connections if none was used for `limit`. Returns whether any are left.
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
