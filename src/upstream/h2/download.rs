//! The body of an answer on its way to the client. The origin may send on as the client takes;
//! dropped half-way, it resets the stream. Never buffers.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::RecvStream;
use http_body::{Frame, SizeHint};

use super::super::download::of_request;
use super::super::error::Error;
use super::super::headers::clean_trailers;
use super::Exchange;
use crate::body::BodyError;

/// A body on its way in.
pub(super) struct Download {
    /// Gone when the body has ended or broken off.
    exchange: Option<Exchange>,
    body: RecvStream,
    left: Option<u64>,
    /// Only trailers may follow.
    all_data: bool,
    /// Why it broke off, until that is told.
    broken: Option<BodyError>,
}

/// What a client is given next; `None` at the end.
type Next = Option<Result<Frame<Bytes>, BodyError>>;

// === impl Download ===

impl Download {
    pub(super) fn new(exchange: Exchange, body: RecvStream, left: Option<u64>) -> Self {
        Self {
            exchange: Some(exchange),
            body,
            left,
            all_data: false,
            broken: None,
        }
    }

    /// The rest of the request goes on while its answer comes.
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Next> {
        let Some(exchange) = &mut self.exchange else {
            return Poll::Ready(None);
        };
        exchange.poll_upload(cx).map_err(of_request)?;
        while !self.all_data {
            match ready!(self.body.poll_data(cx)) {
                Some(data) => {
                    let data = data?;
                    self.body.flow_control().release_capacity(data.len())?;
                    if !data.is_empty() {
                        return Poll::Ready(Some(Ok(Frame::data(data))));
                    }
                }
                None => self.all_data = true,
            }
        }
        let mut trailers = ready!(self.body.poll_trailers(cx))?.unwrap_or_default();
        clean_trailers(&mut trailers);
        let any = !trailers.is_empty();
        Poll::Ready(any.then(|| Ok(Frame::trailers(trailers))))
    }
}

impl http_body::Body for Download {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Next> {
        if let Some(error) = self.broken.take() {
            return Poll::Ready(Some(Err(error)));
        }
        let next = ready!(self.poll_next(cx));
        match &next {
            // One turn later, so that the client gets what came before.
            Some(Err(_)) => {
                let (error, exchange) = (next.and_then(Result::err), self.exchange.take());
                self.broken = error
                    .zip(exchange)
                    .map(|(error, it)| Error::of_body(error, it.server()).into());
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            Some(Ok(frame)) => {
                let length = frame.data_ref().map(|data| data.len() as u64);
                if let (Some(left), Some(length)) = (&mut self.left, length) {
                    *left = left.saturating_sub(length);
                }
                // Readers stop polling when they know that this was all.
                if length.is_none() || self.body.is_end_stream() {
                    self.exchange = None;
                }
            }
            None => self.exchange = None,
        }
        Poll::Ready(next)
    }

    fn is_end_stream(&self) -> bool {
        self.exchange.is_none() && self.broken.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        match self.left {
            Some(left) => SizeHint::with_exact(left),
            None => SizeHint::default(),
        }
    }
}
