//! Several steps: which of them are carried out.

use std::time::Duration;

use crate::rules::plan::{KeyStatus, StepOp, StepResult};
use crate::store::StoreHandle;
use crate::store::fixture::{Rule, TestCounters as _, at, banned, plan};

pub(super) async fn all(store: &StoreHandle) {
    an_acting_refusal_ends_the_pass(store).await;
    an_acting_ban_ends_the_pass(store).await;
    what_does_not_act_or_end_goes_on(store).await;
    after_the_end_only_marked_steps_are_looked_at(store).await;
    after_the_end_bans_are_told_and_none_starts(store).await;
}

fn standings(result: &[StepResult]) -> Vec<(u16, KeyStatus)> {
    result.iter().map(|f| (f.step, f.status)).collect()
}

async fn an_acting_refusal_ends_the_pass(store: &StoreHandle) {
    let first = Rule::throttle(store, "end-1", 1);
    let second = Rule::throttle(store, "end-2", 5);
    let plan = plan([
        ("k", first.step(StepOp::Admit, 1)),
        ("k", second.step(StepOp::Admit, 1)),
    ]);
    let found = store.apply_at(&plan, at(0)).await;
    assert_eq!(
        standings(&found),
        [(0, KeyStatus::Within), (1, KeyStatus::Within)]
    );
    let found = store.apply_at(&plan, at(0)).await;
    assert_eq!(standings(&found), [(0, KeyStatus::Over)]);
    assert_eq!(second.left(store, "k", 0).await, 4);
}

async fn an_acting_ban_ends_the_pass(store: &StoreHandle) {
    let first = Rule::ban(store, "end-ban-1", 1, 60);
    let second = Rule::throttle(store, "end-ban-2", 5);
    let plan = plan([
        ("k", first.step(StepOp::Admit, 1)),
        ("k", second.step(StepOp::Admit, 1)),
    ]);
    store.apply_at(&plan, at(0)).await;
    let found = store.apply_at(&plan, at(0)).await;
    assert_eq!(standings(&found), [(0, banned(60, true))]);
    let found = store.apply_at(&plan, at(1)).await;
    assert_eq!(standings(&found), [(0, banned(60, false))]);
    assert_eq!(second.left(store, "k", 1).await, 4);
}

async fn what_does_not_act_or_end_goes_on(store: &StoreHandle) {
    for (name, mitigates, is_terminal) in [("go-on-acts", true, false), ("go-on-ends", false, true)]
    {
        for ban in [0, 60] {
            let first = Rule {
                mitigates,
                is_terminal,
                ..Rule::ban(store, &format!("{name}-{ban}"), 1, ban)
            };
            let second = Rule::throttle(store, &format!("{name}-{ban}-next"), 9);
            let plan = plan([
                ("k", first.step(StepOp::Charge, 1)),
                ("k", second.step(StepOp::Admit, 1)),
            ]);
            for _ in 0..3 {
                assert_eq!(store.apply_at(&plan, at(0)).await.len(), 2);
            }
            assert_eq!(second.left(store, "k", 0).await, 6);
        }
    }
}

async fn after_the_end_only_marked_steps_are_looked_at(store: &StoreHandle) {
    let first = Rule::throttle(store, "after-1", 0);
    let skipped = Rule::throttle(store, "after-2", 5);
    let looked = Rule {
        peek_after_end: true,
        ..Rule::throttle(store, "after-3", 1)
    };
    let steps = |op| {
        plan([
            ("k", first.step(StepOp::Admit, 1)),
            ("k", skipped.step(StepOp::Charge, 1)),
            ("k", looked.step(op, 1)),
        ])
    };
    for op in [StepOp::Admit, StepOp::Charge, StepOp::Admit] {
        let found = store.apply_at(&steps(op), at(0)).await;
        assert_eq!(
            standings(&found),
            [(0, KeyStatus::Over), (2, KeyStatus::Within)]
        );
    }
    assert_eq!(skipped.left(store, "k", 0).await, 5);
    looked.admit(store, "k", 0).await;
    let found = store.apply_at(&steps(StepOp::Admit), at(30)).await;
    assert_eq!(
        standings(&found),
        [(0, KeyStatus::Over), (2, KeyStatus::Over)]
    );
    let wait = found[1].reading.unwrap().retry_after();
    assert_eq!(wait, Some(Duration::from_secs(90)));
}

async fn after_the_end_bans_are_told_and_none_starts(store: &StoreHandle) {
    let first = Rule::throttle(store, "after-ban-1", 0);
    let looked = Rule {
        peek_after_end: true,
        ..Rule::ban(store, "after-ban-2", 1, 600)
    };
    let steps = |op| {
        plan([
            ("k", first.step(StepOp::Admit, 1)),
            ("k", looked.step(op, 1)),
        ])
    };
    looked.admit(store, "k", 0).await;
    // Full, so that counting would ban the key: its wait is reported, and no ban starts.
    let found = store.apply_at(&steps(StepOp::Admit), at(0)).await;
    assert_eq!(found[1].status, KeyStatus::Over);
    assert_eq!(
        found[1].reading.unwrap().retry_after(),
        Some(Duration::from_secs(120))
    );
    let found = store.apply_at(&steps(StepOp::CheckBan), at(0)).await;
    assert_eq!(found[1].status, KeyStatus::Within);
    assert_eq!(looked.admit(store, "k", 0).await, banned(600, true));
    for op in [StepOp::Admit, StepOp::CheckBan] {
        let found = store.apply_at(&steps(op), at(0)).await;
        assert_eq!(found[1].status, banned(600, false));
    }
}
