//! Random rules and requests: plan, store, decide and settle against a naive model that is written
//! straight from the sentences of the contract.

mod cases;
mod naive;

use std::collections::VecDeque;
use std::time::Duration;

use http::{HeaderMap, HeaderValue};
use lockgate::clock::Timestamp;
use lockgate::decision::{Decision, Verdict};
use lockgate::facts::ResponseFacts;
use lockgate::rules::{Findings, Plan, RuleSet};
use lockgate::store::Bounds;
use lockgate::store::memory::Memory;
use proptest::prelude::*;

use self::cases::{Ask, Case, ask, case};
use self::naive::{Naive, Outcome};

/// The gateway's rules on a real store.
struct Gateway {
    rules: RuleSet,
    store: Memory,
}

/// A request that was decided and not answered yet.
struct Visit {
    decision: Decision,
    plan: Plan,
    findings: Findings,
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn rules_decide_as_the_sentences_say(
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
    fn candidates_change_nothing(
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
        let store = Memory::new(Bounds::keys(10_000));
        let rules = cases.iter().enumerate();
        let rules = rules.map(|(at, case)| case.rule(at, &store)).collect();
        Self {
            rules: RuleSet::new(rules),
            store,
        }
    }

    /// As the pipeline does: a request that is stopped gives its places back.
    fn decide(&self, ask: &Ask, now: Timestamp) -> Visit {
        let plan = ask.facts(now, |facts| self.rules.plan(facts));
        let findings = self.store.apply(&plan, now);
        let mut decision = self.rules.decide(&plan, &findings, now);
        if let Some(full) = self.rules.look_again(&plan, &findings, &decision) {
            let found = self.store.apply(&full, now);
            self.rules.lengthen(&mut decision, &full, &found, now);
        }
        if ask.crowded && !decision.hold.is_zero() {
            self.rules.cannot_hold(&mut decision);
        }
        if !is_served(&decision) {
            self.store.release(&plan, &findings);
        }
        Visit {
            decision,
            plan,
            findings,
        }
    }

    /// As the pipeline does: only what was forwarded is counted once it is answered.
    fn settle(&self, ask: &Ask, visit: &mut Visit, now: Timestamp) {
        let decision = &mut visit.decision;
        if is_served(decision) {
            self.store.release(&visit.plan, &visit.findings);
        }
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
            match decision.verdict {
                Verdict::Forward => {
                    let plan = self.rules.settle(&answered, decision.settle_before);
                    self.rules.settled(decision, &plan);
                    self.store.apply(&plan, now);
                }
                Verdict::Shadow { .. } | Verdict::Divert { .. } => {
                    self.rules.pretend(decision, &answered)
                }
                _ => {}
            }
        });
    }
}

/// Whether an origin answers.
fn is_served(decision: &Decision) -> bool {
    matches!(decision.verdict, Verdict::Forward | Verdict::Divert { .. })
}
