//! What is written down about a request: metrics at once, the log line once its answer has ended.

use std::cell::Cell;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Method, StatusCode};
use http_body::{Frame, SizeHint};

use super::Core;
use super::entrance::{Entrance, why_dropped};
use super::forward::Sent;
use super::line;
use super::tab::Tab;
use crate::action::{Asked, Fault, client_left, cut_off, unanswered};
use crate::body::{Body, BodyError};
use crate::clock::Timestamp;
use crate::decision::{Decision, Event};
use crate::facts::{Connection, Malformed, RequestFacts};
use crate::listen::{Fate, Incoming};
use crate::observe::Cut;
use crate::observe::access::Closing;
use crate::snapshot::Snapshot;
use crate::upstream;

/// A request under way.
pub struct Visit {
    /// When it came.
    pub now: Timestamp,
    /// When its head had arrived.
    pub began: Instant,
    /// When no rule held it any more.
    pub went_on: Cell<Instant>,
    /// What it has open.
    pub tab: Rc<Tab>,
    /// The core that serves it.
    pub core: Rc<Core>,
    /// The configuration, from its first fact to its last count.
    pub snapshot: Arc<Snapshot>,
    answered: Cell<bool>,
    way: Rc<Entrance>,
}

/// A request that has no answer yet. Dropped like that, its client has left, or the gateway has
/// cut it off.
pub struct Unanswered<'a, 'r> {
    /// What was decided about it.
    pub decision: Decision,
    visit: &'a Visit,
    facts: &'a RequestFacts<'r>,
}

/// A response body that writes its request down when it ends, however it ends.
pub struct Recorded {
    inner: Body,
    sent: u64,
    state: State,
    entry: Entry,
    /// HTTP/2 resets the stream when this goes, which must not overtake the answer.
    _unread: Option<Incoming>,
}

/// How far an answer is, as its body says.
#[derive(Clone, Copy)]
enum State {
    Going,
    Ended,
    Cut(Cut),
}

/// What is kept of a request until its answer has ended.
struct Entry {
    core: Rc<Core>,
    snapshot: Arc<Snapshot>,
    way: Rc<Entrance>,
    method: Method,
    status: u16,
    began: Instant,
    tab: Rc<Tab>,
    /// The log line up to what is not known yet; empty: no line.
    line: Vec<u8>,
}

// === impl Visit ===

impl Visit {
    /// A request that has just arrived.
    pub fn begin(core: Rc<Core>, way: Rc<Entrance>, tab: Rc<Tab>) -> Self {
        let clock = &core.live.lasting.clock;
        let began = clock.instant();
        Self {
            now: clock.now(),
            began,
            went_on: Cell::new(began),
            tab,
            answered: Cell::new(false),
            snapshot: core.snapshot(),
            core,
            way,
        }
    }

    /// Refuses a request that has no meaning, or two; its connection closes.
    pub fn malformed(
        &self,
        asked: &Asked<'_>,
        connection: &Connection,
        malformed: Malformed,
    ) -> http::Response<Recorded> {
        self.core.malformed(malformed);
        self.refuse(asked, connection, fault(malformed))
    }

    /// Refuses a request that is not looked at; its connection closes.
    pub fn refuse(
        &self,
        asked: &Asked<'_>,
        connection: &Connection,
        fault: Fault,
    ) -> http::Response<Recorded> {
        let sent = Sent::own(fault.answer(asked)).closing(true, asked);
        let status = fault.status().as_u16();
        let line = match &self.snapshot.access {
            Some(access) => line::of_malformed(access, self, asked, connection, status),
            None => Vec::new(),
        };
        self.record(asked.method.clone(), line, sent)
    }

    /// Sees to it that the request is written down even if its client leaves before the answer.
    pub fn unanswered<'a, 'r>(&'a self, facts: &'a RequestFacts<'r>) -> Unanswered<'a, 'r> {
        Unanswered {
            decision: Decision::default(),
            visit: self,
            facts,
        }
    }

    /// How long rules held it; `None`: they did not.
    pub fn held(&self) -> Option<Duration> {
        let held = self.went_on.get() - self.began;
        (!held.is_zero()).then_some(held)
    }

    /// Writes down that the gateway failed, with what is at hand.
    fn failed(&self, facts: &RequestFacts<'_>) {
        if self.answered.get() {
            return;
        }
        let status = StatusCode::INTERNAL_SERVER_ERROR.as_u16();
        let duration = self.core.live.lasting.clock.instant() - self.began;
        let metrics = &self.way.metrics;
        metrics.request(facts.head.method, status, duration);
        if let Some(access) = &self.snapshot.access {
            let mut line = access.start(&line::of_failed(facts, status));
            let closing = Closing {
                duration,
                ..Closing::default()
            };
            access.finish(&mut line, &closing);
        }
    }

    /// Writes down that nobody answers.
    pub fn end_unanswered(&self, facts: &RequestFacts<'_>, decision: &Decision) {
        drop(self.end(facts, decision, Sent::own(unanswered())));
    }

    /// The answer, to be written down when it has ended.
    pub fn end(
        &self,
        facts: &RequestFacts<'_>,
        decision: &Decision,
        sent: Sent,
    ) -> http::Response<Recorded> {
        self.answered.set(true);
        self.count(decision);
        let line = match &self.snapshot.access {
            Some(access) => {
                let response = sent.facts(self, &self.core);
                let view = facts.with_response(&response);
                line::of(access, self, view, decision, &sent)
            }
            None => Vec::new(),
        };
        self.record(facts.head.method.clone(), line, sent)
    }

    fn count(&self, decision: &Decision) {
        for mark in decision.marks.iter() {
            let Some(kit) = self.snapshot.rule_kits.get(usize::from(mark.rule.0)) else {
                continue;
            };
            match mark.event {
                Event::Counted => kit.metrics.matched_count.inc(),
                Event::Matched => kit.metrics.matched_mitigate.inc(),
                Event::Mitigated => kit.metrics.mitigated.inc(),
                Event::WouldMitigate => kit.metrics.would_mitigate.inc(),
                Event::CandidateActs => kit.metrics.candidate_acts(),
                Event::CandidatePasses => kit.metrics.candidate_passes(),
            }
        }
    }

    fn record(&self, method: Method, line: Vec<u8>, sent: Sent) -> http::Response<Recorded> {
        let entry = Entry {
            core: self.core.clone(),
            snapshot: self.snapshot.clone(),
            way: self.way.clone(),
            method,
            status: sent.response.status().as_u16(),
            began: self.began,
            tab: self.tab.clone(),
            line,
        };
        let unread = sent.unread;
        sent.response.map(|inner| Recorded {
            inner,
            sent: 0,
            state: State::Going,
            entry,
            _unread: unread,
        })
    }
}

// === impl Unanswered ===

impl Drop for Unanswered<'_, '_> {
    fn drop(&mut self) {
        // What failed once would fail again, and a panic in a panic ends the process.
        if std::thread::panicking() {
            return self.visit.failed(self.facts);
        }
        if !self.visit.answered.get() {
            let nobody = match self.visit.core.cut.get() {
                true => cut_off(),
                false => client_left(),
            };
            drop(
                self.visit
                    .end(self.facts, &self.decision, Sent::own(nobody)),
            );
        }
    }
}

// === impl Recorded ===

impl Recorded {
    /// What broke the answer off, now that no more of it is asked for.
    fn cut(&self) -> Option<Cut> {
        let fate = self.entry.way.fate();
        match self.state {
            State::Cut(cut) => Some(cut),
            State::Ended if !fate.rest => None,
            State::Going if !fate.rest && http_body::Body::is_end_stream(&self.inner) => None,
            _ => self.entry.dropped(fate),
        }
    }
}

impl Drop for Recorded {
    fn drop(&mut self) {
        self.entry.tab.places.free();
        let cut = self.cut();
        self.entry.write(self.sent, cut);
    }
}

impl http_body::Body for Recorded {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let polled = Pin::new(&mut self.inner).poll_frame(cx);
        let polled = polled.map(|next| self.entry.tab.to_client(next));
        match &polled {
            Poll::Ready(Some(Ok(frame))) => {
                self.sent += frame.data_ref().map_or(0, |data| data.len() as u64);
            }
            Poll::Ready(Some(Err(error))) => self.state = State::Cut(self.entry.broke(error)),
            Poll::Ready(None) => self.state = State::Ended,
            Poll::Pending => {}
        }
        self.entry.look_on(&self.inner, &polled);
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

// === impl Entry ===

impl Entry {
    /// Lets who learns from this answer see how it goes.
    fn look_on(&self, body: &Body, polled: &Poll<Option<Result<Frame<Bytes>, BodyError>>>) {
        let lesson = &self.tab.lesson;
        if !lesson.is_on() {
            return;
        }
        lesson.asked();
        let now = self.core.live.lasting.clock.instant();
        match polled {
            Poll::Pending => lesson.waits(now),
            Poll::Ready(Some(Err(_))) => lesson.give_up(),
            Poll::Ready(Some(Ok(frame))) => {
                let bytes = frame.data_ref().map_or(0, Bytes::len);
                lesson.piece(bytes, now, http_body::Body::is_end_stream(body));
            }
            Poll::Ready(None) => lesson.end(),
        }
    }

    /// Its body broke off: says so where the origin is to blame.
    fn broke(&self, error: &BodyError) -> Cut {
        match error.downcast_ref::<upstream::Error>() {
            Some(error) if error.is_bad_request() => return Cut::RequestBody,
            Some(error) => self.core.answer_cut(error),
            None => {}
        }
        Cut::Upstream
    }

    /// Why its body was dropped before its end; `None`: nobody was to have it.
    fn dropped(&self, fate: Fate) -> Option<Cut> {
        let bodiless = self.method == Method::HEAD || matches!(self.status, 204 | 304);
        (!bodiless).then(|| why_dropped(fate, self.core.cut.get()))
    }

    fn write(&mut self, bytes_out: u64, cut: Option<Cut>) {
        let lasting = &self.core.live.lasting;
        let duration = lasting.clock.instant() - self.began;
        self.way
            .metrics
            .request(&self.method, self.status, duration);
        if let Some(cut) = cut {
            lasting.metrics.cuts.count(cut);
        }
        let Some(access) = &self.snapshot.access else {
            return;
        };
        let closing = Closing {
            bytes_in: self.tab.meter.bytes.get(),
            bytes_out,
            duration,
            cut,
        };
        access.finish(&mut self.line, &closing);
    }
}

/// Writes down that a head was refused which nobody could read.
pub fn unread(core: &Core, connection: &Connection, way: &Entrance, status: u16) {
    way.metrics.unread(status);
    let snapshot = core.snapshot();
    let Some(access) = &snapshot.access else {
        return;
    };
    let now = core.live.lasting.clock.now();
    let id = core.request_id();
    let mut line = access.start(&line::bare(now, &id, connection, status));
    access.finish(&mut line, &Closing::default());
}

/// The fault of a request that has no meaning, or two.
pub fn fault(malformed: Malformed) -> Fault {
    match malformed.status() {
        501 => Fault::UnknownCoding,
        431 => Fault::HeadTooLarge,
        _ => Fault::Malformed,
    }
}

#[cfg(test)]
mod tests;
