//! A body that comes at the pace of a real one: in as many pieces, over as much time.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body::{Frame, SizeHint};

use super::hold::Place;
use crate::action::imitate::Pace;
use crate::body::{Body, BodyError};

/// The pieces of a body, each with its time.
struct Paced {
    left: Bytes,
    pace: Pace,
    /// How many have gone.
    gone: u32,
    /// Its length is not told beforehand.
    streamed: bool,
    /// When its head left.
    since: Instant,
    /// `None`: too many are held already, so that nothing waits.
    place: Option<Rc<Place>>,
    wait: Option<Pin<Box<dyn Future<Output = ()>>>>,
}

/// `body` at this pace, its head leaving at `now`.
pub fn paced(body: Body, pace: Pace, streamed: bool, place: Option<Place>, now: Instant) -> Body {
    let Body::Whole(left) = body else {
        return body;
    };
    if !streamed && pace.rest.is_zero() {
        return Body::Whole(left);
    }
    Body::stream(Paced {
        left,
        pace,
        gone: 0,
        streamed,
        since: now,
        place: place.filter(|_| !pace.rest.is_zero()).map(Rc::new),
        wait: None,
    })
}

// === impl Paced ===

impl Paced {
    fn pieces(&self) -> u32 {
        u32::from(self.pace.pieces.max(1))
    }

    /// From the head to the next piece.
    fn due(&self) -> Duration {
        let early = u32::from(self.pace.early);
        let steps = self.pieces().saturating_sub(early);
        let step = (self.gone + 1).saturating_sub(early).min(steps);
        self.pace.rest.saturating_mul(step) / steps.max(1)
    }

    fn next(&mut self) -> Bytes {
        let pieces = self.pieces().saturating_sub(self.gone).max(1) as usize;
        self.gone += 1;
        self.left.split_to(self.left.len().div_ceil(pieces))
    }
}

impl http_body::Body for Paced {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if self.left.is_empty() {
            return Poll::Ready(None);
        }
        if let Some(place) = self.place.clone() {
            let due = self.since + self.due();
            let wait = self
                .wait
                .get_or_insert_with(|| Box::pin(async move { place.until(due).await }));
            ready!(wait.as_mut().poll(cx));
            self.wait = None;
        }
        Poll::Ready(Some(Ok(Frame::data(self.next()))))
    }

    fn is_end_stream(&self) -> bool {
        self.left.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        match self.streamed {
            true => SizeHint::default(),
            false => SizeHint::with_exact(self.left.len() as u64),
        }
    }
}
