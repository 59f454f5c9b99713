//! Requests that are held: for how long, by which rules, and what happens if they cannot be held.

use std::time::Duration;

use super::super::{KeyStatus, Plan, PlanResult, Rule, RuleSet};
use super::deciding::{banned, events, found_for, over, quota, within};
use super::{Ask, rule, same, set};
use crate::decision::{Action, Decision, RuleEventKind, RuleIndex, Verdict};
use crate::limit::{Algorithm, CounterReading, Limiter};

type Found = (KeyStatus, Option<CounterReading>);

#[test]
fn a_delayed_request_is_held_until_its_turn_and_then_forwarded() {
    let cases = [
        (over(Some(1_500)), 1_500),
        (over(Some(9_000)), 5_000),
        (over(None), 5_000),
        (banned(2_000, false), 2_000),
        (banned(600_000, true), 5_000),
        (within(1, 1), 0),
    ];
    for (found, millis) in cases {
        let decision = decide(
            &set([with(Action::Delay), rule()]),
            &[found, within(3, 1_000)],
        );
        assert_eq!(decision.verdict, Verdict::Forward);
        assert_eq!(decision.hold, Duration::from_millis(millis), "{found:?}");
        assert_eq!(decision.queued, None);
        assert_eq!(*decision.quotas, [quota(1, 3, 1)]);
        let acted = (millis > 0).then_some((RuleIndex(0), "delay"));
        assert_eq!(credited(&decision), acted);
    }
}

#[test]
fn the_queue_timeout_of_a_delay_rule_is_its_maximum_hold() {
    let max_hold = |rule: Rule| plan(&set([rule])).steps[0].max_hold;
    let five = Duration::from_secs(5);
    assert_eq!(max_hold(with(Action::Delay)), five);
    assert_eq!(max_hold(dry(Action::Delay)), five);
    assert_eq!(max_hold(with(Action::Tarpit)), Duration::ZERO);
    assert_eq!(max_hold(with(Action::Block)), Duration::ZERO);
    let mut bans = with(Action::Delay);
    bans.ban = Duration::from_secs(60).into();
    assert_eq!(max_hold(bans), Duration::ZERO);
}

#[test]
fn a_tarpit_holds_and_its_wait_begins_after_the_hold() {
    for (found, seconds) in [
        (over(Some(42_000)), Some(37)),
        (over(Some(7_001)), Some(3)),
        (over(Some(5_000)), Some(1)),
        (over(Some(10)), Some(1)),
        (over(None), None),
        (banned(60_000, true), Some(55)),
    ] {
        let decision = decide(&set([with(Action::Tarpit)]), &[found]);
        assert_eq!(decision.verdict, block(0, seconds), "{found:?}");
        assert_eq!(decision.hold, Duration::from_secs(5));
        assert_eq!(credited(&decision), Some((RuleIndex(0), "tarpit")));
        assert!(decision.quotas.is_empty());
    }
}

#[test]
fn the_wait_of_a_tarpit_is_the_longest_of_all_rules() {
    let rules = set([with(Action::Tarpit), rule(), with(Action::Tarpit)]);
    let plan = plan(&rules);
    assert!(plan.steps.iter().all(|step| step.peek_after_end));
    let found = [over(Some(6_000)), over(Some(9_500)), within(1, 1)];
    assert_eq!(decide(&rules, &found).verdict, block(0, Some(5)));
    let found = [over(Some(6_000)), within(1, 1), banned(60_000, false)];
    let mut decision = decide(&rules, &found);
    assert_eq!(decision.verdict, block(0, Some(55)));
    rules.cannot_hold(&mut decision);
    assert_eq!(decision.verdict, block(0, Some(60)));
    let blocked = decide(
        &set([rule(), with(Action::Tarpit)]),
        &[over(Some(1)), over(Some(9_000))],
    );
    assert_eq!(blocked.verdict, block(0, Some(9)));
    assert_eq!(blocked.hold, Duration::ZERO);
}

#[test]
fn a_tarpit_extends_its_wait_to_rules_filled_before_it() {
    let rules = set([rule(), with(Action::Tarpit)]);
    let plan = plan(&rules);
    let result: PlanResult = found_for(&[within(0, 1), over(Some(6_000))]).collect();
    let decision = rules.decide(&plan, &result);
    assert_eq!(decision.verdict, block(1, Some(1)));
    let again = [over(Some(20_000))];
    let again = found_for(&again);
    let result: PlanResult = result.steps.into_iter().chain(again).collect();
    let decision = rules.decide(&plan, &result);
    assert_eq!(decision.verdict, block(1, Some(15)));
}

#[test]
fn a_lease_is_released_and_not_peeked_again() {
    let mut places = rule();
    places.limiter = Some(Limiter::new(Algorithm::Concurrency, 1, Duration::ZERO));
    let rules = set([places, rule()]);
    let plan = plan(&rules);
    let result: PlanResult = found_for(&[within(0, 1), over(Some(5_000))]).collect();
    assert!(!plan.steps[0].is_filled_up(&result.steps[0]));
    let leases = plan.leases().unwrap();
    assert_eq!(leases.counters.len(), 1);
    assert_eq!(leases.counters[0].id, plan.steps[0].id);
}

#[test]
fn a_queued_request_waits_for_its_turn() {
    let decision = decide(
        &set([rule(), rule()]),
        &[queued(2, 1_500), within(3, 1_000)],
    );
    assert_eq!(decision.verdict, Verdict::Forward);
    assert_eq!(decision.hold, Duration::from_millis(1_500));
    assert_eq!(decision.queued, Some(RuleIndex(0)));
    assert_eq!(decision.decided_by, None);
    assert_eq!(decision.quotas.len(), 2);
    // A request that is only peeked at, or only counted, has no turn.
    for ask in [Ask::get("/a"), Ask::post("/b")] {
        let rules = set([rule()]);
        let plan = ask.facts(|facts| rules.plan(facts));
        let decision = rules.decide(&plan, &found_for(&[queued(2, 1_500)]).collect());
        assert_eq!(decision.hold, Duration::ZERO);
        assert_eq!(decision.queued, None);
    }
}

#[test]
fn of_several_waits_the_longest_and_the_first_queue_apply() {
    let rules = set([with(Action::Delay), rule(), rule()]);
    let all = |delay, one, other| {
        let found = [over(Some(delay)), queued(1, one), queued(1, other)];
        let decision = decide(&rules, &found);
        (decision.hold.as_millis(), decision.queued)
    };
    assert_eq!(all(3_000, 1_000, 2_000), (3_000, Some(RuleIndex(1))));
    assert_eq!(all(500, 1_000, 2_000), (2_000, Some(RuleIndex(1))));
    assert_eq!(all(500, 4_000, 0), (4_000, Some(RuleIndex(1))));
    assert_eq!(all(500, 0, 900), (900, Some(RuleIndex(2))));
}

#[test]
fn an_immediate_refusal_is_not_held() {
    for (action, keeps) in [
        (Action::Block, false),
        (Action::Close, false),
        (Action::Shadow, true),
        (Action::Divert, true),
        (Action::Allow, true),
        (Action::Tag, true),
    ] {
        let rules = set([with(Action::Delay), rule(), with(action)]);
        let found = [over(Some(2_000)), queued(1, 3_000), over(Some(9_000))];
        let decision = decide(&rules, &found);
        assert_eq!(decision.hold == Duration::from_secs(3), keeps, "{action:?}");
        assert_eq!(decision.hold.is_zero(), !keeps, "{action:?}");
        assert_eq!(decision.queued.is_some(), keeps, "{action:?}");
    }
}

#[test]
fn a_tarpit_holds_no_less_than_the_waits_before_it() {
    let mut tarpit = with(Action::Tarpit);
    tarpit.max_delay = Duration::from_secs(2);
    let rules = set([with(Action::Delay), rule(), tarpit]);
    for (delay, queue, held, seconds) in [
        (4_000, 1_000, 4, 5),
        (1_000, 3_000, 3, 6),
        (1_000, 1_500, 2, 7),
    ] {
        let found = [over(Some(delay)), queued(1, queue), over(Some(9_000))];
        let mut decision = decide(&rules, &found);
        assert_eq!(decision.hold, Duration::from_secs(held));
        // The rest of the wait after the hold.
        assert_eq!(decision.verdict, block(2, Some(seconds)));
        // The tarpit's response is sent at once, not the queue's.
        rules.cannot_hold(&mut decision);
        assert_eq!(decision.verdict, block(2, Some(9)));
    }
}

#[test]
fn a_dry_run_holds_no_request() {
    for action in [
        Action::Delay,
        Action::Tarpit,
        Action::Close,
        Action::Divert,
        Action::Tag,
    ] {
        let decision = decide(&set([dry(action)]), &[over(Some(2_000))]);
        assert_eq!(decision.hold, Duration::ZERO);
        assert_eq!(decision.verdict, Verdict::Forward);
        assert_eq!(decision.tags, []);
        assert_eq!(decision.refused_for, None);
        let name = format!("would_{}", action.name());
        assert_eq!(credited(&decision), Some((RuleIndex(0), &*name)));
        let queue = decide(&set([dry(action)]), &[queued(1, 2_000)]);
        assert_eq!((queue.hold, queue.queued), (Duration::ZERO, None));
    }
}

#[test]
fn a_deny_rule_holds_for_its_maximum() {
    let deny = |action| {
        let mut deny = with(action);
        deny.limiter = None;
        deny.scope = same(r#"http.request.uri.path eq "/a""#);
        decide(&set([deny]), &[(KeyStatus::Over, None)])
    };
    let delay = deny(Action::Delay);
    assert_eq!((delay.verdict, delay.hold.as_secs()), (Verdict::Forward, 5));
    let tarpit = deny(Action::Tarpit);
    assert_eq!((tarpit.verdict, tarpit.hold.as_secs()), (block(0, None), 5));
}

#[test]
fn a_request_that_cannot_be_held_is_decided_immediately() {
    let at_once = |action, found| {
        let rules = set([with(action)]);
        let mut decision = decide(&rules, &[found]);
        assert!(!decision.hold.is_zero());
        rules.cannot_hold(&mut decision);
        assert!(decision.hold.is_zero());
        decision
    };
    let delay = at_once(Action::Delay, over(Some(2_000)));
    assert_eq!(delay.verdict, Verdict::Forward);
    assert_eq!(credited(&delay), Some((RuleIndex(0), "delay")));
    // Exact from now on, as it was from the end of the hold on.
    for (wait, seconds) in [(42_000, 42), (2_000, 2), (7_001, 8)] {
        let tarpit = at_once(Action::Tarpit, over(Some(wait)));
        assert_eq!(tarpit.verdict, block(0, Some(seconds)));
    }
    let rules = set([with(Action::Delay), with(Action::Shadow)]);
    let mut shadow = decide(&rules, &[over(Some(2_000)), over(Some(1_000))]);
    rules.cannot_hold(&mut shadow);
    assert_eq!(shadow.verdict, Verdict::Shadow { rule: RuleIndex(1) });
    assert_eq!(shadow.hold, Duration::ZERO);
}

#[test]
fn a_request_that_cannot_be_queued_gets_the_action_of_its_rule() {
    let (rule, settle) = (RuleIndex(0), Some(RuleIndex(1)));
    for (action, verdict, tags, settle_before) in [
        (Action::Block, block(0, Some(14)), 0, None),
        (Action::Tarpit, block(0, Some(14)), 0, None),
        (Action::Shadow, Verdict::Shadow { rule }, 0, None),
        (Action::Divert, Verdict::Divert { rule }, 0, None),
        (Action::Close, Verdict::Close { rule }, 0, None),
        (Action::Delay, Verdict::Forward, 0, None),
        (Action::Tag, Verdict::Forward, 1, None),
        (Action::Log, Verdict::Forward, 0, None),
        (Action::Allow, Verdict::Forward, 0, settle),
    ] {
        // A queue that five a minute leave, so twelve seconds apart.
        let rules = set([with(action)]);
        let mut decision = decide(&rules, &[queued(2, 1_500)]);
        rules.cannot_hold(&mut decision);
        assert_eq!(decision.verdict, verdict, "{action:?}");
        assert_eq!((decision.hold, decision.queued), (Duration::ZERO, None));
        assert_eq!(decision.tags.len(), tags, "{action:?}");
        assert_eq!(decision.settle_before, settle_before, "{action:?}");
        assert_eq!(credited(&decision), Some((rule, action.name())));
        assert!(events(&decision).contains(&(0, RuleEventKind::Mitigated)));
        if action == Action::Block {
            assert_eq!(*decision.quotas, [quota(0, 0, 14)]);
        }
    }
}

#[test]
fn a_request_that_cannot_be_queued_discards_the_results_of_later_rules() {
    let rules = set([
        with(Action::Log),
        rule(),
        with(Action::Tag),
        with(Action::Shadow),
    ]);
    let found = [
        over(Some(1)),
        queued(1, 1_500),
        over(Some(1)),
        over(Some(1)),
    ];
    let mut decision = decide(&rules, &found);
    rules.cannot_hold(&mut decision);
    assert_eq!(decision.verdict, block(1, Some(14)));
    assert_eq!(decision.tags, []);
    assert_eq!(credited(&decision), Some((RuleIndex(1), "block")));
    let acted = events(&decision).into_iter();
    let acted: Vec<u16> = acted
        .filter(|(_, e)| *e == RuleEventKind::Mitigated)
        .map(|(r, _)| r)
        .collect();
    assert_eq!(acted, [0, 1]);
    // One that forwards leaves them as they were, and is named before those that do too.
    let rules = set([with(Action::Tag), with(Action::Log)]);
    let mut decision = decide(&rules, &[queued(1, 1_500), over(Some(1))]);
    rules.cannot_hold(&mut decision);
    assert_eq!(credited(&decision), Some((RuleIndex(0), "tag")));
    assert_eq!(decision.tags, [RuleIndex(0)]);
    let rules = set([with(Action::Log), with(Action::Shadow)]);
    let mut decision = decide(&rules, &[queued(1, 1_500), over(Some(1))]);
    rules.cannot_hold(&mut decision);
    assert_eq!(credited(&decision), Some((RuleIndex(1), "shadow")));
}

#[test]
fn tags_are_in_rule_order() {
    let rules = set([with(Action::Tag), rule(), with(Action::Tag)]);
    let found = [over(Some(1)), within(1, 1), over(Some(1))];
    let decision = decide(&rules, &found);
    assert_eq!(decision.tags, [RuleIndex(0), RuleIndex(2)]);
    assert_eq!(credited(&decision), Some((RuleIndex(0), "tag")));
    assert_eq!(decision.verdict, Verdict::Forward);
}

/// [`rule`] with another action, which holds for five seconds at the most.
fn with(action: Action) -> Rule {
    Rule {
        action,
        max_delay: Duration::from_secs(5),
        ..rule()
    }
}

fn dry(action: Action) -> Rule {
    Rule {
        dry_run: true,
        ..with(action)
    }
}

/// Admitted, after a wait.
fn queued(remaining: u64, millis: u64) -> Found {
    let (status, reading) = within(remaining, 1_000);
    let wait = Duration::from_millis(millis);
    (status, reading.map(|reading| reading.waiting(wait)))
}

fn plan(rules: &RuleSet) -> Plan {
    Ask::post("/a").facts(|facts| rules.plan(facts))
}

fn decide(rules: &RuleSet, found: &[Found]) -> Decision {
    let plan = plan(rules);
    assert_eq!(plan.steps.len(), found.len());
    rules.decide(&plan, &found_for(found).collect())
}

fn block(rule: u16, retry_after: Option<u64>) -> Verdict {
    let rule = RuleIndex(rule);
    Verdict::Block { rule, retry_after }
}

fn credited(decision: &Decision) -> Option<(RuleIndex, &'static str)> {
    decision
        .decided_by
        .map(|credit| (credit.rule, credit.name()))
}
