//! A body that comes at the pace of a real one: in the same pieces, at the same times.

use std::cell::Cell;
use std::collections::VecDeque;
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
    pieces: VecDeque<(Bytes, Duration)>,
    /// When the first of them was asked for, once the head has gone.
    since: Rc<Cell<Option<Instant>>>,
    /// The head is on its way.
    leaving: bool,
    /// Its length is not told beforehand.
    streamed: bool,
    /// `None`: too many are held already, so that nothing waits.
    place: Option<Rc<Place>>,
    wait: Option<Wait>,
}

type Wait = Pin<Box<dyn Future<Output = ()>>>;

/// `body` at this pace.
pub fn paced(body: Body, pace: &Pace, streamed: bool, place: Option<Place>) -> Body {
    let Body::Whole(mut left) = body else {
        return body;
    };
    if !streamed && pace.is_one() {
        return Body::Whole(left);
    }
    let (length, mut begin) = (left.len(), 0);
    let mut pieces = VecDeque::new();
    for (end, at) in pace.pieces(length) {
        let piece = left.split_to(end.saturating_sub(begin).min(left.len()));
        begin = end.max(begin);
        if !piece.is_empty() {
            pieces.push_back((piece, at));
        }
    }
    Body::stream(Paced {
        pieces,
        since: Rc::default(),
        leaving: false,
        streamed,
        place: place.filter(|_| !pace.is_one()).map(Rc::new),
        wait: None,
    })
}

// === impl Paced ===

impl Paced {
    /// Lets the head go out before anything else is done.
    fn leave_first<T>(&mut self, now: Instant, cx: &Context<'_>) -> Poll<T> {
        if !std::mem::replace(&mut self.leaving, true) {
            let (since, waker) = (self.since.clone(), cx.waker().clone());
            tokio::task::spawn_local(async move {
                since.set(Some(now));
                waker.wake();
            });
        }
        Poll::Pending
    }
}

impl http_body::Body for Paced {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let at = self.pieces.front().map(|(_, at)| *at);
        if let Some((place, at)) = self.place.clone().zip(at) {
            let Some(since) = self.since.get() else {
                return self.leave_first(place.now(), cx);
            };
            let wait = || -> Wait { Box::pin(async move { place.until(since + at).await }) };
            ready!(self.wait.get_or_insert_with(wait).as_mut().poll(cx));
            self.wait = None;
        }
        let piece = self.pieces.pop_front();
        Poll::Ready(piece.map(|(piece, _)| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        let left = self.pieces.iter().map(|(piece, _)| piece.len() as u64);
        match self.streamed {
            true => SizeHint::default(),
            false => SizeHint::with_exact(left.sum()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http_body::Body as _;
    use http_body_util::BodyExt as _;
    use tokio::runtime::Builder;

    use super::*;

    /// The pieces of a body, none of which waits.
    fn pieces(body: Body) -> Vec<Vec<u8>> {
        let runtime = Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let (mut body, mut found) = (body, Vec::new());
            while let Some(frame) = body.frame().await {
                let Ok(frame) = frame else {
                    panic!("a body in memory cannot break");
                };
                found.push(frame.into_data().unwrap().to_vec());
            }
            found
        })
    }

    #[test]
    fn a_body_comes_in_the_pieces_of_a_real_one_and_is_whole() {
        let mut pace = Pace::after(Duration::ZERO);
        pace.add(10, Duration::ZERO);
        pace.add(30, Duration::from_micros(200));
        let pace = pace.whole();
        for streamed in [true, false] {
            let body = paced(Body::from("abcdefgh"), &pace, streamed, None);
            let exact = (!streamed).then_some(8);
            assert_eq!(body.size_hint().exact(), exact);
            assert_eq!(pieces(body), [b"ab".to_vec(), b"cdefgh".to_vec()]);
        }
        for short in ["", "a", "ab"] {
            let body = paced(Body::from(short), &pace, true, None);
            assert_eq!(pieces(body).concat(), short.as_bytes());
        }
    }

    #[test]
    fn what_comes_at_once_is_left_as_it_is() {
        let body = paced(Body::from("abc"), &Pace::after(Duration::ZERO), false, None);
        assert!(matches!(body, Body::Whole(_)));
        let body = paced(Body::Empty, &Pace::after(Duration::ZERO), true, None);
        assert!(body.is_end_stream());
    }
}
