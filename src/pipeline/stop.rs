//! Requests that a rule stopped: their bodies and their answers.

use http::Response;
use http_body::Body as _;

use super::body::{self, Meter};
use super::forward::Sent;
use super::imitate::{self, Route};
use super::record::Visit;
use crate::action::{self, Asked, Canned, Fault, Refused};
use crate::body::Body;
use crate::clock::Timestamp;
use crate::decision::{Decision, RuleIndex, Verdict};
use crate::listen::{Drained, Incoming};
use crate::rules::{Findings, Plan};
use crate::snapshot::Snapshot;
use crate::store::Store;

/// Makes the wait of a refusal exact: it lasts until no rule would refuse.
pub async fn lengthen(
    store: &Store,
    snapshot: &Snapshot,
    plan: &Plan,
    findings: &Findings,
    decision: &mut Decision,
    now: Timestamp,
) {
    let full = snapshot.rules.look_again(plan, findings, decision);
    // On the heap: few requests need it, and every request is as large as its largest wait.
    let look = full.map(|full| Box::pin(look(store, snapshot, full, decision, now)));
    if let Some(look) = look {
        look.await;
    }
}

/// Refuses what a rule would answer in the origin's place, if the client could not take it.
pub fn openly(asked: &Asked<'_>, decision: &mut Decision) {
    if matches!(decision.verdict, Verdict::Shadow { .. }) && asked.is_grpc() {
        decision.refuse_openly();
    }
}

/// Looks at the counters of all rules, those behind the one that refused too.
async fn look(
    store: &Store,
    snapshot: &Snapshot,
    full: Plan,
    decision: &mut Decision,
    now: Timestamp,
) {
    let found = store.apply(&full, now).await;
    snapshot.rules.lengthen(decision, &full, &found, now);
}

/// Refuses, and says so.
pub async fn block(
    snapshot: &Snapshot,
    asked: &Asked<'_>,
    incoming: Incoming,
    meter: &Meter,
    rule: RuleIndex,
    retry_after: Option<u64>,
) -> Sent {
    let rest = body::discard(incoming, asked.headers, meter).await;
    Sent::own(refusal(snapshot, asked, rule, retry_after)).leaving(rest, asked)
}

/// Answers as the origin would, after the whole body, as the origin would.
pub async fn shadow(
    visit: &Visit,
    asked: &Asked<'_>,
    incoming: Incoming,
    route: Option<Route<'_>>,
    rule: RuleIndex,
) -> Sent {
    let (snapshot, meter) = (&visit.snapshot, &visit.tab.meter);
    let whole = incoming.is_end_stream();
    let rest = body::swallow(incoming, snapshot.max_body, meter).await;
    let asked_at = match whole {
        true => visit.began,
        false => visit.core.live.lasting.clock.instant(),
    };
    let sent = match rest.drained {
        Drained::TooLong if snapshot.max_body.is_some() => {
            Sent::own(Fault::BodyTooLarge.answer(asked))
        }
        Drained::Broken => Sent::own(Fault::Malformed.answer(asked)),
        Drained::TooSlow => {
            visit.core.fault(Fault::BodyTooSlow);
            Sent::own(Fault::BodyTooSlow.answer(asked))
        }
        _ => match imitate::answer(visit, asked, asked_at, route, rule).await {
            Some(imitation) => Sent::by_route(imitation).closing_if_endless(asked),
            None => Sent::by_route(pretence(snapshot, asked, rule)),
        },
    };
    sent.leaving(rest, asked)
}

/// The answer of a rule that refuses.
pub fn refusal(
    snapshot: &Snapshot,
    asked: &Asked<'_>,
    rule: RuleIndex,
    retry_after: Option<u64>,
) -> Response<Body> {
    let refused = Refused {
        rule: snapshot.rules.get(rule).map_or("", |rule| &rule.name),
        response: canned(snapshot, rule),
        retry_after,
    };
    action::block(asked, &refused)
}

/// The answer of a rule that does as if all were well.
pub fn pretence(snapshot: &Snapshot, asked: &Asked<'_>, rule: RuleIndex) -> Response<Body> {
    action::shadow(asked, canned(snapshot, rule))
}

pub fn canned(snapshot: &Snapshot, rule: RuleIndex) -> Option<&Canned> {
    let kit = snapshot.rule_kits.get(usize::from(rule.0))?;
    kit.response.as_deref()
}
