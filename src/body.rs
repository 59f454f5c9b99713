//! The body type of requests and responses inside the gateway.
//!
//! It never buffers: a stream is polled only as fast as its reader consumes it.

pub mod budget;

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};

/// The reason why a body could not be read to its end.
pub type BodyError = Box<dyn std::error::Error + Send + Sync>;

/// A message body.
#[derive(Default)]
pub enum Body {
    /// No bytes.
    #[default]
    Empty,
    /// All bytes in memory.
    Whole(Bytes),
    /// Bytes that arrive while they are forwarded.
    Stream(Pin<Box<dyn http_body::Body<Data = Bytes, Error = BodyError>>>),
}

/// Returns whether the value of a `content-type` or `accept` entry is `media`, with any parameters.
pub fn media_type_is(value: &[u8], media: &str) -> bool {
    let own = value.split(|byte| *byte == b';').next();
    own.is_some_and(|own| own.trim_ascii().eq_ignore_ascii_case(media.as_bytes()))
}

// === impl Body ===

impl Body {
    /// Creates a streamed body.
    pub fn stream<B>(body: B) -> Self
    where
        B: http_body::Body<Data = Bytes> + 'static,
        B::Error: Into<BodyError>,
    {
        use http_body_util::BodyExt;
        Body::Stream(Box::pin(body.map_err(Into::into)))
    }
}

impl<T: Into<Bytes>> From<T> for Body {
    fn from(bytes: T) -> Self {
        let bytes = bytes.into();
        if bytes.is_empty() {
            Body::Empty
        } else {
            Body::Whole(bytes)
        }
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match &mut *self {
            Body::Empty => Poll::Ready(None),
            Body::Whole(_) => match std::mem::take(&mut *self) {
                Body::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(bytes)))),
                _ => Poll::Ready(None),
            },
            Body::Stream(stream) => stream.as_mut().poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Body::Empty => true,
            Body::Whole(_) => false,
            Body::Stream(stream) => stream.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Body::Empty => SizeHint::with_exact(0),
            Body::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Body::Stream(stream) => stream.size_hint(),
        }
    }
}
