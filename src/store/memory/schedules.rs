//! Tests threads that share a store, in the orders that a model checker chooses.
//!
//! The tests run the production code; only its locks and atomics are instrumented. If a model fails, shuttle
//! prints the schedule, and `shuttle::replay` runs it again.

use std::sync::Arc;
use std::time::Duration;

use shuttle::Runner;
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::thread;

use super::sync::AtomicUsize;
use super::tests::{ask, memory, tracked};
use super::*;
use crate::limit::{Algorithm, Limiter};
use crate::rules::plan::{KeyStatus, StepOp};
use crate::store::fixture::{Rule, at, banned, plan, rules_named};
use crate::store::{Store, StoreBounds};

/// Runs `model` in many schedules: with random choices at each point, and with few thread switches (PCT).
fn check(model: impl Fn() + Clone + Send + Sync + 'static) {
    let runs = 400;
    Runner::new(RandomScheduler::new(runs), Default::default()).run(model.clone());
    Runner::new(PctScheduler::new(3, runs), Default::default()).run(model);
}

/// Starts one thread for each of `parts` and returns their results.
fn together<T: Send + 'static>(
    parts: usize,
    run: impl Fn(usize) -> T + Clone + Send + 'static,
) -> Vec<T> {
    let threads: Vec<_> = (0..parts)
        .map(|part| {
            let run = run.clone();
            thread::spawn(move || run(part))
        })
        .collect();
    threads
        .into_iter()
        .map(|thread| thread.join().unwrap())
        .collect()
}

/// Creates a store of two shards with a fixed hash secret and capacity for `bans`.
fn store(bans: usize) -> Arc<Store> {
    let mut memory = MemoryStore::new(StoreBounds::keys(1));
    memory.hasher = KeyHasher::keyed([7; 16]);
    memory.shards = [Shard::new(4), Shard::new(4)].into();
    memory.counter_room = SlotCapacity::of(16);
    memory.ban_room = SlotCapacity::of(bans);
    Arc::new(Store::of(memory))
}

/// Counts the bans at one moment, which a listing of one shard after another cannot do.
fn held_bans(store: &Store) -> usize {
    let shards: Vec<_> = memory(store).shards.iter().collect();
    let held: Vec<_> = shards.iter().map(|shard| shard.held.lock()).collect();
    held.iter().map(|held| held.bans.live(at(0)).count()).sum()
}

fn count(standings: &[KeyStatus], wanted: impl Fn(&KeyStatus) -> bool) -> usize {
    standings.iter().filter(|status| wanted(status)).count()
}

#[test]
fn no_order_admits_more_than_the_limit() {
    check(|| {
        let store = store(8);
        let rule = Rule::throttle(&store, "r", 3);
        let shared = store.clone();
        let found = together(3, move |_| {
            [0, 0].map(|_| ask(&shared, &rule, StepOp::Admit, "k", 0))
        });
        let found = found.concat();
        assert_eq!(count(&found, |s| *s == KeyStatus::Within), 3);
        assert_eq!(count(&found, |s| *s == KeyStatus::Over), 3);
        assert_eq!(tracked(&store, 0), 1);
    });
}

#[test]
fn no_order_counts_two_keys_as_one_or_loses_one() {
    check(|| {
        let store = store(8);
        let rule = Rule::throttle(&store, "r", 2);
        let shared = store.clone();
        let found = together(3, move |part| {
            let key = ["a", "b", "a"][part];
            [0, 0].map(|_| ask(&shared, &rule, StepOp::Admit, key, 0))
        });
        assert_eq!(found[1], [KeyStatus::Within; 2]);
        let found = [found[0], found[2]].concat();
        assert_eq!(count(&found, |s| *s == KeyStatus::Within), 2);
        assert_eq!(tracked(&store, 0), 2);
    });
}

#[test]
fn no_order_starts_two_bans_or_charges_beside_one() {
    check(|| {
        let store = store(8);
        let rule = Rule::ban(&store, "r", 2, 30);
        let shared = store.clone();
        let found = together(3, move |part| {
            let op = [StepOp::Charge, StepOp::Admit, StepOp::Charge][part];
            [0, 0].map(|_| ask(&shared, &rule, op, "k", 0))
        });
        let found = found.concat();
        assert_eq!(count(&found, |s| *s == KeyStatus::Within), 2);
        assert_eq!(count(&found, |s| *s == banned(30, true)), 1);
        assert_eq!(count(&found, |s| *s == banned(30, false)), 3);
        assert_eq!(tracked(&store, 0), 0);
        // The counter is empty again.
        assert_eq!(
            ask(&store, &rule, StepOp::Admit, "k", 30),
            KeyStatus::Within
        );
        assert!(memory(&store).ban_room.is_empty());
    });
}

#[test]
fn no_order_deadlocks_where_bans_have_no_room_or_passes_their_bound() {
    check(|| {
        let store = store(2);
        let shared = store.clone();
        together(3, move |part| {
            for n in 0..2 {
                let rule = Rule::ban(&shared, "r", 0, 10 + part as u64 + n);
                let key = format!("{part}/{n}");
                let found = ask(&shared, &rule, StepOp::Admit, &key, 0);
                assert!(matches!(found, KeyStatus::Banned { started: true, .. }));
                let taken = held_bans(&shared);
                assert!(taken <= 2, "{taken}");
            }
        });
        assert_eq!(store.bans(at(0)).len(), 2);
        assert_eq!(store.evictions().bans, 4);
        let memory = store.local();
        assert!(!memory.ban_room.take(), "a place was given back twice");
        memory.ban_room.give(2);
        assert!(memory.ban_room.is_empty(), "a place was never given back");
    });
}

#[test]
fn no_order_of_a_ban_and_its_end_loses_a_place() {
    check(|| {
        let store = store(1);
        let rule = Rule::ban(&store, "r", 0, 10);
        let shared = store.clone();
        together(3, move |part| {
            let (key, now) = [("a", 0), ("a", 10), ("b", 10)][part];
            ask(&shared, &rule, StepOp::Admit, key, now);
        });
        assert!(store.bans(at(10)).len() <= 1);
        ask(&store, &rule, StepOp::CheckBan, "a", 1_000);
        ask(&store, &rule, StepOp::CheckBan, "b", 1_000);
        assert!(memory(&store).ban_room.is_empty());
    });
}

#[test]
fn no_order_of_bans_of_one_key_loses_a_place() {
    check(|| {
        let store = store(2);
        let rule = Rule::ban(&store, "r", 0, 10);
        for old in ["old", "older"] {
            ask(&store, &rule, StepOp::Admit, old, 0);
        }
        let shared = store.clone();
        let found = together(3, move |_| ask(&shared, &rule, StepOp::Admit, "k", 1));
        assert_eq!(count(&found, |s| *s == banned(11, true)), 1);
        assert_eq!(count(&found, |s| *s == banned(11, false)), 2);
        let bans = store.bans(at(1)).len();
        memory(&store).ban_room.give(bans);
        assert!(memory(&store).ban_room.is_empty());
    });
}

#[test]
fn no_order_of_newcomers_passes_the_bound_of_counters() {
    check(|| {
        let mut memory = MemoryStore::new(StoreBounds::keys(1));
        memory.hasher = KeyHasher::keyed([7; 16]);
        memory.shards = [Shard::new(1), Shard::new(1)].into();
        memory.counter_room = SlotCapacity::of(4);
        let store = Arc::new(Store::of(memory));
        let rule = Rule::throttle(&store, "r", 9);
        let shared = store.clone();
        together(3, move |part| {
            for n in 0..3 {
                ask(&shared, &rule, StepOp::Admit, &format!("{part}/{n}"), 0);
            }
        });
        let left = tracked(&store, 0);
        // The first key of a shard is counted, even if the others have taken all capacity.
        assert!((4..=5).contains(&left), "{left}");
        assert_eq!(store.evictions().counters, 9 - left as u64);
        let memory = store.local();
        memory.counter_room.give(left);
        assert!(memory.counter_room.is_empty());
    });
}

#[test]
fn no_order_takes_more_places_than_there_are_or_loses_one() {
    check(|| {
        let store = store(8);
        let limiter = Limiter::new(Algorithm::Concurrency, 2, Duration::ZERO);
        let rule = Rule::counting(&store, "r", limiter);
        let (shared, taken) = (store.clone(), Arc::new(AtomicUsize::new(0)));
        let found = together(3, move |_| {
            let plan = plan([("k", rule.step(StepOp::Admit, 1))]);
            [0, 0].map(|_| {
                let result = memory(&shared).run(&plan, at(0));
                if result[0].charged {
                    assert!(taken.fetch_add(1, Ordering::SeqCst) < 2);
                    taken.fetch_sub(1, Ordering::SeqCst);
                    shared.give_back(&plan);
                }
                result[0].status
            })
        });
        assert!(count(&found.concat(), |s| *s == KeyStatus::Within) >= 2);
        assert_eq!(tracked(&store, 0), 0);
        assert!(memory(&store).counter_room.is_empty());
        for expected in [KeyStatus::Within, KeyStatus::Within, KeyStatus::Over] {
            assert_eq!(ask(&store, &rule, StepOp::Admit, "k", 0), expected);
        }
    });
}

#[test]
fn no_order_of_a_snapshot_and_a_ban_saves_half_of_it() {
    check(|| {
        let store = store(8);
        let rule = Rule::ban(&store, "schedule", 1, 30);
        ask(&store, &rule, StepOp::Charge, "k", 0);
        let shared = store.clone();
        let saved = together(2, move |part| match part {
            0 => memory(&shared)
                .save(Vec::new(), &rules_named(&["schedule"]), at(0))
                .unwrap(),
            _ => {
                ask(&shared, &rule, StepOp::Charge, "k", 0);
                Vec::new()
            }
        });
        let mut again = MemoryStore::new(StoreBounds::keys(8));
        let rules = rules_named(&["schedule"]);
        let restored = again.restore(&saved[0][..], &rules, at(0)).unwrap();
        // Either the count or the ban is restored, never both or neither.
        assert_eq!(restored.counters + restored.bans, 1);
    });
}

#[test]
fn no_order_of_a_reload_and_a_charge_loses_a_place() {
    check(|| {
        let store = store(2);
        let gone = Rule::ban(&store, "gone", 1, 10);
        let kept = Rule::ban(&store, "kept", 1, 10);
        let shared = store.clone();
        together(3, move |part| match part {
            0 => drop(shared.remove_rules(&[gone.id], at(0))),
            _ => {
                for rule in [&gone, &kept] {
                    ask(&shared, rule, StepOp::Charge, "k", 0);
                }
            }
        });
        // Both threads have charged it once.
        assert!(store.bans(at(0)).iter().any(|ban| ban.id == kept.id));
        store.remove_rules(&[gone.id, kept.id], at(0));
        let late = Rule {
            id: gone.id,
            ..kept
        };
        ask(&store, &late, StepOp::CheckBan, "k", 1_000);
        assert!(memory(&store).ban_room.is_empty());
    });
}
