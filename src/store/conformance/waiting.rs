//! Steps that charge what does not fit, because it will wait.

use std::time::Duration;

use crate::rules::plan::{KeyStatus, StepOp};
use crate::store::StoreHandle;
use crate::store::fixture::{Rule, TestCounters as _, at, banned, limiters};

pub(super) async fn all(store: &StoreHandle) {
    what_will_wait_is_charged(store).await;
    what_would_wait_too_long_is_not_charged(store).await;
    what_never_fits_is_not_charged(store).await;
    only_admissions_of_throttles_are_held(store).await;
    each_algorithm_has_it(store).await;
}

async fn what_will_wait_is_charged(store: &StoreHandle) {
    let rule = Rule {
        max_hold: 120,
        ..Rule::throttle(store, "patient", 2)
    };
    assert!(rule.takes(store, "k", 0).await);
    assert!(rule.takes(store, "k", 0).await);
    let found = rule.ask(store, StepOp::Admit, "k", 0).await;
    assert_eq!((found.status, found.charged), (KeyStatus::Over, true));
    let reading = found.reading.unwrap();
    assert!(!reading.fits);
    assert_eq!(reading.retry_after(), Some(Duration::from_secs(90)));
    // Three weigh two in the middle of the next minute; two would weigh one.
    assert_eq!(rule.left(store, "k", 90).await, 0);
}

async fn what_would_wait_too_long_is_not_charged(store: &StoreHandle) {
    let rule = Rule {
        max_hold: 89,
        ..Rule::throttle(store, "impatient", 2)
    };
    rule.admit(store, "k", 0).await;
    rule.admit(store, "k", 0).await;
    let found = rule.ask(store, StepOp::Admit, "k", 0).await;
    assert_eq!((found.status, found.charged), (KeyStatus::Over, false));
    assert_eq!(rule.left(store, "k", 90).await, 1);
}

async fn what_never_fits_is_not_charged(store: &StoreHandle) {
    let rule = Rule {
        max_hold: 1_000,
        ..Rule::throttle(store, "never-fits", 2)
    };
    let found = store
        .apply_one(rule.step(StepOp::Admit, 3), "k", at(0))
        .await;
    assert_eq!((found.status, found.charged), (KeyStatus::Over, false));
    assert_eq!(rule.left(store, "k", 0).await, 2);
}

async fn only_admissions_of_throttles_are_held(store: &StoreHandle) {
    let rule = Rule {
        max_hold: 1_000,
        ..Rule::throttle(store, "patient-looks", 1)
    };
    rule.admit(store, "k", 0).await;
    let found = rule.ask(store, StepOp::Peek, "k", 0).await;
    assert_eq!((found.status, found.charged), (KeyStatus::Over, false));
    let rule = Rule {
        max_hold: 1_000,
        ..Rule::ban(store, "patient-bans", 0, 10)
    };
    let found = rule.ask(store, StepOp::Admit, "k", 0).await;
    assert_eq!((found.status, found.charged), (banned(10, true), false));
}

async fn each_algorithm_has_it(store: &StoreHandle) {
    for (name, limiter) in limiters(2) {
        let rule = Rule {
            max_hold: 1_000,
            ..Rule::counting(store, &format!("patient-{name}"), limiter)
        };
        for status in [KeyStatus::Within, KeyStatus::Within, KeyStatus::Over] {
            let found = rule.ask(store, StepOp::Admit, "k", 0).await;
            assert_eq!((found.status, found.charged), (status, true), "{name}");
        }
    }
}
