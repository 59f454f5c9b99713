//! Random rules and requests: plan, store, decide and settle against a naive model that is written
//! straight from the sentences of the contract.

mod cases;
mod naive;

use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderValue};
use lockgate::clock::{Clock, Timestamp};
use lockgate::decision::{Decision, Verdict};
use lockgate::facts::ResponseFacts;
use lockgate::pipeline::engine::{Engine, Evaluation, ResponsePhase};
use lockgate::rules::RuleSet;
use lockgate::store::{OnSettled, Store, StoreBounds, StoreHandle};
use proptest::prelude::*;

use self::cases::{Ask, Case, ask, case};
use self::naive::{Naive, Outcome};

/// The gateway's rules on a real store.
struct Gateway {
    rules: RuleSet,
    store: Rc<StoreHandle>,
    runtime: tokio::runtime::Runtime,
}

/// A request that was decided and not answered yet.
struct Visit {
    decision: Decision,
    evaluation: Evaluation,
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn rules_decide_like_the_naive_model(
        // The more are enough for an index.
        cases in prop_oneof![
            3 => prop::collection::vec(case(), 2..=4),
            1 => prop::collection::vec(case(), 10..=20),
        ],
        asks in prop::collection::vec(ask(), 1..60),
    ) {
        let gateway = Gateway::new(&cases);
        let mut naive = Naive::new(cases);
        let mut pending = VecDeque::new();
        let mut now = Timestamp::from_secs(1_700_000_040);
        for ask in asks {
            now = now.plus(Duration::from_millis(ask.after));
            let decided = gateway.decide(&ask, now);
            let expected = naive.decide(&ask, now);
            pending.push_back((ask.lag, ask, decided, expected));
            for (lag, ..) in &mut pending {
                *lag = lag.saturating_sub(1);
            }
            while pending.front().is_some_and(|(lag, ..)| *lag == 0) {
                let Some((_, ask, mut decided, mut expected)) = pending.pop_front() else {
                    break;
                };
                gateway.settle(&ask, &mut decided, now);
                naive.settle(&ask, &mut expected, now);
                prop_assert_eq!(Outcome::of(&decided.decision), expected, "{:?}", ask);
            }
        }
    }

    #[test]
    fn candidates_change_no_decision(
        cases in prop::collection::vec(case(), 2..=4),
        asks in prop::collection::vec(ask(), 1..60),
    ) {
        let without = cases.iter().cloned().map(|case| Case { candidate: None, ..case });
        let gateways = [Gateway::new(&cases), Gateway::new(&without.collect::<Vec<_>>())];
        let mut now = Timestamp::from_secs(1_700_000_040);
        for ask in asks {
            now = now.plus(Duration::from_millis(ask.after));
            let outcomes = gateways.each_ref().map(|gateway| {
                let mut decided = gateway.decide(&ask, now);
                gateway.settle(&ask, &mut decided, now);
                Outcome::of(&decided.decision).without_candidates()
            });
            prop_assert_eq!(&outcomes[0], &outcomes[1], "{:?}", ask);
        }
    }
}

// === impl Gateway ===

impl Gateway {
    fn new(cases: &[Case]) -> Self {
        let store = Arc::new(Store::memory(StoreBounds::keys(10_000)));
        let rules = cases.iter().enumerate();
        let rules = rules.map(|(at, case)| case.rule(at)).collect();
        Self {
            rules: RuleSet::new(rules),
            store: StoreHandle::new(store, Clock::System),
            runtime: tokio::runtime::Builder::new_current_thread()
                .build()
                .unwrap(),
        }
    }

    /// As the pipeline does: a request that is stopped gives its places back.
    fn decide(&self, ask: &Ask, now: Timestamp) -> Visit {
        let (mut evaluation, mut decision) = (Evaluation::default(), Decision::default());
        ask.facts(now, |facts| {
            let engine = self.engine();
            let decided = engine.decide(facts, now, &mut evaluation, &mut decision);
            self.runtime.block_on(decided);
        });
        if ask.crowded && !decision.hold.is_zero() {
            self.rules.cannot_hold(&mut decision);
        }
        if !is_served(&decision) {
            evaluation.leases = None;
        }
        Visit {
            decision,
            evaluation,
        }
    }

    fn engine(&self) -> Engine<'_> {
        Engine {
            rules: &self.rules,
            store: &self.store,
        }
    }

    /// As the pipeline does: only what was forwarded is counted once it is answered.
    fn settle(&self, ask: &Ask, visit: &mut Visit, now: Timestamp) {
        let decision = &mut visit.decision;
        visit.evaluation.leases = None;
        let mut headers = HeaderMap::new();
        if let Some(cost) = ask.answer_cost {
            headers.insert("x-cost", HeaderValue::from_static(cost));
        }
        let response = ResponseFacts {
            status: ask.status,
            headers: &headers,
            duration_ms: 0,
            body_size: None,
            upstream: None,
            upstream_error: None,
        };
        ask.facts(now, |facts| {
            let answered = facts.with_response(&response);
            let mut settlement = Evaluation::default();
            let on_settled = || -> OnSettled { Box::new(|_, _| {}) };
            let phase = ResponsePhase {
                facts: &answered,
                countable: decision.verdict == Verdict::Forward,
                now,
            };
            let engine = self.engine();
            engine.settle(&phase, &mut settlement, decision, on_settled);
        });
    }
}

/// Whether an origin answers.
fn is_served(decision: &Decision) -> bool {
    matches!(decision.verdict, Verdict::Forward | Verdict::Divert { .. })
}
