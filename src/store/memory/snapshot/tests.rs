//! Stores before and after a restart.

use std::time::Duration;

use proptest::prelude::*;

use super::super::tests::{ask, memory, tracked};
use super::*;
use crate::limit::{Limiter, ShareCounter, ShareRatio};
use crate::rules::BanId;
use crate::rules::plan::{BanLength, KeyStatus, Step, StepOp, StepResult};
use crate::store::fixture::{Rule, at, banned, limiters, plan, rules_named};
use crate::store::{AdminNote, BanKey, BanTerms, ChangeScope, ExemptionEntry, Store, StoreBounds};

const KEYS: StoreBounds = StoreBounds::keys(1_000);

/// The rules of these tests.
const RULES: [&str; 8] = ["a", "b", "kept", "gone", "r", "count", "ban", "escalate"];

fn saved(store: &Store, secs: u64) -> Vec<u8> {
    let rules = rules_named(&RULES);
    memory(store).save(Vec::new(), &rules, at(secs)).unwrap()
}

/// A store of this size that has taken over `bytes`, for the rules of these names.
fn restored(
    bytes: &[u8],
    bounds: StoreBounds,
    rules: &[&str],
    secs: u64,
) -> (Store, RestoreSummary) {
    let mut store = Store::memory(bounds);
    store.verify(bytes).unwrap();
    let rules = rules_named(rules);
    let restored = store.restore(bytes, &rules, at(secs)).unwrap();
    (store, restored)
}

#[test]
fn counters_and_bans_go_on() {
    let store = Store::memory(KEYS);
    let (a, b) = (
        Rule::throttle(&store, "a", 3),
        Rule::ban(&store, "b", 1, 600),
    );
    for key in ["x", "x", "y"] {
        ask(&store, &a, StepOp::Admit, key, 0);
        ask(&store, &b, StepOp::Admit, key, 0);
    }
    let (again, said) = restored(&saved(&store, 1), KEYS, &["a", "b"], 5);
    assert_eq!((said.counters, said.bans), (3, 1));
    assert!(said.unknown.iter().all(|(_, bans)| *bans == 0));
    let (a, b) = (
        Rule::throttle(&again, "a", 3),
        Rule::ban(&again, "b", 1, 600),
    );
    assert_eq!(again.bans(at(5)), store.bans(at(5)));
    assert_eq!(ask(&again, &a, StepOp::Admit, "x", 5), KeyStatus::Within);
    assert_eq!(ask(&again, &a, StepOp::Admit, "x", 5), KeyStatus::Over);
    assert_eq!(ask(&again, &b, StepOp::Admit, "x", 599), banned(600, false));
    assert_eq!(ask(&again, &b, StepOp::Admit, "y", 5), banned(605, true));
    let keys = again.keys(at(5));
    assert!(keys.contains(&(a.id.slot, 2)), "{keys:?}");
}

#[test]
fn both_counters_of_a_ratio_go_on() {
    let limiter = Limiter {
        ratio: Some(ShareRatio::nearest(0.5)),
        ..limiters(2)[0].1
    };
    let rule = |store: &Store| Rule::counting(store, "a", limiter);
    let store = Store::memory(KEYS);
    for only_total in [true, true, false, false, false] {
        let step = Step {
            only_total,
            ..rule(&store).step(StepOp::Charge, 1)
        };
        memory(&store).run(&plan([("k", step)]), at(0));
    }
    let (again, said) = restored(&saved(&store, 1), KEYS, &["a"], 5);
    assert_eq!(said.counters, 1);
    let peek = plan([("k", rule(&again).step(StepOp::Peek, 0))]);
    let reading = memory(&again).run(&peek, at(5))[0].reading.unwrap();
    assert_eq!((reading.share.count, reading.share.total), (3, 5));
    assert!(!reading.fits);
}

#[test]
fn a_rule_that_is_gone_is_named_with_its_bans() {
    let store = Store::memory(KEYS);
    let (kept, gone) = (
        Rule::ban(&store, "kept", 0, 60),
        Rule::ban(&store, "gone", 0, 60),
    );
    for key in ["x", "y"] {
        ask(&store, &kept, StepOp::Admit, key, 0);
        ask(&store, &gone, StepOp::Admit, key, 0);
    }
    let short = Rule { ban: 5, ..gone };
    ask(&store, &short, StepOp::Admit, "z", 0);
    let counted = Rule { limit: 9, ..gone };
    ask(&store, &counted, StepOp::Admit, "w", 0);
    let (again, said) = restored(&saved(&store, 1), KEYS, &["kept"], 10);
    assert!(said.unknown.contains(&("gone".to_owned(), 2)));
    assert_eq!((said.counters, said.bans), (0, 2));
    // Its bans and counters are dropped, and do not return with the rule.
    let gone = Rule::ban(&again, "gone", 1, 60);
    assert_eq!(
        ask(&again, &gone, StepOp::Admit, "x", 10),
        KeyStatus::Within
    );
    assert_eq!(again.bans(at(10)).len(), 2);
}

#[test]
fn what_has_ended_is_not_restored() {
    let store = Store::memory(KEYS);
    let (a, b) = (
        Rule::throttle(&store, "a", 3),
        Rule::ban(&store, "b", 0, 60),
    );
    ask(&store, &a, StepOp::Admit, "x", 0);
    ask(&store, &b, StepOp::Admit, "x", 0);
    let bytes = saved(&store, 1);
    let (again, said) = restored(&bytes, KEYS, &["a", "b"], 200);
    assert_eq!((said.counters, said.bans), (0, 0));
    assert!(memory(&again).ban_room.is_empty());
    assert!(memory(&again).counter_room.is_empty());
    // Nor is it written.
    assert_eq!(
        saved(&store, 200).len(),
        saved(&Store::memory(KEYS), 0).len()
    );
}

#[test]
fn offences_are_remembered_over_a_restart() {
    let rule = |store: &Store| Rule::escalating(store, "r", 0, &[10, 100, 1_000]);
    let store = Store::memory(KEYS);
    assert_eq!(
        ask(&store, &rule(&store), StepOp::Admit, "live", 0),
        banned(10, true)
    );
    assert_eq!(
        ask(&store, &rule(&store), StepOp::Admit, "past", 0),
        banned(10, true)
    );
    assert_eq!(
        ask(&store, &rule(&store), StepOp::Admit, "past", 10),
        banned(110, true)
    );
    // One ban is looked up after its end, so that the store records it; the other ends while no process runs.
    ask(&store, &rule(&store), StepOp::CheckBan, "past", 110);
    for moment in [111, 5_000, 86_000] {
        let (again, _) = restored(&saved(&store, 110), KEYS, &["r"], moment);
        let rule = rule(&again);
        let (live, past) = (banned(moment + 100, true), banned(moment + 1_000, true));
        assert_eq!(ask(&again, &rule, StepOp::Admit, "live", moment), live);
        assert_eq!(ask(&again, &rule, StepOp::Admit, "past", moment), past);
    }
    let (again, _) = restored(&saved(&store, 110), KEYS, &["r"], 110 + 86_400);
    assert!(memory(&again).ban_room.is_empty());
}

#[test]
fn nothing_is_in_flight_after_a_restart() {
    let store = Store::memory(KEYS);
    let limiter = limiters(1)[7].1;
    let rule = Rule::counting(&store, "r", limiter);
    assert_eq!(ask(&store, &rule, StepOp::Admit, "k", 0), KeyStatus::Within);
    assert_eq!(ask(&store, &rule, StepOp::Admit, "k", 0), KeyStatus::Over);
    let (again, said) = restored(&saved(&store, 0), KEYS, &["r"], 0);
    assert_eq!(said.counters, 0);
    let rule = Rule::counting(&again, "r", limiter);
    assert_eq!(ask(&again, &rule, StepOp::Admit, "k", 0), KeyStatus::Within);
}

#[test]
fn a_smaller_store_keeps_its_bounds() {
    let store = Store::memory(StoreBounds::keys(40_000));
    let (count, ban) = (
        Rule::throttle(&store, "count", 9),
        Rule::ban(&store, "ban", 0, 60),
    );
    let escalate = Rule::escalating(&store, "escalate", 0, &[5]);
    for key in 0..5_000 {
        let name = key.to_string();
        ask(&store, &count, StepOp::Admit, &name, 0);
        let ban = Rule {
            ban: 60 + key,
            ..ban
        };
        ask(&store, &ban, StepOp::Admit, &name, 0);
        ask(&store, &escalate, StepOp::Admit, &name, 0);
    }
    let bounds = StoreBounds::keys(4_000);
    let rules = ["count", "ban", "escalate"];
    let (again, said) = restored(&saved(&store, 6), bounds, &rules, 6);
    assert_eq!(said.bans, 1_000);
    assert!(
        said.counters <= 4_000 && said.counters > 3_600,
        "{}",
        said.counters
    );
    assert_eq!(tracked(&again, 6), said.counters);
    // Those that end last are left.
    let ends: Vec<_> = again.bans(at(6)).iter().map(|ban| ban.until).collect();
    let last: Vec<_> = (4_000..5_000).map(|key| at(60 + key)).collect();
    assert_eq!(ends, last);
    memory(&again).ban_room.give(1_000);
    assert!(memory(&again).ban_room.is_empty());
}

#[test]
fn a_full_store_loses_next_to_nothing() {
    let bounds = StoreBounds::keys(20_000);
    let store = Store::memory(bounds);
    let rule = Rule::throttle(&store, "r", 9);
    for key in 0..20_000 {
        ask(&store, &rule, StepOp::Admit, &key.to_string(), 0);
    }
    let saved_keys = tracked(&store, 0);
    let (_, said) = restored(&saved(&store, 0), bounds, &["r"], 0);
    assert!(saved_keys - said.counters <= 20, "{}", said.counters);
}

#[test]
fn a_larger_store_has_everything() {
    let store = Store::memory(KEYS);
    let (count, ban) = (
        Rule::throttle(&store, "count", 1),
        Rule::ban(&store, "ban", 0, 60),
    );
    for key in 0..200 {
        ask(&store, &count, StepOp::Admit, &key.to_string(), 0);
        ask(&store, &ban, StepOp::Admit, &key.to_string(), 0);
    }
    let (again, said) = restored(
        &saved(&store, 0),
        StoreBounds::keys(300_000),
        &["count", "ban"],
        0,
    );
    assert_eq!((said.counters, said.bans), (200, 200));
    for key in 0..200 {
        let key = key.to_string();
        assert_eq!(
            ask(&again, &count_of(&again), StepOp::Admit, &key, 0),
            KeyStatus::Over
        );
        let ban = Rule::ban(&again, "ban", 0, 60);
        assert_eq!(
            ask(&again, &ban, StepOp::CheckBan, &key, 0),
            banned(60, false)
        );
    }
}

fn count_of(store: &Store) -> Rule {
    Rule::throttle(store, "count", 1)
}

#[test]
fn a_log_that_has_no_room_is_left_out() {
    let store = Store::memory(KEYS);
    let limiter = limiters(50)[3].1;
    let rule = Rule::counting(&store, "r", limiter);
    for n in 0..40 {
        ask(&store, &rule, StepOp::Admit, "k", n);
    }
    let bounds = StoreBounds {
        max_log_bytes: 0,
        ..KEYS
    };
    let (again, said) = restored(&saved(&store, 40), bounds, &["r"], 40);
    assert_eq!(said.counters, 0);
    let rule = Rule::counting(&again, "r", limiter);
    assert_eq!(
        ask(&again, &rule, StepOp::Admit, "k", 40),
        KeyStatus::Within
    );
}

#[test]
fn a_clock_that_was_set_back_makes_nothing_worse() {
    let store = Store::memory(KEYS);
    let (count, ban) = (
        Rule::throttle(&store, "count", 1),
        Rule::ban(&store, "ban", 0, 600),
    );
    let early = 100_000;
    ask(&store, &count, StepOp::Admit, "k", early + 7_200);
    ask(&store, &ban, StepOp::Admit, "k", early + 7_200);
    // Two hours back: the ban holds, but no longer than its length; no request is refused because of counts from
    // a time in the future.
    let bytes = saved(&store, early + 7_201);
    let (again, said) = restored(&bytes, KEYS, &["count", "ban"], early);
    assert_eq!(said.bans, 1);
    let ban = Rule::ban(&again, "ban", 0, 600);
    let count = count_of(&again);
    assert_eq!(
        ask(&again, &ban, StepOp::CheckBan, "k", early),
        banned(early + 600, false)
    );
    assert_eq!(
        ask(&again, &ban, StepOp::CheckBan, "k", early + 600),
        KeyStatus::Within
    );
    assert_eq!(
        ask(&again, &count, StepOp::Admit, "k", early),
        KeyStatus::Within
    );
}

#[test]
fn keys_are_found_whatever_the_secret_was() {
    let store = Store::memory(KEYS).keyed(b"one secret");
    let rule = Rule::throttle(&store, "r", 1);
    ask(&store, &rule, StepOp::Admit, "k", 0);
    let mut again = Store::memory(KEYS).keyed(b"another");
    let rule = Rule::throttle(&again, "r", 1);
    let rules = rules_named(&["r"]);
    again.restore(&saved(&store, 0)[..], &rules, at(0)).unwrap();
    assert_eq!(ask(&again, &rule, StepOp::Admit, "k", 0), KeyStatus::Over);
    // It is kept from one snapshot to the next.
    let (last, _) = restored(&saved(&again, 0), KEYS, &["r"], 0);
    let rule = Rule::throttle(&last, "r", 1);
    assert_eq!(ask(&last, &rule, StepOp::Admit, "k", 0), KeyStatus::Over);
}

#[test]
fn the_same_key_twice_is_taken_once() {
    let store = Store::memory(KEYS);
    let (count, ban) = (
        Rule::throttle(&store, "count", 9),
        Rule::ban(&store, "ban", 0, 60),
    );
    ask(&store, &count, StepOp::Admit, "k", 0);
    ask(&store, &ban, StepOp::Admit, "k", 0);
    let records: Vec<_> = memory(&store).shards[0].held.lock().copy(at(0));
    let header = SavedHeader {
        secret: [0; 16],
        taken: at(0),
        longest: 120,
    };
    let mut writer = RecordWriter::new(Vec::new(), &header).unwrap();
    let rules = rules_named(&["count", "ban"]);
    let rules: Vec<_> = rules.iter().cloned().map(SavedRecord::Rule).collect();
    for record in rules.iter().chain(&records).chain(&records) {
        writer.add(record).unwrap();
    }
    let (again, said) = restored(&writer.end().unwrap(), KEYS, &["count", "ban"], 0);
    assert_eq!((said.counters, said.bans), (1, 1));
    memory(&again).ban_room.give(1);
    assert!(memory(&again).ban_room.is_empty());
}

/// The result of a request of `key` in each of the stores, which must be equal.
fn both(stores: [(&Store, &Rule); 2], step: &Step, key: u8, now: Timestamp) -> [StepResult; 2] {
    stores.map(|(store, rule)| {
        let step = Step {
            id: rule.id,
            ..step.clone()
        };
        memory(store).run(&plan([(&*format!("key {key}"), step)]), now)[0]
    })
}

fn bans() -> impl Strategy<Value = BanLength> {
    prop_oneof![
        2 => Just(BanLength::Never),
        1 => Just(BanLength::For(Duration::from_secs(3))),
        1 => Just(BanLength::Escalating([1, 4, 9].map(Duration::from_secs).into())),
    ]
}

fn requests() -> impl Strategy<Value = Vec<(u8, bool, u64)>> {
    prop::collection::vec((0..20u8, any::<bool>(), 0..900u64), 1..100)
}

proptest! {
    #[test]
    fn a_restart_changes_no_verdict(
        algorithm in 0..7usize,
        limit in 1..6u64,
        period in prop_oneof![Just(1_000u64), Just(7_000), Just(60_000)],
        ban in bans(),
        size in prop_oneof![Just(200usize), Just(5_000)],
        before in requests(),
        after in requests(),
    ) {
        let store = Store::memory(StoreBounds::keys(200));
        let rule = Rule::throttle(&store, "r", limit);
        let period = Duration::from_millis(period);
        let limiter = Limiter { period, ..limiters(limit)[algorithm].1 };
        let step = |charge| {
            let op = if charge { StepOp::Charge } else { StepOp::Admit };
            Step { limiter, ban: ban.clone(), ..rule.step(op, 1) }
        };
        let mut now = at(0);
        for (key, charge, wait) in before {
            now = now.plus(Duration::from_millis(wait));
            both([(&store, &rule); 2], &step(charge), key, now);
        }
        let mut rules = rules_named(&["r"]);
        let bytes = memory(&store).save(Vec::new(), &rules, now).unwrap();
        let mut again = Store::memory(StoreBounds::keys(size));
        // The rule has another slot after the restart.
        rules[0].id.slot += 1;
        let same = Rule { id: rules[0].id, ..rule };
        again.restore(&bytes[..], &rules, now).unwrap();
        for (key, charge, wait) in after {
            now = now.plus(Duration::from_millis(wait));
            let [old, new] = both([(&store, &rule), (&again, &same)], &step(charge), key, now);
            prop_assert_eq!(old, new);
        }
    }

    /// Whatever a snapshot says, a store goes on.
    #[test]
    fn no_count_makes_a_store_panic(
        algorithm in 0..8usize,
        words: [u32; 3],
        index: u64,
        counts in prop::collection::vec(any::<u32>(), 2..70),
        entries in prop::collection::vec((any::<u64>(), any::<u32>()), 0..20),
        asked: u64,
        kind in 0..4usize,
        cost in 0..5u64,
    ) {
        let mut store = Store::memory(KEYS).keyed(b"secret");
        let rule = Rule::counting(&store, "r", limiters(5)[algorithm].1);
        let hash = memory(&store).hasher.hash(rule.id.identity, b"k");
        let entries = entries.into_iter().map(|(at, units)| (Timestamp::from_nanos(at), units));
        let count = match kind {
            0 => SavedCount::Words(words),
            1 => SavedCount::Slices { index, counts },
            2 => SavedCount::Share(ShareCounter { count: words, total: [1, counts[0], counts[1]] }),
            _ => SavedCount::Log { at: Timestamp::from_nanos(asked), entries: entries.collect() },
        };
        let counter = SavedCounter { tag: hash.tag.get(), expires: second(at(50)), slot: rule.id.slot, fill: 9, count };
        let header = SavedHeader { secret: memory(&store).hasher.secret(), taken: at(0), longest: 60 };
        let mut writer = RecordWriter::new(Vec::new(), &header).unwrap();
        let rules = rules_named(&["r"]);
        writer.add(&SavedRecord::Rule(rules[0].clone())).unwrap();
        writer.add(&SavedRecord::Counter(counter)).unwrap();
        let said = store.restore(&writer.end().unwrap()[..], &rules, at(0)).unwrap();
        prop_assert_eq!(said.counters, 1);
        for (op, secs) in [(StepOp::Peek, 0), (StepOp::Admit, 1), (StepOp::Charge, 2), (StepOp::Admit, 70)] {
            let plan = plan([("k", rule.step(op, cost))]);
            memory(&store).run(&plan, at(secs));
            store.give_back(&plan);
        }
    }
}

#[test]
fn bans_by_hand_and_exemptions_go_on() {
    let store = Store::memory(KEYS);
    let rule = Rule::throttle(&store, "a", 3);
    let long = "k".repeat(1_000);
    let note = AdminNote::new("scraper").unwrap();
    let terms = BanTerms::by_hand(at(0), at(600), note.clone());
    let ban = store
        .local()
        .add_ban(rule.id, &BanKey::of(long.as_bytes()), terms, false, at(0));
    let exemption = |network: &str, until| ExemptionEntry {
        network: network.parse().unwrap(),
        since: at(0),
        until: at(until),
        note: note.clone(),
        scope: ChangeScope::Fleet,
    };
    for (network, until) in [("10.0.0.0/8", 60), ("2001:db8::/32", 3)] {
        store
            .exemptions()
            .add(exemption(network, until), at(0))
            .unwrap();
    }
    let (again, _) = restored(&saved(&store, 1), KEYS, &["a"], 5);
    assert_eq!(again.bans(at(5)), [ban.unwrap()]);
    assert_eq!(
        again.exemptions().list(at(5)),
        [exemption("10.0.0.0/8", 60)]
    );
    let id = BanKey::Id(BanId::of(rule.id, long.as_bytes()));
    again.local().remove_ban(rule.id, &id, at(5)).unwrap();
    assert_eq!(
        ask(&again, &rule, StepOp::Admit, &long, 5),
        KeyStatus::Within
    );
}
