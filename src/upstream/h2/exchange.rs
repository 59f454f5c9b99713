//! One request and its answer on a stream of their own. Never retries.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use h2::client::ResponseFuture;
use h2::{Reason, RecvStream, SendStream};
use http::{Response, StatusCode};

use super::super::alarm::{Alarm, Deadline};
use super::super::error::{Error, Kind};
use super::super::exchange::INFORMATIONAL;
use super::super::{Answer, Server};
use super::Seat;
use super::answer::{self, Head};
use super::download::Download;
use super::upload::{self, Stopped, Upload};
use crate::body::{Body, BodyError};

/// A request that was given to a connection, until its answer has ended.
pub(in crate::upstream) struct Exchange {
    upload: Box<Upload>,
    stream: SendStream<Bytes>,
    /// The origin takes no more of the request.
    stopped: bool,
    /// Free again when the rest is.
    seat: Seat,
}

/// A stream that waits for its answer.
struct Waiting {
    answer: ResponseFuture,
    informational: u8,
}

// === impl Exchange ===

impl Exchange {
    /// Sends a request over a connection and waits for the head of the answer. The request comes
    /// back if it can be sent again: with an error, or with a 503.
    pub(in crate::upstream) async fn send(
        mut upload: Box<Upload>,
        seat: Seat,
        limit: Duration,
        alarm: &Rc<Alarm>,
    ) -> Result<(Answer, Option<Box<Upload>>), (Error, Option<Box<Upload>>)> {
        let (head, ended) = upload.head();
        let server = Arc::clone(seat.in_flight.server());
        let (answer, stream) = match seat.trunk.begin(head, ended) {
            Ok(begun) => begun,
            Err(error) => {
                let again = upload.again(&error);
                return Err((error.at(&server), again));
            }
        };
        let mut exchange = Self {
            upload,
            stream,
            stopped: false,
            seat,
        };
        let mut waiting = Waiting {
            answer,
            informational: 0,
        };
        match exchange.head(&mut waiting, limit, alarm).await {
            Ok((head, body)) => {
                let busy = head.status == StatusCode::SERVICE_UNAVAILABLE;
                let copy = busy.then(|| exchange.upload.copy()).flatten();
                Ok((exchange.answer(head, body, server), copy))
            }
            Err(error) => {
                upload::reset(&mut exchange.stream);
                let silent = waiting.informational == 0;
                let again = silent.then(|| exchange.upload.again(&error)).flatten();
                Err((error.at(&server), again))
            }
        }
    }

    pub(super) fn server(&self) -> &Arc<Server> {
        self.seat.in_flight.server()
    }

    /// Sends more of the request if there is more.
    pub(super) fn poll_upload(&mut self, cx: &mut Context<'_>) -> Result<(), BodyError> {
        if self.stopped || self.upload.is_done() {
            return Ok(());
        }
        match self.upload.poll_send(&mut self.stream, cx) {
            Poll::Ready(Err(Stopped::Body(error))) => Err(error),
            Poll::Ready(Err(Stopped::Origin)) => {
                self.stopped = true;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Sends the request and waits for the head of the answer: as long as `limit` from when its
    /// body last moved, and again while the client is the slow one.
    async fn head(
        &mut self,
        waiting: &mut Waiting,
        limit: Duration,
        alarm: &Rc<Alarm>,
    ) -> Result<(Head, RecvStream), Error> {
        let heard = self.seat.trunk.heard();
        let mut deadline = Deadline::after(limit, alarm);
        poll_fn(|cx| {
            self.poll_upload(cx).map_err(Stopped::Body)?;
            if let Poll::Ready(answer) = waiting.poll(cx) {
                let (parts, body) = answer?.into_parts();
                let head = answer::read(parts, self.upload.method())?;
                return Poll::Ready(Ok((head, body)));
            }
            if self.upload.moved() {
                deadline.restart();
            }
            if deadline.is_over(cx) {
                if self.stopped || !self.upload.excuses() {
                    self.suspect(heard);
                    return Poll::Ready(Err(Kind::ResponseTimeout.into()));
                }
                deadline.extend(cx);
            }
            Poll::Pending
        })
        .await
    }

    /// A connection on which nothing at all came while a request waited may be dead.
    fn suspect(&self, heard: u64) {
        if self.seat.trunk.heard() == heard {
            self.seat.trunk.retire();
        }
    }

    fn answer(self, head: Head, body: RecvStream, server: Arc<Server>) -> Answer {
        let body = match head.bodiless || body.is_end_stream() {
            true => Body::Empty,
            false => Body::Stream(Box::pin(Download::new(self, body, head.length))),
        };
        let mut response = Response::new(body);
        *response.status_mut() = head.status;
        *response.headers_mut() = head.headers;
        Answer {
            response,
            server,
            upgraded: None,
        }
    }
}

// === impl Waiting ===

impl Waiting {
    /// The answer; interim ones are passed over, but not without end.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Response<RecvStream>, Error>> {
        while let Some(interim) = ready!(self.answer.poll_informational(cx)) {
            let interim = interim.map_err(failed)?;
            self.informational += 1;
            let switches = interim.status() == StatusCode::SWITCHING_PROTOCOLS;
            if switches || self.informational > INFORMATIONAL {
                return Poll::Ready(Err(Kind::BadResponse.into()));
            }
        }
        Pin::new(&mut self.answer).poll(cx).map_err(failed)
    }
}

/// What a broken stream means. A request is refused unread where the origin says so: RFC 9113,
/// section 8.7.
fn failed(error: h2::Error) -> Error {
    let unread = error.reason() == Some(Reason::REFUSED_STREAM) || error.is_go_away();
    let kind = match error.is_remote() {
        true if unread => Kind::Refused,
        true if error.is_reset() => Kind::Reset,
        true => Kind::Closed,
        false if error.is_io() => Kind::Closed,
        false => Kind::BadResponse,
    };
    Error::from(kind).because(error)
}
