//! HTTP/2: the driver of a connection, and what its client has allowed the gateway to send.

mod frames;
mod meter;
mod stream;

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};

use super::connection_state::{ConnectionDirective, ConnectionState};
use super::min_rate::Direction;
use super::response::{StreamTasks, respond};
use super::serve::{RequestHandler, discard_input, in_time};
use super::{ClientFault, ConnectionLimits, H2Violation, ServeError};
use frames::{FrameHeader, PEEK_SETTINGS};
use stream::MeteredStream;

/// What a client may send ahead on one stream, and on the whole connection.
const STREAM_WINDOW: u32 = 256 * 1024;
const CONNECTION_WINDOW: u32 = 1024 * 1024;

/// What a stream may hold of a response that its client is slow to take.
const SEND_BUFFER: usize = 16 * 1024;

/// Streams that a client reset before the gateway saw them (CVE-2023-44487), and streams that the
/// gateway reset because of the client's errors (CVE-2025-8671) as long as the connection lives:
/// h2's own bounds, for a client that does not read what the meter counts.
const MAX_PENDING_RESETS: usize = 32;
const MAX_ERROR_RESETS: usize = 1024;

/// Above the largest window h2 says PROTOCOL_ERROR, where RFC 9113, 6.5.2 wants FLOW_CONTROL_ERROR.
const INITIAL_WINDOW_SIZE: u16 = 4;
const LARGEST_WINDOW: u32 = 0x7fff_ffff;

/// The windows that a client has announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ClientWindows {
    /// Of a new stream.
    stream: u32,
    /// Of the whole connection, with all that was sent.
    connection: u64,
}

/// How much of the client's windows is left, never more than there is. h2 keeps the rest of a
/// response until the client takes it, out of the sweeper's sight: so a response must not end there.
pub(super) struct SendWindow {
    windows: Cell<ClientWindows>,
    sent: Cell<u64>,
}

/// Serves an HTTP/2 connection until it ends.
pub(super) async fn serve<S, H>(
    stream: S,
    limits: &ConnectionLimits,
    state: Rc<ConnectionState>,
    handler: H,
) -> Result<(), ServeError>
where
    S: AsyncRead + AsyncWrite + Unpin + 'static,
    H: RequestHandler,
{
    let handler = Rc::new(handler);
    let tasks = StreamTasks::default();
    let service = service_fn({
        let (state, tasks) = (state.clone(), tasks.clone());
        move |request| {
            let transfer = state.transfer(Direction::ToClient);
            tasks.expect(&transfer);
            respond(&state, Some(transfer), &handler, request)
        }
    });
    let stream = MeteredStream::new(stream, state.clone(), limits.h2_max_resets);
    let ended = {
        let http = builder(limits, tasks).serve_connection(TokioIo::new(stream.clone()), service);
        let mut http = pin!(http);
        poll_fn(|cx| {
            match state.directive(cx) {
                ConnectionDirective::Continue => {}
                ConnectionDirective::Finish => http.as_mut().graceful_shutdown(),
                ConnectionDirective::Abort(slow) => return Poll::Ready(Err(slow.into())),
            }
            // Nothing is left to send when hyper is done: it shuts the stream down first.
            if let Poll::Ready(ended) = http.as_mut().poll(cx) {
                return Poll::Ready(ended.map_err(ServeError::Http));
            }
            if stream.meter().is_violated() {
                return Poll::Ready(Ok(()));
            }
            match stream.poll_send(cx) {
                Poll::Ready(Err(e)) => Poll::Ready(Err(ServeError::Io(e))),
                _ => Poll::Pending,
            }
        })
        .await
    };
    for _ in 0..stream.meter().take_errors() {
        state.timers.report(ClientFault::Malformed);
    }
    if ended.is_ok() {
        stream.ended();
    }
    let violation = stream.meter().violation();
    match violation {
        Some(violation) if !matches!(ended, Err(ServeError::Slow(_))) => {
            Box::pin(send_goaway(stream, &state)).await;
            Err(ServeError::Http2(violation))
        }
        _ => ended,
    }
}

fn builder(limits: &ConnectionLimits, tasks: StreamTasks) -> http2::Builder<StreamTasks> {
    let mut http = http2::Builder::new(tasks);
    http.max_concurrent_streams(limits.h2_max_concurrent_streams)
        .max_header_list_size(u32::try_from(limits.max_header_bytes).unwrap_or(u32::MAX))
        .max_pending_accept_reset_streams(MAX_PENDING_RESETS)
        .max_local_error_reset_streams(MAX_ERROR_RESETS)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_send_buf_size(SEND_BUFFER)
        .enable_connect_protocol();
    http
}

/// Tells a client that it violated HTTP/2, and reads on until the client has closed.
async fn send_goaway<S>(mut stream: MeteredStream<S>, state: &ConnectionState)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    state.linger();
    if let Some(Ok(())) = in_time(state, stream.send_goaway()).await
        && let Some(stream) = stream.into_stream()
    {
        in_time(state, discard_input(stream)).await;
    }
}

// === impl ClientWindows ===

impl ClientWindows {
    /// RFC 9113, 6.9.2.
    const INITIAL: Self = Self {
        stream: 65_535,
        connection: 65_535,
    };

    /// Applies a SETTINGS frame with its `settings`.
    fn apply_settings(
        &mut self,
        frame: &FrameHeader,
        settings: impl Iterator<Item = (u16, u32)>,
    ) -> Result<(), H2Violation> {
        for (setting, value) in settings {
            match setting {
                INITIAL_WINDOW_SIZE if value > LARGEST_WINDOW => return Err(H2Violation::WINDOW),
                INITIAL_WINDOW_SIZE => self.stream = value,
                _ => {}
            }
        }
        // A setting behind those that are kept may allow nothing.
        if frame.length > PEEK_SETTINGS {
            self.stream = 0;
        }
        Ok(())
    }

    /// Applies a WINDOW_UPDATE frame.
    fn apply_update(&mut self, frame: &FrameHeader) {
        if frame.stream == 0 {
            self.connection += u64::from(frame.word());
        }
    }
}

// === impl SendWindow ===

impl SendWindow {
    pub(super) const fn new() -> Self {
        Self {
            windows: Cell::new(ClientWindows::INITIAL),
            sent: Cell::new(0),
        }
    }

    /// Records what the client allows, after each read.
    fn allow(&self, windows: ClientWindows) {
        self.windows.set(windows);
    }

    /// Records that a tunnel sends on the connection, which does not say how much.
    pub(super) fn close(&self) {
        self.sent.set(u64::MAX);
    }

    /// Whether the client takes `bytes` at once on a stream that was given `before` bytes.
    pub(super) fn fits(&self, before: u64, bytes: usize) -> bool {
        let (windows, bytes) = (self.windows.get(), bytes as u64);
        before + bytes <= u64::from(windows.stream)
            && self.sent.get().saturating_add(bytes) <= windows.connection
    }

    /// What the client takes of a stream before it allows more.
    pub(super) fn of_stream(&self) -> u64 {
        u64::from(self.windows.get().stream)
    }

    /// Records that `bytes` were sent.
    pub(super) fn sent(&self, bytes: usize) {
        self.sent.set(self.sent.get().saturating_add(bytes as u64));
    }
}
