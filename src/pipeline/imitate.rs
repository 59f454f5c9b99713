//! Shadow answers that look like real ones: learning from what was forwarded, and answering so.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::{Response, StatusCode};
use http_body::Body as _;
use smallvec::SmallVec;

use super::Core;
use super::forward::Sent;
use super::hold::Place;
use super::pace::paced;
use super::record::Visit;
use super::stop::canned;
use crate::action::Asked;
use crate::action::imitate::{Kind, Memory, Pace, Seen, When, dress};
use crate::body::Body;
use crate::decision::{Action, Decision, Event, RuleIndex, Verdict};
use crate::facts::RequestFacts;
use crate::facts::client_ip::Prefixes;
use crate::route::Pattern;
use crate::snapshot::{self, Imitating};

/// The route that a request takes, and what becomes of it there.
pub type Route<'a> = (&'a Pattern, &'a snapshot::Route);

/// How an answer goes on after its head, watched for those who learn from it.
#[derive(Default)]
pub struct Lesson(Cell<Option<Box<Watching>>>);

struct Watching {
    /// Who learns from it; nobody: it is a shadow answer.
    learners: Learners,
    pace: Pace,
    /// When its head was due; `None`: it has gone.
    due: Option<Instant>,
    /// Since when the client waits for more.
    waits_since: Option<Instant>,
}

/// Who learns from an answer.
type Learners = SmallVec<[Arc<Memory>; 2]>;

/// Learns from an answer, if anybody wants to: what it looks like, and how long it took.
pub fn learn(
    visit: &Visit,
    facts: &RequestFacts<'_>,
    asked: &Asked<'_>,
    decision: &Decision,
    route: Option<Route<'_>>,
    sent: &Sent,
) {
    let imitating = &visit.snapshot.imitating;
    if imitating.is_empty() || !sent.settles || sent.error.is_some() || !is_ordinary(decision) {
        return;
    }
    let lasting = &visit.core.live.lasting;
    let learners = learners(visit, asked, decision, route, sent.response.status());
    let asked_at = match facts.head.has_body() {
        true => visit.tab.meter.ended.get(),
        false => Some(visit.began),
    };
    // An answer that came before its request had ended is no measure.
    let Some(asked_at) = asked_at.filter(|_| !learners.is_empty()) else {
        return;
    };
    let head = lasting.clock.instant().saturating_duration_since(asked_at);
    let network = Prefixes::default().network(facts.client);
    let seen = Seen {
        headers: sent.response.headers(),
        asked,
        client: lasting.imitations.client(network),
        when: When {
            now: lasting.clock.now(),
            head,
        },
    };
    for learner in &learners {
        learner.learn(&seen);
    }
    let now = lasting.clock.instant();
    let lesson = &visit.tab.lesson;
    lesson.begin(learners, head, now, sent.response.body());
}

/// The answer to a request that `rule` stops, as a real one would look, when a real one would
/// come; `None`: it is not to look so, or not enough is known. `asked_at`: when the request had
/// come to its end.
pub async fn answer(
    visit: &Visit,
    asked: &Asked<'_>,
    asked_at: Instant,
    route: Option<Route<'_>>,
    rule: RuleIndex,
) -> Option<Response<Body>> {
    let snapshot = &visit.snapshot;
    let mut imitating = snapshot.imitating.iter();
    let imitating = imitating.find(|imitating| imitating.rule == rule)?;
    let canned = canned(snapshot, rule)?;
    let kind = kind(asked, route, imitating.status)?;
    let imitations = &visit.core.live.lasting.imitations;
    let narrow = imitations.get(&kind.clone().stopped_by(&imitating.name));
    let imitation = narrow.and_then(|memory| memory.imitate(asked));
    let imitation = imitation.or_else(|| imitations.get(&kind)?.imitate(asked))?;
    let response = dress(asked, canned, &imitation);
    let pace = imitation.pace;
    let place = Place::take(&visit.core, snapshot);
    let due = asked_at + pace.head.saturating_sub(visit.core.drift.lead());
    if let Some(place) = &place {
        place.until(due).await;
    }
    let lesson = &visit.tab.lesson;
    lesson.begin(Learners::new(), pace.head, due, response.body());
    Some(response.map(|body| paced(body, &pace, imitation.streamed, place)))
}

/// Who learns from an answer like this: the route, and each rule that would have stopped it.
fn learners(
    visit: &Visit,
    asked: &Asked<'_>,
    decision: &Decision,
    route: Option<Route<'_>>,
    status: StatusCode,
) -> Learners {
    let imitations = &visit.core.live.lasting.imitations;
    let imitating = visit.snapshot.imitating.iter();
    let mut wanting = imitating
        .filter(|imitating| imitating.status == status)
        .peekable();
    let Some(kind) = wanting.peek().and_then(|_| kind(asked, route, status)) else {
        return Learners::new();
    };
    let matching = wanting.filter(|imitating| would_stop(decision, imitating));
    let narrow = matching.map(|imitating| kind.clone().stopped_by(&imitating.name));
    let kinds = narrow.chain([kind.clone()]);
    let memories = kinds.filter_map(|kind| imitations.get_or_begin(kind));
    memories
        .filter(|memory| memory.is_curious(visit.now))
        .collect()
}

fn kind(asked: &Asked<'_>, route: Option<Route<'_>>, status: StatusCode) -> Option<Kind> {
    let (pattern, route) = route?;
    let upstream = route.target.name()?;
    Kind::new(pattern.label().clone(), upstream.into(), asked, status)
}

/// Whether `rule` looks at requests like this one.
fn would_stop(decision: &Decision, imitating: &Imitating) -> bool {
    let mut marks = decision.marks.iter();
    marks.any(|mark| mark.rule == imitating.rule && mark.event == Event::Matched)
}

/// Whether no rule had anything to do with how the answer came: nothing is learned from clients
/// that are acted on.
fn is_ordinary(decision: &Decision) -> bool {
    let credit = decision.credit.as_ref();
    decision.verdict == Verdict::Forward
        && decision.hold.is_zero()
        && credit.is_none_or(|credit| credit.action == Action::Allow)
}

// === impl Lesson ===

impl Lesson {
    /// Whether anybody learns.
    pub fn is_on(&self) -> bool {
        let watching = self.0.take();
        let is_on = watching.is_some();
        self.0.set(watching);
        is_on
    }

    fn begin(&self, learners: Learners, head: Duration, due: Instant, body: &Body) {
        let watching = Box::new(Watching {
            learners,
            pace: Pace::after(head),
            due: Some(due),
            waits_since: None,
        });
        match body.is_end_stream() {
            true => watching.end(),
            false => self.0.set(Some(watching)),
        }
    }

    /// The body is asked for: what has come of the answer goes out now.
    pub fn asked(&self, core: &Rc<Core>) {
        self.with(|watching| {
            if let Some(due) = watching.due.take() {
                let (core, shadow) = (core.clone(), watching.learners.is_empty());
                // It runs when the connection has written.
                tokio::task::spawn_local(async move { core.drift(due, shadow) });
            }
        });
    }

    /// There is no more of the body yet.
    pub fn waits(&self, now: Instant) {
        self.with(|watching| {
            watching.waits_since.get_or_insert(now);
        });
    }

    /// A piece of the body has come.
    pub fn piece(&self, bytes: usize, now: Instant, last: bool) {
        self.with(|watching| {
            // What came without waiting leaves together with the head.
            let since = watching.waits_since.unwrap_or(now);
            let at = now.saturating_duration_since(since);
            watching.pace.add(bytes, at);
        });
        if last {
            self.end();
        }
    }

    /// The body has ended as it should.
    pub fn end(&self) {
        if let Some(watching) = self.0.take() {
            watching.end();
        }
    }

    /// It has not.
    pub fn give_up(&self) {
        drop(self.0.take());
    }

    fn with(&self, look: impl FnOnce(&mut Watching)) {
        if let Some(mut watching) = self.0.take() {
            look(&mut watching);
            self.0.set(Some(watching));
        }
    }
}

// === impl Watching ===

impl Watching {
    fn end(self) {
        for learner in &self.learners {
            learner.learn_pace(self.pace.whole());
        }
    }
}
