//! A request's body as it comes from its client: hyper's, with an end to our patience. It holds no
//! bytes and asks for none ahead.

use std::fmt;
use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use super::deadline::Stay;
use super::transfer::Carried;
use crate::body::BodyError;

/// A request's body. It fails with [`TooSlow`] where its client does not keep the pace.
pub struct Incoming {
    body: hyper::body::Incoming,
    /// `None`: there is no body to wait for.
    transfer: Option<Carried>,
    stay: Option<Stay>,
}

/// The client did not send its body fast enough.
#[derive(Debug)]
pub struct TooSlow;

// === impl Incoming ===

impl Incoming {
    pub(super) fn new(body: hyper::body::Incoming, transfer: Option<Carried>) -> Self {
        Self {
            body,
            transfer,
            stay: None,
        }
    }

    pub(super) fn staying(mut self, stay: Option<Stay>) -> Self {
        self.stay = stay;
        self
    }

    /// What a tunnel has to hold; `None`: the stream cannot become one, or is a whole connection.
    pub fn stay(&mut self) -> Option<Stay> {
        self.stay.take()
    }
}

impl Body for Incoming {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        let Some(transfer) = &self.transfer else {
            return polled.map_err(Into::into);
        };
        match &polled {
            // What came in the end is too late to be told from what did not come.
            _ if transfer.is_slow() => return Poll::Ready(Some(Err(TooSlow.into()))),
            Poll::Pending => {
                transfer.wakes(cx);
                transfer.waits(true);
            }
            Poll::Ready(Some(Ok(frame))) => {
                transfer.moved(frame.data_ref().map_or(0, Bytes::len));
            }
            Poll::Ready(Some(Err(error))) => {
                if is_malformed(error) {
                    transfer.malformed();
                }
                self.transfer = None;
            }
            Poll::Ready(None) => self.transfer = None,
        }
        polled.map_err(Into::into)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Whether the chunks of an HTTP/1 body cannot be read: hyper has no other word for it. One that
/// breaks off is no such body.
fn is_malformed(error: &hyper::Error) -> bool {
    let why = std::error::Error::source(error).and_then(|why| why.downcast_ref::<io::Error>());
    why.is_some_and(|why| matches!(why.kind(), ErrorKind::InvalidInput | ErrorKind::InvalidData))
}

// === impl TooSlow ===

impl fmt::Display for TooSlow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the request's body came too slowly")
    }
}

impl std::error::Error for TooSlow {}
