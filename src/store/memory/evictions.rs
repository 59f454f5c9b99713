//! Tests of the eviction order at the limits, one rule of it per test. A table of eight keys has two buckets, so
//! that every key could take every slot.

use super::tests::{ask, memory, tracked};
use super::*;
use crate::limit::{Algorithm, Limiter};
use crate::rules::plan::{KeyStatus, Step, StepOp};
use crate::store::fixture::{Rule, at, banned, limiters, plan};
use crate::store::{Store, StoreBounds};

/// Every algorithm except `concurrency`, which is evicted last.
fn each(limit: u64, test: impl Fn(&Store, &Rule)) {
    for (name, limiter) in limiters(limit) {
        if limiter.algorithm != Algorithm::Concurrency {
            let store = Store::memory(StoreBounds::keys(8));
            test(&store, &Rule::counting(&store, name, limiter));
        }
    }
}

fn charge(store: &Store, rule: &Rule, key: &str, times: u64) {
    for _ in 0..times {
        ask(store, rule, StepOp::Charge, key, 0);
    }
}

fn left(store: &Store, rule: &Rule, key: &str) -> u64 {
    let plan = plan([(key, rule.step(StepOp::Peek, 1))]);
    let step_result = memory(store).run(&plan, at(0))[0];
    step_result.reading.unwrap().remaining
}

#[test]
fn a_new_key_takes_the_place_of_an_expired_entry() {
    each(5, |store, rule| {
        for round in 0..4 {
            for key in 0..8 {
                let key = format!("{round}/{key}");
                ask(store, rule, StepOp::Admit, &key, round * 200);
            }
            assert_eq!(tracked(store, round * 200), 8);
        }
        assert_eq!(store.evictions(), EvictionCounts::default());
    });
}

#[test]
fn else_of_the_one_furthest_below_its_limit() {
    each(20, |store, rule| {
        for count in 1..=8 {
            charge(store, rule, &format!("key {count}"), count);
        }
        for gone in 1..=8 {
            charge(store, rule, &format!("newcomer {gone}"), 9);
            assert_eq!(left(store, rule, &format!("key {gone}")), 20);
            for kept in gone + 1..=8 {
                assert_eq!(left(store, rule, &format!("key {kept}")), 20 - kept);
            }
        }
        assert_eq!(store.evictions().counters, 8);
        assert_eq!(tracked(store, 0), 8);
    });
}

#[test]
fn it_is_the_share_of_the_limit_that_counts() {
    let store = Store::memory(StoreBounds::keys(8));
    let [wide, narrow] = [100, 4].map(|limit| Rule::throttle(&store, &format!("r{limit}"), limit));
    for key in 0..4 {
        charge(&store, &wide, &key.to_string(), 20);
        charge(&store, &narrow, &key.to_string(), 3);
    }
    for key in 0..4 {
        charge(&store, &narrow, &format!("newcomer {key}"), 4);
    }
    for key in 0..4 {
        assert_eq!(left(&store, &wide, &key.to_string()), 100);
        assert_eq!(left(&store, &narrow, &key.to_string()), 1);
    }
}

fn in_flight(store: &Store, limit: u64) -> Rule {
    let limiter = Limiter::new(Algorithm::Concurrency, limit, std::time::Duration::ZERO);
    Rule::counting(store, "places", limiter)
}

#[test]
fn places_in_flight_make_room_last() {
    let store = Store::memory(StoreBounds::keys(8));
    let places = in_flight(&store, 100);
    let full = Rule::throttle(&store, "full", 1);
    for key in 0..4 {
        charge(&store, &places, &key.to_string(), 1);
        charge(&store, &full, &key.to_string(), 5);
    }
    for key in 4..50 {
        charge(&store, &full, &key.to_string(), 5);
    }
    for key in 0..4 {
        assert_eq!(left(&store, &places, &key.to_string()), 99);
    }
    assert_eq!(store.evictions().counters, 46);
    assert_eq!(tracked(&store, 0), 8);
}

#[test]
fn places_in_flight_make_room_for_one_another() {
    let store = Store::memory(StoreBounds::keys(8));
    let places = in_flight(&store, 2);
    for key in 0..20 {
        charge(&store, &places, &key.to_string(), 1);
        assert_eq!(left(&store, &places, &key.to_string()), 1);
    }
    assert_eq!(tracked(&store, 0), 8);
    assert_eq!(store.evictions().counters, 12);
}

#[test]
fn a_place_that_made_room_is_given_back_to_nobody() {
    let store = Store::memory(StoreBounds::keys(8));
    let places = in_flight(&store, 10);
    let plan = plan([("gone", places.step(StepOp::Admit, 1))]);
    memory(&store).run(&plan, at(0));
    for key in 0..8 {
        charge(&store, &places, &key.to_string(), 1);
        charge(&store, &places, &key.to_string(), 1);
    }
    assert_eq!(left(&store, &places, "gone"), 10);
    store.give_back(&plan);
    assert_eq!(left(&store, &places, "gone"), 10);
    assert_eq!(tracked(&store, 0), 8);
}

#[test]
fn a_place_given_back_is_a_free_place() {
    let store = Store::memory(StoreBounds::keys(8));
    let places = in_flight(&store, 2);
    for key in 0..100 {
        let plan = plan([(&*key.to_string(), places.step(StepOp::Admit, 2))]);
        memory(&store).run(&plan, at(0));
        assert_eq!(tracked(&store, 0), 1);
        store.give_back(&plan);
        assert_eq!(tracked(&store, 0), 0);
    }
    assert!(memory(&store).counter_room.is_empty());
    assert_eq!(store.evictions(), EvictionCounts::default());
}

#[test]
fn old_requests_release_no_lease_of_a_rule_that_was_registered_anew() {
    let store = Store::memory(StoreBounds::keys(100));
    let old = in_flight(&store, 5);
    let steps = |rule: &Rule| plan([("k", rule.step(StepOp::Admit, 1))]);
    let before = steps(&old);
    memory(&store).run(&before, at(0));
    store.remove_rules(&[old.id], at(0));
    let slot = old.id.slot + 1;
    let id = RuleId { slot, ..old.id };
    let new = Rule { id, ..old };
    let after = steps(&new);
    memory(&store).run(&after, at(0));
    assert_eq!(left(&store, &new, "k"), 4);
    store.give_back(&before);
    assert_eq!(left(&store, &new, "k"), 4);
    store.give_back(&after);
    assert_eq!(left(&store, &new, "k"), 5);
}

/// One that bans each key at once, and remembers it.
fn escalating(store: &Store) -> Rule {
    Rule::escalating(store, "escalates", 0, &[10, 1_000])
}

#[test]
fn past_offences_make_room_before_live_bans() {
    // Four shards and 1,024 bans.
    let store = Store::memory(StoreBounds::keys(4_096));
    let rule = escalating(&store);
    let long = Rule::ban(&store, "long", 0, 5_000);
    for key in 0..512 {
        ask(
            &store,
            &rule,
            StepOp::Admit,
            &format!("past {key}"),
            key % 20,
        );
        ask(&store, &long, StepOp::Admit, &format!("live {key}"), 0);
    }
    for key in 0..512 {
        ask(&store, &long, StepOp::Admit, &format!("more {key}"), 40);
    }
    assert_eq!(store.evictions().bans, 0);
    assert_eq!(store.bans(at(40)).len(), 1_024);
    // All offences are forgotten: the next one is the first, and a live ban is evicted for it.
    assert_eq!(
        ask(&store, &rule, StepOp::Admit, "past 7", 40),
        banned(50, true)
    );
    assert_eq!(store.evictions().bans, 1);
}

#[test]
fn the_offence_that_ended_first_is_forgotten_first() {
    let store = Store::memory(StoreBounds::keys(4_096));
    let rule = escalating(&store);
    for key in 0..1_024 {
        ask(&store, &rule, StepOp::Admit, &key.to_string(), key);
    }
    let other = Rule::ban(&store, "other", 0, 5_000);
    for key in 0..500 {
        ask(&store, &other, StepOp::Admit, &key.to_string(), 2_000);
    }
    assert_eq!(store.evictions().bans, 0);
    // Remembered offences need no capacity for the next ban, so they are tested first.
    for key in (0..1_024).rev() {
        let length = if key < 500 { 10 } else { 1_000 };
        let found = ask(&store, &rule, StepOp::Admit, &key.to_string(), 2_000);
        assert_eq!(found, banned(2_000 + length, true), "{key}");
    }
}

#[test]
fn a_ban_that_ended_goes_before_a_past_offence() {
    // Which shards the keys are in is chance: enough rounds see every case.
    for _ in 0..12 {
        let store = Store::memory(StoreBounds::keys(4_096));
        let rule = escalating(&store);
        let plain = Rule::ban(&store, "plain", 0, 30);
        ask(&store, &rule, StepOp::Admit, "offender", 0);
        ask(&store, &rule, StepOp::CheckBan, "offender", 10);
        for key in 0..1_023 {
            ask(&store, &plain, StepOp::Admit, &key.to_string(), 10);
        }
        for key in 0..1_023 {
            ask(&store, &plain, StepOp::Admit, &format!("next {key}"), 50);
        }
        assert_eq!(store.evictions().bans, 0);
        assert_eq!(
            ask(&store, &rule, StepOp::Admit, "offender", 60),
            banned(1_060, true)
        );
    }
}

#[test]
fn a_repetition_needs_no_room_of_its_own() {
    let store = Store::memory(StoreBounds::keys(16));
    let rule = escalating(&store);
    for key in 0..4 {
        ask(&store, &rule, StepOp::Admit, &key.to_string(), 0);
    }
    for key in 0..4 {
        let found = ask(&store, &rule, StepOp::Admit, &key.to_string(), 20);
        assert_eq!(found, banned(1_020, true));
    }
    assert_eq!(store.evictions().bans, 0);
    assert_eq!(store.bans(at(20)).len(), 4);
}

#[test]
fn what_is_only_tried_lifts_no_ban_and_forgets_no_offence() {
    // Capacity for one ban.
    let store = Store::memory(StoreBounds::keys(4));
    let (real, again) = (Rule::ban(&store, "real", 0, 100), escalating(&store));
    let tried = |key, secs| {
        let step = Rule::ban(&store, "tried", 0, 1_000).step(StepOp::Admit, 1);
        let step = Step {
            candidate: true,
            is_terminal: false,
            ..step
        };
        memory(&store).run(&plan([(key, step)]), at(secs))[0].status
    };
    assert_eq!(ask(&store, &real, StepOp::Admit, "a", 0), banned(100, true));
    assert_eq!(tried("b", 1), KeyStatus::Over);
    assert_eq!(
        ask(&store, &real, StepOp::CheckBan, "a", 2),
        banned(100, false)
    );
    assert_eq!(
        ask(&store, &again, StepOp::Admit, "c", 100),
        banned(110, true)
    );
    assert_eq!(tried("b", 120), KeyStatus::Over);
    assert_eq!(
        ask(&store, &again, StepOp::Admit, "c", 120),
        banned(1_120, true)
    );
    assert_eq!(store.evictions(), EvictionCounts::default());
}

#[test]
fn a_ban_that_has_ended_makes_room_for_what_is_only_tried() {
    let store = Store::memory(StoreBounds::keys(4));
    let real = Rule::ban(&store, "real", 0, 100);
    let step = Step {
        candidate: true,
        ..Rule::ban(&store, "tried", 0, 1_000).step(StepOp::Admit, 1)
    };
    ask(&store, &real, StepOp::Admit, "a", 0);
    let found = memory(&store).run(&plan([("b", step)]), at(100));
    assert_eq!(found[0].status, banned(1_100, true));
}
