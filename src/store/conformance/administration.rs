//! Changes that people make, where a store decides requests by them. The stores use the system's clock.

use std::time::Duration;

use crate::clock::{Clock, Timestamp};
use crate::rules::BanId;
use crate::rules::plan::{KeyStatus, StepOp, StoreMode};
use crate::store::fixture::{Rule, TestCounters as _};
use crate::store::{
    AdminError, AdminNote, BanAuthor, BanKey, BanRequest, BanTerms, InspectedRule, KeyUsage,
    StoreHandle,
};

const MINUTE: Duration = Duration::from_secs(60);

pub(in crate::store) async fn all(store: &StoreHandle) {
    a_ban_by_hand_applies_until_its_end(store).await;
    a_ban_ends_by_key_or_id_and_is_restored(store).await;
    a_ban_by_hand_is_no_offence(store).await;
    a_removed_escalation_is_restored(store).await;
    an_end_in_the_past_is_an_error(store).await;
    counters_are_read_without_a_charge(store).await;
}

async fn a_ban_by_hand_applies_until_its_end(store: &StoreHandle) {
    let rule = Rule::throttle(store, "admin-by-hand", 100);
    let (now, until) = times();
    let change = store.ban(request(&rule, "k", until)).await.unwrap();
    assert_eq!((change.record.until, change.record.offence), (until, 1));
    assert!(matches!(change.record.by, BanAuthor::Manual(_)));
    for op in [StepOp::Admit, StepOp::CheckBan, StepOp::Peek] {
        assert_eq!(status(store, &rule, op, "k", now).await, is_banned(until));
    }
    let after = until.plus(Duration::from_millis(1));
    assert_eq!(
        status(store, &rule, StepOp::Admit, "k", after).await,
        KeyStatus::Within
    );
    assert_eq!(
        status(store, &rule, StepOp::Admit, "l", now).await,
        KeyStatus::Within
    );
}

async fn a_ban_ends_by_key_or_id_and_is_restored(store: &StoreHandle) {
    let rule = Rule::ban(store, "admin-undo", 1, 3_600);
    let long = "k".repeat(1_000);
    for key in ["k", &long] {
        let (now, _) = times();
        for _ in 0..2 {
            status(store, &rule, StepOp::Admit, key, now).await;
        }
        let until = Timestamp::from_micros(now.plus(60 * MINUTE).as_micros());
        let id = BanKey::Id(BanId::of(rule.id, key.as_bytes()));
        for ban in [BanKey::of(key.as_bytes()), id.clone()] {
            let removed = store.unban(rule.id, &ban).await.unwrap().record;
            assert_eq!(removed.until.as_micros(), until.as_micros());
            assert_eq!((removed.offence, &removed.by), (1, &BanAuthor::Rule));
            let check = status(store, &rule, StepOp::CheckBan, key, now).await;
            assert_eq!(check, KeyStatus::Within);
            assert_eq!(store.unban(rule.id, &ban).await, Err(AdminError::NotFound));
            let undo = BanRequest {
                key: id.clone(),
                terms: removed.terms(),
                ..request(&rule, key, until)
            };
            let restored = store.ban(undo).await.unwrap().record;
            assert_eq!(restored.since, removed.since);
            let check = status(store, &rule, StepOp::CheckBan, key, now).await;
            assert_eq!(check, is_banned(until));
        }
    }
}

async fn a_ban_by_hand_is_no_offence(store: &StoreHandle) {
    let rule = Rule::escalating(store, "admin-no-offence", 0, &[10, 60]);
    let (now, until) = times();
    store.ban(request(&rule, "k", until)).await.unwrap();
    let later = until.plus(Duration::from_secs(1));
    let first = is_started(later.plus(Duration::from_secs(10)));
    assert_eq!(status(store, &rule, StepOp::Admit, "k", later).await, first);
    // One between two offences keeps the first.
    status(store, &rule, StepOp::Admit, "l", now).await;
    store.ban(request(&rule, "l", until)).await.unwrap();
    let second = is_started(later.plus(MINUTE));
    assert_eq!(
        status(store, &rule, StepOp::Admit, "l", later).await,
        second
    );
}

async fn a_removed_escalation_is_restored(store: &StoreHandle) {
    let rule = Rule::escalating(store, "admin-escalation", 0, &[1, 3_600, 7_200]);
    let (now, _) = times();
    status(store, &rule, StepOp::Admit, "k", now).await;
    let again = now.plus(Duration::from_secs(1));
    let hour = again.plus(60 * MINUTE);
    assert_eq!(
        status(store, &rule, StepOp::Admit, "k", again).await,
        is_started(hour)
    );
    let key = BanKey::of(b"k");
    let removed = store.unban(rule.id, &key).await.unwrap().record;
    assert_eq!(removed.offence, 2);
    let undo = BanRequest {
        terms: removed.terms(),
        ..request(&rule, "k", hour)
    };
    assert_eq!(store.ban(undo).await.unwrap().record.offence, 2);
    let third = hour.plus(120 * MINUTE);
    assert_eq!(
        status(store, &rule, StepOp::Admit, "k", hour).await,
        is_started(third)
    );
}

async fn an_end_in_the_past_is_an_error(store: &StoreHandle) {
    let rule = Rule::throttle(store, "admin-past", 100);
    let (now, _) = times();
    let change = store.ban(request(&rule, "k", now)).await;
    assert_eq!(change.unwrap_err(), AdminError::AlreadyEnded);
    let unbanned = store.unban(rule.id, &BanKey::of(b"k")).await;
    assert_eq!(unbanned.unwrap_err(), AdminError::NotFound);
}

async fn counters_are_read_without_a_charge(store: &StoreHandle) {
    let (counting, banning) = (
        Rule::throttle(store, "admin-peek", 10),
        Rule::ban(store, "admin-peek-ban", 1, 3_600),
    );
    let (now, _) = times();
    for _ in 0..4 {
        status(store, &counting, StepOp::Admit, "k", now).await;
        status(store, &banning, StepOp::Admit, "k", now).await;
    }
    let keys = [b"k".to_vec(), b"l".to_vec()];
    let peek = async |rule: &Rule| {
        let rule = InspectedRule {
            id: rule.id,
            limiter: rule.step(StepOp::Peek, 1).limiter,
            mode: StoreMode::Exact,
        };
        store.peek(&rule, &keys).await
    };
    for _ in 0..2 {
        let expected = [KeyUsage::counted(4), KeyUsage::default()];
        assert_eq!(peek(&counting).await, expected);
    }
    let banned = peek(&banning).await;
    assert_eq!((banned[0].count, banned[1]), (0, KeyUsage::default()));
    assert!(banned[0].banned_until.is_some());
}

/// Now, and the end of a ban.
fn times() -> (Timestamp, Timestamp) {
    let now = Timestamp::from_micros(Clock::System.now().as_micros());
    (now, now.plus(MINUTE))
}

fn request(rule: &Rule, key: &str, until: Timestamp) -> BanRequest {
    let note = AdminNote::new("test").unwrap();
    BanRequest {
        rule: rule.id,
        key: BanKey::of(key.as_bytes()),
        text: key.into(),
        cause: "by hand: test".into(),
        terms: BanTerms::by_hand(times().0, until, note),
    }
}

async fn status(
    store: &StoreHandle,
    rule: &Rule,
    op: StepOp,
    key: &str,
    now: Timestamp,
) -> KeyStatus {
    store.apply_one(rule.step(op, 1), key, now).await.status
}

fn is_banned(until: Timestamp) -> KeyStatus {
    let started = false;
    KeyStatus::Banned { until, started }
}

fn is_started(until: Timestamp) -> KeyStatus {
    let started = true;
    KeyStatus::Banned { until, started }
}
