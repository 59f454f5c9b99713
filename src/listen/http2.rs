//! HTTP/2: the driver of a connection, and the flow-control window that its client has granted.

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

/// The flow-control windows of one stream and of the whole connection, in bytes.
const STREAM_WINDOW: u32 = 256 * 1024;
const CONNECTION_WINDOW: u32 = 1024 * 1024;

/// The maximum response data buffered per stream for a slow client, in bytes.
const SEND_BUFFER: usize = 16 * 1024;

/// The maximum number of streams that a client reset before the gateway saw them (CVE-2023-44487), and of
/// streams that the gateway reset because of the client's errors (CVE-2025-8671) per connection. These are h2's
/// own limits, for a client that does not read the frames that the meter counts.
const MAX_PENDING_RESETS: usize = 32;
const MAX_ERROR_RESETS: usize = 1024;

/// Above the maximum window h2 sends PROTOCOL_ERROR, but RFC 9113, 6.5.2 requires FLOW_CONTROL_ERROR.
const INITIAL_WINDOW_SIZE: u16 = 4;
const LARGEST_WINDOW: u32 = 0x7fff_ffff;

/// The windows that a client has announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ClientWindows {
    /// The initial window of a new stream.
    stream: u32,
    /// The window of the connection, including all bytes sent so far.
    connection: u64,
}

/// The rest of the client's windows, never overestimated. h2 buffers a response until the client reads it, which
/// the sweeper cannot see: so a response must not end in that buffer.
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
            // hyper shuts the stream down before it ends, so no data is left to send.
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

/// Sends GOAWAY after an HTTP/2 violation, and reads on until the client has closed.
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
    /// The initial windows (RFC 9113, 6.9.2).
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
        // A setting beyond the kept ones may set the window to zero.
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

    /// Records the client's windows after each read.
    fn allow(&self, windows: ClientWindows) {
        self.windows.set(windows);
    }

    /// Records that a tunnel sends an unknown amount on the connection.
    pub(super) fn close(&self) {
        self.sent.set(u64::MAX);
    }

    /// Returns whether the windows admit `bytes` on a stream that has sent `before` bytes.
    pub(super) fn fits(&self, before: u64, bytes: usize) -> bool {
        let (windows, bytes) = (self.windows.get(), bytes as u64);
        before + bytes <= u64::from(windows.stream)
            && self.sent.get().saturating_add(bytes) <= windows.connection
    }

    /// Returns the initial window of a stream.
    pub(super) fn of_stream(&self) -> u64 {
        u64::from(self.windows.get().stream)
    }

    /// Records that `bytes` were sent.
    pub(super) fn sent(&self, bytes: usize) {
        self.sent.set(self.sent.get().saturating_add(bytes as u64));
    }
}
