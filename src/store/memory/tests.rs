//! Tests specific to the memory store: its limits, and what is evicted at them.

use super::bucket::{TableBucket, TableEntry};
use super::hash::KeyTag;
use super::table::{CounterTable, DisplacedEntry};
use super::*;
use crate::rules::plan::{KeyStatus, StepOp};
use crate::store::fixture::{Rule, at, banned, plan};
use crate::store::{Store, StoreBounds};

pub(super) fn memory(store: &Store) -> &MemoryStore {
    store.local()
}

/// One step alone, without awaiting.
pub(super) fn ask(store: &Store, rule: &Rule, op: StepOp, key: &str, secs: u64) -> KeyStatus {
    let plan = plan([(key, rule.step(op, 1))]);
    memory(store).run(&plan, at(secs))[0].status
}

pub(super) fn tracked(store: &Store, secs: u64) -> usize {
    store.keys(at(secs)).iter().map(|(_, count)| count).sum()
}

fn bytes(store: &Store) -> usize {
    let shards = memory(store).shards.iter();
    shards.map(|shard| shard.held.lock().table.bytes()).sum()
}

#[test]
fn a_bucket_is_four_cache_lines() {
    assert_eq!(size_of::<TableBucket>(), 256);
    assert_eq!(align_of::<TableBucket>(), 64);
}

#[test]
fn a_key_takes_at_most_forty_bytes() {
    for max_keys in [1_000, 12_345, 100_000, 1_000_000] {
        let store = Store::memory(StoreBounds::keys(max_keys));
        let shards = size_of_val(&*memory(&store).shards);
        let total = bytes(&store) + shards;
        assert!(total <= 40 * max_keys, "{total} for {max_keys}");
    }
}

#[test]
fn a_store_for_nothing_still_counts_one_key() {
    let store = Store::memory(StoreBounds::keys(0));
    let rule = Rule::throttle(&store, "r", 1);
    assert_eq!(ask(&store, &rule, StepOp::Admit, "a", 0), KeyStatus::Within);
    assert_eq!(ask(&store, &rule, StepOp::Admit, "a", 0), KeyStatus::Over);
    assert_eq!(ask(&store, &rule, StepOp::Admit, "b", 0), KeyStatus::Within);
    assert_eq!(tracked(&store, 0), 1);
}

#[test]
fn keys_are_counted_by_slot_while_they_mean_something() {
    let store = Store::memory(StoreBounds::keys(1_000));
    let busy = Rule::throttle(&store, "busy", 5);
    for key in ["a", "b", "c", "a"] {
        ask(&store, &busy, StepOp::Admit, key, 10);
    }
    ask(&store, &busy, StepOp::Peek, "d", 10);
    assert_eq!(store.keys(at(10)), [(busy.id.slot, 3)]);
    assert_eq!(store.keys(at(119)), [(busy.id.slot, 3)]);
    assert_eq!(store.keys(at(120)), []);
}

#[test]
fn a_flood_neither_grows_the_table_nor_frees_a_banned_key() {
    const KEYS: usize = 100_000;
    let store = Store::memory(StoreBounds::keys(KEYS));
    let ban = Rule::ban(&store, "ban", 0, 3_600);
    let flood = Rule::throttle(&store, "flood", 10);
    let before = bytes(&store);
    for key in 0..1_000 {
        ask(&store, &ban, StepOp::Admit, &format!("banned {key}"), 0);
    }
    std::thread::scope(|scope| {
        for part in 0..2 {
            let (store, flood) = (&store, &flood);
            scope.spawn(move || {
                for key in 0..1_000_000 {
                    let key = format!("{part}/{key}");
                    let found = ask(store, flood, StepOp::Admit, &key, 1);
                    assert_eq!(found, KeyStatus::Within);
                }
            });
        }
    });
    assert_eq!(bytes(&store), before);
    let tracked = tracked(&store, 1);
    assert!(tracked <= KEYS && tracked > KEYS * 95 / 100, "{tracked}");
    let evictions = store.evictions();
    assert_eq!(evictions.counters, 2_000_000 - tracked as u64);
    assert_eq!(evictions.bans, 0);
    for key in 0..1_000 {
        let found = ask(
            &store,
            &ban,
            StepOp::CheckBan,
            &format!("banned {key}"),
            3_599,
        );
        assert_eq!(found, banned(3_600, false));
    }
}

#[test]
fn what_fits_is_not_evicted() {
    for max_keys in [10, 100, 1_000, 50_000] {
        let store = Store::memory(StoreBounds::keys(max_keys));
        let rule = Rule::throttle(&store, "r", 10);
        for key in 0..max_keys {
            ask(&store, &rule, StepOp::Admit, &key.to_string(), 0);
        }
        // Two full buckets before the table is full are rare, not impossible.
        let evicted = store.evictions().counters as usize;
        assert!(evicted <= max_keys / 1_000 + 1, "{evicted} of {max_keys}");
        assert_eq!(tracked(&store, 0), max_keys - evicted);
    }
}

#[test]
fn expired_entries_make_room_first() {
    let store = Store::memory(StoreBounds::keys(8));
    let rule = Rule::throttle(&store, "r", 10);
    for key in 0..4 {
        ask(&store, &rule, StepOp::Admit, &format!("old {key}"), 0);
    }
    for key in 0..4 {
        ask(&store, &rule, StepOp::Admit, &format!("new {key}"), 60);
    }
    // The old ones end at 120, the new ones at 180.
    for key in 0..4 {
        ask(&store, &rule, StepOp::Admit, &format!("newest {key}"), 120);
    }
    assert_eq!(store.evictions().counters, 0);
    assert_eq!(tracked(&store, 120), 8);
    ask(&store, &rule, StepOp::Admit, "one more", 120);
    assert_eq!(store.evictions().counters, 1);
    assert_eq!(tracked(&store, 120), 8);
}

#[test]
fn the_key_furthest_below_its_limit_makes_room() {
    let store = Store::memory(StoreBounds::keys(8));
    let rule = Rule::throttle(&store, "r", 20);
    let keys: Vec<_> = (1..=8).map(|count| format!("key {count}")).collect();
    for (count, key) in (1..=8).zip(&keys) {
        for _ in 0..count {
            ask(&store, &rule, StepOp::Charge, key, 0);
        }
    }
    let newcomer = |name: &str| {
        for _ in 0..9 {
            ask(&store, &rule, StepOp::Charge, name, 0);
        }
    };
    let remaining = |key: &str| {
        let plan = plan([(key, rule.step(StepOp::Peek, 1))]);
        let step_result = memory(&store).run(&plan, at(0))[0];
        step_result.reading.unwrap().remaining
    };
    for (gone, key) in keys.iter().enumerate() {
        newcomer(&format!("newcomer {gone}"));
        assert_eq!(remaining(key), 20);
        for (count, kept) in (1..=8).zip(&keys).skip(gone + 1) {
            assert_eq!(remaining(kept), 20 - count);
        }
    }
    assert_eq!(store.evictions().counters, 8);
}

#[test]
fn a_newcomer_goes_to_the_emptier_bucket() {
    let room = SlotCapacity::of(usize::MAX);
    let mut table = CounterTable::new(2);
    table.allow(10);
    let entry = |tag| TableEntry {
        tag,
        expires: 10,
        ..TableEntry::default()
    };
    for tag in 1..=10 {
        let displaced = table.insert(KeyTag::of(tag), entry(tag), 0, &room);
        assert_eq!(displaced, DisplacedEntry::default());
        let buckets = (1..=tag).filter(|tag| {
            let spot = table.find(KeyTag::of(*tag)).unwrap();
            format!("{spot:?}").contains("bucket: 0")
        });
        let first = buckets.count() as u64;
        assert!(first.abs_diff(tag - first) <= 1, "{first} of {tag}");
    }
}

#[test]
fn the_bound_gives_way_rather_than_leave_a_key_uncounted() {
    let room = SlotCapacity::of(0);
    let mut table = CounterTable::new(1);
    table.allow(10);
    let key = KeyTag::of(5);
    let entry = TableEntry {
        tag: 5,
        expires: 10,
        ..TableEntry::default()
    };
    assert_eq!(
        table.insert(key, entry, 0, &room),
        DisplacedEntry::default()
    );
    assert!(table.find(key).is_some());
    assert!(!room.is_empty());
}

#[test]
fn at_the_bound_the_ban_that_ends_first_makes_room() {
    // Four shards, so that the first to end is mostly in another one.
    let store = Store::memory(StoreBounds::keys(4_096));
    assert_eq!(memory(&store).shards.len(), 4);
    let bound = 1_024;
    let key = |n: u64| format!("key {n}");
    for n in 0..bound + 100 {
        // Ends go down and up again.
        let rule = Rule::ban(&store, "ban", 0, 10_000 + (n * 7_919) % 5_000);
        let found = ask(&store, &rule, StepOp::Admit, &key(n), 0);
        assert!(matches!(found, KeyStatus::Banned { started: true, .. }));
        assert!(matches!(
            ask(&store, &rule, StepOp::CheckBan, &key(n), 0),
            KeyStatus::Banned { started: false, .. }
        ));
    }
    let bans = store.bans(at(0));
    assert_eq!(bans.len() as u64, bound);
    assert_eq!(store.evictions().bans, 100);

    // Each of the hundred was the first to end of those that were there.
    let mut ends: Vec<u64> = (0..bound).map(|n| (n * 7_919) % 5_000).collect();
    for n in bound..bound + 100 {
        ends.sort_unstable();
        ends.remove(0);
        ends.push((n * 7_919) % 5_000);
    }
    ends.sort_unstable();
    let kept: Vec<_> = bans.iter().map(|ban| ban.until).collect();
    let expected: Vec<_> = ends.iter().map(|end| at(10_000 + end)).collect();
    assert_eq!(kept, expected);
}

#[test]
fn bans_that_ended_do_not_hide_which_ends_first() {
    // Which shards the keys are in is chance: enough rounds see every case.
    for _ in 0..12 {
        let store = Store::memory(StoreBounds::keys(4_096));
        let ban = |key: &str, now, secs| {
            let rule = Rule::ban(&store, "ban", 0, secs);
            ask(&store, &rule, StepOp::Admit, key, now)
        };
        for key in 1..1_024 {
            ban(&format!("long {key}"), 0, 1_000 + key);
        }
        ban("short", 0, 10);
        let rule = Rule::ban(&store, "ban", 0, 10);
        assert_eq!(
            ask(&store, &rule, StepOp::CheckBan, "short", 10),
            KeyStatus::Within
        );
        ban("into its place", 10, 5_000);
        assert_eq!(store.evictions().bans, 0);
        ban("one too many", 10, 5_000);
        assert_eq!(store.evictions().bans, 1);
        assert_eq!(store.bans(at(10))[0].until, at(1_002));
    }
}

#[test]
fn ended_bans_make_room_and_count_as_nothing() {
    let store = Store::memory(StoreBounds::keys(16));
    let rule = Rule::ban(&store, "ban", 0, 10);
    for round in 0..20 {
        for key in 0..4 {
            let found = ask(
                &store,
                &rule,
                StepOp::Admit,
                &format!("{round}/{key}"),
                round * 10,
            );
            assert_eq!(found, banned(round * 10 + 10, true));
        }
        assert_eq!(store.bans(at(round * 10)).len(), 4);
    }
    assert_eq!(store.evictions(), EvictionCounts::default());
}

#[test]
fn a_ban_gives_its_counters_place_back() {
    let store = Store::memory(StoreBounds::keys(8));
    let rule = Rule::ban(&store, "ban", 1, 10);
    for key in ["a", "b"] {
        ask(&store, &rule, StepOp::Admit, key, 0);
        ask(&store, &rule, StepOp::Admit, key, 0);
    }
    let throttle = Rule::throttle(&store, "throttle", 1);
    for key in 0..8 {
        ask(&store, &throttle, StepOp::Admit, &key.to_string(), 0);
    }
    assert_eq!(tracked(&store, 0), 8);
    assert_eq!(store.evictions().counters, 0);
}

#[test]
fn long_keys_are_cut_in_listings_but_not_confused() {
    let store = Store::memory(StoreBounds::keys(100));
    let rule = Rule::ban(&store, "ban", 0, 10);
    let long = "x".repeat(SHOWN + 1);
    ask(&store, &rule, StepOp::Admit, &long, 0);
    assert_eq!(&*store.bans(at(0))[0].key, &long.as_bytes()[..SHOWN]);
    let other = "x".repeat(SHOWN + 2);
    assert_eq!(
        ask(&store, &rule, StepOp::CheckBan, &other, 0),
        KeyStatus::Within
    );
    assert_eq!(
        ask(&store, &rule, StepOp::CheckBan, &long, 0),
        banned(10, false)
    );
}

#[test]
fn removed_rules_lose_their_counters_and_bans() {
    let store = Store::memory(StoreBounds::keys(1_000));
    let kept = Rule::ban(&store, "kept", 1, 100);
    let gone = Rule::ban(&store, "gone", 1, 100);
    let idle = Rule::throttle(&store, "idle", 1);
    for rule in [kept, gone] {
        for key in ["banned", "banned", "too", "too", "counted"] {
            ask(&store, &rule, StepOp::Admit, key, 0);
        }
    }
    let short = Rule { ban: 5, ..gone };
    ask(&store, &short, StepOp::Admit, "ended", 0);
    ask(&store, &short, StepOp::Admit, "ended", 0);

    let ended = store.remove_rules(&[gone.id, idle.id], at(10));
    assert_eq!(ended, [2, 0]);
    assert_eq!(store.keys(at(10)), [(kept.id.slot, 1)]);
    assert_eq!(store.bans(at(10)).len(), 2);
    assert_eq!(
        ask(&store, &kept, StepOp::CheckBan, "banned", 10),
        banned(100, false)
    );
    assert_eq!(
        ask(&store, &kept, StepOp::Admit, "counted", 10),
        banned(110, true)
    );

    // Back again, it starts afresh.
    for key in ["banned", "counted"] {
        assert_eq!(
            ask(&store, &gone, StepOp::Admit, key, 10),
            KeyStatus::Within
        );
    }
    assert!(store.remove_rules(&[], at(10)).is_empty());
}
