//! A body that imitates the pieces and timing of a real response body.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body::{Frame, SizeHint};

use super::hold::HeldSlot;
use crate::action::imitate::ResponsePacing;
use crate::body::{Body, BodyError};

/// A body in memory with pieces that are sent one by one.
struct PacedBody {
    /// Each piece with its time after the head.
    pieces: VecDeque<(Bytes, Duration)>,
    /// When the first piece was polled, which is when the head is sent. `None` before.
    since: Option<Instant>,
    /// Whether the body is sent without a length.
    streamed: bool,
    /// The slot of the held response. `None` if too many requests are held already; then no piece waits.
    slot: Option<Rc<HeldSlot>>,
    wait: Option<Wait>,
}

type Wait = Pin<Box<dyn Future<Output = ()>>>;

/// Splits `body` according to `pace`. A body that is sent with the head stays unchanged.
pub fn paced(body: Body, pace: &ResponsePacing, streamed: bool, slot: Option<HeldSlot>) -> Body {
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
    Body::stream(PacedBody {
        pieces,
        since: None,
        streamed,
        slot: slot.filter(|_| !pace.is_one()).map(Rc::new),
        wait: None,
    })
}

// === impl PacedBody ===

impl http_body::Body for PacedBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let at = self.pieces.front().map(|(_, at)| *at);
        if let Some((slot, at)) = self.slot.clone().zip(at) {
            let due = *self.since.get_or_insert_with(|| slot.now()) + at;
            let wait = || -> Wait { Box::pin(async move { slot.until(due).await }) };
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
        if self.streamed {
            SizeHint::default()
        } else {
            SizeHint::with_exact(left.sum())
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
    fn a_body_is_sent_in_the_pieces_of_a_real_one_and_is_complete() {
        let mut pace = ResponsePacing::after(Duration::ZERO);
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
    fn a_body_without_pauses_is_unchanged() {
        let body = paced(
            Body::from("abc"),
            &ResponsePacing::after(Duration::ZERO),
            false,
            None,
        );
        assert!(matches!(body, Body::Whole(_)));
        let body = paced(
            Body::Empty,
            &ResponsePacing::after(Duration::ZERO),
            true,
            None,
        );
        assert!(body.is_end_stream());
    }
}
