//! Tests of the table of keys.

use std::time::Duration;

use super::key_table::{BanNews, KeyNews, KeyTable};
use crate::clock::Timestamp;
use crate::limit::{Algorithm, CounterReading, Limiter};
use crate::rules::plan::RuleId;
use crate::store::async_mode::{FleetInfo, FleetRecord, KeyReport, KeyState};
use crate::store::fixture::at;
use crate::store::redis::FleetKey;

fn limiter() -> Limiter {
    Limiter::new(Algorithm::SlidingWindow, 100, Duration::from_secs(60))
}

fn key(rule: u64, number: u32) -> FleetKey {
    FleetKey::new(RuleId::unregistered(rule), &number.to_le_bytes())
}

/// Adds a key that has `used` of 100 units, for `seconds` from now on.
fn add(table: &mut KeyTable, key: FleetKey, used: u64, now: Timestamp, seconds: u64) {
    let entry = table.get_or_insert(key, now, KeyState::empty);
    let reading = CounterReading::fitting(100 - used, Duration::from_secs(seconds));
    entry.touch(&limiter(), now, &reading);
}

#[test]
fn a_full_table_evicts_expired_keys_first() {
    let mut table = KeyTable::new(8);
    for number in 0..8 {
        let seconds = if number == 5 { 1 } else { 100 };
        add(&mut table, key(1, number), 90, at(0), seconds);
    }
    add(&mut table, key(1, 100), 1, at(50), 100);
    assert!(table.get(key(1, 5)).is_none());
    assert_eq!((table.slots(at(50)).count(), table.evicted()), (8, 0));
}

#[test]
fn a_full_table_evicts_the_key_that_is_furthest_below_its_limit() {
    let mut table = KeyTable::new(8);
    for number in 0..8 {
        let used = if number == 3 { 2 } else { 90 };
        add(&mut table, key(1, number), used, at(0), 100);
    }
    add(&mut table, key(1, 100), 1, at(0), 100);
    assert!(table.get(key(1, 3)).is_none());
    assert_eq!(table.evicted(), 1);
}

#[test]
fn a_flood_of_keys_evicts_no_ban() {
    let mut table = KeyTable::new(64);
    let ban = BanNews {
        until: at(1_000),
        offence: 1,
        started: false,
    };
    let entry = table.get_or_insert(key(1, 0), at(0), KeyState::empty);
    entry.set_ban(ban);
    for number in 1..10_000 {
        add(&mut table, key(1, number), 100, at(0), 100);
    }
    let news = table.get(key(1, 0)).and_then(|entry| entry.news.as_deref());
    assert!(matches!(news, Some(KeyNews::Banned(kept)) if *kept == ban));
    table.forget_bans();
    assert!(table.get(key(1, 0)).unwrap().news.is_none());
}

#[test]
fn a_ban_outweighs_an_exhausted_key() {
    let mut table = KeyTable::new(8);
    let fleet = FleetInfo {
        nodes: 3,
        sync_interval: Duration::from_millis(100),
    };
    let mut record = FleetRecord::new(&limiter());
    let view = record.merge(&limiter(), at(0), KeyReport::default(), 1, &fleet);
    let entry = table.get_or_insert(key(1, 0), at(0), KeyState::empty);
    entry.set_exhausted(view.view.clone());
    let started = BanNews {
        until: at(60),
        offence: 2,
        started: true,
    };
    entry.set_ban(started);
    entry.set_exhausted(view.view);
    // This node's own event comes back and does not hide that the node has started the ban.
    entry.set_ban(BanNews {
        started: false,
        ..started
    });
    assert!(matches!(entry.news.as_deref(), Some(KeyNews::Banned(kept)) if *kept == started));
}

#[test]
fn rules_are_removed_with_their_keys() {
    let mut table = KeyTable::new(1_000);
    for number in 0..300 {
        add(
            &mut table,
            key(u64::from(number % 3), number),
            5,
            at(0),
            100,
        );
    }
    table.remove_rules(|identity| identity == 1);
    assert_eq!(table.slots(at(0)).count(), 200);
    for number in 0..300 {
        let rule = u64::from(number % 3);
        assert_eq!(table.get(key(rule, number)).is_some(), rule != 1);
    }
}
