//! Bans by hand, their end, and their restoration.

use super::*;
use crate::rules::plan::{KeyStatus, StepOp};
use crate::store::fixture::{Rule, at, banned};
use crate::store::memory::SHOWN;
use crate::store::memory::tests::ask;
use crate::store::{AdminNote, BanAuthor, Store, StoreBounds};

fn store() -> Store {
    Store::memory(StoreBounds::keys(4_096))
}

fn by_hand(until: u64) -> BanTerms {
    BanTerms::by_hand(at(0), at(until), AdminNote::new("scraper").unwrap())
}

fn ids(store: &Store, rule: &Rule) -> Vec<BanId> {
    let bans = store.local().list_bans(Some(rule.id), at(0));
    bans.into_iter().map(|ban| ban.ban_id).collect()
}

#[test]
fn a_ban_by_hand_applies_to_any_rule_that_counts() {
    let store = store();
    let rule = Rule::throttle(&store, "by-hand", 100);
    let key = &BanKey::of(b"k");
    let ban = store
        .local()
        .add_ban(rule.id, key, by_hand(60), false, at(0));
    let ban = ban.unwrap();
    assert_eq!(
        (ban.until, ban.offence, ban.note()),
        (at(60), 1, Some("scraper"))
    );
    assert_eq!(ban.ban_id, BanId::of(rule.id, b"k"));
    assert_eq!(store.bans(at(0)), [ban]);
    assert_eq!(
        ask(&store, &rule, StepOp::Admit, "k", 59),
        banned(60, false)
    );
    assert_eq!(
        ask(&store, &rule, StepOp::Admit, "k", 60),
        KeyStatus::Within
    );
}

#[test]
fn a_ban_is_ended_and_restored_by_its_id() {
    let store = store();
    let rule = Rule::ban(&store, "undo", 0, 300);
    let long = "k".repeat(1_000);
    for key in ["k", &long] {
        ask(&store, &rule, StepOp::Admit, key, 0);
        let [id] = ids(&store, &rule)[..] else {
            panic!("one ban");
        };
        assert_eq!(id, BanId::of(rule.id, key.as_bytes()));
        let removed = store.local().remove_ban(rule.id, &BanKey::Id(id), at(10));
        let removed = removed.unwrap();
        assert_eq!(
            (removed.until, removed.key.len()),
            (at(300), key.len().min(SHOWN))
        );
        let check = |secs| ask(&store, &rule, StepOp::CheckBan, key, secs);
        assert_eq!(check(10), KeyStatus::Within);
        let again = store.local().remove_ban(rule.id, &BanKey::Id(id), at(10));
        assert_eq!(again, Err(AdminError::NotFound));
        let terms = BanTerms {
            until: removed.until,
            since: removed.since,
            by: removed.by.clone(),
            offence: Some(removed.offence),
        };
        let restore = |now| {
            store
                .local()
                .add_ban(rule.id, &BanKey::Id(id), terms.clone(), false, now)
        };
        assert_eq!(restore(at(300)), Err(AdminError::AlreadyEnded));
        assert_eq!(restore(at(20)), Ok(removed));
        assert_eq!(check(299), banned(300, false));
        store
            .local()
            .remove_ban(rule.id, &BanKey::of(key.as_bytes()), at(20))
            .unwrap();
        assert_eq!(check(20), KeyStatus::Within);
    }
}

#[test]
fn an_unknown_id_or_that_of_another_rule_is_an_error() {
    let store = store();
    let [rule, other] = ["one", "two"].map(|name| Rule::ban(&store, name, 0, 300));
    ask(&store, &rule, StepOp::Admit, "k", 0);
    let key = &BanKey::Id(BanId::of(rule.id, b"k"));
    let local = store.local();
    assert_eq!(
        local.remove_ban(other.id, key, at(0)),
        Err(AdminError::NotFound)
    );
    assert_eq!(
        local.add_ban(other.id, key, by_hand(9), false, at(0)),
        Err(AdminError::NotFound)
    );
    let unknown = &BanKey::Id(BanId::of(rule.id, b"unknown"));
    assert_eq!(
        local.add_ban(rule.id, unknown, by_hand(9), false, at(0)),
        Err(AdminError::NotFound)
    );
    // A ban that is in force is found by its id, and replaced.
    let longer = local
        .add_ban(rule.id, key, by_hand(900), false, at(0))
        .unwrap();
    assert!(matches!(longer.by, BanAuthor::Manual(_)));
    assert_eq!(store.bans(at(0)), [longer]);
}

#[test]
fn a_ban_by_hand_keeps_the_offences_of_the_key() {
    let store = store();
    let rule = Rule::escalating(&store, "keeps-offences", 0, &[10, 60, 300]);
    ask(&store, &rule, StepOp::Admit, "k", 0);
    let key = &BanKey::of(b"k");
    store
        .local()
        .add_ban(rule.id, key, by_hand(100), false, at(20))
        .unwrap();
    assert_eq!(
        ask(&store, &rule, StepOp::Admit, "k", 99),
        banned(100, false)
    );
    assert_eq!(
        ask(&store, &rule, StepOp::Admit, "k", 100),
        banned(160, true)
    );
    // An unban forgets them, and its undo brings them back.
    let removed = store.local().remove_ban(rule.id, key, at(110)).unwrap();
    assert_eq!(removed.offence, 2);
    let terms = BanTerms {
        until: removed.until,
        since: removed.since,
        by: removed.by,
        offence: Some(2),
    };
    store
        .local()
        .add_ban(rule.id, key, terms, false, at(110))
        .unwrap();
    assert_eq!(
        ask(&store, &rule, StepOp::Admit, "k", 160),
        banned(460, true)
    );
}

#[test]
fn a_ban_by_hand_needs_capacity_as_any_ban() {
    let store = Store::memory(StoreBounds::keys(16));
    let rule = Rule::throttle(&store, "four-bans", 100);
    for key in 0..9u8 {
        let until = by_hand(60 + u64::from(key));
        store
            .local()
            .add_ban(rule.id, &BanKey::of(&[key]), until, false, at(0))
            .unwrap();
    }
    assert_eq!(store.bans(at(0)).len(), 4);
    assert_eq!(store.evictions().bans, 5);
    let key = &BanKey::of(&[8]);
    for _ in 0..9 {
        store.local().remove_ban(rule.id, key, at(0)).unwrap();
        store
            .local()
            .add_ban(rule.id, key, by_hand(90), false, at(0))
            .unwrap();
    }
    assert_eq!(store.bans(at(0)).len(), 4);
    assert_eq!(store.evictions().bans, 5);
}

#[test]
fn only_the_newest_removed_bans_can_be_restored_by_their_id() {
    let store = store();
    let rule = Rule::throttle(&store, "removed", 100);
    let keys: Vec<_> = (0..=MAX_REMOVED as u32).map(u32::to_le_bytes).collect();
    for key in &keys {
        let key = &BanKey::of(key);
        store
            .local()
            .add_ban(rule.id, key, by_hand(60), false, at(0))
            .unwrap();
        store.local().remove_ban(rule.id, key, at(0)).unwrap();
    }
    let restore = |key: &[u8]| {
        let id = &BanKey::Id(BanId::of(rule.id, key));
        store
            .local()
            .add_ban(rule.id, id, by_hand(60), false, at(0))
    };
    assert_eq!(restore(&keys[0]), Err(AdminError::NotFound));
    assert!(restore(&keys[1]).is_ok());
    assert!(restore(&keys[MAX_REMOVED]).is_ok());
}
