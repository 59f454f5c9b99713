//! An answer's body on its way to the client. Holds its connection and gives it back to the pool
//! at the body's end; dropped half-way, it closes the connection. Never buffers.

use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};

use super::exchange::{Connection, Received};
use super::headers::clean_trailers;
use super::server::InFlight;
use super::shelf::Shelf;
use super::upload::Meter;
use crate::body::{Body, BodyError};

/// A body on its way in.
struct Download {
    body: Received,
    lease: Option<Lease>,
}

/// A connection taken from the pool, and where it goes back to.
pub(super) struct Lease {
    pub(super) connection: Connection,
    pub(super) shelf: Rc<Shelf>,
    pub(super) meter: Option<Rc<Meter>>,
    pub(super) _in_flight: InFlight,
    /// Whether the origin can take another request in the same way.
    pub(super) reusable: bool,
}

/// The body of an answer; its lease ends with it.
pub(super) fn body(received: Received, lease: Lease) -> Body {
    if received.is_end_stream() {
        lease.end();
        return Body::Empty;
    }
    Body::Stream(Box::pin(Download {
        body: received,
        lease: Some(lease),
    }))
}

// === impl Lease ===

impl Lease {
    /// The answer was read to its end. An origin that answered before it had the whole request
    /// may never want the rest: then the connection is closed, not waited for.
    fn end(self) {
        if self.reusable && self.meter.is_none_or(|meter| meter.is_done()) {
            self.shelf.put(self.connection);
        }
    }
}

// === impl Download ===

impl Download {
    /// `ended` tells a whole body from a broken one.
    fn close(&mut self, ended: bool) {
        if let Some(lease) = self.lease.take()
            && ended
        {
            lease.end();
        }
    }
}

impl http_body::Body for Download {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(cx) else {
            return Poll::Pending;
        };
        match &frame {
            None => self.close(true),
            Some(Err(_)) => self.close(false),
            // Readers stop polling when they know that this was all.
            Some(Ok(frame)) if frame.is_trailers() || self.body.is_end_stream() => self.close(true),
            Some(Ok(_)) => {}
        }
        Poll::Ready(frame.map(|frame| frame.map(clean).map_err(Into::into)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

fn clean(frame: Frame<Bytes>) -> Frame<Bytes> {
    match frame.into_trailers() {
        Ok(mut trailers) => {
            clean_trailers(&mut trailers);
            Frame::trailers(trailers)
        }
        Err(frame) => frame,
    }
}
