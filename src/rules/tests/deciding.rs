//! The decision about a request, for given store results.

use std::time::Duration;

use super::super::{KeyStatus, Plan, Rule, RuleSet, StepResult};
use super::{Ask, NOW, answered, rule, same, separate, set};
use crate::decision::{Action, Decision, QuotaStatus, RuleEventKind, RuleIndex, Verdict};
use crate::limit::{Algorithm, CounterReading, Limiter};

#[test]
fn below_the_limit_a_request_is_forwarded_with_its_quota() {
    let decision = decide(&set([rule()]), &[within(4, 120_000)]);
    assert_eq!(decision.verdict, Verdict::Forward);
    assert_eq!(decision.decided_by, None);
    assert_eq!(*decision.quotas, [quota(0, 4, 120)]);
    assert_eq!(
        events(&decision),
        [(0, RuleEventKind::Counted), (0, RuleEventKind::Matched)]
    );
}

#[test]
fn above_the_limit_a_request_is_refused_with_a_wait_rounded_up_to_seconds() {
    for (millis, seconds) in [(0, 1), (1, 1), (1_000, 1), (1_001, 2), (42_000, 42)] {
        let decision = decide(&set([rule()]), &[over(Some(millis))]);
        let expected = Verdict::Block {
            rule: RuleIndex(0),
            retry_after: Some(seconds),
        };
        assert_eq!(decision.verdict, expected, "{millis} ms");
        assert_eq!(*decision.quotas, [quota(0, 0, seconds)]);
        assert_eq!(credited(&decision), Some((RuleIndex(0), "block")));
        assert_eq!(
            events(&decision).last(),
            Some(&(0, RuleEventKind::Mitigated))
        );
    }
}

#[test]
fn the_wait_of_a_ban_lasts_until_its_end() {
    for started in [true, false] {
        let decision = decide(&set([rule()]), &[banned(599_001, started)]);
        let expected = Verdict::Block {
            rule: RuleIndex(0),
            retry_after: Some(600),
        };
        assert_eq!(decision.verdict, expected);
        assert_eq!(*decision.quotas, [quota(0, 0, 600)]);
    }
}

#[test]
fn the_longest_wait_is_used_and_none_if_no_wait_helps() {
    let three = || set([rule(), rule(), rule()]);
    let waits =
        |result: &[(KeyStatus, Option<CounterReading>)]| match decide(&three(), result).verdict {
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
fn only_blocking_rules_filled_by_this_request_are_peeked_again() {
    let rules = set([rule(), with(Action::Log, false), rule(), rule()]);
    let plan = Ask::post("/a").facts(|facts| rules.plan(facts));
    let filled = |found: &[(KeyStatus, Option<CounterReading>)]| -> Vec<bool> {
        let steps = plan.steps.iter().zip(found_for(found));
        steps
            .map(|(step, result)| step.is_filled_up(&result))
            .collect()
    };
    let last = over(Some(5_000));
    let found = [within(0, 1), within(0, 1), within(1, 1), last];
    assert_eq!(filled(&found), [true, false, false, false]);
    assert_eq!(
        filled(&[within(1, 1), within(0, 1), last, last]),
        [false; 4]
    );
}

#[test]
fn a_rule_that_this_request_filled_up_extends_the_wait_but_never_shortens_it() {
    let rules = set([rule(), rule()]);
    for (millis, seconds) in [(3_000, 5), (9_000, 9)] {
        let plan = Ask::post("/a").facts(|facts| rules.plan(facts));
        let (first, again) = ([within(0, 60_000), over(Some(5_000))], [over(Some(millis))]);
        let results = found_for(&first).chain(found_for(&again));
        let decision = rules.decide(&plan, &results.collect());
        // A refusal shows the wait of each.
        assert_eq!(
            *decision.quotas,
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
fn rules_after_the_deciding_one_add_neither_quotas_nor_events() {
    let decision = decide(
        &set([rule(), rule()]),
        &[over(Some(5_000)), over(Some(9_000))],
    );
    assert_eq!(*decision.quotas, [quota(0, 0, 5)]);
    assert!(decision.events.iter().all(|mark| mark.rule == RuleIndex(0)));
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
    // The quota of a forwarded request: one unit less, and full again a whole window later.
    assert_eq!(*shadow.quotas, [quota(1, 2, 120)]);
    assert!(shadow.events.iter().all(|mark| mark.rule == first));
    let log = act(Action::Log);
    assert_eq!(log.verdict, Verdict::Forward);
    assert_eq!(credited(&log), Some((first, "log")));
    assert_eq!(*log.quotas, [quota(1, 3, 60)]);
    assert_eq!(log.settle_before, None);
    let allow = act(Action::Allow);
    assert_eq!(allow.verdict, Verdict::Forward);
    assert_eq!(credited(&allow), Some((first, "allow")));
    assert_eq!(allow.settle_before, Some(second));
    assert!(allow.quotas.is_empty());
}

#[test]
fn a_refusing_rule_is_logged_in_preference_to_a_log_rule() {
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
fn a_dry_run_only_records_an_event() {
    for action in [Action::Block, Action::Shadow, Action::Log, Action::Allow] {
        let rules = set([with(action, true), rule()]);
        let decision = decide(&rules, &[over(Some(5_000)), over(Some(9_000))]);
        let verdict = Verdict::Block {
            rule: RuleIndex(1),
            retry_after: Some(9),
        };
        assert_eq!(decision.verdict, verdict);
        assert_eq!(*decision.quotas, [quota(1, 0, 9)]);
        assert!(events(&decision).contains(&(0, RuleEventKind::WouldMitigate)));
        assert!(!events(&decision).contains(&(0, RuleEventKind::Mitigated)));
        let alone = decide(&set([with(action, true)]), &[over(Some(5_000))]);
        let name = credited(&alone).map(|(_, name)| name.to_owned());
        assert_eq!(name, Some(format!("would_{}", action.name())));
    }
}

#[test]
fn a_deny_rule_refuses_without_a_wait_or_a_quota() {
    let mut deny = rule();
    deny.limiter = None;
    deny.scope = same(r#"http.request.uri.path eq "/a""#);
    let decision = decide(&set([deny]), &[(KeyStatus::Over, None)]);
    let verdict = Verdict::Block {
        rule: RuleIndex(0),
        retry_after: None,
    };
    assert_eq!(decision.verdict, verdict);
    assert!(decision.quotas.is_empty());
}

#[test]
fn the_remaining_quota_never_exceeds_the_limit() {
    let minute = Duration::from_secs(60);
    let limiter = |burst| Limiter {
        burst,
        ..Limiter::new(Algorithm::TokenBucket, 5, minute)
    };
    let told = |limiter, found| {
        let mut rule = rule();
        rule.limiter = Some(limiter);
        decide(&set([rule]), &[found]).quotas.to_vec()
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
    let (status, reading) = over(None);
    let reading = reading.map(|reading| reading.leaving(4, Duration::from_secs(30)));
    let decision = decide(&set([rule()]), &[(status, reading)]);
    let verdict = Verdict::Block {
        rule: RuleIndex(0),
        retry_after: None,
    };
    assert_eq!(decision.verdict, verdict);
    // What is left is left for less.
    assert_eq!(*decision.quotas, [quota(0, 4, 30)]);
}

#[test]
fn the_quota_of_a_rule_that_counts_the_response_includes_this_response() {
    let mut late = rule();
    late.scope = separate("http.response.code eq 401");
    let rules = set([late, rule()]);
    let told = |status| {
        let ask = Ask::post("/b");
        let mut decision = decide_for(&rules, &ask, &[within(3, 60_000), within(2, 30_000)]);
        assert_eq!(*decision.quotas, [quota(1, 2, 30)]);
        ask.facts(|facts| {
            answered(facts, status, |facts| {
                let settled = rules.settle(facts, None);
                rules.add_response_phase(&mut decision, &settled);
            });
        });
        decision
    };
    let counted = told(401);
    assert_eq!(*counted.quotas, [quota(0, 2, 120), quota(1, 2, 30)]);
    assert!(events(&counted).contains(&(0, RuleEventKind::Counted)));
    assert_eq!(*told(200).quotas, [quota(1, 2, 30)]);
}

#[test]
fn results_without_a_step_are_ignored() {
    let rules = set([rule()]);
    let step_result = StepResult {
        step: 9,
        status: KeyStatus::Over,
        reading: None,
        charged: false,
    };
    let result = [step_result].into_iter().collect();
    let decision = rules.decide(&Plan::default(), &result);
    let at = NOW;
    assert_eq!(
        decision,
        Decision {
            at,
            ..Decision::default()
        }
    );
}

fn credited(decision: &Decision) -> Option<(RuleIndex, &'static str)> {
    decision
        .decided_by
        .map(|credit| (credit.rule, credit.name()))
}

fn with(action: Action, dry_run: bool) -> Rule {
    let mut rule = rule();
    rule.action = action;
    rule.dry_run = dry_run;
    rule
}

/// Decides on a request that every rule counts and stops.
fn decide(rules: &RuleSet, found: &[(KeyStatus, Option<CounterReading>)]) -> Decision {
    decide_for(rules, &Ask::post("/a"), found)
}

fn decide_for(
    rules: &RuleSet,
    ask: &Ask,
    found: &[(KeyStatus, Option<CounterReading>)],
) -> Decision {
    let plan = ask.facts(|facts| rules.plan(facts));
    assert_eq!(plan.steps.len(), found.len());
    rules.decide(&plan, &found_for(found).collect())
}

pub(super) fn found_for(
    found: &[(KeyStatus, Option<CounterReading>)],
) -> impl Iterator<Item = StepResult> {
    (0..)
        .zip(found)
        .map(|(step, (status, reading))| StepResult {
            step,
            status: *status,
            reading: *reading,
            charged: *status == KeyStatus::Within,
        })
}

pub(super) fn within(remaining: u64, reset: u64) -> (KeyStatus, Option<CounterReading>) {
    let reading = CounterReading::fitting(remaining, Duration::from_millis(reset));
    (KeyStatus::Within, Some(reading))
}

pub(super) fn over(retry: Option<u64>) -> (KeyStatus, Option<CounterReading>) {
    let reading = CounterReading::refusing(
        0,
        Duration::from_secs(999),
        retry.map(Duration::from_millis),
    );
    (KeyStatus::Over, Some(reading))
}

pub(super) fn banned(millis: u64, started: bool) -> (KeyStatus, Option<CounterReading>) {
    let until = NOW.plus(Duration::from_millis(millis));
    (KeyStatus::Banned { until, started }, None)
}

pub(super) fn quota(rule: u16, remaining: u64, reset: u64) -> QuotaStatus {
    QuotaStatus {
        rule: RuleIndex(rule),
        remaining,
        reset,
    }
}

pub(super) fn events(decision: &Decision) -> Vec<(u16, RuleEventKind)> {
    let marks = decision.events.iter();
    marks.map(|mark| (mark.rule.0, mark.event)).collect()
}
