//! One counter: what is charged, refused and looked at.

use std::time::Duration;

use crate::limit::CounterReading;
use crate::rules::plan::{KeyStatus, StepOp};
use crate::store::StoreHandle;
use crate::store::fixture::{Rule, TestCounters as _, at, plan};

pub(super) async fn all(store: &StoreHandle) {
    throttle_refuses_what_is_over(store).await;
    a_refusal_takes_nothing(store).await;
    a_charge_passes_the_limit(store).await;
    a_look_takes_nothing(store).await;
    a_pass_leaves_the_counter_alone(store).await;
    keys_and_rules_are_apart(store).await;
    a_cost_above_the_limit_never_fits(store).await;
    a_changed_limit_keeps_the_count(store).await;
}

async fn throttle_refuses_what_is_over(store: &StoreHandle) {
    let rule = Rule::throttle(store, "over", 2);
    assert_eq!(rule.admit(store, "k", 0).await, KeyStatus::Within);
    let second = rule.ask(store, StepOp::Admit, "k", 1).await;
    assert_eq!(second.status, KeyStatus::Within);
    let reading = CounterReading::fitting(0, Duration::from_secs(119));
    assert_eq!(second.reading, Some(reading));
    let third = rule.ask(store, StepOp::Admit, "k", 30).await;
    assert_eq!(third.status, KeyStatus::Over);
    let reading =
        CounterReading::refusing(0, Duration::from_secs(90), Some(Duration::from_secs(60)));
    assert_eq!(third.reading, Some(reading));
    assert_eq!(rule.admit(store, "k", 89).await, KeyStatus::Over);
    assert_eq!(rule.admit(store, "k", 90).await, KeyStatus::Within);
}

async fn a_refusal_takes_nothing(store: &StoreHandle) {
    let rule = Rule::throttle(store, "refusal", 1);
    rule.admit(store, "k", 0).await;
    for secs in 1..50 {
        assert_eq!(rule.admit(store, "k", secs).await, KeyStatus::Over);
    }
    assert_eq!(rule.admit(store, "k", 120).await, KeyStatus::Within);
}

async fn a_charge_passes_the_limit(store: &StoreHandle) {
    let rule = Rule::throttle(store, "charge", 2);
    for expected in [KeyStatus::Within, KeyStatus::Within, KeyStatus::Over] {
        let found = rule.ask(store, StepOp::Charge, "k", 0).await;
        assert_eq!(found.status, expected);
    }
    rule.ask(store, StepOp::Charge, "k", 0).await;
    // Four were counted: one still weighs when three quarters of the next minute have passed.
    assert_eq!(rule.admit(store, "k", 104).await, KeyStatus::Over);
    assert_eq!(rule.admit(store, "k", 105).await, KeyStatus::Within);
}

async fn a_look_takes_nothing(store: &StoreHandle) {
    let rule = Rule::throttle(store, "look", 1);
    for _ in 0..3 {
        let found = rule.ask(store, StepOp::Peek, "k", 0).await;
        assert_eq!(found.status, KeyStatus::Within);
    }
    assert_eq!(rule.admit(store, "k", 0).await, KeyStatus::Within);
    let found = rule.ask(store, StepOp::Peek, "k", 0).await;
    assert_eq!(found.status, KeyStatus::Over);
    assert_eq!(
        found.reading.unwrap().retry_after(),
        Some(Duration::from_secs(120))
    );
}

async fn a_pass_leaves_the_counter_alone(store: &StoreHandle) {
    let rule = Rule::throttle(store, "pass", 1);
    rule.ask(store, StepOp::Charge, "k", 0).await;
    rule.ask(store, StepOp::Charge, "k", 0).await;
    let found = rule.ask(store, StepOp::CheckBan, "k", 0).await;
    assert_eq!(found.status, KeyStatus::Within);
    assert_eq!(found.reading, None);
}

async fn keys_and_rules_are_apart(store: &StoreHandle) {
    let one = Rule::throttle(store, "apart-1", 1);
    let two = Rule::throttle(store, "apart-2", 1);
    for rule in [one, two] {
        for key in ["", "a", "b", "ab"] {
            assert_eq!(rule.admit(store, key, 0).await, KeyStatus::Within);
            assert_eq!(rule.admit(store, key, 0).await, KeyStatus::Over);
        }
    }
}

async fn a_cost_above_the_limit_never_fits(store: &StoreHandle) {
    let rule = Rule::throttle(store, "cost", 5);
    let ask = async |cost| {
        let plan = plan([("k", rule.step(StepOp::Admit, cost))]);
        store.apply_at(&plan, at(0)).await[0]
    };
    let found = ask(6).await;
    assert_eq!(found.status, KeyStatus::Over);
    assert_eq!(found.reading.unwrap().retry_after(), None);
    assert_eq!(ask(0).await.status, KeyStatus::Within);
    assert_eq!(ask(5).await.status, KeyStatus::Within);
    assert_eq!(ask(1).await.status, KeyStatus::Over);
}

async fn a_changed_limit_keeps_the_count(store: &StoreHandle) {
    let rule = Rule::throttle(store, "changed", 5);
    for _ in 0..3 {
        rule.admit(store, "k", 0).await;
    }
    let tighter = Rule { limit: 3, ..rule };
    assert_eq!(tighter.admit(store, "k", 0).await, KeyStatus::Over);
    let wider = Rule { limit: 10, ..rule };
    assert_eq!(wider.left(store, "k", 0).await, 7);
}
