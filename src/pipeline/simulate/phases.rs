//! The two phases of a simulation: the decision about the request, and the count of its response.

use super::Simulation;
use crate::action::RequestInfo;
use crate::decision::Decision;
use crate::facts::RequestFacts;
use crate::pipeline::challenge;
use crate::pipeline::engine::{Engine, Evaluation, ResponsePhase};
use crate::snapshot::Snapshot;
use crate::store::OnSettled;

// === impl Simulation ===

impl Simulation {
    /// Decides a request and releases its leases.
    pub(super) async fn decide(
        &self,
        snapshot: &Snapshot,
        engine: &Engine<'_>,
        info: &RequestInfo<'_>,
        facts: &RequestFacts<'_>,
    ) -> (Evaluation, Decision) {
        let mut evaluation = Evaluation::default();
        let mut decision = Decision {
            blocks_shadows: info.is_grpc(),
            blocks_challenges: challenge::is_unsolvable(snapshot, info, facts),
            ..Decision::default()
        };
        let decided =
            engine.decide_with_keys(&self.keys, facts, info.now, &mut evaluation, &mut decision);
        decided.await;
        evaluation.leases = None;
        (evaluation, decision)
    }

    /// Counts the response, or reads the counters if the store handle is read-only. Does nothing without a response.
    pub(super) async fn settle(
        &self,
        engine: &Engine<'_>,
        response: Option<ResponsePhase<'_>>,
        decision: &mut Decision,
    ) -> Evaluation {
        let mut settlement = Evaluation::default();
        if let Some(response) = response {
            engine.settle_with_keys(
                &self.keys,
                &response,
                &mut settlement,
                decision,
                ignore_settled,
            );
            let Evaluation { plan, result, .. } = &mut settlement;
            let read = engine.store.read_settlement(plan, response.now, result);
            read.await;
        }
        settlement
    }
}

/// Ignores the result of a settlement that the store applies later.
fn ignore_settled() -> OnSettled {
    Box::new(|_, _| {})
}
