//! A shadow response carries the quota headers that the origin server's response would carry.

use std::time::Duration;

use super::super::{KeyStatus, Plan, PlanResult, Rule, RuleCost, RuleSet};
use super::deciding::{banned, found_for, over, quota, within};
use super::{Ask, NOW, answered, rule, same, separate, set};
use crate::clock::Timestamp;
use crate::decision::{Action, Decision, QuotaStatus, RuleEventKind, RuleIndex, Verdict};
use crate::limit::slices::SubWindows;
use crate::limit::sliding_log::UnitLog;
use crate::limit::{Algorithm, CounterReading, Limiter, State};

#[test]
fn rules_behind_a_shadow_are_peeked_if_they_send_quota_headers() {
    let mut silent = rule();
    silent.headers = super::super::HeaderStyle::None;
    let rules = set([rule(), shadow(), rule(), silent, with(Action::Log)]);
    let looked = |ask: &Ask| -> Vec<bool> {
        let steps = plan(&rules, ask).steps;
        steps.iter().map(|step| step.peek_after_end).collect()
    };
    assert_eq!(looked(&Ask::post("/a")), [true, false, true, true, false]);
    // The rule counts the request without mitigating it, and still sends quota headers.
    assert_eq!(looked(&Ask::post("/b")), [false, false, true, false, false]);
    let mut dry = shadow();
    dry.dry_run = true;
    let steps = plan(&set([dry, rule()]), &Ask::post("/b")).steps;
    assert!(steps.iter().all(|step| !step.peek_after_end));
}

#[test]
fn a_diverted_response_has_the_quotas_of_a_shadow_response() {
    let late = || Rule {
        scope: separate("http.response.code eq 200"),
        ..rule()
    };
    let told = |action, status| {
        let rules = set([rule(), with(action), rule(), late()]);
        let found = [within(3, 0), over(Some(1)), within(5, 0), within(2, 0)];
        let mut decision = decide(&rules, &Ask::post("/a"), &found);
        Ask::post("/a").facts(|facts| {
            answered(facts, status, |answered| {
                rules.add_shadow_quotas(&mut decision, answered)
            });
        });
        decision.quotas
    };
    for status in [200, 500] {
        assert_eq!(told(Action::Divert, status), told(Action::Shadow, status));
    }
    assert_eq!(told(Action::Divert, 200).len(), 3);
}

#[test]
fn shadow_quotas_show_what_a_charge_would_have_left() {
    let mut dear = rule();
    dear.cost = RuleCost::Fixed(2);
    let rules = set([shadow(), rule(), dear]);
    let found = [over(Some(5_000)), within(5, 0), within(4, 30_000)];
    let decision = decide(&rules, &Ask::post("/a"), &found);
    assert_eq!(*decision.quotas, [quota(1, 4, 120), quota(2, 2, 120)]);
    let marked = decision.events.iter().all(|mark| mark.rule == RuleIndex(0));
    assert!(marked, "{:?}", decision.events);
}

#[test]
fn shadow_quotas_show_refusals_and_bans_that_would_have_happened() {
    let mut bans = rule();
    bans.ban = Duration::from_secs(600).into();
    let rules = set([shadow(), rule(), rule(), bans]);
    let found = [
        over(Some(1)),
        over(Some(7_000)),
        banned(9_000, false),
        over(Some(7_000)),
    ];
    let decision = decide(&rules, &Ask::post("/a"), &found);
    assert_eq!(decision.verdict, Verdict::Shadow { rule: RuleIndex(0) });
    assert_eq!(
        *decision.quotas,
        [quota(1, 0, 7), quota(2, 0, 9), quota(3, 0, 600)]
    );
}

#[test]
fn shadow_quotas_are_the_same_as_real_ones_for_every_algorithm() {
    for algorithm in [
        Algorithm::SlidingWindow,
        Algorithm::FixedWindow,
        Algorithm::TokenBucket,
        Algorithm::LeakyBucket,
        Algorithm::Gcra,
        Algorithm::Concurrency,
    ] {
        let limiter = limiter(algorithm);
        let mut state = State::default();
        shows_alike(limiter, |now| {
            let looked = limiter.peek(&state, now, 1);
            (looked, limiter.admit(&mut state, now, 1))
        });
    }
    // Three take ten seconds, each no whole number of nanoseconds.
    let thirds = Limiter::new(Algorithm::Gcra, 3, Duration::from_secs(10));
    let mut state = State::default();
    shows_alike(thirds, |_| {
        let looked = thirds.peek(&state, NOW, 1);
        (looked, thirds.admit(&mut state, NOW, 1))
    });
    let sliced = Limiter {
        slices: 7,
        ..limiter(Algorithm::SlidingWindow)
    };
    let mut slices = SubWindows::new(&sliced);
    shows_alike(sliced, |now| {
        let looked = slices.peek(&sliced, now, 1);
        (looked, slices.admit(&sliced, now, 1))
    });
    let logged = limiter(Algorithm::SlidingLog);
    let mut log = UnitLog::default();
    shows_alike(logged, |now| {
        let looked = log.peek(&logged, now, 1);
        (looked, log.admit(&logged, now, 1))
    });
}

/// Compares the quota headers after a shadow response with those without one. `count` peeks, and
/// then charges.
fn shows_alike(
    limiter: Limiter,
    mut count: impl FnMut(Timestamp) -> (CounterReading, CounterReading),
) {
    for second in [0, 3, 14] {
        let now = NOW.plus(Duration::from_secs(second));
        let (looked, charged) = count(now);
        assert!(charged.fits);
        let told = |shadowed: bool, reading: CounterReading| {
            let mut rule = rule();
            rule.limiter = Some(limiter);
            let first = if shadowed {
                over(Some(1))
            } else {
                within(1, 1)
            };
            let rules = set([shadow(), rule]);
            let plan = plan(&rules, &Ask::post("/a"));
            let found = [first, (KeyStatus::Within, Some(reading))];
            let result = PlanResult {
                at: now,
                ..found_for(&found).collect()
            };
            rules.decide(&plan, &result).quotas
        };
        assert_eq!(told(true, looked), told(false, charged), "{limiter:?}");
    }
}

fn limiter(algorithm: Algorithm) -> Limiter {
    Limiter {
        queue: 5,
        ..Limiter::new(algorithm, 6, Duration::from_secs(60))
    }
}

#[test]
fn a_shadow_deny_rule_keeps_quotas_and_extends_no_wait() {
    let mut deny = shadow();
    deny.limiter = None;
    deny.scope = same(r#"http.request.uri.path eq "/a""#);
    let rules = set([rule(), deny, rule()]);
    let found = [within(1, 2_000), (KeyStatus::Over, None), over(Some(9_000))];
    let shadowed = decide(&rules, &Ask::post("/a"), &found);
    assert_eq!(*shadowed.quotas, [quota(0, 1, 2), quota(2, 0, 9)]);
    // Who waits for the first meets the shadow, and never the third.
    let found = [
        over(Some(3_000)),
        (KeyStatus::Over, None),
        over(Some(9_000)),
    ];
    let looked = found_for(&found).filter(|step_result| step_result.step != 1);
    let plan = plan(&rules, &Ask::post("/a"));
    let blocked = rules.decide(&plan, &looked.collect());
    let expected = Verdict::Block {
        rule: RuleIndex(0),
        retry_after: Some(3),
    };
    assert_eq!(blocked.verdict, expected);
    assert_eq!(*blocked.quotas, [quota(0, 0, 3)]);
}

#[test]
fn rules_that_count_responses_have_quotas_if_they_would_count_the_shadow_response() {
    let mut late = rule();
    late.scope = separate("http.response.code eq 200");
    let rules = set([shadow(), late]);
    let told = |status| -> (Vec<QuotaStatus>, usize) {
        let ask = Ask::post("/a");
        let found = [over(Some(1)), within(3, 60_000)];
        let mut decision = decide(&rules, &ask, &found);
        assert!(decision.quotas.is_empty());
        let marks = decision.events.len();
        ask.facts(|facts| {
            answered(facts, status, |facts| {
                rules.add_shadow_quotas(&mut decision, facts)
            })
        });
        (decision.quotas.to_vec(), decision.events.len() - marks)
    };
    assert_eq!(told(200), (vec![quota(1, 2, 120)], 0));
    assert_eq!(told(401), (vec![], 0));
}

#[test]
fn only_shadow_responses_include_quotas_of_later_rules() {
    for action in [Action::Block, Action::Close, Action::Tarpit] {
        let rules = set([shadow(), with(action), rule()]);
        let found = [within(1, 1), over(Some(5_000)), within(3, 1_000)];
        let decision = decide(&rules, &Ask::post("/a"), &found);
        assert!(
            decision
                .quotas
                .iter()
                .all(|quota| quota.rule < RuleIndex(2))
        );
        assert!(
            !decision
                .events
                .iter()
                .any(|mark| mark.event == RuleEventKind::Counted && mark.rule.0 == 2)
        );
    }
}

fn shadow() -> Rule {
    with(Action::Shadow)
}

fn with(action: Action) -> Rule {
    Rule { action, ..rule() }
}

fn plan(rules: &RuleSet, ask: &Ask) -> Plan {
    ask.facts(|facts| rules.plan(facts))
}

fn decide(rules: &RuleSet, ask: &Ask, found: &[(KeyStatus, Option<CounterReading>)]) -> Decision {
    let plan = plan(rules, ask);
    assert_eq!(plan.steps.len(), found.len());
    rules.decide(&plan, &found_for(found).collect())
}
