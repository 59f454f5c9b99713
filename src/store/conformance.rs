//! What every store must do, a sentence a case. Each case has a rule of its own, so that all can
//! share one store.

use std::time::Duration;

use super::Store;
use super::fixture::{Rule, at, banned, plan};
use crate::limit::Reading;
use crate::rules::plan::{Findings, Op, Standing};

/// Runs every case.
pub(super) async fn all(store: &Store) {
    throttle_refuses_what_is_over(store).await;
    a_refusal_takes_nothing(store).await;
    a_charge_passes_the_limit(store).await;
    a_look_takes_nothing(store).await;
    a_pass_leaves_the_counter_alone(store).await;
    keys_and_rules_are_apart(store).await;
    a_cost_above_the_limit_never_fits(store).await;
    a_ban_starts_past_the_limit(store).await;
    a_ban_clears_the_counter_and_nothing_is_charged(store).await;
    a_look_starts_no_ban(store).await;
    an_acting_refusal_ends_the_pass(store).await;
    an_acting_ban_ends_the_pass(store).await;
    what_does_not_act_or_end_goes_on(store).await;
    after_the_end_only_marked_steps_are_looked_at(store).await;
    after_the_end_bans_are_told_and_none_starts(store).await;
    the_same_identity_keeps_its_id(store);
    a_changed_limit_keeps_the_count(store).await;
    bans_are_listed_with_their_keys(store).await;
}

fn standings(findings: &Findings) -> Vec<(u16, Standing)> {
    findings.iter().map(|f| (f.step, f.standing)).collect()
}

async fn throttle_refuses_what_is_over(store: &Store) {
    let rule = Rule::throttle(store, "over", 2);
    assert_eq!(rule.admit(store, "k", 0).await, Standing::Within);
    let second = rule.ask(store, Op::Admit, "k", 1).await;
    assert_eq!(second.standing, Standing::Within);
    let reading = Reading {
        fits: true,
        remaining: 0,
        reset_after: Duration::from_secs(119),
        retry_after: Some(Duration::ZERO),
        wait: Duration::ZERO,
    };
    assert_eq!(second.reading, Some(reading));
    let third = rule.ask(store, Op::Admit, "k", 30).await;
    assert_eq!(third.standing, Standing::Over);
    let reading = Reading {
        fits: false,
        remaining: 0,
        reset_after: Duration::from_secs(90),
        retry_after: Some(Duration::from_secs(60)),
        wait: Duration::ZERO,
    };
    assert_eq!(third.reading, Some(reading));
    assert_eq!(rule.admit(store, "k", 89).await, Standing::Over);
    assert_eq!(rule.admit(store, "k", 90).await, Standing::Within);
}

async fn a_refusal_takes_nothing(store: &Store) {
    let rule = Rule::throttle(store, "refusal", 1);
    rule.admit(store, "k", 0).await;
    for secs in 1..50 {
        assert_eq!(rule.admit(store, "k", secs).await, Standing::Over);
    }
    assert_eq!(rule.admit(store, "k", 120).await, Standing::Within);
}

async fn a_charge_passes_the_limit(store: &Store) {
    let rule = Rule::throttle(store, "charge", 2);
    for expected in [Standing::Within, Standing::Within, Standing::Over] {
        let found = rule.ask(store, Op::Charge, "k", 0).await;
        assert_eq!(found.standing, expected);
    }
    rule.ask(store, Op::Charge, "k", 0).await;
    // Four were counted: one still weighs when three quarters of the next minute have passed.
    assert_eq!(rule.admit(store, "k", 104).await, Standing::Over);
    assert_eq!(rule.admit(store, "k", 105).await, Standing::Within);
}

async fn a_look_takes_nothing(store: &Store) {
    let rule = Rule::throttle(store, "look", 1);
    for _ in 0..3 {
        let found = rule.ask(store, Op::Peek, "k", 0).await;
        assert_eq!(found.standing, Standing::Within);
    }
    assert_eq!(rule.admit(store, "k", 0).await, Standing::Within);
    let found = rule.ask(store, Op::Peek, "k", 0).await;
    assert_eq!(found.standing, Standing::Over);
    assert_eq!(
        found.reading.unwrap().retry_after,
        Some(Duration::from_secs(120))
    );
}

async fn a_pass_leaves_the_counter_alone(store: &Store) {
    let rule = Rule::throttle(store, "pass", 1);
    rule.ask(store, Op::Charge, "k", 0).await;
    rule.ask(store, Op::Charge, "k", 0).await;
    let found = rule.ask(store, Op::Pass, "k", 0).await;
    assert_eq!(found.standing, Standing::Within);
    assert_eq!(found.reading, None);
}

async fn keys_and_rules_are_apart(store: &Store) {
    let one = Rule::throttle(store, "apart-1", 1);
    let two = Rule::throttle(store, "apart-2", 1);
    for rule in [one, two] {
        for key in ["", "a", "b", "ab"] {
            assert_eq!(rule.admit(store, key, 0).await, Standing::Within);
            assert_eq!(rule.admit(store, key, 0).await, Standing::Over);
        }
    }
}

async fn a_cost_above_the_limit_never_fits(store: &Store) {
    let rule = Rule::throttle(store, "cost", 5);
    let ask = async |cost| {
        let plan = plan([("k", rule.step(Op::Admit, cost))]);
        store.apply(&plan, at(0)).await[0]
    };
    let found = ask(6).await;
    assert_eq!(found.standing, Standing::Over);
    assert_eq!(found.reading.unwrap().retry_after, None);
    assert_eq!(ask(0).await.standing, Standing::Within);
    assert_eq!(ask(5).await.standing, Standing::Within);
    assert_eq!(ask(1).await.standing, Standing::Over);
}

async fn a_ban_starts_past_the_limit(store: &Store) {
    for (name, op) in [("ban-admit", Op::Admit), ("ban-charge", Op::Charge)] {
        let rule = Rule::ban(store, name, 2, 300);
        for _ in 0..2 {
            let found = rule.ask(store, op, "k", 0).await;
            assert_eq!(found.standing, Standing::Within);
        }
        let found = rule.ask(store, op, "k", 10).await;
        assert_eq!(found.standing, banned(310, true));
        let reading = found.reading.unwrap();
        assert!(!reading.fits);
        assert_eq!(reading.remaining, 0);
        assert_eq!(reading.retry_after, Some(Duration::from_secs(300)));
        assert_eq!(rule.admit(store, "other", 10).await, Standing::Within);
    }
}

async fn a_ban_clears_the_counter_and_nothing_is_charged(store: &Store) {
    let rule = Rule::ban(store, "ban-clears", 2, 20);
    for _ in 0..3 {
        rule.admit(store, "k", 0).await;
    }
    for op in [Op::Admit, Op::Charge, Op::Peek, Op::Pass] {
        let found = rule.ask(store, op, "k", 19).await;
        assert_eq!(found.standing, banned(20, false));
        assert_eq!(found.reading, None);
    }
    // It ends at its very second, in the same minute, and the key starts afresh.
    assert_eq!(rule.left(store, "k", 20).await, 2);
    assert_eq!(rule.admit(store, "k", 20).await, Standing::Within);
    assert_eq!(rule.admit(store, "k", 20).await, Standing::Within);
    assert_eq!(rule.admit(store, "k", 21).await, banned(41, true));
}

async fn a_look_starts_no_ban(store: &Store) {
    let rule = Rule::ban(store, "ban-look", 1, 60);
    rule.admit(store, "k", 0).await;
    for op in [Op::Peek, Op::Pass] {
        let found = rule.ask(store, op, "k", 0).await;
        assert_eq!(found.standing, Standing::Within);
    }
    assert_eq!(rule.admit(store, "k", 0).await, banned(60, true));
}

async fn an_acting_refusal_ends_the_pass(store: &Store) {
    let first = Rule::throttle(store, "end-1", 1);
    let second = Rule::throttle(store, "end-2", 5);
    let plan = plan([
        ("k", first.step(Op::Admit, 1)),
        ("k", second.step(Op::Admit, 1)),
    ]);
    let found = store.apply(&plan, at(0)).await;
    assert_eq!(
        standings(&found),
        [(0, Standing::Within), (1, Standing::Within)]
    );
    let found = store.apply(&plan, at(0)).await;
    assert_eq!(standings(&found), [(0, Standing::Over)]);
    assert_eq!(second.left(store, "k", 0).await, 4);
}

async fn an_acting_ban_ends_the_pass(store: &Store) {
    let first = Rule::ban(store, "end-ban-1", 1, 60);
    let second = Rule::throttle(store, "end-ban-2", 5);
    let plan = plan([
        ("k", first.step(Op::Admit, 1)),
        ("k", second.step(Op::Admit, 1)),
    ]);
    store.apply(&plan, at(0)).await;
    let found = store.apply(&plan, at(0)).await;
    assert_eq!(standings(&found), [(0, banned(60, true))]);
    let found = store.apply(&plan, at(1)).await;
    assert_eq!(standings(&found), [(0, banned(60, false))]);
    assert_eq!(second.left(store, "k", 1).await, 4);
}

async fn what_does_not_act_or_end_goes_on(store: &Store) {
    for (name, acts, ends_pass) in [("go-on-acts", true, false), ("go-on-ends", false, true)] {
        for ban in [0, 60] {
            let first = Rule {
                acts,
                ends_pass,
                ..Rule::ban(store, &format!("{name}-{ban}"), 1, ban)
            };
            let second = Rule::throttle(store, &format!("{name}-{ban}-next"), 9);
            let plan = plan([
                ("k", first.step(Op::Charge, 1)),
                ("k", second.step(Op::Admit, 1)),
            ]);
            for _ in 0..3 {
                assert_eq!(store.apply(&plan, at(0)).await.len(), 2);
            }
            assert_eq!(second.left(store, "k", 0).await, 6);
        }
    }
}

async fn after_the_end_only_marked_steps_are_looked_at(store: &Store) {
    let first = Rule::throttle(store, "after-1", 0);
    let skipped = Rule::throttle(store, "after-2", 5);
    let looked = Rule {
        peek_after_end: true,
        ..Rule::throttle(store, "after-3", 1)
    };
    let steps = |op| {
        plan([
            ("k", first.step(Op::Admit, 1)),
            ("k", skipped.step(Op::Charge, 1)),
            ("k", looked.step(op, 1)),
        ])
    };
    for op in [Op::Admit, Op::Charge, Op::Admit] {
        let found = store.apply(&steps(op), at(0)).await;
        assert_eq!(
            standings(&found),
            [(0, Standing::Over), (2, Standing::Within)]
        );
    }
    assert_eq!(skipped.left(store, "k", 0).await, 5);
    looked.admit(store, "k", 0).await;
    let found = store.apply(&steps(Op::Admit), at(30)).await;
    assert_eq!(
        standings(&found),
        [(0, Standing::Over), (2, Standing::Over)]
    );
    let wait = found[1].reading.unwrap().retry_after;
    assert_eq!(wait, Some(Duration::from_secs(90)));
}

async fn after_the_end_bans_are_told_and_none_starts(store: &Store) {
    let first = Rule::throttle(store, "after-ban-1", 0);
    let looked = Rule {
        peek_after_end: true,
        ..Rule::ban(store, "after-ban-2", 1, 600)
    };
    let steps = |op| plan([("k", first.step(Op::Admit, 1)), ("k", looked.step(op, 1))]);
    looked.admit(store, "k", 0).await;
    // Full, so that counting it would ban the key: its wait is told, and nothing happens.
    let found = store.apply(&steps(Op::Admit), at(0)).await;
    assert_eq!(found[1].standing, Standing::Over);
    assert_eq!(
        found[1].reading.unwrap().retry_after,
        Some(Duration::from_secs(120))
    );
    let found = store.apply(&steps(Op::Pass), at(0)).await;
    assert_eq!(found[1].standing, Standing::Within);
    assert_eq!(looked.admit(store, "k", 0).await, banned(600, true));
    for op in [Op::Admit, Op::Pass] {
        let found = store.apply(&steps(op), at(0)).await;
        assert_eq!(found[1].standing, banned(600, false));
    }
}

fn the_same_identity_keeps_its_id(store: &Store) {
    let first = store.register(41, "same");
    let other = store.register(42, "other");
    assert_eq!(store.register(41, "renamed"), first);
    assert_ne!(first.slot, other.slot);
    assert_eq!((first.identity, other.identity), (41, 42));
}

async fn a_changed_limit_keeps_the_count(store: &Store) {
    let rule = Rule::throttle(store, "changed", 5);
    for _ in 0..3 {
        rule.admit(store, "k", 0).await;
    }
    let tighter = Rule { limit: 3, ..rule };
    assert_eq!(tighter.admit(store, "k", 0).await, Standing::Over);
    let wider = Rule { limit: 10, ..rule };
    assert_eq!(wider.left(store, "k", 0).await, 7);
}

async fn bans_are_listed_with_their_keys(store: &Store) {
    let rule = Rule::ban(store, "listed", 0, 60);
    rule.admit(store, "first", 5).await;
    rule.admit(store, "second", 0).await;
    let listed = |secs| -> Vec<_> {
        let bans = store.bans(at(secs)).into_iter();
        let own = bans.filter(|ban| ban.id == rule.id);
        own.map(|ban| (String::from_utf8(ban.key.into()).unwrap(), ban.until))
            .collect()
    };
    let first = ("first".to_owned(), at(65));
    assert_eq!(listed(10), [("second".to_owned(), at(60)), first.clone()]);
    assert_eq!(listed(60), [first]);
    assert_eq!(listed(65), []);
}
