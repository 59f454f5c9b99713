//! One HTTP/2 connection to an origin. Never retries.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use h2::SendStream;
use h2::client::{Builder, Connection, ResponseFuture, SendRequest};
use http::Request;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::super::answer::HEAD_BYTES;
use super::super::error::{Error, Kind, alert};
use super::super::stream::Stream;

/// Requests that share a connection, also where an origin would take more.
pub(super) const STREAMS: u32 = 100;

/// What an origin may send ahead of a slow client.
const STREAM_WINDOW: u32 = 256 * 1024;

/// Room for all of them: one slow client must not hold up the others.
const CONNECTION_WINDOW: u32 = STREAMS * STREAM_WINDOW;

/// What a stream may hold of a request that its origin is slow to take.
const SEND_BUFFER: usize = 256 * 1024;

/// What a stream fails with where the origin ends it with an alert of TLS.
const ALERTED: io::ErrorKind = io::ErrorKind::ConnectionAborted;

/// An open connection. It closes when this is dropped and its streams have ended.
pub(in crate::upstream) struct Trunk {
    sender: RefCell<SendRequest<Bytes>>,
    streams: Cell<usize>,
    /// It takes no more requests.
    closed: Rc<Cell<bool>>,
    heard: Rc<Cell<u64>>,
}

/// A stream that counts how often something came.
struct Listening {
    stream: Stream,
    heard: Rc<Cell<u64>>,
}

// === impl Trunk ===

impl Trunk {
    /// Ready when the origin has sent its settings: it speaks HTTP/2, and how many requests it
    /// takes at once is known before the first.
    pub(in crate::upstream) async fn open(stream: Stream) -> Result<Self, Error> {
        let heard = Rc::<Cell<u64>>::default();
        let stream = Listening {
            stream,
            heard: Rc::clone(&heard),
        };
        let (sender, mut connection) = builder().handshake(stream).await.map_err(no_http2)?;
        poll_fn(|cx| poll_settings(&mut connection, cx)).await?;
        let closed = Rc::<Cell<bool>>::default();
        tokio::task::spawn_local(drive(connection, Rc::clone(&closed)));
        Ok(Self {
            sender: RefCell::new(sender),
            streams: Cell::new(0),
            closed,
            heard,
        })
    }

    /// Whether it takes requests, now or later.
    pub(super) fn is_open(&self) -> bool {
        !self.closed.get()
    }

    /// Whether it takes another request now.
    pub(super) fn has_room(&self) -> bool {
        self.is_open() && self.streams.get() < self.room()
    }

    /// How many requests it takes at once.
    pub(super) fn room(&self) -> usize {
        let sender = self.sender.borrow();
        sender.current_max_send_streams().min(STREAMS as usize)
    }

    /// No more requests.
    pub(super) fn retire(&self) {
        self.closed.set(true);
    }

    pub(super) fn is_idle(&self) -> bool {
        self.streams.get() == 0
    }

    pub(super) fn enter(&self) {
        self.streams.set(self.streams.get() + 1);
    }

    pub(super) fn leave(&self) {
        self.streams.set(self.streams.get().saturating_sub(1));
    }

    /// A number that changes whenever the origin sends something.
    pub(super) fn heard(&self) -> u64 {
        self.heard.get()
    }

    /// Opens a stream. An error: nothing of the request was sent.
    pub(super) fn begin(
        &self,
        request: Request<()>,
        ended: bool,
    ) -> Result<(ResponseFuture, SendStream<Bytes>), Error> {
        let mut sender = self.sender.borrow_mut();
        let refused = |error| {
            self.retire();
            Error::from(Kind::Refused).because(error)
        };
        match sender.poll_ready(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Ok(())) => sender.send_request(request, ended).map_err(refused),
            Poll::Ready(Err(error)) => Err(refused(error)),
            // Streams that were reset have not left yet.
            Poll::Pending => Err(Kind::Refused.into()),
        }
    }
}

// === impl Listening ===

impl AsyncRead for Listening {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf)).map_err(plain)?;
        self.heard.set(self.heard.get().wrapping_add(1));
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Listening {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, parts)
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

/// The library bounds what an origin can make us hold or do: the size of heads and windows, frames
/// that continue a head, pings and settings (one answer waits at a time), resets, empty frames.
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
    connection: &mut Connection<Listening>,
    cx: &mut Context<'_>,
) -> Poll<Result<(), Error>> {
    let polled = Pin::new(&mut *connection).poll(cx);
    if connection.max_concurrent_send_streams() > 0 {
        return Poll::Ready(Ok(()));
    }
    match ready!(polled) {
        Ok(()) => Poll::Ready(Err(Kind::NoHttp2.into())),
        Err(error) => Poll::Ready(Err(no_http2(error))),
    }
}

/// Moves the frames of a connection until it ends.
async fn drive(mut connection: Connection<Listening>, closed: Rc<Cell<bool>>) {
    // Why it ended is told to each of its streams.
    let _ = Pin::new(&mut connection).await;
    closed.set(true);
}

/// An alert in plain words: the library keeps of an error no more than its kind and its text.
fn plain(error: io::Error) -> io::Error {
    match alert(&error) {
        Some(said) => io::Error::new(ALERTED, said),
        None => error,
    }
}

fn no_http2(error: h2::Error) -> Error {
    match error.get_io().map(io::Error::kind) {
        Some(ALERTED) => Error::from(Kind::Handshake).because(error),
        Some(_) => Error::from(Kind::NoHttp2).because(error),
        // Which rule of HTTP/2 another protocol breaks says nothing.
        None => Kind::NoHttp2.into(),
    }
}
