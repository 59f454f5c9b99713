//! Requests that a rule stopped: their bodies and their answers.

use hyper::body::Incoming;

use super::body;
use super::forward::Sent;
use crate::action::{self, Asked, Canned, Refused};
use crate::decision::RuleIndex;
use crate::snapshot::Snapshot;

/// Refuses, and says so.
pub async fn block(
    snapshot: &Snapshot,
    asked: &Asked<'_>,
    incoming: Incoming,
    rule: RuleIndex,
    retry_after: Option<u64>,
) -> Sent {
    let whole = body::discard(incoming, asked.headers).await;
    let refused = Refused {
        rule: snapshot.rules.get(rule).map_or("", |rule| &rule.name),
        response: canned(snapshot, rule),
        retry_after,
    };
    Sent::own(action::block(asked, &refused)).closing(!whole, asked)
}

/// Answers as the origin would, after the whole body, as the origin would.
pub async fn shadow(
    snapshot: &Snapshot,
    asked: &Asked<'_>,
    incoming: Incoming,
    rule: RuleIndex,
) -> Sent {
    let whole = body::swallow(incoming, snapshot.max_body).await;
    Sent::own(action::shadow(asked, canned(snapshot, rule))).closing(!whole, asked)
}

fn canned(snapshot: &Snapshot, rule: RuleIndex) -> Option<&Canned> {
    let kit = snapshot.rule_kits.get(usize::from(rule.0))?;
    kit.response.as_deref()
}
