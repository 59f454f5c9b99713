//! Leases of requests in flight.

use std::time::Duration;

use crate::limit::{Algorithm, Limiter};
use crate::rules::plan::StepOp;
use crate::store::StoreHandle;
use crate::store::fixture::{Rule, TestCounters as _, at, banned, limiters, plan};

pub(super) async fn all(store: &StoreHandle) {
    a_place_is_free_when_it_is_given_back(store).await;
    a_cost_is_that_many_places(store).await;
    a_lease_expires_unless_it_is_renewed(store).await;
    a_lease_taken_or_released_twice_counts_once(store).await;
    what_was_charged_past_the_limit_is_given_back_too(store).await;
    a_refusal_and_a_look_give_nothing_back(store).await;
    other_counters_keep_what_was_charged(store).await;
    each_step_of_a_plan_gives_back_its_own(store).await;
    a_ban_keeps_the_places_in_flight(store).await;
}

async fn a_place_is_free_when_it_is_given_back(store: &StoreHandle) {
    let rule = in_flight(store, "places", 2);
    let first = rule.enter(store, "k", 1).await.unwrap();
    let second = rule.enter(store, "k", 1).await.unwrap();
    assert!(rule.enter(store, "k", 1).await.is_none());
    let other = rule.enter(store, "other", 1).await.unwrap();
    first.leave(store).await;
    let third = rule.enter(store, "k", 1).await.unwrap();
    assert!(rule.enter(store, "k", 1).await.is_none());
    for stay in [second, third, other] {
        stay.leave(store).await;
    }
    assert_eq!(rule.left(store, "k", 0).await, 2);
}

async fn a_cost_is_that_many_places(store: &StoreHandle) {
    let rule = in_flight(store, "wide-places", 5);
    let wide = rule.enter(store, "k", 3).await.unwrap();
    assert!(rule.enter(store, "k", 3).await.is_none());
    let narrow = rule.enter(store, "k", 2).await.unwrap();
    wide.leave(store).await;
    assert_eq!(rule.left(store, "k", 0).await, 3);
    narrow.leave(store).await;
    assert_eq!(rule.left(store, "k", 0).await, 5);
}

async fn a_lease_expires_unless_it_is_renewed(store: &StoreHandle) {
    let rule = in_flight(store, "expiring-leases", 2);
    let plans = [0, 1].map(|_| plan([("k", rule.step(StepOp::Admit, 1))]));
    for plan in &plans {
        store.apply_at(plan, at(0)).await;
    }
    store.renew_leases_of(&plans[0], at(20)).await;
    assert_eq!(rule.left(store, "k", 29).await, 0);
    assert_eq!(rule.left(store, "k", 30).await, 1);
    assert_eq!(rule.left(store, "k", 49).await, 1);
    assert_eq!(rule.left(store, "k", 50).await, 2);
}

async fn a_lease_taken_or_released_twice_counts_once(store: &StoreHandle) {
    let rule = in_flight(store, "repeated-leases", 2);
    let plan = plan([("k", rule.step(StepOp::Admit, 1))]);
    for _ in 0..2 {
        store.apply_at(&plan, at(0)).await;
        assert_eq!(rule.left(store, "k", 0).await, 1);
    }
    for _ in 0..2 {
        store.release_leases_of(&plan).await;
        assert_eq!(rule.left(store, "k", 0).await, 2);
    }
}

async fn what_was_charged_past_the_limit_is_given_back_too(store: &StoreHandle) {
    let rule = in_flight(store, "charged-places", 1);
    let plans = [0, 1].map(|_| plan([("k", rule.step(StepOp::Charge, 1))]));
    for plan in &plans {
        store.apply_at(plan, at(0)).await;
    }
    for plan in &plans {
        assert_eq!(rule.left(store, "k", 0).await, 0);
        store.end_request(plan).await;
    }
    assert_eq!(rule.left(store, "k", 0).await, 1);
}

async fn a_refusal_and_a_look_give_nothing_back(store: &StoreHandle) {
    let rule = in_flight(store, "refused-places", 1);
    let stay = rule.enter(store, "k", 1).await.unwrap();
    for op in [StepOp::Admit, StepOp::Peek, StepOp::CheckBan] {
        let plan = plan([("k", rule.step(op, 1))]);
        store.apply_at(&plan, at(0)).await;
        store.end_request(&plan).await;
        assert_eq!(rule.left(store, "k", 0).await, 0);
    }
    stay.leave(store).await;
}

async fn other_counters_keep_what_was_charged(store: &StoreHandle) {
    for (name, limiter) in limiters(2) {
        let rule = Rule::counting(store, &format!("kept-{name}"), limiter);
        rule.enter(store, "k", 1).await.unwrap().leave(store).await;
        let places = limiter.algorithm == Algorithm::Concurrency;
        let left = if places { 2 } else { 1 };
        assert_eq!(rule.left(store, "k", 0).await, left, "{name}");
    }
}

async fn each_step_of_a_plan_gives_back_its_own(store: &StoreHandle) {
    let one = in_flight(store, "plan-places-1", 1);
    let two = in_flight(store, "plan-places-2", 3);
    let plan = plan([
        ("a", one.step(StepOp::Admit, 1)),
        ("b", two.step(StepOp::Admit, 2)),
    ]);
    store.apply_at(&plan, at(0)).await;
    assert_eq!(one.left(store, "a", 0).await, 0);
    assert_eq!(two.left(store, "b", 0).await, 1);
    store.end_request(&plan).await;
    assert_eq!(one.left(store, "a", 0).await, 1);
    assert_eq!(two.left(store, "b", 0).await, 3);
}

async fn a_ban_keeps_the_places_in_flight(store: &StoreHandle) {
    let rule = Rule {
        ban: 10,
        ..in_flight(store, "banned-places", 2)
    };
    let [first, second] = [
        rule.enter(store, "k", 1).await.unwrap(),
        rule.enter(store, "k", 1).await.unwrap(),
    ];
    assert_eq!(rule.admit(store, "k", 0).await, banned(10, true));
    assert_eq!(
        rule.ask(store, StepOp::Charge, "k", 1).await.status,
        banned(10, false)
    );
    first.leave(store).await;
    assert_eq!(rule.left(store, "k", 10).await, 1);
    second.leave(store).await;
    assert_eq!(rule.left(store, "k", 10).await, 2);
}

fn in_flight(store: &StoreHandle, name: &str, limit: u64) -> Rule {
    let limiter = Limiter::new(Algorithm::Concurrency, limit, Duration::ZERO);
    Rule::counting(store, name, limiter)
}
