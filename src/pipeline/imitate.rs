//! Shadow responses that look like real ones: learns from forwarded responses, and builds similar ones.

use std::cell::Cell;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Response, StatusCode};
use http_body::{Body as _, Frame};
use smallvec::SmallVec;

use super::hold::HeldSlot;
use super::paced_body::paced;
use super::request_context::RequestContext;
use super::respond::{HandledResponse, response_template};
use crate::action::imitate::{
    HeadSent, LearnedResponses, ResponseClass, ResponsePacing, SendSchedule, dress,
};
use crate::body::{Body, BodyError};
use crate::clock::Clock;
use crate::decision::{Action, Decision, RuleEventKind, RuleIndex, Verdict};
use crate::facts::client_ip::IpPrefixes;
use crate::route::RoutePattern;
use crate::snapshot::{self, ImitatingRule};

/// The approximate delay between a timer's expiry and the write; timers are set earlier by this.
const WAKE_UP: Duration = Duration::from_micros(100);

/// The route of a request: its pattern and its target.
pub type Route<'a> = (&'a RoutePattern, &'a snapshot::RouteConfig);

/// Observes one response to learn from it: the head after it was sent, the times of the body's pieces when the
/// body ends. Observing delays no response and keeps no body. Most responses are not observed.
#[derive(Default)]
pub struct ResponseObserver(Cell<Option<Box<Observation>>>);

/// The classes that learn from a response: that of its route, and those of rules that match its request.
pub type Learners = SmallVec<[Arc<LearnedResponses>; 2]>;

struct Observation {
    learners: Learners,
    pace: ResponsePacing,
    /// The head to learn. `None` once it was sent.
    head: Option<HeadSent>,
    /// When the first wait for the body began, after the head was sent.
    waits_since: Option<Instant>,
}

/// Learns the head and timing of a response if a rule imitates such responses.
pub fn learn(request: &RequestContext<'_, '_>, handled: &HandledResponse) {
    let (state, info, facts) = (request.state, request.info, request.facts);
    let is_real = handled.countable && handled.error.is_none();
    if state.snapshot.imitating.is_empty() || !is_real || !is_ordinary(&request.decision) {
        return;
    }
    let learners = learners(request, handled.response.status());
    let asked_at = if facts.head.has_body() {
        state.meter.ended.get()
    } else {
        Some(state.began)
    };
    // A response that was sent before its request had ended has no meaningful timing.
    let Some(asked_at) = asked_at.filter(|_| !learners.is_empty()) else {
        return;
    };
    let when = when(request, asked_at, state.core.instant());
    let network = IpPrefixes::default().network(facts.client);
    let head = HeadSent {
        headers: handled.response.headers().clone(),
        request_headers: info.headers.clone(),
        request_id: info.id.to_owned(),
        client: state.core.live.process.imitations.client(network),
        when,
    };
    let body = handled.response.body();
    state.observer.begin(learners, head, when.head, body);
}

/// Builds a shadow response for a request that `rule` mitigates, and waits until a real one would be sent.
/// `None` if the rule does not imitate, or not enough is learned. `asked_at` is when the request ended.
pub async fn imitated_response(
    request: &RequestContext<'_, '_>,
    asked_at: Instant,
    rule: RuleIndex,
) -> Option<Response<Body>> {
    let (info, snapshot, core) = (request.info, request.snapshot(), &request.state.core);
    let mut imitating = snapshot.imitating.iter();
    let imitating = imitating.find(|imitating| imitating.rule == rule)?;
    let template = response_template(snapshot, rule)?;
    let kind = kind(request, imitating.status)?;
    let imitations = &core.live.process.imitations;
    let drawn = |kind: &ResponseClass| {
        let memory = imitations.get(kind)?;
        memory.pace().map(|pace| (memory, pace))
    };
    let narrow = drawn(&kind.clone().stopped_by(&imitating.name));
    let (memory, pace) = narrow.or_else(|| drawn(&kind))?;
    let slot = HeldSlot::take(core, snapshot);
    let sent = match &slot {
        Some(_) => asked_at + pace.head(),
        None => core.instant(),
    };
    // Build it before the wait, so that only the write follows.
    let imitation = memory.imitate(info, when(request, asked_at, sent))?;
    let response = dress(info, template, &imitation);
    if let Some(slot) = &slot {
        slot.until(sent.checked_sub(WAKE_UP).unwrap_or(sent)).await;
    }
    Some(response.map(|body| paced(body, &pace, imitation.streamed, slot)))
}

/// Returns the timing of a response that is sent at `sent` to a request that ended at `asked_at`.
fn when(request: &RequestContext<'_, '_>, asked_at: Instant, sent: Instant) -> SendSchedule {
    let taken = sent.saturating_duration_since(request.state.began);
    SendSchedule {
        now: request.facts.now.plus(taken),
        head: sent.saturating_duration_since(asked_at),
    }
}

/// Returns the classes that learn from a response: that of the route, and those of matching imitating rules.
fn learners(request: &RequestContext<'_, '_>, status: StatusCode) -> Learners {
    let imitations = &request.state.core.live.process.imitations;
    let imitating = request.state.snapshot.imitating.iter();
    let mut wanting = imitating
        .filter(|imitating| imitating.status == status)
        .peekable();
    let Some(kind) = wanting.peek().and_then(|_| kind(request, status)) else {
        return Learners::new();
    };
    let matching = wanting.filter(|imitating| would_stop(&request.decision, imitating));
    let narrow = matching.map(|imitating| kind.clone().stopped_by(&imitating.name));
    let kinds = narrow.chain([kind.clone()]);
    let memories = kinds.filter_map(|kind| imitations.get_or_begin(kind));
    memories.filter(|memory| memory.is_curious()).collect()
}

fn kind(request: &RequestContext<'_, '_>, status: StatusCode) -> Option<ResponseClass> {
    let (pattern, route) = request.route?;
    let upstream = route.target.name()?;
    let label = pattern.label().clone();
    ResponseClass::new(label, upstream.into(), request.info, status)
}

/// Returns whether the rule of `imitating` matches the request.
fn would_stop(decision: &Decision, imitating: &ImitatingRule) -> bool {
    let mut events = decision.events.iter();
    events.any(|mark| mark.rule == imitating.rule && mark.event == RuleEventKind::Matched)
}

/// Returns whether no rule changed how the request was handled: mitigated clients are not learned from.
fn is_ordinary(decision: &Decision) -> bool {
    let decided_by = decision.decided_by.as_ref();
    decision.verdict == Verdict::Forward
        && decision.hold.is_zero()
        && decided_by.is_none_or(|decided_by| decided_by.action == Action::Allow)
}

// === impl ResponseObserver ===

impl ResponseObserver {
    /// Starts to observe a response with a head that is sent next. `time` is from the end of the request until
    /// now.
    pub fn begin(&self, learners: Learners, head: HeadSent, time: Duration, body: &Body) {
        let mut observation = Box::new(Observation {
            learners,
            pace: ResponsePacing::after(time),
            head: Some(head),
            waits_since: None,
        });
        if body.is_end_stream() {
            observation.learn_head();
            observation.learn_pace();
        } else {
            self.0.set(Some(observation));
        }
    }

    /// Records the result of polling `body`.
    pub fn polled(
        &self,
        polled: &Poll<Option<Result<Frame<Bytes>, BodyError>>>,
        body: &Body,
        clock: &Clock,
    ) {
        let Some(mut observation) = self.0.take() else {
            return;
        };
        // A body is first polled when its head is about to be written.
        observation.learn_head();
        let ended = match polled {
            Poll::Pending => {
                let waits_since = &mut observation.waits_since;
                waits_since.get_or_insert_with(|| clock.instant());
                false
            }
            Poll::Ready(Some(Ok(frame))) => {
                observation.add_piece(frame.data_ref().map_or(0, Bytes::len), clock);
                body.is_end_stream()
            }
            Poll::Ready(Some(Err(_))) => return,
            Poll::Ready(None) => true,
        };
        if ended {
            observation.learn_pace();
        } else {
            self.0.set(Some(observation));
        }
    }
}

// === impl Observation ===

impl Observation {
    /// Learns the head in a separate task, which runs after the connection has written it.
    fn learn_head(&mut self) {
        if let Some(head) = self.head.take() {
            let learners = self.learners.clone();
            tokio::task::spawn_local(async move {
                for memory in &learners {
                    memory.learn(&head);
                }
            });
        }
    }

    /// Adds a piece. Without a wait before it, it is sent together with the head.
    fn add_piece(&mut self, bytes: usize, clock: &Clock) {
        let waited = self.waits_since.map_or(Duration::ZERO, |since| {
            clock.instant().saturating_duration_since(since)
        });
        self.pace.add(bytes, waited);
    }

    fn learn_pace(&self) {
        let pace = self.pace.whole();
        for memory in &self.learners {
            memory.learn_pace(pace);
        }
    }
}
