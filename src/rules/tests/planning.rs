//! Which counters a request touches, and how.

use std::time::Duration;

use super::super::{HeaderStyle, MissingPart, Plan, Rule, RuleSet, StepOp};
use super::{Ask, answered, key, rule, same, separate, set};
use crate::decision::{Action, RuleIndex};

const RESPONSE: &str = "http.response.code eq 401";

#[test]
fn count_and_mitigate_determine_the_operation() {
    let (zero, ban) = (Duration::ZERO, Duration::from_secs(60));
    let both = Ask::post("/a");
    let counted = Ask::post("/b");
    let stopped = Ask::get("/a");
    let neither = Ask::get("/b");
    let cases = [
        (&both, zero, Some((StepOp::Admit, true))),
        (&both, ban, Some((StepOp::Admit, true))),
        (&counted, zero, Some((StepOp::Charge, false))),
        (&counted, ban, Some((StepOp::Charge, false))),
        (&stopped, zero, Some((StepOp::Peek, true))),
        (&stopped, ban, Some((StepOp::CheckBan, true))),
        (&neither, zero, None),
        (&neither, ban, None),
    ];
    for (ask, ban, expected) in cases {
        let mut rule = rule();
        rule.ban = ban.into();
        let plan = plan(&set([rule]), ask);
        assert_eq!(ops(&plan), Vec::from_iter(expected), "{} {ban:?}", ask.path);
    }
}

#[test]
fn a_rule_that_counts_responses_peeks_in_the_request_phase() {
    let (zero, ban) = (Duration::ZERO, Duration::from_secs(60));
    let cases = [
        // A rule with quota headers peeks, to show the quota as of the request.
        (
            "/a",
            zero,
            HeaderStyle::Standard,
            Some((StepOp::Peek, true)),
        ),
        ("/a", ban, HeaderStyle::Standard, Some((StepOp::Peek, true))),
        (
            "/b",
            ban,
            HeaderStyle::Standard,
            Some((StepOp::Peek, false)),
        ),
        ("/a", zero, HeaderStyle::None, Some((StepOp::Peek, true))),
        ("/a", ban, HeaderStyle::None, Some((StepOp::CheckBan, true))),
        ("/b", ban, HeaderStyle::None, None),
        ("/b", zero, HeaderStyle::None, None),
    ];
    for (path, ban, headers, expected) in cases {
        let mut rule = rule();
        rule.scope = separate(RESPONSE);
        rule.ban = ban.into();
        rule.headers = headers;
        let plan = plan(&set([rule]), &Ask::get(path));
        assert_eq!(ops(&plan), Vec::from_iter(expected), "{path} {ban:?}");
    }
}

#[test]
fn the_response_is_awaited_if_a_rule_may_count_it() {
    let mut late = rule();
    late.scope = separate(r#"http.request.uri.path eq "/login" and http.response.code eq 401"#);
    let rules = set([rule(), late, rule()]);
    let may = |path: &str, before: Option<u16>| {
        let ask = Ask::post(path);
        ask.facts(|facts| rules.may_count_response(facts, before.map(RuleIndex)))
    };
    assert!(may("/login", None));
    assert!(may("/login", Some(2)));
    assert!(!may("/login", Some(1)));
    assert!(!may("/logout", None));
    let any = |scope: &str| {
        let mut late = rule();
        late.scope = separate(scope);
        let rules = set([late]);
        Ask::post("/x").facts(|facts| rules.may_count_response(facts, None))
    };
    assert!(any(RESPONSE));
    assert!(any("not http.response.code eq 200"));
    assert!(!any(r#"http.request.method eq "POST""#));
}

#[test]
fn a_deny_rule_needs_no_key_and_ends_the_plan() {
    for (action, dry_run, steps) in [
        (Action::Block, false, 1),
        (Action::Allow, false, 1),
        (Action::Close, false, 1),
        // After a shadow response, later rules are peeked at for their quota headers.
        (Action::Shadow, false, 2),
        (Action::Log, false, 2),
        (Action::Block, true, 2),
    ] {
        let mut deny = rule();
        deny.limiter = None;
        deny.scope = same(r#"http.request.uri.path eq "/a""#);
        deny.key = key(&["tls.ja3"], MissingPart::Skip);
        deny.action = action;
        deny.dry_run = dry_run;
        let rules = set([deny, rule()]);
        let reached = plan(&rules, &Ask::post("/a"));
        assert_eq!(reached.steps.len(), steps, "{action:?} {dry_run}");
        assert_eq!(ops(&reached)[0], (StepOp::Always, true));
        assert_eq!(plan(&rules, &Ask::post("/b")).steps.len(), 1);
    }
}

#[test]
fn a_skipped_rule_leaves_no_bytes_in_the_key_buffer() {
    let mut skipped = rule();
    skipped.key = key(
        &["ip.src", r#"http.request.headers["x-k"]"#],
        MissingPart::Skip,
    );
    let mut counted = rule();
    counted.key = key(&["http.host"], MissingPart::Group);
    let plan = plan(&set([skipped, counted]), &Ask::post("/a"));
    assert_eq!(plan.steps.len(), 1);
    assert_eq!(plan.steps[0].rule, RuleIndex(1));
    assert_eq!(plan.steps[0].key.start, 0);
    assert_eq!(plan.key(&plan.steps[0]).len(), plan.keys.len());
}

#[test]
fn a_key_shared_by_two_rules_is_written_once() {
    let keys: [&[&str]; 5] = [
        &["ip.src"],
        &["http.host"],
        &["ip.src"],
        &["ip.src", "http.host"],
        &["http.host"],
    ];
    let keyed = |parts| Rule {
        key: key(parts, MissingPart::Group),
        ..rule()
    };
    let plan = plan(&set(keys.map(keyed)), &Ask::post("/a"));
    let [a, b, c, d, e] = [0, 1, 2, 3, 4].map(|at| plan.steps[at].key.clone());
    assert_eq!((&c, &e), (&a, &b));
    assert_eq!(
        (a.end, b.end, d.end as usize),
        (b.start, d.start, plan.keys.len())
    );
}

#[test]
fn only_later_block_rules_that_would_mitigate_are_peeked_after_the_end() {
    let with = |action, dry_run| {
        let mut rule = rule();
        rule.action = action;
        rule.dry_run = dry_run;
        rule
    };
    let rules = set([
        with(Action::Block, false),
        with(Action::Shadow, false),
        with(Action::Log, false),
        with(Action::Allow, false),
        with(Action::Block, true),
    ]);
    let marks = |ask: &Ask| -> Vec<(bool, bool)> {
        let steps = plan(&rules, ask).steps;
        let marks = steps.iter().map(|s| (s.is_terminal, s.peek_after_end));
        marks.collect()
    };
    let expected = [
        (true, true),
        (true, false),
        (false, false),
        (true, false),
        (false, false),
    ];
    assert_eq!(marks(&Ask::post("/a")), expected);
    // Counted, but not stopped: no wait of its own.
    assert!(marks(&Ask::post("/b")).iter().all(|(_, peek)| !peek));
}

#[test]
fn the_response_phase_charges_the_reached_rules_that_read_the_response() {
    let respond = || {
        let mut rule = rule();
        rule.scope = separate(RESPONSE);
        rule
    };
    let mut unlimited = respond();
    unlimited.limiter = None;
    let mut skipped = respond();
    skipped.key = key(&["tls.ja3"], MissingPart::Skip);
    let rules = set([respond(), rule(), unlimited, skipped, respond()]);
    assert!(rules.counts_responses());
    let settled = |status, before| {
        Ask::post("/b").facts(|facts| {
            let before: Option<u16> = before;
            answered(facts, status, |facts| {
                let plan = rules.settle(facts, before.map(RuleIndex));
                assert!(ops(&plan).iter().all(|op| *op == (StepOp::Charge, false)));
                plan.steps.iter().map(|s| s.rule.0).collect::<Vec<_>>()
            })
        })
    };
    assert_eq!(settled(401, None), [0, 4]);
    assert_eq!(settled(401, Some(4)), [0]);
    assert_eq!(settled(401, Some(5)), [0, 4]);
    assert_eq!(settled(401, Some(0)), [0; 0]);
    assert_eq!(settled(200, None), [0; 0]);
}

#[test]
fn rules_that_read_only_requests_do_not_count_responses() {
    assert!(!set([rule()]).counts_responses());
    assert!(!RuleSet::default().counts_responses());
    let mut unlimited = rule();
    unlimited.scope = separate(RESPONSE);
    unlimited.limiter = None;
    assert!(!set([unlimited]).counts_responses());
}

fn plan(rules: &RuleSet, ask: &Ask) -> Plan {
    ask.facts(|facts| rules.plan(facts))
}

fn ops(plan: &Plan) -> Vec<(StepOp, bool)> {
    plan.steps.iter().map(|s| (s.op, s.mitigates)).collect()
}
