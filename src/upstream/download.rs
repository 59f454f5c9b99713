//! An answer's body on its way to the client. Holds its connection and gives it back to the pool
//! at the body's end; dropped half-way, it closes the connection. Never buffers.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Frame, SizeHint};

use super::answer::Length;
use super::chunked::Part;
use super::error::{Error, Kind};
use super::exchange::Exchange;
use super::inbox::Inbox;
use crate::body::BodyError;

/// A body on its way in.
pub(super) struct Download {
    /// Gone when the body has ended or broken off.
    exchange: Option<Exchange>,
    length: Length,
    /// Why it broke off, until that is told.
    broken: Option<BodyError>,
}

/// What a client is given next; `None` at the end.
type Next = Option<Result<Frame<Bytes>, BodyError>>;

/// Why an answer without an end ended.
const CLOSED: &str = "the connection was closed before its end";

// === impl Download ===

impl Download {
    pub(super) fn new(exchange: Exchange, length: Length) -> Self {
        let exchange = Some(exchange);
        Self {
            exchange,
            length,
            broken: None,
        }
    }

    /// The rest of the request goes on while its answer comes.
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Next> {
        let Some(exchange) = &mut self.exchange else {
            return Poll::Ready(None);
        };
        exchange.poll_upload(cx).map_err(of_request)?;
        loop {
            if let Some(frame) = take(exchange.inbox(), &mut self.length)? {
                return Poll::Ready(Some(Ok(frame)));
            }
            if is_over(&self.length) {
                return Poll::Ready(None);
            }
            if ready!(exchange.poll_fill(cx)).map_err(closed)? == 0 {
                return Poll::Ready(match self.length {
                    Length::Close => None,
                    _ => Some(Err(CLOSED.into())),
                });
            }
        }
    }
}

impl http_body::Body for Download {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Next> {
        if let Some(error) = self.broken.take() {
            return Poll::Ready(Some(Err(error)));
        }
        let next = match ready!(self.poll_next(cx)) {
            // One turn later, so that the client gets what came before: from a connection that
            // just closes, it may take leave to send its request again.
            Some(Err(error)) => {
                let exchange = self.exchange.take();
                self.broken = exchange.map(|it| Error::of_body(error, it.server()).into());
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            next => next,
        };
        match &next {
            // Readers stop polling when they know that this was all.
            Some(Ok(_)) if !is_over(&self.length) => {}
            _ => {
                if let Some(exchange) = self.exchange.take()
                    && is_over(&self.length)
                {
                    exchange.end();
                }
            }
        }
        Poll::Ready(next)
    }

    fn is_end_stream(&self) -> bool {
        self.exchange.is_none() && self.broken.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        match self.length {
            Length::Exact(left) => SizeHint::with_exact(left),
            _ => SizeHint::default(),
        }
    }
}

/// The library's words for an end without a goodbye are a link to a manual.
fn closed(error: io::Error) -> BodyError {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => CLOSED.into(),
        _ => error.into(),
    }
}

/// The client is to blame, not the origin.
pub(super) fn of_request(error: BodyError) -> BodyError {
    Error::from(Kind::RequestBody).because(error).into()
}

/// What the bytes that came hold of a body; `None`: nothing.
pub(super) fn take(
    inbox: &mut Inbox,
    length: &mut Length,
) -> Result<Option<Frame<Bytes>>, BodyError> {
    let data = match length {
        Length::Exact(left) => {
            let data = inbox.take(usize::try_from(*left).unwrap_or(usize::MAX));
            *left -= data.len() as u64;
            data
        }
        Length::Close => inbox.take(usize::MAX),
        Length::Chunked(chunked) => match chunked.next(inbox)? {
            Part::Data(data) => data,
            Part::Trailers(trailers) => return Ok(Some(Frame::trailers(trailers))),
            Part::End | Part::Nothing => return Ok(None),
        },
    };
    Ok((!data.is_empty()).then(|| Frame::data(data)))
}

/// Whether nothing of a body is to come.
pub(super) fn is_over(length: &Length) -> bool {
    match length {
        Length::Exact(left) => *left == 0,
        Length::Chunked(chunked) => chunked.is_over(),
        Length::Close => false,
    }
}
