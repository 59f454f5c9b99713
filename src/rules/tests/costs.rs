//! The cost of a request, and the phase in which it is known.

use http::{HeaderMap, HeaderName};

use super::super::{HeaderStyle, Plan, RuleCost, RuleSet, StepOp};
use super::{Ask, answered_with, rule, same, separate, set, with_env};
use crate::expr::scalar;

#[test]
fn a_cost_is_a_number_or_the_result_of_an_expression() {
    let json = r#"lookup_json_integer(http.request.headers["x-json"][0], "a")"#;
    let cases = [
        (RuleCost::Fixed(4), "", 4),
        (RuleCost::Fixed(0), "", 0),
        (computed("len(http.request.uri.path)"), "", 2),
        (computed(json), r#"{"a":7}"#, 7),
        (computed(json), r#"{"a":0}"#, 0),
        // A missing or negative number.
        (computed(json), "{}", 1),
        (computed(json), r#"{"a":-3}"#, 1),
    ];
    for (cost, text, expected) in cases {
        let mut rule = rule();
        rule.cost = cost;
        let plan = plan(&set([rule]), &Ask::post("/a").header("x-json", text));
        assert_eq!(steps(&plan), [(StepOp::Admit, expected)], "{text:?}");
    }
}

#[test]
fn a_peek_asks_for_one_unit() {
    let mut dear = rule();
    dear.cost = RuleCost::Fixed(4);
    let rules = set([dear]);
    assert_eq!(steps(&plan(&rules, &Ask::get("/a"))), [(StepOp::Peek, 1)]);
    assert_eq!(
        steps(&plan(&rules, &Ask::post("/b"))),
        [(StepOp::Charge, 4)]
    );
}

#[test]
fn a_response_cost_is_charged_in_the_response_phase() {
    for cost in [computed("http.response.code"), header()] {
        let mut rule = rule();
        assert!(!rule.counts_response());
        rule.cost = cost;
        rule.scope = same(r#"http.request.method eq "POST""#);
        assert!(rule.counts_response());
        let rules = set([rule]);
        assert!(rules.counts_responses());
        // The rule acts while one more unit would not fit.
        assert_eq!(steps(&plan(&rules, &Ask::post("/a"))), [(StepOp::Peek, 1)]);
        assert_eq!(steps(&plan(&rules, &Ask::get("/a"))), []);
        let charged = settled(&rules, &Ask::post("/a"), Some("12"));
        assert_eq!(charged.len(), 1);
        assert_eq!(settled(&rules, &Ask::get("/a"), Some("12")), []);
    }
}

#[test]
fn a_request_that_cannot_match_count_is_decided_before_the_response() {
    let mut late = rule();
    late.cost = header();
    late.ban = std::time::Duration::from_secs(60).into();
    let mut silent = rule();
    silent.cost = header();
    silent.headers = HeaderStyle::None;
    let rules = set([late, silent]);
    let ops = |ask: &Ask| steps(&plan(&rules, ask));
    assert_eq!(
        ops(&Ask::post("/a")),
        [(StepOp::Peek, 1), (StepOp::Peek, 1)]
    );
    assert_eq!(
        ops(&Ask::get("/a")),
        [(StepOp::CheckBan, 1), (StepOp::Peek, 1)]
    );
    // The first rule sends the quota as of the request.
    assert_eq!(ops(&Ask::post("/b")), [(StepOp::Peek, 1)]);
    assert_eq!(ops(&Ask::get("/b")), []);
}

#[test]
fn a_cost_header_that_is_not_a_whole_number_charges_nothing() {
    let mut late = rule();
    late.cost = header();
    let rules = set([late]);
    let costs = |value| settled(&rules, &Ask::post("/b"), value);
    for (value, cost) in [
        ("5", 5),
        (" 17\t", 17),
        ("0", 0),
        ("007", 7),
        ("99999999999999999999999", u64::MAX),
    ] {
        assert_eq!(costs(Some(value)), [(StepOp::Charge, cost)], "{value}");
    }
    for value in ["", "-5", "+5", "5.0", "5 units", "0x5", "many"] {
        assert_eq!(costs(Some(value)), [], "{value}");
    }
    assert_eq!(costs(None), []);
}

#[test]
fn a_cost_is_evaluated_again_with_the_response() {
    let mut late = rule();
    late.scope = separate("http.response.code eq 401");
    late.cost = computed("http.response.code");
    let rules = set([late]);
    let charged = settled(&rules, &Ask::post("/b"), None);
    assert_eq!(charged, [(StepOp::Charge, 401)]);
}

fn computed(text: &str) -> RuleCost {
    RuleCost::Computed(with_env(|env| scalar(text, env).unwrap()))
}

fn header() -> RuleCost {
    RuleCost::Header(HeaderName::from_static("x-cost"))
}

fn plan(rules: &RuleSet, ask: &Ask) -> Plan {
    ask.facts(|facts| rules.plan(facts))
}

/// The charges for a response with status 401 and this `x-cost`.
fn settled(rules: &RuleSet, ask: &Ask, cost: Option<&str>) -> Vec<(StepOp, u64)> {
    let mut headers = HeaderMap::new();
    if let Some(cost) = cost {
        headers.insert("x-cost", cost.parse().unwrap());
    }
    let settle = |facts: &dyn crate::expr::FieldFacts| rules.settle(facts, None);
    steps(&ask.facts(|facts| answered_with(facts, 401, &headers, settle)))
}

fn steps(plan: &Plan) -> Vec<(StepOp, u64)> {
    plan.steps.iter().map(|s| (s.op, s.cost)).collect()
}
