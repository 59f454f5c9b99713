//! Shadow answers that look like real ones: learning from what was forwarded, and answering so.

use std::time::{Duration, Instant};

use http::{Response, StatusCode};

use super::forward::Sent;
use super::hold::Place;
use super::lesson::{Learners, Leaving, RealHead};
use super::pace::paced;
use super::record::Visit;
use super::stop::canned;
use crate::action::Asked;
use crate::action::imitate::{Kind, When, dress};
use crate::body::Body;
use crate::decision::{Action, Decision, Event, RuleIndex, Verdict};
use crate::facts::RequestFacts;
use crate::route::Pattern;
use crate::snapshot::{self, Imitating};

/// The route that a request takes, and what becomes of it there.
pub type Route<'a> = (&'a Pattern, &'a snapshot::Route);

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
    let now = lasting.clock.instant();
    let when = When::at(
        visit.now.plus(now.saturating_duration_since(visit.began)),
        now.saturating_duration_since(asked_at),
    );
    let head = RealHead::of(sent.response.headers(), asked, facts.client, when);
    let leaving = Leaving {
        core: visit.core.clone(),
        due: now,
        woke: now,
        head: Some(head),
    };
    let lesson = &visit.tab.lesson;
    lesson.begin(learners, when.head, leaving, sent.response.body());
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
    let core = &visit.core;
    let imitations = &core.live.lasting.imitations;
    let drawn = |kind: &Kind| {
        let memory = imitations.get(kind)?;
        memory.pace().map(|pace| (memory, pace))
    };
    let narrow = drawn(&kind.clone().stopped_by(&imitating.name));
    let (memory, pace) = narrow.or_else(|| drawn(&kind))?;
    let place = Place::take(core, snapshot);
    let due = core.drift.due(asked_at + pace.head, pace.head);
    if let Some(place) = &place {
        place.until(due).await;
        // Who has slept finds its caches cold, and how long an answer takes to make then is hard
        // to tell. So it is made once for nothing.
        let rehearsal = memory.imitate(asked, When::at(visit.now, pace.head))?;
        drop(dress(asked, canned, &rehearsal));
    }
    // Nobody wakes at the very moment. What an answer tells of its time must be true of when it is
    // written, so it is drawn only now.
    let woke = core.live.lasting.clock.instant();
    let (written, spread) = match woke < due {
        true => (asked_at + pace.head, Duration::ZERO),
        false => core.drift.written(woke, pace.head),
    };
    let when = When {
        now: visit
            .now
            .plus(written.saturating_duration_since(visit.began)),
        head: written.saturating_duration_since(asked_at),
        spread,
    };
    let imitation = memory.imitate(asked, when)?;
    let response = dress(asked, canned, &imitation);
    let leaving = Leaving {
        core: core.clone(),
        due,
        woke,
        head: None,
    };
    let lesson = &visit.tab.lesson;
    lesson.begin(Learners::new(), pace.head, leaving, response.body());
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
