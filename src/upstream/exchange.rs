//! One request and its answer over one connection. No task and no channel: whoever waits for the
//! answer drives both directions. Never retries.

use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Response, StatusCode};

use super::alarm::Deadline;
use super::answer::{self, Asked, Head, Length};
use super::connection::Connection;
use super::download::Download;
use super::error::{Error, Kind};
use super::inbox::Inbox;
use super::server::InFlight;
use super::shelf::Shelf;
use super::upload::{Stopped, Upload};
use super::{Answer, Server, Tunnel};
use crate::body::{Body, BodyError};

/// How many informational answers are passed over.
pub(super) const INFORMATIONAL: u8 = 16;

/// A connection in use, and where it goes back to.
pub(super) struct Lease {
    pub(super) connection: Connection,
    pub(super) shelf: Rc<Shelf>,
    pub(super) in_flight: InFlight,
}

/// A request that was given to a connection, until its answer has ended.
pub(super) struct Exchange {
    pub(super) lease: Lease,
    upload: Box<Upload>,
    /// Whether the origin can take another request over the same connection.
    reusable: bool,
    /// The origin reads no more.
    stopped: bool,
    /// A byte of an answer came.
    answered: bool,
    informational: u8,
}

// === impl Exchange ===

impl Exchange {
    pub(super) fn new(lease: Lease, upload: Box<Upload>) -> Self {
        Self {
            lease,
            upload,
            reusable: true,
            stopped: false,
            answered: false,
            informational: 0,
        }
    }

    /// Sends the request, its body as it comes, and waits for the head of the answer: as long as
    /// `limit` from when its body last moved, and again while the client is the slow one.
    pub(super) async fn head(&mut self, asked: Asked, limit: Duration) -> Result<Head, Error> {
        let mut deadline = Deadline::after(limit, &self.lease.shelf.local.alarm);
        poll_fn(|cx| {
            if let Poll::Ready(head) = self.poll_head(asked, cx) {
                return Poll::Ready(head);
            }
            if self.upload.moved() {
                deadline.restart();
            }
            if deadline.is_over(cx) {
                if self.stopped || !self.upload.excuses() {
                    return Poll::Ready(Err(Kind::ResponseTimeout.into()));
                }
                deadline.extend(cx);
            }
            Poll::Pending
        })
        .await
    }

    /// The request for another connection, after this one failed with `error`: only if the origin
    /// said nothing, and cannot have acted on it or may act on it twice.
    pub(super) fn rewind(mut self, error: &Error) -> Option<Box<Upload>> {
        let silent = (error.is_closed() || error.is_timeout()) && !self.answered;
        (silent && self.upload.rewind()).then_some(self.upload)
    }

    /// The request once more, if it can be sent twice without harm.
    pub(super) fn copy(&self) -> Option<Box<Upload>> {
        self.upload.copy().map(Box::new)
    }

    pub(super) fn server(&self) -> &Arc<Server> {
        self.lease.in_flight.server()
    }

    /// What has come and was not taken yet.
    pub(super) fn inbox(&mut self) -> &mut Inbox {
        &mut self.lease.connection.inbox
    }

    /// What the caller gets for a head.
    pub(super) fn answer(mut self, head: Head) -> Answer {
        let server = Arc::clone(self.server());
        self.reusable &= head.keeps;
        let (body, upgraded) = match (head.status, head.length) {
            (StatusCode::SWITCHING_PROTOCOLS, _) => (Body::Empty, Some(self.tunnel())),
            (_, Length::Exact(0)) => {
                self.end();
                (Body::Empty, None)
            }
            (_, Length::Exact(length))
                if length <= self.lease.connection.inbox.bytes().len() as u64 =>
            {
                let body = self.take(length);
                self.end();
                (Body::Whole(body), None)
            }
            (_, length) => (Body::Stream(Box::pin(Download::new(self, length))), None),
        };
        let mut response = Response::new(body);
        *response.status_mut() = head.status;
        *response.headers_mut() = head.headers;
        Answer {
            response,
            server,
            upgraded,
        }
    }

    /// The answer was read to its end. An origin that answered before it had the whole request
    /// may never want the rest: then the connection is closed, not waited for.
    pub(super) fn end(mut self) {
        let inbox = &mut self.lease.connection.inbox;
        if self.reusable && inbox.is_empty() && self.upload.is_done() {
            inbox.give_back(&self.lease.shelf.local.buffer);
            self.lease.shelf.put(self.lease.connection);
        }
    }

    /// Sends more of the request if there is more. An origin that reads no more may answer yet.
    pub(super) fn poll_upload(&mut self, cx: &mut Context<'_>) -> Result<(), BodyError> {
        if self.stopped || self.upload.is_done() {
            return Ok(());
        }
        match self.upload.poll_send(&mut self.lease.connection.stream, cx) {
            Poll::Ready(Err(Stopped::Body(error))) => Err(error),
            Poll::Ready(Err(Stopped::Origin(_))) => {
                self.stopped = true;
                self.reusable = false;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Reads more of the answer; zero at the end of the stream.
    pub(super) fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let Connection { stream, inbox } = &mut self.lease.connection;
        inbox.poll_fill(stream, &self.lease.shelf.local.buffer, cx)
    }

    /// The next bytes of the answer, `length` at most.
    fn take(&mut self, length: u64) -> Bytes {
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        self.lease.connection.inbox.take(length)
    }

    fn poll_head(&mut self, asked: Asked, cx: &mut Context<'_>) -> Poll<Result<Head, Error>> {
        self.poll_upload(cx).map_err(Stopped::Body)?;
        loop {
            let read = match self.poll_fill(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(Kind::Closed.into())),
                Poll::Ready(Ok(read)) => read,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(Error::of_stream(error))),
            };
            if let Some(head) = self.read_head(asked, read).transpose() {
                return Poll::Ready(head);
            }
        }
    }

    /// The head of the answer, if it is whole now that `read` more bytes came.
    fn read_head(&mut self, asked: Asked, read: usize) -> Result<Option<Head>, Error> {
        let bytes = self.lease.connection.inbox.bytes();
        let new = bytes.get(bytes.len() - read..).unwrap_or_default();
        // A head ends with a line: one that comes byte by byte is not parsed as often.
        if std::mem::replace(&mut self.answered, true) && !new.contains(&b'\n') {
            return match bytes.len() < answer::HEAD_BYTES {
                true => Ok(None),
                false => Err(Kind::BadResponse.into()),
            };
        }
        while let Some(head) = answer::read(&mut self.lease.connection.inbox, asked)? {
            let is_last = head.status == StatusCode::SWITCHING_PROTOCOLS;
            if is_last || !head.status.is_informational() {
                return Ok(Some(head));
            }
            self.informational += 1;
            if self.informational > INFORMATIONAL {
                return Err(Kind::BadResponse.into());
            }
        }
        Ok(None)
    }

    fn tunnel(self) -> Tunnel {
        let Connection { stream, mut inbox } = self.lease.connection;
        Tunnel::new(stream, inbox.take(usize::MAX), self.lease.in_flight)
    }
}
