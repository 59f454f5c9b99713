//! HTTP/1: the stream that hyper reads from, and the driver of a connection.
//!
//! The stream changes no bytes, except where [`framing`] finds a query that must be escaped, an ambiguous head, a
//! malformed trailer section or an unknown coding. After the last two, the rest of the connection is read and dropped.
//!
//! Bytes after a request are kept until its response has ended, because they may be HTTP or the beginning of a tunnel.
//! Until then hyper does not get them, so it continues to check whether the client has disconnected.

mod framing;
mod query;

use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Buf, BytesMut};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};

use super::client_socket::SocketMarks;
use super::connection_state::{ConnectionDirective, ConnectionState};
use super::response::respond;
use super::serve::{RequestHandler, discard_input, in_time};
use super::{ClientFault, ConnectionLimits, ServeError};
use framing::{BROKEN, ENDING, FramingScanner, FramingStop};
use query::escape_query;

/// The minimum buffer size that hyper accepts.
const LEAST_BUFFER: usize = 8192;

/// hyper's default limit on the number of headers.
const DEFAULT_MAX_HEADERS: usize = 100;

/// The buffer size for reading dropped bytes.
const WASTE: usize = 4096;

/// The maximum number of bytes kept after a request; beyond it, reading stops.
const MAX_EARLY: usize = 4096;

/// The maximum length of a target that hyper accepts.
const LONGEST_TARGET: usize = 65_534;

/// A stream that records what the client sends.
#[derive(Debug)]
struct Http1Stream<S> {
    stream: S,
    marks: Arc<SocketMarks>,
    /// The scanner of request boundaries. `None` in a tunnel.
    framing: Option<FramingScanner>,
    /// The bytes that replace the rest of the client's bytes.
    instead: Option<&'static [u8]>,
    /// Bytes after a request that are not passed to hyper yet.
    early: BytesMut,
}

/// Serves an HTTP/1 connection until it ends.
pub(super) async fn serve<S, H>(
    stream: S,
    limits: &ConnectionLimits,
    state: Rc<ConnectionState>,
    handler: H,
) -> Result<(), ServeError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    H: RequestHandler,
{
    let stream = Http1Stream::new(stream, state.marks.clone());
    let handler = Rc::new(handler);
    let service = service_fn({
        let state = state.clone();
        move |request| respond(&state, None, &handler, request)
    });
    let mut http = builder(limits)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let ended = poll_fn(|cx| {
        match state.directive(cx) {
            ConnectionDirective::Continue => {}
            ConnectionDirective::Finish => Pin::new(&mut http).graceful_shutdown(),
            ConnectionDirective::Abort(slow) => return Poll::Ready(Err(slow.into())),
        }
        let ended = Pin::new(&mut http).poll(cx).map_err(ServeError::Http);
        if state.can_go_on() {
            cx.waker().wake_by_ref();
        }
        ended
    })
    .await;
    let refused = matches!(&ended, Err(ServeError::Http(error)) if error.is_parse());
    let Some(parts) = http.into_parts().filter(|_| refused || ended.is_ok()) else {
        return ended;
    };
    let stream = parts.io.into_inner();
    let ended = ended.map_err(|error| stream.classify(error, &parts.read_buf, limits));
    let malformed = matches!(&ended, Err(error) if error.status() == Some(400));
    Box::pin(linger(stream, &state, malformed)).await;
    ended
}

fn builder(limits: &ConnectionLimits) -> http1::Builder {
    let mut http = http1::Builder::new();
    // Setting it allocates per request, so keep the default if possible.
    if limits.max_headers != DEFAULT_MAX_HEADERS {
        http.max_headers(limits.max_headers);
    }
    http.keep_alive(true)
        .half_close(false)
        // The connection's timer does this; hyper's would need one timer per request.
        .header_read_timeout(None)
        .ignore_invalid_headers(false)
        .max_header_size(limits.max_header_bytes)
        .max_buf_size(limits.max_header_bytes.max(LEAST_BUFFER));
    http
}

/// Continues to read after the last write, as long as the client sends the rest of its message.
async fn linger<S>(mut stream: S, state: &ConnectionState, malformed: bool)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    if !state.linger() && !malformed {
        return;
    }
    in_time(state, async {
        // hyper leaves the stream open after a refused upgrade, but a client that waits for the end must see it.
        // It fails only on a closed socket, which has no rest either.
        if stream.shutdown().await.is_ok() {
            discard_input(stream).await;
        }
    })
    .await;
}

/// Returns whether `head`, which hyper considers too large, is so only because of its target.
fn has_long_target(head: &[u8], limits: &ConnectionLimits) -> bool {
    let mut headers = vec![httparse::EMPTY_HEADER; limits.max_headers];
    let mut request = httparse::Request::new(&mut headers);
    let fits = match request.parse(head) {
        Ok(httparse::Status::Complete(length)) => length <= limits.max_header_bytes,
        _ => false,
    };
    fits && request.path.is_some_and(|path| path.len() > LONGEST_TARGET)
}

// === impl Http1Stream ===

impl<S> Http1Stream<S> {
    fn new(stream: S, marks: Arc<SocketMarks>) -> Self {
        Self {
            stream,
            marks,
            framing: Some(FramingScanner::new()),
            instead: None,
            early: BytesMut::new(),
        }
    }

    /// Returns why hyper refused a head. `unread` is hyper's unconsumed buffer, which begins with the head if
    /// that is too large.
    fn classify(&self, error: ServeError, unread: &[u8], limits: &ConnectionLimits) -> ServeError {
        let ServeError::Http(refused) = &error else {
            return error;
        };
        let ambiguous = self
            .framing
            .as_ref()
            .is_some_and(FramingScanner::is_ambiguous);
        let (fault, status) = match refused.is_parse_too_large() {
            true if has_long_target(unread, limits) => (ClientFault::HeadTooLarge, 414),
            true => (ClientFault::HeadTooLarge, 431),
            false if ambiguous => (ClientFault::Framing, 400),
            false => (ClientFault::Malformed, 400),
        };
        ServeError::Head(fault, status)
    }

    /// Scans `bytes`, which were just read. Returns where hyper must not continue to read.
    fn follow_read(&mut self, bytes: &mut [u8]) -> Option<FramingStop> {
        if self.marks.tunnel.get() {
            self.framing = None;
        }
        let framing = self.framing.as_mut();
        let cut = framing.and_then(|framing| framing.follow(bytes));
        let whole = self
            .framing
            .as_ref()
            .is_some_and(FramingScanner::is_between);
        self.marks.received.set(!whole);
        cut
    }

    /// Returns whether the next bytes follow a request in flight.
    fn is_behind(&self) -> bool {
        self.marks.busy.get()
            && self
                .framing
                .as_ref()
                .is_some_and(FramingScanner::is_between)
    }
}

impl<S: AsyncRead + Unpin> Http1Stream<S> {
    /// Reads the replacement for the client's bytes, then nothing until the client ends.
    fn poll_instead(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
        instead: &'static [u8],
    ) -> Poll<io::Result<()>> {
        if instead.is_empty() {
            let mut waste = [0; WASTE];
            let mut waste = ReadBuf::new(&mut waste);
            let read = Pin::new(&mut self.stream).poll_read(cx, &mut waste);
            if read.is_ready() && !waste.filled().is_empty() {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            return read;
        }
        let (now, later) = instead.split_at(buf.remaining().min(instead.len()));
        buf.put_slice(now);
        self.instead = Some(later);
        Poll::Ready(Ok(()))
    }

    /// Reads bytes after the request in flight and keeps them. Ready once the client has disconnected.
    fn poll_early(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        // At the limit, register no waker: the end of the request wakes the connection.
        while self.early.len() < MAX_EARLY {
            let before = buf.filled().len();
            let read = Pin::new(&mut self.stream).poll_read(cx, buf);
            if buf.filled().len() == before {
                return read;
            }
            self.keep_early(buf, before);
        }
        Poll::Pending
    }

    /// Keeps all bytes from `from` on.
    fn keep_early(&mut self, buf: &mut ReadBuf<'_>, from: usize) {
        let early = buf.filled().get(from..).unwrap_or_default();
        self.early.extend_from_slice(early);
        buf.set_filled(from);
        self.marks.behind.set(true);
    }

    /// Passes on the kept bytes: at most one request, or all of them in a tunnel.
    fn read_early(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let mut early = std::mem::take(&mut self.early);
        let most = early.len().min(buf.remaining());
        let bytes = early.get_mut(..most).unwrap_or_default();
        let cut = self.follow_read(bytes);
        let end = cut.map_or(bytes.len(), FramingStop::at);
        buf.put_slice(bytes.get(..end).unwrap_or_default());
        early.advance(end);
        match cut {
            Some(FramingStop::Ending(_)) => return self.poll_instead(cx, buf, ENDING),
            Some(FramingStop::Broken(_)) => return self.poll_instead(cx, buf, BROKEN),
            Some(FramingStop::Query(_)) => early = escape_query(&early),
            Some(FramingStop::Behind(_)) | None => {}
        }
        self.marks.behind.set(!early.is_empty());
        if !early.is_empty() {
            self.early = early;
        }
        if cut == Some(FramingStop::Query(0)) {
            // An empty read would mean the end of the connection. An escaped query has nothing to escape.
            return self.read_early(cx, buf);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Http1Stream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Some(instead) = self.instead {
            return self.poll_instead(cx, buf, instead);
        }
        if self.is_behind() {
            return self.poll_early(cx, buf);
        }
        if !self.early.is_empty() {
            return self.read_early(cx, buf);
        }
        let before = buf.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        let cut = match buf.filled_mut().get_mut(before..) {
            Some(bytes) if !bytes.is_empty() => self.follow_read(bytes),
            _ => None,
        };
        let Some(stop) = cut else { return read };
        let end = before + stop.at();
        match stop {
            FramingStop::Ending(_) => {
                buf.set_filled(end);
                self.poll_instead(cx, buf, ENDING)
            }
            FramingStop::Broken(_) => {
                buf.set_filled(end);
                self.poll_instead(cx, buf, BROKEN)
            }
            FramingStop::Behind(_) => {
                self.keep_early(buf, end);
                read
            }
            FramingStop::Query(at) => {
                self.early = escape_query(buf.filled().get(end..).unwrap_or_default());
                buf.set_filled(end);
                if at == 0 {
                    return self.read_early(cx, buf);
                }
                read
            }
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Http1Stream<S> {
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
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
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
