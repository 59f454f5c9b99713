//! Requirements that every algorithm must meet.

use crate::clock::Timestamp;
use crate::limit::Algorithm;
use crate::rules::plan::{KeyStatus, StepOp};
use crate::store::StoreHandle;
use crate::store::fixture::{Rule, TestCounters as _, at, banned, limiters, plan};

pub(super) async fn all(store: &StoreHandle) {
    each_admits_its_limit_and_no_more(store).await;
    each_charges_past_its_limit(store).await;
    each_looks_and_takes_nothing(store).await;
    each_counts_costs(store).await;
    each_is_exact_about_its_wait(store).await;
    each_starts_afresh_after_a_ban(store).await;
}

async fn each_admits_its_limit_and_no_more(store: &StoreHandle) {
    for (name, limiter) in limiters(5) {
        let rule = Rule::counting(store, &format!("admits-{name}"), limiter);
        for left in (0..5).rev() {
            assert!(rule.takes(store, "k", 0).await, "{name}");
            assert_eq!(rule.left(store, "k", 0).await, left, "{name}");
        }
        for _ in 0..3 {
            assert!(!rule.takes(store, "k", 0).await, "{name}");
        }
        assert!(rule.takes(store, "other", 0).await, "{name}");
    }
}

async fn each_charges_past_its_limit(store: &StoreHandle) {
    for (name, limiter) in limiters(2) {
        let rule = Rule::counting(store, &format!("charges-{name}"), limiter);
        for status in [
            KeyStatus::Within,
            KeyStatus::Within,
            KeyStatus::Over,
            KeyStatus::Over,
        ] {
            let found = rule.ask(store, StepOp::Charge, "k", 0).await;
            assert_eq!((found.status, found.charged), (status, true), "{name}");
        }
    }
}

async fn each_looks_and_takes_nothing(store: &StoreHandle) {
    for (name, limiter) in limiters(1) {
        let rule = Rule::counting(store, &format!("looks-{name}"), limiter);
        for op in [StepOp::Peek, StepOp::CheckBan] {
            let found = rule.ask(store, op, "k", 0).await;
            assert_eq!((found.status, found.charged), (KeyStatus::Within, false));
        }
        assert!(rule.takes(store, "k", 0).await, "{name}");
        for (op, status) in [
            (StepOp::Peek, KeyStatus::Over),
            (StepOp::CheckBan, KeyStatus::Within),
        ] {
            let found = rule.ask(store, op, "k", 0).await;
            assert_eq!((found.status, found.charged), (status, false), "{name}");
        }
    }
}

async fn each_counts_costs(store: &StoreHandle) {
    for (name, limiter) in limiters(5) {
        let rule = Rule::counting(store, &format!("costs-{name}"), limiter);
        for (cost, charged) in [
            (6, false),
            (3, true),
            (3, false),
            (0, true),
            (2, true),
            (1, false),
        ] {
            let plan = plan([("k", rule.step(StepOp::Admit, cost))]);
            let found = store.apply_at(&plan, at(0)).await[0];
            assert_eq!(found.charged, charged, "{name} {cost}");
            if cost == 6 {
                assert_eq!(found.reading.unwrap().retry_after(), None, "{name}");
            }
        }
    }
}

async fn each_is_exact_about_its_wait(store: &StoreHandle) {
    for (name, limiter) in limiters(3) {
        if limiter.algorithm == Algorithm::Concurrency {
            continue;
        }
        let rule = Rule::counting(store, &format!("waits-{name}"), limiter);
        for secs in [1, 7, 18] {
            rule.admit(store, "k", secs).await;
        }
        let mut now = at(20);
        let admit = |now| store.apply_one(rule.step(StepOp::Admit, 2), "k", now);
        for _ in 0..3 {
            let refused = admit(now).await;
            assert!(!refused.charged, "{name}");
            now = now.plus(refused.reading.unwrap().retry_after().unwrap());
            let early = Timestamp::from_nanos(now.as_nanos() - 1);
            assert!(!admit(early).await.charged, "{name}");
            assert!(admit(now).await.charged, "{name}");
        }
    }
}

async fn each_starts_afresh_after_a_ban(store: &StoreHandle) {
    for (name, limiter) in limiters(2) {
        if limiter.algorithm == Algorithm::Concurrency {
            continue;
        }
        let rule = Rule {
            ban: 5,
            ..Rule::counting(store, &format!("afresh-{name}"), limiter)
        };
        for op in [StepOp::Charge, StepOp::Admit] {
            let key = format!("{op:?}");
            for status in [KeyStatus::Within, KeyStatus::Within, banned(5, true)] {
                assert_eq!(rule.ask(store, op, &key, 0).await.status, status, "{name}");
            }
            assert_eq!(rule.ask(store, op, &key, 4).await.status, banned(5, false));
            assert_eq!(rule.left(store, &key, 5).await, 2, "{name}");
        }
    }
}
