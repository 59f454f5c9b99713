//! Rules with a ratio: which requests count in both counters, in the total or in none, and in which phase.

use std::time::Duration;

use super::super::{
    BanLength, CandidateLimit, HeaderStyle, MissingPart, Plan, Rule, RuleId, RuleScope, RuleSet,
    StepOp,
};
use super::{Ask, answered, compile, key, rule, set};
use crate::decision::RuleEventKind;
use crate::limit::{ChargeUnits, ShareRatio};

/// The operation, the units of `count` and those of `total`, and whether the request is mitigated.
type Shown = (StepOp, u64, u64, bool);

/// Counts POSTs as a share of the requests with `?all`, and mitigates `/a`.
fn share(count: &str, total: &str) -> Rule {
    let mut rule = rule();
    rule.scope = RuleScope::Share {
        count: compile(count),
        total: compile(total),
        mitigate: compile(r#"http.request.uri.path eq "/a""#),
    };
    let limiter = rule.limiter.as_mut().unwrap();
    limiter.ratio = Some(ShareRatio::nearest(0.4));
    rule.headers = HeaderStyle::None;
    rule
}

fn of_requests() -> Rule {
    share(
        r#"http.request.method eq "POST""#,
        r#"http.request.uri.query eq "all""#,
    )
}

fn of_responses() -> Rule {
    share(
        "http.response.code eq 401",
        r#"http.request.uri.query eq "all""#,
    )
}

fn planned(rules: &RuleSet, ask: &Ask) -> Vec<Shown> {
    ask.facts(|facts| shown(&rules.plan(facts)))
}

fn settled(rules: &RuleSet, ask: &Ask, status: u16) -> Vec<Shown> {
    let settle = |facts: &dyn crate::expr::FieldFacts| rules.settle(facts, None);
    shown(&ask.facts(|facts| answered(facts, status, settle)))
}

fn shown(plan: &Plan) -> Vec<Shown> {
    let steps = plan.steps.iter();
    let show = |step: &super::super::Step| {
        let ChargeUnits { count, total } = step.units();
        (step.op, count, total, step.mitigates)
    };
    steps.map(show).collect()
}

#[test]
fn a_request_of_the_total_is_charged_to_the_total() {
    let rules = set([of_requests()]);
    assert!(!rules.counts_responses());
    let planned = |ask: Ask| planned(&rules, &ask);
    assert_eq!(planned(Ask::post("/a")), [(StepOp::Admit, 1, 1, true)]);
    assert_eq!(planned(Ask::post("/a?all")), [(StepOp::Admit, 1, 1, true)]);
    assert_eq!(planned(Ask::post("/b")), [(StepOp::Charge, 1, 1, false)]);
    assert_eq!(planned(Ask::get("/a?all")), [(StepOp::Admit, 0, 1, true)]);
    assert_eq!(planned(Ask::get("/b?all")), [(StepOp::Charge, 0, 1, false)]);
    assert_eq!(planned(Ask::get("/b")), []);
    // The action applies while the key is over: no unit must be left.
    assert_eq!(planned(Ask::get("/a")), [(StepOp::Peek, 0, 0, true)]);
}

#[test]
fn a_ban_rule_checks_only_the_ban_of_other_requests() {
    let mut rule = of_requests();
    rule.ban = BanLength::For(Duration::from_secs(60));
    let rules = set([rule]);
    assert_eq!(planned(&rules, &Ask::get("/a"))[0].0, StepOp::CheckBan);
    assert_eq!(planned(&rules, &Ask::get("/a?all"))[0].0, StepOp::Admit);
}

#[test]
fn both_counters_are_charged_in_the_phase_of_count() {
    let rules = set([of_responses()]);
    assert!(rules.counts_responses());
    assert_eq!(planned(&rules, &Ask::get("/b?all")), []);
    let peek = (StepOp::Peek, 0, 0, true);
    assert_eq!(planned(&rules, &Ask::get("/a?all")), [peek]);
    let settled = |ask: Ask, status| settled(&rules, &ask, status);
    assert_eq!(
        settled(Ask::get("/b"), 401),
        [(StepOp::Charge, 1, 1, false)]
    );
    assert_eq!(
        settled(Ask::get("/b?all"), 200),
        [(StepOp::Charge, 0, 1, false)]
    );
    assert_eq!(settled(Ask::get("/b"), 200), []);
}

#[test]
fn a_total_that_reads_the_response_moves_the_count_to_that_phase() {
    let rules = set([share(
        r#"http.request.method eq "POST""#,
        "http.response.code lt 500",
    )]);
    assert_eq!(planned(&rules, &Ask::post("/b")), []);
    assert_eq!(
        settled(&rules, &Ask::post("/b"), 500),
        [(StepOp::Charge, 1, 1, false)]
    );
    assert_eq!(
        settled(&rules, &Ask::get("/b"), 200),
        [(StepOp::Charge, 0, 1, false)]
    );
    assert_eq!(settled(&rules, &Ask::get("/b"), 500), []);
}

#[test]
fn a_response_of_the_total_is_awaited() {
    let rules = set([of_responses()]);
    let awaited = |ask: Ask| ask.facts(|facts| rules.may_count_response(facts, None));
    assert!(awaited(Ask::get("/b?all")));
    // Its status may be 401.
    assert!(awaited(Ask::get("/b")));
    let rules = set([share(
        r#"http.response.code eq 401 and http.request.method eq "POST""#,
        r#"http.request.uri.query eq "all""#,
    )]);
    let awaited = |ask: Ask| ask.facts(|facts| rules.may_count_response(facts, None));
    assert!(awaited(Ask::get("/b?all")));
    assert!(awaited(Ask::post("/b")));
}

#[test]
fn a_candidate_counts_the_same_requests() {
    let mut rule = of_requests();
    let id = RuleId {
        identity: 2,
        slot: 2,
    };
    let limiter = rule.limiter.unwrap();
    rule.candidate = Some(CandidateLimit { id, limiter });
    let rules = set([rule]);
    let both = planned(&rules, &Ask::get("/b?all"));
    assert_eq!(both, [(StepOp::Charge, 0, 1, false); 2]);
}

#[test]
fn a_request_without_a_key_part_is_in_neither_counter() {
    let mut rule = of_requests();
    rule.key = key(&["http.request.headers[\"x-k\"][0]"], MissingPart::Skip);
    let rules = set([rule]);
    assert_eq!(planned(&rules, &Ask::get("/b?all")), []);
    let with_key = Ask::get("/b?all").header("x-k", "1");
    assert_eq!(planned(&rules, &with_key), [(StepOp::Charge, 0, 1, false)]);
}

#[test]
fn only_the_count_is_a_match_of_count() {
    let rules = set([of_requests()]);
    let events = |ask: Ask| {
        let plan = ask.facts(|facts| rules.plan(facts));
        let decision = rules.decide(&plan, &[within()].into_iter().collect());
        let events = decision.events.iter().map(|event| event.event);
        events.collect::<Vec<_>>()
    };
    assert_eq!(events(Ask::post("/b")), [RuleEventKind::Counted]);
    assert_eq!(events(Ask::get("/b?all")), []);
    assert_eq!(events(Ask::get("/a?all")), [RuleEventKind::Matched]);
}

fn within() -> super::super::StepResult {
    super::super::StepResult::without_counter(0, super::super::KeyStatus::Within)
}
