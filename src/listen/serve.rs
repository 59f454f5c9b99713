//! Serves HTTP on one connection: hyper with the gateway's limits, driven under a timer until it ends, is
//! aborted or is drained. It sends no response itself, except where hyper refuses bytes that are not HTTP.

use std::error::Error as StdError;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};

use super::connection_state::{ConnectionDirective, ConnectionState};
use super::timers::{ConnectionTimer, ResponseHandle};
use super::{ConnectionLimits, HttpVersion, RequestBody, ServeError, http1, http2};

/// The maximum number of bytes read and dropped after the last response, so that a reset does not destroy it.
const LINGER_BYTES: usize = 1024 * 1024;

/// Handles requests: any function of the request and the handle of its response.
pub trait RequestHandler: 'static {
    /// The body of a response.
    type Body: Body<Data = Bytes, Error: Into<Box<dyn StdError + Send + Sync>>> + Unpin + 'static;
    /// Resolves to the response. `None` closes the connection (HTTP/1), or resets only the stream (HTTP/2).
    type Future: Future<Output = Option<Response<Self::Body>>> + 'static;

    /// Responds to one request.
    fn handle(&self, request: Request<RequestBody>, response: ResponseHandle) -> Self::Future;
}

impl<H, F, B> RequestHandler for H
where
    H: Fn(Request<RequestBody>, ResponseHandle) -> F + 'static,
    F: Future<Output = Option<Response<B>>> + 'static,
    B: Body<Data = Bytes, Error: Into<Box<dyn StdError + Send + Sync>>> + Unpin + 'static,
{
    type Body = B;
    type Future = F;

    fn handle(&self, request: Request<RequestBody>, response: ResponseHandle) -> F {
        self(request, response)
    }
}

/// Serves a connection until it ends. The stream becomes a tunnel if a response accepts the client's upgrade.
///
/// A panic of the handler unwinds through here (HTTP/1) or ends the task of its stream (HTTP/2): run each
/// connection in a separate task.
pub async fn serve<S, H>(
    stream: S,
    protocol: HttpVersion,
    limits: &ConnectionLimits,
    timer: ConnectionTimer,
    handler: H,
) -> Result<(), ServeError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    H: RequestHandler,
{
    let state = timer.state();
    state.start(protocol);
    match protocol {
        // Boxed separately: a task is as large as the largest future that it may hold.
        HttpVersion::Http1 => Box::pin(http1::serve(stream, limits, state, handler)).await,
        HttpVersion::Http2 => Box::pin(http2::serve(stream, limits, state, handler)).await,
    }
}

/// Reads and drops the client's remaining bytes: a socket closed with unread bytes is reset, and the reset can
/// overtake the last response.
pub(super) async fn discard_input<S: AsyncRead + Unpin>(mut stream: S) {
    let mut waste = vec![0; 16 * 1024];
    let mut left = LINGER_BYTES;
    while let Ok(n @ 1..) = stream.read(&mut waste).await {
        left = left.saturating_sub(n);
        if left == 0 {
            return;
        }
    }
}

/// Runs `last` until the connection is late. `None` if the deadline is reached first.
pub(super) async fn in_time<F: Future>(state: &ConnectionState, last: F) -> Option<F::Output> {
    let mut last = pin!(last);
    poll_fn(|cx| match state.directive(cx) {
        ConnectionDirective::Abort(_) => Poll::Ready(None),
        ConnectionDirective::Continue | ConnectionDirective::Finish => {
            last.as_mut().poll(cx).map(Some)
        }
    })
    .await
}
