//! The response phase: rules that count answers count this one. It holds no answer back but for
//! the store's own time.

use super::forward::Sent;
use super::record::Visit;
use super::{Core, ban};
use crate::decision::Decision;
use crate::facts::RequestFacts;
use crate::rules::Plan;
use crate::snapshot::Snapshot;

/// Takes into `decision` what a client would be told of those rules, were the answer the origin's.
/// Nothing is counted.
pub fn pretend(
    core: &Core,
    snapshot: &Snapshot,
    visit: &Visit,
    facts: &RequestFacts<'_>,
    sent: &Sent,
    decision: &mut Decision,
) {
    let response = sent.facts(visit, core);
    snapshot
        .rules
        .pretend(decision, &facts.with_response(&response));
}

/// Counts the answer, and takes into `decision` what a client is told of those rules.
pub async fn settle(
    core: &Core,
    snapshot: &Snapshot,
    visit: &Visit,
    facts: &RequestFacts<'_>,
    sent: &Sent,
    decision: &mut Decision,
) {
    let response = sent.facts(visit, core);
    let counted = facts.with_response(&response);
    let mut plan = Plan::default();
    let before = decision.settle_before;
    snapshot.rules.settle_into(&counted, before, &mut plan);
    snapshot.rules.settled(decision, &plan);
    if plan.steps.is_empty() {
        return;
    }
    let lasting = &core.live.lasting;
    let findings = lasting.store.apply(&plan, lasting.clock.now()).await;
    ban::tell(core, snapshot, &plan, &findings);
}
