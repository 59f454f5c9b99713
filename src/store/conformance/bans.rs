//! Bans: when they begin, how long they last, what they clear.

use std::time::Duration;

use crate::rules::plan::{KeyStatus, StepOp};
use crate::store::fixture::{Rule, at, banned};
use crate::store::{BanEntry, StoreHandle};

const DAY: u64 = 24 * 60 * 60;

pub(super) async fn all(store: &StoreHandle) {
    a_ban_starts_past_the_limit(store).await;
    a_ban_clears_the_counter_and_nothing_is_charged(store).await;
    a_look_starts_no_ban(store).await;
    bans_are_listed_with_their_keys(store).await;
    the_next_offence_within_a_day_is_banned_for_longer(store).await;
    a_day_after_a_bans_end_it_is_forgotten(store).await;
    offences_belong_to_one_rule_and_key(store).await;
    an_ended_ban_leaves_the_key_free(store).await;
    bans_of_one_length_are_each_the_first(store).await;
    a_request_that_meets_a_ban_is_not_charged(store).await;
}

async fn a_ban_starts_past_the_limit(store: &StoreHandle) {
    for (name, op) in [("ban-admit", StepOp::Admit), ("ban-charge", StepOp::Charge)] {
        let rule = Rule::ban(store, name, 2, 300);
        for _ in 0..2 {
            let found = rule.ask(store, op, "k", 0).await;
            assert_eq!(found.status, KeyStatus::Within);
        }
        let found = rule.ask(store, op, "k", 10).await;
        assert_eq!(found.status, banned(310, true));
        let reading = found.reading.unwrap();
        assert!(!reading.fits);
        assert_eq!(reading.remaining, 0);
        assert_eq!(reading.retry_after(), Some(Duration::from_secs(300)));
        assert_eq!(rule.admit(store, "other", 10).await, KeyStatus::Within);
    }
}

async fn a_ban_clears_the_counter_and_nothing_is_charged(store: &StoreHandle) {
    let rule = Rule::ban(store, "ban-clears", 2, 20);
    for _ in 0..3 {
        rule.admit(store, "k", 0).await;
    }
    for op in [
        StepOp::Admit,
        StepOp::Charge,
        StepOp::Peek,
        StepOp::CheckBan,
    ] {
        let found = rule.ask(store, op, "k", 19).await;
        assert_eq!(found.status, banned(20, false));
        assert_eq!(found.reading, None);
    }
    // The ban ends at its exact second, and the counter restarts.
    assert_eq!(rule.left(store, "k", 20).await, 2);
    assert_eq!(rule.admit(store, "k", 20).await, KeyStatus::Within);
    assert_eq!(rule.admit(store, "k", 20).await, KeyStatus::Within);
    assert_eq!(rule.admit(store, "k", 21).await, banned(41, true));
}

async fn a_look_starts_no_ban(store: &StoreHandle) {
    let rule = Rule::ban(store, "ban-look", 1, 60);
    rule.admit(store, "k", 0).await;
    for op in [StepOp::Peek, StepOp::CheckBan] {
        let found = rule.ask(store, op, "k", 0).await;
        assert_eq!(found.status, KeyStatus::Within);
    }
    assert_eq!(rule.admit(store, "k", 0).await, banned(60, true));
}

async fn bans_are_listed_with_their_keys(store: &StoreHandle) {
    let rule = Rule::ban(store, "listed", 0, 60);
    rule.admit(store, "first", 5).await;
    rule.admit(store, "second", 0).await;
    let listed = |secs| -> Vec<_> {
        let bans = store.store().local().bans(at(secs)).into_iter();
        let own = bans.filter(|ban| ban.id == rule.id);
        own.map(|ban| (String::from_utf8(ban.key.into()).unwrap(), ban.until))
            .collect()
    };
    let first = ("first".to_owned(), at(65));
    assert_eq!(listed(10), [("second".to_owned(), at(60)), first.clone()]);
    assert_eq!(listed(60), [first]);
    assert_eq!(listed(65), []);
}

async fn the_next_offence_within_a_day_is_banned_for_longer(store: &StoreHandle) {
    let rule = Rule::escalating(store, "escalates", 0, &[10, 60, 300]);
    // Each one comes in the last second in which the one before counts.
    let mut now = 0;
    for (offence, length) in (1..).zip([10, 60, 300, 300, 300]) {
        assert_eq!(
            rule.admit(store, "k", now).await,
            banned(now + length, true)
        );
        let listed: Vec<_> = own(store, &rule, now).collect();
        assert_eq!(listed.len(), 1);
        assert_eq!(listed[0].offence, offence);
        assert_eq!(
            rule.admit(store, "k", now + length - 1).await,
            banned(now + length, false)
        );
        now += length + DAY - 1;
        assert_eq!(own(store, &rule, now).count(), 0);
    }
}

async fn a_day_after_a_bans_end_it_is_forgotten(store: &StoreHandle) {
    let rule = Rule::escalating(store, "forgets", 0, &[10, 60]);
    rule.admit(store, "k", 0).await;
    assert_eq!(rule.admit(store, "k", 10).await, banned(70, true));
    let later = 70 + DAY;
    assert_eq!(
        rule.admit(store, "k", later).await,
        banned(later + 10, true)
    );
    assert_eq!(own(store, &rule, later).next().unwrap().offence, 1);
}

async fn offences_belong_to_one_rule_and_key(store: &StoreHandle) {
    let rule = Rule::escalating(store, "offences", 0, &[10, 60]);
    let other = Rule::escalating(store, "other-offences", 0, &[10, 60]);
    rule.admit(store, "k", 0).await;
    assert_eq!(rule.admit(store, "l", 20).await, banned(30, true));
    assert_eq!(other.admit(store, "k", 20).await, banned(30, true));
    assert_eq!(rule.admit(store, "k", 20).await, banned(80, true));
}

async fn an_ended_ban_leaves_the_key_free(store: &StoreHandle) {
    let rule = Rule::escalating(store, "free-again", 1, &[10, 60]);
    rule.admit(store, "k", 0).await;
    assert_eq!(rule.admit(store, "k", 0).await, banned(10, true));
    for op in [StepOp::Peek, StepOp::CheckBan, StepOp::Admit] {
        assert_eq!(rule.ask(store, op, "k", 10).await.status, KeyStatus::Within);
    }
    assert_eq!(rule.admit(store, "k", 11).await, banned(71, true));
}

async fn bans_of_one_length_are_each_the_first(store: &StoreHandle) {
    let rule = Rule::ban(store, "same-length", 0, 10);
    for now in [0, 10, 20] {
        assert_eq!(rule.admit(store, "k", now).await, banned(now + 10, true));
        assert_eq!(own(store, &rule, now).next().unwrap().offence, 1);
    }
}

async fn a_request_that_meets_a_ban_is_not_charged(store: &StoreHandle) {
    let rule = Rule::ban(store, "uncharged", 1, 10);
    for (op, charged) in [
        (StepOp::Charge, true),
        (StepOp::Charge, false),
        (StepOp::Admit, false),
    ] {
        assert_eq!(rule.ask(store, op, "k", 0).await.charged, charged);
    }
}

fn own(store: &StoreHandle, rule: &Rule, secs: u64) -> impl Iterator<Item = BanEntry> {
    let bans = store.store().local().bans(at(secs)).into_iter();
    bans.filter(|ban| ban.id == rule.id)
}
