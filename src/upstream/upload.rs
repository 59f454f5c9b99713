//! A request's body on its way to an origin, with exactly one framing.
//!
//! A body that is not as long as declared is an error, which breaks the connection: it is never
//! padded, cut or completed. Nothing is buffered but the last frame of a declared length, until
//! the body's end is sure.

use std::cell::Cell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, HeaderValue, TRANSFER_ENCODING};
use http::{HeaderMap, Method, Request, Uri, Version};
use http_body::{Body as _, Frame, SizeHint};

use super::error::{Error, Kind};
use super::headers::clean_trailers;
use super::response::{plain_number, sole};
use crate::body::{Body, BodyError};

/// A body on its way out.
pub(super) struct Upload {
    body: Body,
    framing: Framing,
    last: Option<Bytes>,
    done: bool,
    meter: Option<Rc<Meter>>,
}

/// How a streamed body is doing, seen from outside the connection's task.
#[derive(Debug, Default)]
pub(super) struct Meter {
    frames: Cell<u64>,
    waiting: Cell<bool>,
    done: Cell<bool>,
}

#[derive(Clone, Copy)]
enum Framing {
    /// Bytes still to come.
    Length(u64),
    Chunked,
}

/// A body is not as long as declared.
#[derive(Debug)]
struct WrongLength;

// === impl Upload ===

impl Upload {
    /// An origin-form HTTP/1.1 request with one framing, in its fields and in its body.
    pub(super) fn frame(request: Request<Body>) -> Result<Request<Self>, Error> {
        let (mut parts, body) = request.into_parts();
        let framing = framing(&parts.method, &mut parts.headers, &body)?;
        // A body declared as empty is complete with its head; whatever it holds is not sent.
        let body = match framing {
            Framing::Length(0) => Body::Empty,
            _ => body,
        };
        parts.uri = origin_form(parts.uri);
        parts.version = Version::HTTP_11;
        parts.extensions.clear();
        Ok(Request::from_parts(parts, Self::new(body, framing)))
    }

    fn new(body: Body, framing: Framing) -> Self {
        Self {
            last: None,
            done: body.is_end_stream(),
            meter: matches!(body, Body::Stream(_)).then(Rc::default),
            body,
            framing,
        }
    }

    /// Whether a request can be sent twice without harm: RFC 9110, section 9.2.2.
    pub(super) fn is_repeatable(request: &Request<Self>) -> bool {
        request.method().is_idempotent() && request.body().done
    }

    /// The same request once more, if it is repeatable.
    pub(super) fn copy(request: &Request<Self>) -> Option<Request<Self>> {
        if !Self::is_repeatable(request) {
            return None;
        }
        let mut copy = Request::new(Self::new(Body::Empty, Framing::Length(0)));
        *copy.method_mut() = request.method().clone();
        *copy.uri_mut() = request.uri().clone();
        *copy.headers_mut() = request.headers().clone();
        Some(copy)
    }

    /// How it is doing; `None`: there is nothing to wait for.
    pub(super) fn meter(&self) -> Option<Rc<Meter>> {
        self.meter.clone()
    }

    fn finish(&mut self) {
        self.done = true;
        if let Some(meter) = &self.meter {
            meter.done.set(true);
        }
    }

    /// What to send for a frame that came; `None`: poll again.
    fn take(&mut self, frame: Frame<Bytes>) -> Result<Option<Frame<Bytes>>, BodyError> {
        match (frame.into_data(), self.framing) {
            (Ok(data), Framing::Length(left)) => self.take_of(data, left),
            (Ok(data), Framing::Chunked) => Ok(Some(Frame::data(data))),
            (Err(frame), Framing::Chunked) => Ok(frame.into_trailers().ok().and_then(trailers)),
            // A body of known length has no trailers in HTTP/1.1.
            (Err(_), Framing::Length(_)) => Ok(None),
        }
    }

    fn take_of(&mut self, data: Bytes, left: u64) -> Result<Option<Frame<Bytes>>, BodyError> {
        let left = left.checked_sub(data.len() as u64).ok_or(WrongLength)?;
        self.framing = Framing::Length(left);
        if left > 0 || data.is_empty() {
            return Ok((!data.is_empty()).then(|| Frame::data(data)));
        }
        // The codec stops polling at the declared length, so the last bytes wait for the end.
        if !self.body.is_end_stream() {
            self.last = Some(data);
            return Ok(None);
        }
        self.finish();
        Ok(Some(Frame::data(data)))
    }

    fn end(&mut self) -> Option<Result<Frame<Bytes>, BodyError>> {
        if matches!(self.framing, Framing::Length(1..)) {
            return Some(Err(WrongLength.into()));
        }
        self.finish();
        self.last.take().map(|data| Ok(Frame::data(data)))
    }
}

impl http_body::Body for Upload {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        while !self.done {
            let polled = Pin::new(&mut self.body).poll_frame(cx);
            if let Some(meter) = &self.meter {
                meter.note(polled.is_pending());
            }
            match polled {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(None) => return Poll::Ready(self.end()),
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Some(Err(error))),
                Poll::Ready(Some(Ok(frame))) => {
                    if let Some(frame) = self.take(frame).transpose() {
                        return Poll::Ready(Some(frame));
                    }
                }
            }
        }
        Poll::Ready(None)
    }

    fn is_end_stream(&self) -> bool {
        self.done
    }

    fn size_hint(&self) -> SizeHint {
        match self.framing {
            Framing::Length(left) => SizeHint::with_exact(left),
            Framing::Chunked => SizeHint::default(),
        }
    }
}

// === impl Meter ===

impl Meter {
    fn note(&self, waiting: bool) {
        self.waiting.set(waiting);
        if !waiting {
            self.frames.set(self.frames.get() + 1);
        }
    }

    /// Whether the whole body was handed to the connection.
    pub(super) fn is_done(&self) -> bool {
        self.done.get()
    }

    /// Whether the origin cannot be blamed for silence: the client is the slow one, or more was
    /// sent since `seen`, which is brought up to date.
    pub(super) fn excuses(&self, seen: &mut u64) -> bool {
        let frames = self.frames.get();
        let moved = std::mem::replace(seen, frames) != frames;
        moved || (self.waiting.get() && !self.done.get())
    }
}

// === impl WrongLength ===

impl std::fmt::Display for WrongLength {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the body is not as long as declared")
    }
}

impl std::error::Error for WrongLength {}

/// The framing of a body, with the header fields made to say the same.
fn framing(method: &Method, headers: &mut HeaderMap, body: &Body) -> Result<Framing, Error> {
    let declared = declared(headers)?;
    headers.remove(TRANSFER_ENCODING);
    let length = if body.is_end_stream() {
        Some(0)
    } else {
        declared.or(body.size_hint().exact())
    };
    if declared.is_some() && declared != length {
        return Err(Error::from(Kind::RequestBody).because(WrongLength));
    }
    match length {
        Some(0) if declared.is_none() && !expects_body(method) => {}
        Some(_) if declared.is_some() => {}
        Some(length) => drop(headers.insert(CONTENT_LENGTH, length.into())),
        // Said outright, for without it the codec drops the body of a GET.
        None => drop(headers.insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"))),
    }
    Ok(length.map_or(Framing::Chunked, Framing::Length))
}

fn declared(headers: &HeaderMap) -> Result<Option<u64>, Error> {
    let unclear = || Error::from(Kind::RequestBody).because(WrongLength);
    match sole(headers, CONTENT_LENGTH).map_err(|_| unclear())? {
        None => Ok(None),
        Some(value) => plain_number(value).map(Some).ok_or_else(unclear),
    }
}

/// RFC 9110, section 8.6: a method that anticipates content says so when there is none.
fn expects_body(method: &Method) -> bool {
    matches!(*method, Method::POST | Method::PUT | Method::PATCH)
}

/// RFC 9112, section 3.2.1.
fn origin_form(uri: Uri) -> Uri {
    if uri.scheme().is_none() && uri.authority().is_none() {
        return uri;
    }
    let mut parts = http::uri::Parts::default();
    parts.path_and_query = uri.into_parts().path_and_query;
    Uri::from_parts(parts).unwrap_or_default()
}

fn trailers(mut trailers: HeaderMap) -> Option<Frame<Bytes>> {
    clean_trailers(&mut trailers);
    (!trailers.is_empty()).then(|| Frame::trailers(trailers))
}
