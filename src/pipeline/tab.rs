//! What a request has open until it ends: one tab, shared by its body, its answer and whoever
//! waits for it. It decides nothing.

use std::cell::{Cell, OnceCell};
use std::sync::Arc;

use bytes::Bytes;
use http_body::Frame;

use super::body::Meter;
use super::lesson::Lesson;
use super::places::Places;
use crate::body::BodyError;
use crate::route::Edits;
use crate::route::edit::Fields;

/// What a body gives when it is asked; `None` at its end.
type Next = Option<Result<Frame<Bytes>, BodyError>>;

/// What a request has open.
#[derive(Default)]
pub struct Tab {
    /// What is known of its body.
    pub meter: Meter,
    /// It went where its route leads: rules may want to count the answer, whoever waits for it.
    pub begun: Cell<bool>,
    /// Nobody waits for the answer any more.
    pub left: Cell<bool>,
    /// The places that it takes.
    pub places: Places,
    /// What is learned from its answer.
    pub lesson: Lesson,
    /// What its route changes, if it does.
    pub edits: OnceCell<Arc<Edits>>,
}

// === impl Tab ===

impl Tab {
    /// What comes next of the request's body, as the route lets it pass; `None`: its end.
    pub fn to_origin(&self, next: Next) -> Next {
        self.edited(next, |edits| &edits.request)
    }

    /// What comes next of the answer's body, as the route lets it pass; `None`: its end.
    pub fn to_client(&self, next: Next) -> Next {
        self.edited(next, |edits| &edits.response)
    }

    fn edited(&self, next: Next, of: impl Fn(&Edits) -> &Fields) -> Next {
        let Some(Ok(frame)) = next else { return next };
        if frame.is_data() {
            return Some(Ok(frame));
        }
        match (self.edits.get(), frame.into_trailers()) {
            (Some(edits), Ok(mut trailers)) => {
                of(edits).strip(&mut trailers);
                let any = !trailers.is_empty();
                any.then(|| Ok(Frame::trailers(trailers)))
            }
            (None, Ok(trailers)) => Some(Ok(Frame::trailers(trailers))),
            (_, Err(frame)) => Some(Ok(frame)),
        }
    }
}
