//! Tests of the limits of logs and sub-windows, and of keys without memory for them.

use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::limit::{Algorithm, Limiter};
use crate::rules::plan::{KeyStatus, StepOp};
use crate::store::fixture::{Rule, at, banned, limiters, plan};
use crate::store::memory::tests::{ask, memory, tracked};
use crate::store::{Store, StoreBounds};

fn store(max_keys: usize, max_log_bytes: usize) -> Store {
    Store::memory(StoreBounds {
        max_keys,
        max_log_bytes,
    })
}

fn log(store: &Store, limit: u64) -> Rule {
    let period = Duration::from_secs(60);
    Rule::counting(
        store,
        "log",
        Limiter::new(Algorithm::SlidingLog, limit, period),
    )
}

fn slices(store: &Store, limit: u64) -> Rule {
    Rule::counting(store, "slices", limiters(limit)[1].1)
}

/// How many keys are counted in logs, in sub-windows and in words.
fn kinds(store: &Store) -> [usize; 3] {
    let (mut logs, mut slices) = (0, 0);
    for shard in &memory(store).shards {
        for (_, counter) in shard.held.lock().large.iter() {
            match counter {
                Counter::Log(_) => logs += 1,
                Counter::Slices(_) => slices += 1,
                Counter::Words(_) | Counter::Share(_) | Counter::Leases(_) => {}
            }
        }
    }
    [logs, slices, tracked(store, 0) - logs - slices]
}

/// What is taken from the two budgets is what the counters take.
fn is_paid(store: &Store) {
    let (mut logs, mut slices) = (0, 0);
    for shard in &memory(store).shards {
        for (_, counter) in shard.held.lock().large.iter() {
            match counter {
                Counter::Log(_) => logs += counter.bytes(),
                Counter::Slices(_) => slices += counter.bytes(),
                Counter::Words(_) | Counter::Share(_) | Counter::Leases(_) => {}
            }
        }
    }
    let budgets = &memory(store).budgets;
    assert_eq!(
        (budgets.logs.taken(), budgets.slices.taken()),
        (logs, slices)
    );
}

fn is_free(store: &Store) {
    is_paid(store);
    let budgets = &memory(store).budgets;
    assert_eq!((budgets.logs.taken(), budgets.slices.taken()), (0, 0));
}

#[test]
fn each_rule_gets_the_counter_it_wants() {
    let store = store(1_000, 1 << 20);
    let (log, slices) = (log(&store, 5), slices(&store, 5));
    let plain = Rule::throttle(&store, "plain", 5);
    for key in ["a", "b", "c"] {
        ask(&store, &log, StepOp::Admit, key, 0);
    }
    for key in ["a", "b"] {
        ask(&store, &slices, StepOp::Charge, key, 0);
    }
    ask(&store, &plain, StepOp::Admit, "a", 0);
    assert_eq!(kinds(&store), [3, 2, 1]);
    is_paid(&store);
}

#[test]
fn a_look_and_a_refusal_keep_nothing() {
    let store = store(1_000, 1 << 20);
    for rule in [log(&store, 0), slices(&store, 0)] {
        for op in [StepOp::Peek, StepOp::CheckBan, StepOp::Admit] {
            ask(&store, &rule, op, "k", 0);
        }
    }
    assert_eq!(kinds(&store), [0, 0, 0]);
    is_free(&store);
}

#[test]
fn past_the_bound_keys_are_counted_in_less_and_none_is_uncounted() {
    const BYTES: usize = 16 << 10;
    let store = store(1_000, BYTES);
    let rule = log(&store, 5);
    for key in 0..500 {
        let key = key.to_string();
        for _ in 0..5 {
            assert_eq!(
                ask(&store, &rule, StepOp::Admit, &key, 0),
                KeyStatus::Within
            );
        }
        assert_eq!(ask(&store, &rule, StepOp::Admit, &key, 0), KeyStatus::Over);
    }
    let [logs, slices, words] = kinds(&store);
    assert!(
        logs > 50 && slices > 20 && words > 100,
        "{logs} {slices} {words}"
    );
    is_paid(&store);
    let budgets = &memory(&store).budgets;
    assert!(budgets.logs.taken() <= BYTES && budgets.slices.taken() <= BYTES);
    // Every one of them still knows.
    for key in 0..500 {
        let found = ask(&store, &rule, StepOp::Admit, &key.to_string(), 1);
        assert_eq!(found, KeyStatus::Over);
    }
}

#[test]
fn sub_windows_that_find_no_room_are_counted_in_words() {
    let store = store(1_000, 4 << 10);
    let rule = slices(&store, 2);
    for key in 0..200 {
        for expected in [KeyStatus::Within, KeyStatus::Within, KeyStatus::Over] {
            assert_eq!(
                ask(&store, &rule, StepOp::Admit, &key.to_string(), 0),
                expected
            );
        }
    }
    let [logs, slices, words] = kinds(&store);
    assert!(logs == 0 && slices > 20 && words > 100, "{slices} {words}");
    is_paid(&store);
}

#[test]
fn with_no_bytes_at_all_everything_is_words() {
    let store = store(100, 0);
    for rule in [log(&store, 1), slices(&store, 1)] {
        assert_eq!(ask(&store, &rule, StepOp::Admit, "k", 0), KeyStatus::Within);
        assert_eq!(ask(&store, &rule, StepOp::Admit, "k", 0), KeyStatus::Over);
    }
    assert_eq!(kinds(&store), [0, 0, 2]);
}

#[test]
fn a_log_that_cannot_grow_keeps_its_count_in_sub_windows() {
    let store = store(100, 2 << 10);
    let rule = log(&store, 1_000);
    // A millisecond apart, all in the first sub-window.
    let charge = |n: u64| {
        let plan = plan([("k", rule.step(StepOp::Charge, 1))]);
        let now = at(0).plus(Duration::from_millis(n));
        memory(&store).run(&plan, now)[0].reading.unwrap().remaining
    };
    for n in 1..=900 {
        assert_eq!(charge(n), 1_000 - n);
        is_paid(&store);
    }
    assert_eq!(kinds(&store), [0, 1, 0]);
}

#[test]
fn a_log_that_finds_no_sub_windows_keeps_its_count_in_words() {
    let store = store(100, 2 << 10);
    let filler = slices(&store, 5);
    for key in 0..20 {
        ask(&store, &filler, StepOp::Admit, &format!("filler {key}"), 0);
    }
    let rule = log(&store, 1_000);
    for n in 1..=300 {
        let step = rule.step(StepOp::Charge, 1);
        let now = at(0).plus(Duration::from_millis(n));
        let found = memory(&store).run(&plan([("k", step)]), now)[0];
        assert_eq!(found.reading.unwrap().remaining, 1_000 - n);
    }
    assert_eq!(kinds(&store)[0], 0);
    is_paid(&store);
}

#[test]
fn what_has_expired_is_swept_when_bytes_are_short() {
    let store = store(1_000, 8 << 10);
    let rule = log(&store, 5);
    for key in 0..200 {
        ask(&store, &rule, StepOp::Admit, &format!("old {key}"), 0);
    }
    let [before, ..] = kinds(&store);
    // All are at their end; the new keys are others, so that only a sweep frees the old.
    for key in 0..20 {
        ask(&store, &rule, StepOp::Admit, &format!("new {key}"), 200);
    }
    let [logs, slices, _] = kinds(&store);
    assert!(before > 20);
    assert_eq!((logs, slices), (20, 0));
    is_paid(&store);
}

#[test]
fn a_key_gets_its_log_back_after_its_entry_has_expired() {
    let store = store(100, 1 << 10);
    let rule = log(&store, 5);
    for key in 0..50 {
        ask(&store, &rule, StepOp::Admit, &format!("first {key}"), 0);
    }
    ask(&store, &rule, StepOp::Admit, "k", 0);
    let before = kinds(&store);
    assert!(before[2] > 0, "{before:?}");
    ask(&store, &rule, StepOp::Admit, "k", 500);
    assert_eq!(kinds(&store)[0], 1);
    is_paid(&store);
}

#[test]
fn what_a_ban_clears_is_freed() {
    let store = store(100, 1 << 20);
    for rule in [log(&store, 1), slices(&store, 1)] {
        let rule = Rule { ban: 60, ..rule };
        for (op, key) in [(StepOp::Admit, "a"), (StepOp::Charge, "b")] {
            assert_eq!(ask(&store, &rule, op, key, 0), KeyStatus::Within);
            assert_eq!(ask(&store, &rule, op, key, 0), banned(60, true));
        }
    }
    is_free(&store);
}

#[test]
fn what_a_retired_rule_leaves_is_freed() {
    let store = store(100, 1 << 20);
    let rules = [log(&store, 5), slices(&store, 5)];
    for rule in &rules {
        for key in 0..20 {
            ask(&store, rule, StepOp::Admit, &key.to_string(), 0);
        }
    }
    store.remove_rules(&rules.map(|rule| rule.id), at(0));
    is_free(&store);
}

#[test]
fn what_makes_room_is_freed() {
    let store = store(8, 1 << 20);
    let (log, slices) = (log(&store, 50), slices(&store, 50));
    for key in 0..100 {
        for rule in [&log, &slices] {
            ask(&store, rule, StepOp::Admit, &key.to_string(), 0);
        }
        is_paid(&store);
    }
    assert_eq!(tracked(&store, 0), 8);
    assert_eq!(store.evictions().counters, 192);
    // Words replace all of them in the end.
    let plain = Rule::throttle(&store, "plain", 1);
    for key in 0..100 {
        ask(&store, &plain, StepOp::Charge, &key.to_string(), 0);
    }
    is_free(&store);
}

proptest! {
    #[test]
    fn every_byte_is_paid_for_and_given_back(
        bytes in 0..20_000usize,
        max_keys in 4..60usize,
        requests in prop::collection::vec((0..3u8, 0..40u8, 0..4u8, 1..5u64, 0..20_000u64), 1..300),
    ) {
        let store = store(max_keys, bytes);
        let rules = [log(&store, 20), slices(&store, 20), Rule { ban: 5, ..log(&store, 3) }];
        let mut now = at(0);
        for (rule, key, op, cost, wait) in requests {
            now = now.plus(Duration::from_millis(wait));
            let op = [StepOp::Admit, StepOp::Charge, StepOp::Peek, StepOp::Admit][usize::from(op)];
            let step = rules[usize::from(rule)].step(op, cost);
            memory(&store).run(&plan([(&*key.to_string(), step)]), now);
            is_paid(&store);
            let budgets = &memory(&store).budgets;
            prop_assert!(budgets.logs.taken() <= bytes && budgets.slices.taken() <= bytes);
        }
        store.remove_rules(&rules.map(|rule| rule.id), now);
        is_free(&store);
    }
}
