//! One connection's HTTP: hyper with our bounds, driven under a deadline until it ends, is cut
//! or is drained. It never answers by itself, but where hyper refuses what is not HTTP.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::Poll;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::answer::{Streams, answer};
use super::deadline::{Turn, Watch};
use super::io::Watched;
use super::metered::Metered;
use super::transfer::Way;
use super::{Error, Incoming, Limits, Protocol};

/// The least that hyper accepts for its HTTP/1 buffers.
const H1_LEAST_BUFFER: usize = 8192;

/// The number of fields that hyper allows by itself.
const H1_OWN_MAX_HEADERS: usize = 100;

/// What a client may send ahead on one stream, and on the whole connection.
const H2_STREAM_WINDOW: u32 = 256 * 1024;
const H2_CONNECTION_WINDOW: u32 = 1024 * 1024;

/// What a stream may hold of an answer that its client is slow to take.
const H2_SEND_BUFFER: usize = 16 * 1024;

/// Streams that a client reset before we saw them (CVE-2023-44487), and streams that we reset
/// because of its errors (CVE-2025-8671) as long as the connection lives: h2's own bounds, for a
/// client that does not read what the meter counts.
const H2_MAX_PENDING_RESETS: usize = 32;
const H2_MAX_ERROR_RESETS: usize = 1024;

/// Bytes read and dropped after the last answer, so that it is not lost to a reset.
const LINGER_BYTES: usize = 1024 * 1024;

/// Serves a connection until it ends. `handler` is called once a request; the stream becomes a
/// tunnel where its answer is an upgrade that the client asked for. Where it gives no answer, the
/// connection closes (HTTP/1), or the stream is reset and the others live on (HTTP/2).
///
/// A panic of the handler unwinds through here (HTTP/1) or ends the task of its stream (HTTP/2):
/// run each connection in a task of its own.
pub async fn serve<S, H, F, B>(
    stream: S,
    protocol: Protocol,
    limits: &Limits,
    watch: Watch,
    handler: H,
) -> Result<(), Error>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    H: Fn(Request<Incoming>) -> F + Unpin + 'static,
    F: Future<Output = Option<Response<B>>> + 'static,
    B: Body<Data = Bytes> + Unpin + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let stream = Watched::new(stream, watch.signal(), protocol);
    watch.start(protocol);
    match protocol {
        // Each in its own size: a task is as large as the largest that it may become.
        Protocol::Http1 => Box::pin(serve_http1(stream, limits, watch, handler)).await,
        Protocol::Http2 => Box::pin(serve_http2(stream, limits, watch, handler)).await,
    }
}

async fn serve_http1<S, H, F, B>(
    stream: Watched<S>,
    limits: &Limits,
    watch: Watch,
    handler: H,
) -> Result<(), Error>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    H: Fn(Request<Incoming>) -> F + Unpin + 'static,
    F: Future<Output = Option<Response<B>>> + 'static,
    B: Body<Data = Bytes> + Unpin + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let watch = Rc::new(watch);
    let handler = Rc::new(handler);
    let service = service_fn({
        let watch = watch.clone();
        move |request| answer(&watch, None, &handler, request)
    });
    let mut http = http1(limits)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let ended = poll_fn(|cx| {
        match watch.turn(cx) {
            Turn::Go => {}
            Turn::Finish => Pin::new(&mut http).graceful_shutdown(),
            Turn::Cut(slow) => return Poll::Ready(Err(slow.into())),
        }
        let ended = Pin::new(&mut http).poll(cx).map_err(Error::Http);
        if watch.can_go_on() {
            cx.waker().wake_by_ref();
        }
        ended
    })
    .await;
    let malformed = ended.as_ref().is_err_and(Error::is_malformed);
    match http.into_parts() {
        Some(parts) if malformed || ended.is_ok() => {
            let stream = parts.io.into_inner();
            let spoilt = stream.is_spoilt();
            Box::pin(linger(stream, &watch, malformed)).await;
            ended.map_err(|error| error.of_head(spoilt))
        }
        _ => ended,
    }
}

async fn serve_http2<S, H, F, B>(
    stream: Watched<S>,
    limits: &Limits,
    watch: Watch,
    handler: H,
) -> Result<(), Error>
where
    S: AsyncRead + AsyncWrite + Unpin + 'static,
    H: Fn(Request<Incoming>) -> F + 'static,
    F: Future<Output = Option<Response<B>>> + 'static,
    B: Body<Data = Bytes> + Unpin + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let watch = Rc::new(watch);
    let handler = Rc::new(handler);
    let streams = Streams::default();
    let service = service_fn({
        let (watch, streams) = (watch.clone(), streams.clone());
        move |request| {
            let taken = watch.transfer(Way::Out);
            streams.expect(&taken);
            answer(&watch, Some(taken), &handler, request)
        }
    });
    let stream = Metered::new(stream, watch.clone(), limits.h2_max_resets);
    let ended = {
        let mut http =
            pin!(http2(limits, streams).serve_connection(TokioIo::new(stream.clone()), service));
        poll_fn(|cx| {
            match watch.turn(cx) {
                Turn::Go => {}
                Turn::Finish => http.as_mut().graceful_shutdown(),
                Turn::Cut(slow) => return Poll::Ready(Err(slow.into())),
            }
            // Nothing is left to send when it is done: hyper shuts the stream down first.
            if let Poll::Ready(ended) = http.as_mut().poll(cx) {
                return Poll::Ready(ended.map_err(Error::Http));
            }
            if stream.is_broken() {
                return Poll::Ready(Ok(()));
            }
            match stream.poll_send(cx) {
                Poll::Ready(Err(e)) => Poll::Ready(Err(Error::Io(e))),
                _ => Poll::Pending,
            }
        })
        .await
    };
    watch.stream_errors(stream.take_errors());
    if ended.is_ok() {
        stream.ended();
    }
    match stream.broken() {
        Some(broken) if !matches!(ended, Err(Error::Slow(_))) => {
            Box::pin(part(stream, &watch)).await;
            Err(Error::Broken(broken))
        }
        _ => ended,
    }
}

fn http1(limits: &Limits) -> http1::Builder {
    let mut http = http1::Builder::new();
    // Its own bound costs no allocation.
    if limits.max_headers != H1_OWN_MAX_HEADERS {
        http.max_headers(limits.max_headers);
    }
    http.keep_alive(true)
        .half_close(false)
        // The deadline is ours; hyper's would cost a timer a request.
        .header_read_timeout(None)
        .ignore_invalid_headers(false)
        .max_header_size(limits.max_header_bytes)
        .max_buf_size(limits.max_header_bytes.max(H1_LEAST_BUFFER));
    http
}

fn http2(limits: &Limits, streams: Streams) -> http2::Builder<Streams> {
    let mut http = http2::Builder::new(streams);
    http.max_concurrent_streams(limits.h2_max_concurrent_streams)
        .max_header_list_size(u32::try_from(limits.max_header_bytes).unwrap_or(u32::MAX))
        .max_pending_accept_reset_streams(H2_MAX_PENDING_RESETS)
        .max_local_error_reset_streams(H2_MAX_ERROR_RESETS)
        .initial_stream_window_size(H2_STREAM_WINDOW)
        .initial_connection_window_size(H2_CONNECTION_WINDOW)
        .max_send_buf_size(H2_SEND_BUFFER)
        .enable_connect_protocol();
    http
}

/// Tells a client that it broke HTTP/2, and reads on until it has heard.
async fn part<S: AsyncRead + AsyncWrite + Unpin>(mut stream: Metered<S>, watch: &Watch) {
    watch.linger();
    if let Some(Ok(())) = in_time(watch, stream.farewell()).await {
        in_time(watch, drop_rest(stream.into_stream())).await;
    }
}

/// Reads on after the last byte was written, for as long as the client sends what it began: a
/// socket closed with unread bytes is reset, and the reset can overtake the answer.
async fn linger<S>(mut stream: S, watch: &Watch, malformed: bool)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    if !watch.linger() && !malformed {
        return;
    }
    in_time(watch, async {
        // hyper leaves it open once an upgrade was refused: a client that waits for the end must
        // see it. It fails on a socket that is gone, which has no rest either.
        if stream.shutdown().await.is_ok() {
            drop_rest(stream).await;
        }
    })
    .await;
}

async fn drop_rest<S: AsyncRead + Unpin>(mut stream: S) {
    let mut waste = vec![0; 16 * 1024];
    let mut left = LINGER_BYTES;
    while let Ok(n @ 1..) = stream.read(&mut waste).await {
        left = left.saturating_sub(n);
        if left == 0 {
            return;
        }
    }
}

/// `None`: the deadline came first.
async fn in_time<F: Future>(watch: &Watch, last: F) -> Option<F::Output> {
    let mut last = pin!(last);
    poll_fn(|cx| match watch.turn(cx) {
        Turn::Cut(_) => Poll::Ready(None),
        Turn::Go | Turn::Finish => last.as_mut().poll(cx).map(Some),
    })
    .await
}
