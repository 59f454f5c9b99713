//! What becomes of a request, from what a store found.

use std::time::Duration;

use super::super::{Finding, Findings, Op, Plan, Rule, RuleSet, Standing};
use super::{Ask, NOW, answered, rule, same, separate, set};
use crate::decision::{Action, Decision, Event, Quota, RuleIndex, Verdict};
use crate::limit::{Algorithm, Limiter, Reading};

#[test]
fn below_the_limit_a_request_is_forwarded_and_told() {
    let decision = decide(&set([rule()]), &[within(4, 120_000)]);
    assert_eq!(decision.verdict, Verdict::Forward);
    assert_eq!(decision.credit, None);
    assert_eq!(decision.quotas, [quota(0, 4, 120)]);
    assert_eq!(
        events(&decision),
        [(0, Event::Counted), (0, Event::Matched)]
    );
}

#[test]
fn over_the_limit_it_is_refused_with_a_wait_in_whole_seconds_rounded_up() {
    for (millis, seconds) in [(0, 1), (1, 1), (1_000, 1), (1_001, 2), (42_000, 42)] {
        let decision = decide(&set([rule()]), &[over(Some(millis))]);
        let expected = Verdict::Block {
            rule: RuleIndex(0),
            retry_after: Some(seconds),
        };
        assert_eq!(decision.verdict, expected, "{millis} ms");
        assert_eq!(decision.quotas, [quota(0, 0, seconds)]);
        assert_eq!(credited(&decision), Some((RuleIndex(0), "block")));
        assert_eq!(events(&decision).last(), Some(&(0, Event::Mitigated)));
    }
}

#[test]
fn a_ban_is_told_until_its_end() {
    for started in [true, false] {
        let decision = decide(&set([rule()]), &[banned(599_001, started)]);
        let expected = Verdict::Block {
            rule: RuleIndex(0),
            retry_after: Some(600),
        };
        assert_eq!(decision.verdict, expected);
        assert_eq!(decision.quotas, [quota(0, 0, 600)]);
    }
}

#[test]
fn the_longest_wait_counts_and_none_if_no_wait_helps() {
    let three = || set([rule(), rule(), rule()]);
    let waits = |findings: &[(Standing, Option<Reading>)]| match decide(&three(), findings).verdict
    {
        Verdict::Block { rule, retry_after } => (rule.0, retry_after),
        other => panic!("{other:?}"),
    };
    assert_eq!(
        waits(&[over(Some(5_000)), over(Some(9_000)), over(Some(7_000))]),
        (0, Some(9))
    );
    assert_eq!(
        waits(&[over(Some(5_000)), within(0, 99_000), banned(3_000, false)]),
        (0, Some(5))
    );
    assert_eq!(
        waits(&[within(1, 1_000), over(Some(5_000)), banned(60_000, false)]),
        (1, Some(60))
    );
    assert_eq!(
        waits(&[over(Some(5_000)), over(None), over(Some(9_000))]),
        (0, None)
    );
    assert_eq!(
        waits(&[over(None), over(Some(9_000)), within(1, 1)]),
        (0, None)
    );
}

#[test]
fn rules_that_this_request_has_filled_are_looked_at_again() {
    let rules = set([rule(), with(Action::Log, false), rule(), rule()]);
    let again = |last: (Standing, Option<Reading>), first: u64| {
        let plan = Ask::post("/a").facts(|facts| rules.plan(facts));
        let found = [within(first, 1), within(0, 1), within(1, 1), last];
        let findings: Findings = found_for(&found).collect();
        let decision = rules.decide(&plan, &findings, NOW);
        rules.look_again(&plan, &findings, &decision)
    };
    // Only the first is full and blocks; nothing after the pass's end is ever charged.
    let full = again(over(Some(5_000)), 0).unwrap();
    let steps: Vec<(Op, u16)> = full.steps.iter().map(|s| (s.op, s.rule.0)).collect();
    assert_eq!(steps, [(Op::Always, 0), (Op::Admit, 0)]);
    assert!(full.steps[0].acts && full.steps[0].ends_pass && full.steps[1].peek_after_end);
    assert!(again(over(Some(5_000)), 1).is_none());
    assert!(again(within(0, 1), 0).is_none());
}

#[test]
fn a_second_look_lengthens_the_wait_but_never_shortens_it() {
    let rules = set([rule(), rule()]);
    for (millis, seconds) in [(3_000, 5), (9_000, 9)] {
        let plan = Ask::post("/a").facts(|facts| rules.plan(facts));
        let first: Findings = found_for(&[within(0, 60_000), over(Some(5_000))]).collect();
        let mut decision = rules.decide(&plan, &first, NOW);
        let full = rules.look_again(&plan, &first, &decision).unwrap();
        let found: Findings = found_for(&[(Standing::Over, None), over(Some(millis))]).collect();
        rules.lengthen(&mut decision, &full, &found, NOW);
        // On a refusal what is told of each is its wait.
        assert_eq!(
            decision.quotas,
            [quota(0, 0, millis / 1_000), quota(1, 0, 5)]
        );
        let expected = Verdict::Block {
            rule: RuleIndex(1),
            retry_after: Some(seconds),
        };
        assert_eq!(decision.verdict, expected);
    }
}

#[test]
fn later_rules_are_neither_told_nor_marked() {
    let decision = decide(
        &set([rule(), rule()]),
        &[over(Some(5_000)), over(Some(9_000))],
    );
    assert_eq!(decision.quotas, [quota(0, 0, 5)]);
    assert!(decision.marks.iter().all(|mark| mark.rule == RuleIndex(0)));
}

#[test]
fn each_action_has_its_verdict() {
    let act = |action| {
        let rules = set([with(action, false), rule()]);
        decide(&rules, &[over(Some(5_000)), within(3, 60_000)])
    };
    let (first, second) = (RuleIndex(0), RuleIndex(1));
    let shadow = act(Action::Shadow);
    assert_eq!(shadow.verdict, Verdict::Shadow { rule: first });
    // What a forwarded one would be told: one less, and full again a whole window later.
    assert_eq!(shadow.quotas, [quota(1, 2, 120)]);
    assert!(shadow.marks.iter().all(|mark| mark.rule == first));
    let log = act(Action::Log);
    assert_eq!(log.verdict, Verdict::Forward);
    assert_eq!(credited(&log), Some((first, "log")));
    assert_eq!(log.quotas, [quota(1, 3, 60)]);
    assert_eq!(log.settle_before, None);
    let allow = act(Action::Allow);
    assert_eq!(allow.verdict, Verdict::Forward);
    assert_eq!(credited(&allow), Some((first, "allow")));
    assert_eq!(allow.settle_before, Some(second));
    assert_eq!(allow.quotas, []);
}

#[test]
fn the_log_names_the_rule_that_stopped_before_one_that_only_recorded() {
    let rules = set([with(Action::Log, false), with(Action::Log, false), rule()]);
    let recorded = decide(
        &rules,
        &[over(Some(1_000)), over(Some(1_000)), within(3, 1_000)],
    );
    assert_eq!(credited(&recorded), Some((RuleIndex(0), "log")));
    let stopped = decide(
        &rules,
        &[over(Some(1_000)), over(Some(1_000)), over(Some(1_000))],
    );
    assert_eq!(credited(&stopped), Some((RuleIndex(2), "block")));
}

#[test]
fn a_dry_run_only_marks() {
    for action in [Action::Block, Action::Shadow, Action::Log, Action::Allow] {
        let rules = set([with(action, true), rule()]);
        let decision = decide(&rules, &[over(Some(5_000)), over(Some(9_000))]);
        let verdict = Verdict::Block {
            rule: RuleIndex(1),
            retry_after: Some(9),
        };
        assert_eq!(decision.verdict, verdict);
        assert_eq!(decision.quotas, [quota(1, 0, 9)]);
        assert!(events(&decision).contains(&(0, Event::WouldMitigate)));
        assert!(!events(&decision).contains(&(0, Event::Mitigated)));
        let alone = decide(&set([with(action, true)]), &[over(Some(5_000))]);
        let name = credited(&alone).map(|(_, name)| name.to_owned());
        assert_eq!(name, Some(format!("would_{}", action.name())));
    }
}

#[test]
fn a_rule_without_a_limit_refuses_without_a_wait_or_a_quota() {
    let mut deny = rule();
    deny.limiter = None;
    deny.scope = same(r#"http.request.uri.path eq "/a""#);
    let decision = decide(&set([deny]), &[(Standing::Over, None)]);
    let verdict = Verdict::Block {
        rule: RuleIndex(0),
        retry_after: None,
    };
    assert_eq!(decision.verdict, verdict);
    assert_eq!(decision.quotas, []);
}

#[test]
fn a_client_is_told_no_more_than_the_limit_is_left() {
    let minute = Duration::from_secs(60);
    let limiter = |burst| Limiter {
        burst,
        ..Limiter::new(Algorithm::TokenBucket, 5, minute)
    };
    let told = |limiter, found| {
        let mut rule = rule();
        rule.limiter = Some(limiter);
        decide(&set([rule]), &[found]).quotas
    };
    // A burst is more than the limit, a key's own limit may be.
    assert_eq!(told(limiter(20), within(19, 12_000)), [quota(0, 5, 12)]);
    assert_eq!(told(limiter(2), within(1, 12_000)), [quota(0, 1, 12)]);
    let places = Limiter::new(Algorithm::Concurrency, 5, Duration::ZERO);
    let forever = u64::MAX / 2;
    assert_eq!(told(places, within(4, forever)), [quota(0, 4, 1)]);
    assert_eq!(told(places, over(Some(1_000))), [quota(0, 0, 1)]);
}

#[test]
fn a_cost_that_never_fits_is_refused_without_a_wait() {
    let (standing, reading) = over(None);
    let reading = reading.map(|reading| reading.leaving(4, Duration::from_secs(30)));
    let decision = decide(&set([rule()]), &[(standing, reading)]);
    let verdict = Verdict::Block {
        rule: RuleIndex(0),
        retry_after: None,
    };
    assert_eq!(decision.verdict, verdict);
    // What is left is left for less.
    assert_eq!(decision.quotas, [quota(0, 4, 30)]);
}

#[test]
fn a_rule_that_counts_the_response_is_told_as_it_stood_if_it_counted() {
    let mut late = rule();
    late.scope = separate("http.response.code eq 401");
    let rules = set([late, rule()]);
    let told = |status| {
        let ask = Ask::post("/b");
        let mut decision = decide_for(&rules, &ask, &[within(3, 60_000), within(2, 30_000)]);
        assert_eq!(decision.quotas, [quota(1, 2, 30)]);
        ask.facts(|facts| {
            answered(facts, status, |facts| {
                let settled = rules.settle(facts, None);
                rules.settled(&mut decision, &settled);
            });
        });
        decision
    };
    let counted = told(401);
    assert_eq!(counted.quotas, [quota(0, 3, 60), quota(1, 2, 30)]);
    assert!(events(&counted).contains(&(0, Event::Counted)));
    assert_eq!(told(200).quotas, [quota(1, 2, 30)]);
}

#[test]
fn findings_that_fit_no_step_are_left_out() {
    let rules = set([rule()]);
    let finding = Finding {
        step: 9,
        standing: Standing::Over,
        reading: None,
        charged: false,
    };
    let decision = rules.decide(&Plan::default(), &Findings::from_elem(finding, 1), NOW);
    assert_eq!(decision, Decision::default());
}

fn credited(decision: &Decision) -> Option<(RuleIndex, &'static str)> {
    decision.credit.map(|credit| (credit.rule, credit.name()))
}

fn with(action: Action, dry_run: bool) -> Rule {
    let mut rule = rule();
    rule.action = action;
    rule.dry_run = dry_run;
    rule
}

/// Decides on a request that every rule counts and stops.
fn decide(rules: &RuleSet, found: &[(Standing, Option<Reading>)]) -> Decision {
    decide_for(rules, &Ask::post("/a"), found)
}

fn decide_for(rules: &RuleSet, ask: &Ask, found: &[(Standing, Option<Reading>)]) -> Decision {
    let plan = ask.facts(|facts| rules.plan(facts));
    assert_eq!(plan.steps.len(), found.len());
    rules.decide(&plan, &found_for(found).collect(), NOW)
}

pub(super) fn found_for(found: &[(Standing, Option<Reading>)]) -> impl Iterator<Item = Finding> {
    (0..).zip(found).map(|(step, (standing, reading))| Finding {
        step,
        standing: *standing,
        reading: *reading,
        charged: *standing == Standing::Within,
    })
}

pub(super) fn within(remaining: u64, reset: u64) -> (Standing, Option<Reading>) {
    let reading = Reading::fitting(remaining, Duration::from_millis(reset));
    (Standing::Within, Some(reading))
}

pub(super) fn over(retry: Option<u64>) -> (Standing, Option<Reading>) {
    let reading = Reading::refusing(
        0,
        Duration::from_secs(999),
        retry.map(Duration::from_millis),
    );
    (Standing::Over, Some(reading))
}

pub(super) fn banned(millis: u64, started: bool) -> (Standing, Option<Reading>) {
    let until = NOW.plus(Duration::from_millis(millis));
    (Standing::Banned { until, started }, None)
}

pub(super) fn quota(rule: u16, remaining: u64, reset: u64) -> Quota {
    Quota {
        rule: RuleIndex(rule),
        remaining,
        reset,
    }
}

pub(super) fn events(decision: &Decision) -> Vec<(u16, Event)> {
    let marks = decision.marks.iter();
    marks.map(|mark| (mark.rule.0, mark.event)).collect()
}
