//! Requirements for rules with a ratio: two counters per key.

use std::time::Duration;

use crate::limit::{Algorithm, Limiter, ShareCounts, ShareRatio};
use crate::rules::plan::{KeyStatus, Step, StepOp, StepResult};
use crate::store::StoreHandle;
use crate::store::fixture::{Rule, TestCounters as _, at, banned, plan};

pub(super) async fn all(store: &StoreHandle) {
    for algorithm in [Algorithm::SlidingWindow, Algorithm::FixedWindow] {
        acts_above_the_limit_and_the_share(store, algorithm).await;
        charges_above_the_share(store, algorithm).await;
        refuses_what_matches_only_the_total(store, algorithm).await;
        a_look_takes_nothing(store, algorithm).await;
        a_ban_clears_both_counters(store, algorithm).await;
        a_total_can_start_a_ban(store, algorithm).await;
        a_window_ends_for_both_counters(store, algorithm).await;
        a_changed_ratio_reads_the_same_counters(store, algorithm).await;
        costs_are_charged_to_both(store, algorithm).await;
    }
    the_total_fades_with_the_count(store).await;
}

/// More than 2 a minute, and more than half.
fn limiter(algorithm: Algorithm) -> Limiter {
    Limiter {
        ratio: Some(ShareRatio::nearest(0.5)),
        ..Limiter::new(algorithm, 2, Duration::from_secs(60))
    }
}

fn rule(store: &StoreHandle, name: &str, algorithm: Algorithm) -> Rule {
    let name = format!("share-{name}-{}", algorithm.row().name);
    Rule::counting(store, &name, limiter(algorithm))
}

/// A step for a request that matches only `total`.
fn only_total(step: Step) -> Step {
    Step {
        only_total: true,
        ..step
    }
}

async fn total(store: &StoreHandle, rule: &Rule, op: StepOp, cost: u64, secs: u64) -> StepResult {
    let step = only_total(rule.step(op, cost));
    store.apply_one(step, "k", at(secs)).await
}

async fn counts(store: &StoreHandle, rule: &Rule, secs: u64) -> (u32, u32) {
    let peek = store.apply_one(rule.step(StepOp::Peek, 0), "k", at(secs));
    let ShareCounts { count, total } = peek.await.reading.unwrap().share;
    (count, total)
}

async fn acts_above_the_limit_and_the_share(store: &StoreHandle, algorithm: Algorithm) {
    let rule = rule(store, "acts", algorithm);
    total(store, &rule, StepOp::Charge, 3, 0).await;
    for _ in 0..3 {
        assert!(rule.takes(store, "k", 0).await);
    }
    assert_eq!(counts(store, &rule, 0).await, (3, 6));
    let refused = rule.ask(store, StepOp::Admit, "k", 0).await;
    assert_eq!((refused.status, refused.charged), (KeyStatus::Over, false));
    assert_eq!(refused.reading.unwrap().retry_after(), None);
    assert_eq!(counts(store, &rule, 0).await, (3, 6));
    // 4 of 8 are not more than half.
    total(store, &rule, StepOp::Charge, 1, 0).await;
    assert!(rule.takes(store, "k", 0).await);
    assert!(rule.takes(store, "other", 0).await);
}

async fn charges_above_the_share(store: &StoreHandle, algorithm: Algorithm) {
    let rule = rule(store, "charges", algorithm);
    for status in [KeyStatus::Within, KeyStatus::Within, KeyStatus::Over] {
        let found = rule.ask(store, StepOp::Charge, "k", 0).await;
        assert_eq!((found.status, found.charged), (status, true));
    }
    let peeked = store
        .apply_one(rule.step(StepOp::Peek, 0), "k", at(0))
        .await;
    assert_eq!(peeked.status, KeyStatus::Over);
    assert_eq!(counts(store, &rule, 0).await, (3, 3));
}

async fn refuses_what_matches_only_the_total(store: &StoreHandle, algorithm: Algorithm) {
    let rule = rule(store, "total", algorithm);
    for _ in 0..4 {
        rule.ask(store, StepOp::Charge, "k", 0).await;
    }
    let refused = total(store, &rule, StepOp::Admit, 1, 0).await;
    assert_eq!((refused.status, refused.charged), (KeyStatus::Over, false));
    let charged = total(store, &rule, StepOp::Charge, 3, 0).await;
    assert_eq!((charged.status, charged.charged), (KeyStatus::Over, true));
    // 4 of 8 are not more than half.
    let admitted = total(store, &rule, StepOp::Admit, 1, 0).await;
    assert_eq!(
        (admitted.status, admitted.charged),
        (KeyStatus::Within, true)
    );
    assert_eq!(counts(store, &rule, 0).await, (4, 8));
}

async fn a_look_takes_nothing(store: &StoreHandle, algorithm: Algorithm) {
    let rule = rule(store, "looks", algorithm);
    assert_eq!(counts(store, &rule, 0).await, (0, 0));
    total(store, &rule, StepOp::Peek, 5, 0).await;
    rule.ask(store, StepOp::CheckBan, "k", 0).await;
    assert_eq!(counts(store, &rule, 0).await, (0, 0));
}

async fn a_ban_clears_both_counters(store: &StoreHandle, algorithm: Algorithm) {
    let rule = Rule {
        ban: 5,
        ..rule(store, "ban", algorithm)
    };
    for op in [StepOp::Admit, StepOp::Charge] {
        let secs = if op == StepOp::Admit { 0 } else { 10 };
        assert!(total(store, &rule, StepOp::Charge, 1, secs).await.charged);
        for _ in 0..2 {
            assert_eq!(
                rule.ask(store, op, "k", secs).await.status,
                KeyStatus::Within
            );
        }
        // 3 of 4 are more than half.
        let status = rule.ask(store, op, "k", secs).await.status;
        assert_eq!(status, banned(secs + 5, true));
        let refused = total(store, &rule, StepOp::Charge, 1, secs + 4).await;
        assert_eq!(refused.status, banned(secs + 5, false));
        assert!(!refused.charged);
        assert_eq!(counts(store, &rule, secs + 5).await, (0, 0));
    }
}

async fn a_total_can_start_a_ban(store: &StoreHandle, algorithm: Algorithm) {
    let throttle = rule(store, "late-ban", algorithm);
    for _ in 0..4 {
        throttle.ask(store, StepOp::Charge, "k", 0).await;
    }
    // A reload has added the ban.
    let banning = Rule { ban: 5, ..throttle };
    let found = total(store, &banning, StepOp::Charge, 1, 0).await;
    assert_eq!(found.status, banned(5, true));
}

async fn a_window_ends_for_both_counters(store: &StoreHandle, algorithm: Algorithm) {
    let rule = rule(store, "ends", algorithm);
    rule.ask(store, StepOp::Charge, "k", 0).await;
    total(store, &rule, StepOp::Charge, 1, 30).await;
    assert_eq!(counts(store, &rule, 59).await, (1, 2));
    let later = counts(store, &rule, 60).await;
    let expected = match algorithm {
        Algorithm::FixedWindow => (0, 0),
        _ => (1, 2),
    };
    assert_eq!(later, expected);
    assert_eq!(counts(store, &rule, 120).await, (0, 0));
}

async fn a_changed_ratio_reads_the_same_counters(store: &StoreHandle, algorithm: Algorithm) {
    let mut rule = rule(store, "changed", algorithm);
    total(store, &rule, StepOp::Charge, 6, 0).await;
    for _ in 0..3 {
        assert!(rule.takes(store, "k", 0).await);
    }
    rule.limiter.ratio = Some(ShareRatio::nearest(0.3));
    assert!(!rule.takes(store, "k", 0).await);
    assert_eq!(counts(store, &rule, 0).await, (3, 9));
}

async fn costs_are_charged_to_both(store: &StoreHandle, algorithm: Algorithm) {
    let rule = rule(store, "costs", algorithm);
    let steps = [
        only_total(rule.step(StepOp::Charge, 10)),
        rule.step(StepOp::Charge, 7),
    ];
    for step in steps {
        store.apply_at(&plan([("k", step)]), at(0)).await;
    }
    assert_eq!(counts(store, &rule, 0).await, (7, 17));
    let huge = rule.step(StepOp::Admit, u64::MAX);
    assert!(!store.apply_one(huge, "k", at(0)).await.charged);
}

async fn the_total_fades_with_the_count(store: &StoreHandle) {
    let rule = rule(store, "fades", Algorithm::SlidingWindow);
    for _ in 0..4 {
        rule.ask(store, StepOp::Charge, "k", 0).await;
    }
    total(store, &rule, StepOp::Charge, 4, 0).await;
    assert_eq!(counts(store, &rule, 75).await, (3, 6));
    // Now 4 of 8 with this request, half an hour later nothing.
    assert!(!rule.takes(store, "k", 75).await);
    total(store, &rule, StepOp::Charge, 2, 75).await;
    assert!(rule.takes(store, "k", 75).await);
    assert_eq!(counts(store, &rule, 1_800).await, (0, 0));
}
