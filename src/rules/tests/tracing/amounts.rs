//! Waits, costs, limits and bans in traces.

use std::time::Duration;

use super::super::super::{BanLength, CandidateLimit, LimitJitter, Rule, RuleCost, RuleId};
use super::super::deciding::{banned, over, within};
use super::super::{Ask, rule, set};
use super::{Found, traces};
use crate::decision::Action;
use crate::limit::{Algorithm, Limiter};

#[test]
fn waits_are_explained_with_their_reason() {
    let told = |action, found: Found| {
        let rule = Rule {
            action,
            max_delay: Duration::from_secs(5),
            ..rule()
        };
        let told = traces(&set([rule]), &Ask::post("/a"), &[found], None).remove(0);
        (told.held_for.map(|held| held.as_millis()), told.why)
    };
    let is = |told: (Option<u128>, String), held, why: &str| {
        assert_eq!(told, (held, why.to_owned()));
    };
    is(
        told(Action::Delay, over(Some(1_500))),
        Some(1_500),
        "held for 1500ms: over the limit, 5 of 5 are used; not counted, because its turn would \
         come later",
    );
    is(
        told(Action::Delay, banned(60_000, false)),
        Some(5_000),
        "held for 5s: banned for another 1m",
    );
    is(
        told(Action::Tarpit, over(Some(42_000))),
        Some(5_000),
        "held for 5s and blocked: over the limit, 5 of 5 are used",
    );
    let mut turn = within(2, 1_000);
    turn.1 = turn
        .1
        .map(|reading| reading.waiting(Duration::from_millis(1_250)));
    is(
        told(Action::Block, turn),
        Some(1_250),
        "counted 3 of 5, and waits 1250ms for its turn",
    );
    is(
        told(Action::Close, over(Some(1))),
        None,
        "closed without a response: over the limit, 5 of 5 are used",
    );
}

#[test]
fn a_dry_run_and_an_immediate_refusal_are_not_held() {
    let delay = |dry_run| Rule {
        action: Action::Delay,
        max_delay: Duration::from_secs(5),
        dry_run,
        ..rule()
    };
    let found = [over(Some(2_000)), over(Some(1))];
    for (first, held) in [(delay(false), None), (delay(true), None)] {
        let told = traces(&set([first, rule()]), &Ask::post("/a"), &found, None);
        assert_eq!(told[0].held_for, held);
    }
    let mut pit = delay(false);
    pit.action = Action::Tarpit;
    let told = traces(&set([delay(false), pit]), &Ask::post("/a"), &found, None);
    // It is held for the longest of all waits.
    assert_eq!(told[0].held_for, Some(Duration::from_secs(2)));
    assert_eq!(told[1].held_for, Some(Duration::from_secs(5)));
}

#[test]
fn costs_limits_of_a_key_and_capacity_are_explained() {
    let mut dear = rule();
    dear.cost = RuleCost::Fixed(3);
    let told =
        |rule: Rule, found: Found| traces(&set([rule]), &Ask::post("/a"), &[found], None).remove(0);
    let counted = told(dear, within(2, 1));
    assert_eq!((counted.cost, counted.value), (Some(3), Some(3)));
    assert_eq!(counted.why, "cost 3 and counted 3 of 5: within the limit");
    let mut never = rule();
    never.cost = RuleCost::Fixed(9);
    let refused = told(never, over(None));
    assert_eq!(
        refused.why,
        "blocked: it costs 9, and the rule never admits more than 5"
    );
    let mut queue = rule();
    queue.limiter = Some(Limiter {
        queue: 2,
        ..Limiter::new(Algorithm::LeakyBucket, 5, Duration::from_secs(60))
    });
    let full = told(queue, over(Some(12_000)));
    assert_eq!(full.why, "blocked: the queue is full, 2 wait");
    assert_eq!((full.limit, full.capacity), (Some(5), Some(3)));
    let mut drawn = rule();
    drawn.limiter = Some(Limiter::new(
        Algorithm::SlidingWindow,
        1_000,
        Duration::from_secs(60),
    ));
    drawn.jitter = LimitJitter(500_000);
    let told = told(drawn, within(400, 1));
    assert_eq!(told.drawn_from, Some(1_000));
    assert!(told.limit.is_some_and(|limit| limit != 1_000));
    assert_eq!(told.capacity, told.limit);
}

#[test]
fn a_candidate_is_explained_with_its_rule() {
    let mut tried = rule();
    tried.candidate = Some(CandidateLimit {
        id: RuleId {
            identity: 9,
            slot: 9,
        },
        limiter: Limiter::new(Algorithm::SlidingWindow, 2, Duration::from_secs(60)),
    });
    let found = [over(Some(1)), within(2, 1)];
    let told = traces(&set([tried]), &Ask::post("/a"), &found, None).remove(0);
    assert_eq!(told.verdict.name(), "counted");
    let candidate = told.candidate.unwrap();
    assert_eq!(candidate.verdict.name(), "would_block");
    assert_eq!((candidate.value, candidate.limit), (Some(2), 2));
    let told = traces(&set([rule()]), &Ask::post("/a"), &[within(2, 1)], None);
    assert_eq!(told[0].candidate, None);
}

#[test]
fn a_ban_that_escalates_names_its_entry() {
    let mut rule = rule();
    let lengths = [60u64, 600, 3_600].map(Duration::from_secs);
    rule.ban = BanLength::Escalating(lengths.into());
    let told = traces(
        &set([rule]),
        &Ask::post("/a"),
        &[banned(600_000, true)],
        None,
    );
    let why =
        "blocked: this request is above the limit of 5: banned for 10m, entry 2 of `escalate`";
    assert_eq!(told[0].why, why);
}

#[test]
fn a_missing_cost_is_explained() {
    let told = |answer| {
        let mut late = rule();
        late.cost = RuleCost::Header(http::HeaderName::from_static("x-cost"));
        let told = traces(&set([late]), &Ask::post("/b"), &[within(5, 0)], answer);
        told[0].why.clone()
    };
    let missing = "the response has no whole number in `x-cost`, so nothing is counted";
    assert!(told(Some((200, &[]))).ends_with(missing));
    let never = "`cost` reads the response, and this response never counts";
    assert!(told(None).ends_with(never));
}
