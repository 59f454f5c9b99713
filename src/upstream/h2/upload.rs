//! A request on its way over a stream: its head, its body at the pace at which the origin takes
//! it, its trailers. A body that is not as long as declared resets the stream.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::{Reason, SendStream};
use http::{HeaderMap, Method, Request};
use http_body::{Body as _, Frame};

use super::super::Outbound;
use super::super::error::{Error, Kind};
use super::super::head::is_target;
use super::super::headers::clean_trailers;
use super::super::upload::{Framing, WrongLength, framing};
use super::request;
use crate::body::{Body, BodyError};

/// How often one poll sends, so that an answer is looked for now and then.
const SENDS: usize = 16;

/// How much of a body is kept for an origin that refuses a request unread.
const KEPT: usize = 64 * 1024;

/// A request on its way out.
pub(in crate::upstream) struct Upload {
    head: Request<()>,
    body: Body,
    /// What the body still has to bring, if that was declared.
    left: Option<u64>,
    /// What was taken of it and not sent yet.
    data: Bytes,
    trailers: HeaderMap,
    /// The whole body was taken.
    taken: bool,
    done: bool,
    /// What was taken so far, to be sent again; `None`: too much.
    kept: Option<VecDeque<Bytes>>,
    kept_bytes: usize,
    /// What is sent again before the rest of the body.
    again: VecDeque<Bytes>,
    idempotent: bool,
    waits_for_client: bool,
    /// Something was sent since the last look.
    moved: bool,
}

/// Why nothing more is sent.
#[derive(Debug)]
pub(super) enum Stopped {
    /// The client's body is not what it should be.
    Body(BodyError),
    /// The origin takes no more; it may have answered all the same.
    Origin,
}

// === impl Upload ===

impl Upload {
    pub(in crate::upstream) fn new(
        mut outbound: Outbound<'_>,
        secure: bool,
    ) -> Result<Self, Error> {
        if !is_target(&outbound) {
            return Err(Kind::RequestTarget.into());
        }
        let framing = framing(outbound.headers, &outbound.body)?;
        let head = request::write(&outbound, framing, secure)?;
        let (body, left) = match framing {
            Framing::Length(0) => (Body::Empty, None),
            Framing::Length(length) => (std::mem::take(&mut outbound.body), Some(length)),
            Framing::Chunked => (std::mem::take(&mut outbound.body), None),
        };
        Ok(Self {
            taken: body.is_end_stream(),
            head,
            body,
            left,
            data: Bytes::new(),
            trailers: HeaderMap::new(),
            done: false,
            kept: Some(VecDeque::new()),
            kept_bytes: 0,
            again: VecDeque::new(),
            // RFC 9110, section 9.2.2.
            idempotent: outbound.method.is_idempotent(),
            waits_for_client: false,
            moved: false,
        })
    }

    pub(super) fn method(&self) -> &Method {
        self.head.method()
    }

    /// The head, and whether it is all there is.
    pub(super) fn head(&mut self) -> (Request<()>, bool) {
        self.done = self.taken && self.again.is_empty() && self.data.is_empty();
        (self.head.clone(), self.done)
    }

    /// Whether all of it was given to the stream.
    pub(super) fn is_done(&self) -> bool {
        self.done
    }

    /// The request for another connection after it failed with `error`: if the origin has not
    /// looked at it, or if it does no harm twice.
    pub(super) fn again(mut self: Box<Self>, error: &Error) -> Option<Box<Self>> {
        let silent = error.is_closed() || error.is_reset() || error.is_timeout();
        ((error.is_refused() || (silent && self.is_repeatable())) && self.rewind()).then_some(self)
    }

    /// The same once more, if it can be sent twice without harm.
    pub(super) fn copy(&self) -> Option<Box<Self>> {
        self.is_repeatable().then(|| {
            Box::new(Self {
                head: self.head.clone(),
                body: Body::Empty,
                left: None,
                data: Bytes::new(),
                trailers: HeaderMap::new(),
                taken: true,
                done: false,
                kept: Some(VecDeque::new()),
                kept_bytes: 0,
                again: VecDeque::new(),
                idempotent: true,
                waits_for_client: false,
                moved: false,
            })
        })
    }

    /// Whether it can be sent twice without harm, read or unread.
    fn is_repeatable(&self) -> bool {
        self.idempotent && matches!(self.body, Body::Empty)
    }

    /// Begins again; `false`: what was taken of the body is gone.
    fn rewind(&mut self) -> bool {
        let Some(kept) = &self.kept else {
            return false;
        };
        self.again.clone_from(kept);
        self.data = Bytes::new();
        self.done = false;
        true
    }

    /// Whether more was sent since the last look: the origin's time begins anew.
    pub(super) fn moved(&mut self) -> bool {
        std::mem::take(&mut self.moved)
    }

    /// Whether the origin cannot be blamed for silence: the client is the slow one.
    pub(super) fn excuses(&self) -> bool {
        !matches!(self.body, Body::Empty) && self.waits_for_client && !self.taken
    }

    /// Sends as much as the client gives and the origin takes.
    pub(super) fn poll_send(
        &mut self,
        stream: &mut SendStream<Bytes>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), Stopped>> {
        for _ in 0..SENDS {
            if self.done {
                return Poll::Ready(Ok(()));
            }
            if self.data.is_empty() {
                ready!(self.poll_load(cx)).map_err(Stopped::Body)?;
            }
            ready!(self.poll_give(stream, cx))?;
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Takes the next data of the body, or finds its end.
    fn poll_load(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BodyError>> {
        while self.data.is_empty() {
            if let Some(data) = self.again.pop_front() {
                self.data = data;
                break;
            }
            if self.taken {
                break;
            }
            let polled = Pin::new(&mut self.body).poll_frame(cx);
            self.waits_for_client = polled.is_pending();
            match ready!(polled) {
                None => self.end()?,
                Some(frame) => self.take(frame?)?,
            }
        }
        Poll::Ready(Ok(()))
    }

    fn take(&mut self, frame: Frame<Bytes>) -> Result<(), BodyError> {
        match frame.into_data() {
            Ok(data) => {
                if let Some(left) = &mut self.left {
                    *left = left.checked_sub(data.len() as u64).ok_or(WrongLength)?;
                }
                self.keep(&data);
                self.data = data;
                if self.body.is_end_stream() {
                    self.end()?;
                }
            }
            Err(frame) => {
                self.trailers = frame.into_trailers().unwrap_or_default();
                clean_trailers(&mut self.trailers);
                self.end()?;
            }
        }
        Ok(())
    }

    fn keep(&mut self, data: &Bytes) {
        self.kept_bytes += data.len();
        match &mut self.kept {
            Some(kept) if self.kept_bytes <= KEPT => kept.push_back(data.clone()),
            kept => *kept = None,
        }
    }

    fn end(&mut self) -> Result<(), BodyError> {
        if self.left.is_some_and(|left| left > 0) {
            return Err(WrongLength.into());
        }
        self.taken = true;
        Ok(())
    }

    /// Gives the stream as much as it has room for, and its end.
    fn poll_give(
        &mut self,
        stream: &mut SendStream<Bytes>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), Stopped>> {
        let last = self.taken && self.again.is_empty();
        if !self.data.is_empty() {
            let room = ready!(poll_room(stream, self.data.len(), cx))?;
            let data = self.data.split_to(room.min(self.data.len()));
            let end = last && self.data.is_empty() && self.trailers.is_empty();
            self.moved = true;
            self.done = end;
            return Poll::Ready(stream.send_data(data, end).map_err(|_| Stopped::Origin));
        }
        if !last {
            return Poll::Ready(Ok(()));
        }
        self.moved = true;
        self.done = true;
        Poll::Ready(
            match self.trailers.is_empty() {
                true => stream.send_data(Bytes::new(), true),
                false => stream.send_trailers(self.trailers.clone()),
            }
            .map_err(|_| Stopped::Origin),
        )
    }
}

// === impl Stopped ===

impl From<Stopped> for Error {
    fn from(stopped: Stopped) -> Self {
        match stopped {
            Stopped::Body(error) => Error::from(Kind::RequestBody).because(error),
            Stopped::Origin => Kind::Closed.into(),
        }
    }
}

/// Takes back what was promised to the origin: its request will not be whole.
pub(super) fn reset(stream: &mut SendStream<Bytes>) {
    stream.send_reset(Reason::CANCEL);
}

/// How much the stream takes now, of `wanted` bytes.
fn poll_room(
    stream: &mut SendStream<Bytes>,
    wanted: usize,
    cx: &mut Context<'_>,
) -> Poll<Result<usize, Stopped>> {
    stream.reserve_capacity(wanted);
    loop {
        match stream.capacity() {
            0 => {}
            room => return Poll::Ready(Ok(room)),
        }
        match ready!(stream.poll_capacity(cx)) {
            Some(Ok(_)) => {}
            Some(Err(_)) | None => return Poll::Ready(Err(Stopped::Origin)),
        }
    }
}
