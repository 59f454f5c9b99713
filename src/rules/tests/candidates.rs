//! A candidate limit next to a rule's own: it counts, and changes nothing else.

use std::time::Duration;

use super::super::{
    CandidateLimit, MissingPart, Plan, PlanResult, Rule, RuleCost, RuleId, RuleSet, StepOp,
};
use super::deciding::{banned, events, found_for, over, within};
use super::{Ask, answered, key, rule, separate, set};
use crate::decision::{Action, Decision, RuleEventKind, Verdict};
use crate::limit::{Algorithm, CounterReading, Limiter};
use crate::rules::{KeyStatus, StoreMode};

const OTHER: RuleId = RuleId {
    identity: 9,
    slot: 9,
};

#[test]
fn a_candidate_precedes_its_rule_and_has_its_own_counter() {
    let mut tried = tried();
    tried.cost = RuleCost::Fixed(3);
    tried.key = key(&["ip.src"], MissingPart::Group);
    tried.ban = Duration::from_secs(60).into();
    let plan = plan(&set([rule(), tried]), &Ask::post("/a"));
    let [_, candidate, own] = &plan.steps[..] else {
        panic!("{plan:?}");
    };
    assert!(candidate.candidate && !own.candidate);
    assert_eq!((candidate.id, own.id), (OTHER, rule().id));
    assert_eq!(candidate.limiter.limit, 2);
    assert_eq!(own.limiter.limit, 5);
    assert_eq!(plan.key(candidate), plan.key(own));
    let alike =
        |one: &super::super::Step| (one.rule, one.op, one.cost, one.mitigates, one.ban.clone());
    assert_eq!(alike(candidate), alike(own));
    // It never ends evaluation, and it adds no wait.
    assert!(!candidate.is_terminal && !candidate.peek_after_end);
    assert!(own.is_terminal && own.peek_after_end);
}

#[test]
fn a_candidate_is_exact_if_its_algorithm_cannot_be_counted_in_async_mode() {
    for (own, algorithm, expected) in [
        (StoreMode::Async, Algorithm::Gcra, StoreMode::Async),
        (StoreMode::Async, Algorithm::SlidingLog, StoreMode::Exact),
        (StoreMode::Async, Algorithm::LeakyBucket, StoreMode::Exact),
        (StoreMode::Async, Algorithm::Concurrency, StoreMode::Exact),
        (StoreMode::Exact, Algorithm::Gcra, StoreMode::Exact),
    ] {
        let limiter = Limiter::new(algorithm, 2, Duration::from_secs(60));
        let tried = Rule {
            candidate: Some(CandidateLimit { id: OTHER, limiter }),
            store_mode: own,
            ..tried()
        };
        let plan = plan(&set([tried]), &Ask::post("/a"));
        let modes: Vec<_> = plan.steps.iter().map(|step| step.mode).collect();
        assert_eq!(modes, [expected, own], "{algorithm:?}");
    }
}

#[test]
fn a_candidate_runs_the_operation_that_its_rule_would_run() {
    let (zero, ban) = (Duration::ZERO, Duration::from_secs(60));
    let late = || separate("http.response.code eq 401");
    let cases = [
        (
            Ask::post("/a"),
            zero,
            None,
            vec![StepOp::Admit, StepOp::Admit],
        ),
        (
            Ask::post("/b"),
            zero,
            None,
            vec![StepOp::Charge, StepOp::Charge],
        ),
        (Ask::get("/a"), zero, None, vec![StepOp::Peek, StepOp::Peek]),
        (
            Ask::get("/a"),
            ban,
            None,
            vec![StepOp::CheckBan, StepOp::CheckBan],
        ),
        (Ask::get("/b"), zero, None, vec![]),
        // The rule itself peeks for its quota headers; a candidate sends none.
        (
            Ask::get("/a"),
            ban,
            Some(late()),
            vec![StepOp::CheckBan, StepOp::Peek],
        ),
        (Ask::get("/b"), zero, Some(late()), vec![StepOp::Peek]),
    ];
    for (ask, ban, scope, expected) in cases {
        let mut tried = tried();
        tried.ban = ban.into();
        tried.scope = scope.unwrap_or(tried.scope);
        let plan = plan(&set([tried]), &ask);
        let ops: Vec<StepOp> = plan.steps.iter().map(|step| step.op).collect();
        assert_eq!(ops, expected, "{} {} {ban:?}", ask.method, ask.path);
    }
}

#[test]
fn a_skipped_rule_skips_its_candidate() {
    let mut tried = tried();
    tried.key = key(&["tls.ja3"], MissingPart::Skip);
    assert!(plan(&set([tried]), &Ask::post("/a")).steps.is_empty());
}

#[test]
fn only_a_difference_between_rule_and_candidate_is_recorded() {
    let second = || [within(3, 1_000)];
    let cases = [
        (within(1, 1), within(3, 1_000), None),
        (over(Some(1)), over(Some(9_000)), None),
        (
            over(Some(1)),
            within(3, 1_000),
            Some(RuleEventKind::CandidateActs),
        ),
        (
            banned(9, true),
            within(3, 1_000),
            Some(RuleEventKind::CandidateActs),
        ),
        (
            within(1, 1),
            over(Some(9_000)),
            Some(RuleEventKind::CandidatePasses),
        ),
        (
            within(1, 1),
            banned(9_000, false),
            Some(RuleEventKind::CandidatePasses),
        ),
    ];
    for (candidate, own, expected) in cases {
        let rules = set([tried(), rule()]);
        let decision = decide(
            &rules,
            &Ask::post("/a"),
            &[[candidate, own], [second()[0]; 2]].concat()[..3],
        );
        let noted = events(&decision).into_iter().filter(|(_, event)| {
            matches!(
                event,
                RuleEventKind::CandidateActs | RuleEventKind::CandidatePasses
            )
        });
        let expected = expected.map(|event| (0, event));
        assert_eq!(noted.collect::<Vec<_>>(), Vec::from_iter(expected));
        // And nothing else changes.
        let without = decide(
            &set([rule(), rule()]),
            &Ask::post("/a"),
            &[own, second()[0]],
        );
        assert_eq!(unnoted(decision), unnoted(without));
    }
}

#[test]
fn a_candidate_records_nothing_for_a_request_that_is_only_counted() {
    let decision = decide(
        &set([tried()]),
        &Ask::post("/b"),
        &[over(Some(1)), within(3, 1_000)],
    );
    assert_eq!(events(&decision), [(0, RuleEventKind::Counted)]);
    assert_eq!(decision.verdict, Verdict::Forward);
}

#[test]
fn a_dry_run_and_its_candidate_are_compared_too() {
    let mut tried = tried();
    tried.dry_run = true;
    let found = [within(1, 1), over(Some(9_000))];
    let decision = decide(&set([tried]), &Ask::post("/a"), &found);
    let events = events(&decision);
    assert!(events.contains(&(0, RuleEventKind::CandidatePasses)));
    assert!(events.contains(&(0, RuleEventKind::WouldMitigate)));
}

#[test]
fn a_candidates_queue_holds_no_request() {
    let mut waits = within(1, 1);
    waits.1 = waits
        .1
        .map(|reading| reading.waiting(Duration::from_secs(3)));
    let decision = decide(
        &set([tried()]),
        &Ask::post("/a"),
        &[waits, within(3, 1_000)],
    );
    assert_eq!(decision.hold, Duration::ZERO);
    assert_eq!(decision.queued, None);
}

#[test]
fn the_response_is_charged_to_both_and_recorded_for_the_rule_only() {
    let mut tried = tried();
    tried.scope = separate("http.response.code eq 401");
    let rules = set([tried]);
    let ask = Ask::post("/b");
    let mut decision = decide(&rules, &ask, &[within(3, 60_000)]);
    ask.facts(|facts| {
        answered(facts, 401, |facts| {
            let settled = rules.settle(facts, None);
            let steps: Vec<_> = settled.steps.iter().map(|s| (s.op, s.candidate)).collect();
            assert_eq!(steps, [(StepOp::Charge, true), (StepOp::Charge, false)]);
            assert_eq!(settled.steps[0].id, OTHER);
            rules.add_response_phase(&mut decision, &settled);
        });
    });
    assert_eq!(events(&decision), [(0, RuleEventKind::Counted)]);
    assert_eq!(decision.quotas.len(), 1);
}

#[test]
fn candidates_have_their_own_identities_in_the_store() {
    assert_eq!(set([tried(), rule()]).identities(), [1, 9, 1]);
}

#[test]
fn a_deny_rule_has_no_candidate_step() {
    let mut deny = tried();
    deny.limiter = None;
    deny.action = Action::Log;
    assert_eq!(plan(&set([deny]), &Ask::post("/a")).steps.len(), 1);
}

/// [`rule`], with a candidate of two per minute next to its five.
fn tried() -> Rule {
    let minute = Duration::from_secs(60);
    let mut rule = rule();
    rule.candidate = Some(CandidateLimit {
        id: OTHER,
        limiter: Limiter::new(Algorithm::SlidingWindow, 2, minute),
    });
    rule
}

fn plan(rules: &RuleSet, ask: &Ask) -> Plan {
    ask.facts(|facts| rules.plan(facts))
}

fn decide(rules: &RuleSet, ask: &Ask, found: &[(KeyStatus, Option<CounterReading>)]) -> Decision {
    let plan = plan(rules, ask);
    assert_eq!(plan.steps.len(), found.len());
    let result: PlanResult = found_for(found).collect();
    rules.decide(&plan, &result)
}

/// The decision without the candidate's events.
fn unnoted(mut decision: Decision) -> Decision {
    decision.events.retain(|mark| {
        !matches!(
            mark.event,
            RuleEventKind::CandidateActs | RuleEventKind::CandidatePasses
        )
    });
    decision
}
