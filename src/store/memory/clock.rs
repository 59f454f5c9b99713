//! Tests that a clock that is set back or jumps forward makes no decision worse.

use std::time::Duration;

use proptest::prelude::*;

use super::tests::{ask, memory, tracked};
use super::*;
use crate::limit::{Algorithm, Limiter};
use crate::rules::plan::{KeyStatus, StepOp};
use crate::store::fixture::{Rule, at, banned, limiters, plan};
use crate::store::{Store, StoreBounds};

const YEAR: u64 = 365 * 24 * 60 * 60;

/// Far enough from the epoch that the clock can be set back by years.
const LATER: u64 = 10 * YEAR;

proptest! {
    #[test]
    fn a_full_key_is_not_forgotten_and_not_kept_waiting(
        algorithm in 0..7usize,
        limit in 1..6u64,
        period in 1..120u64,
        back in prop_oneof![0..300u64, 0..LATER],
        looks in any::<bool>(),
    ) {
        let store = Store::memory(StoreBounds::keys(100));
        let (name, limiter) = limiters(limit)[algorithm];
        let limiter = Limiter { period: Duration::from_secs(period), ..limiter };
        let rule = Rule::counting(&store, name, limiter);
        for _ in 0..limit {
            ask(&store, &rule, StepOp::Admit, "k", LATER);
        }
        let set = LATER - back;
        prop_assert_eq!(ask(&store, &rule, StepOp::Admit, "k", set), KeyStatus::Over);
        // Two periods are the longest that an honest clock has it wait; one period, or ten
        // seconds, is what a clock may be behind without having been set.
        let longest = 3 * period + 11;
        let op = if looks { StepOp::Peek } else { StepOp::Admit };
        let free = (0..=longest).any(|wait| ask(&store, &rule, op, "k", set + wait) == KeyStatus::Within);
        prop_assert!(free, "{} waits for the clock", name);
    }

    #[test]
    fn a_ban_lasts_no_longer_than_its_length(
        length in 20..100_000u64,
        back in prop_oneof![0..300u64, 0..LATER],
        waits in prop::collection::vec(1..10_000u64, 1..40),
    ) {
        let store = Store::memory(StoreBounds::keys(100));
        let rule = Rule::ban(&store, "ban", 0, length);
        prop_assert_eq!(ask(&store, &rule, StepOp::Admit, "k", LATER), banned(LATER + length, true));
        let set = LATER - back;
        let mut now = set;
        for wait in waits {
            let found = ask(&store, &rule, StepOp::CheckBan, "k", now);
            let passed = now - set;
            if passed < length {
                prop_assert!(matches!(found, KeyStatus::Banned { .. }), "freed by the clock");
            }
            if passed >= length + 10 {
                prop_assert_eq!(found, KeyStatus::Within, "held by the clock");
            }
            now += wait;
        }
    }
}

#[test]
fn a_jump_forward_is_time_that_has_passed() {
    for (name, limiter) in limiters(3) {
        let store = Store::memory(StoreBounds::keys(100));
        let rule = Rule::counting(&store, name, limiter);
        for _ in 0..5 {
            ask(&store, &rule, StepOp::Admit, "k", 0);
        }
        assert_eq!(
            ask(&store, &rule, StepOp::Admit, "k", LATER),
            KeyStatus::Within,
            "{name}"
        );
    }
}

#[test]
fn what_a_wrong_clock_counted_gives_way_to_what_is_new() {
    for (name, limiter) in limiters(5) {
        if limiter.algorithm == Algorithm::Concurrency {
            continue;
        }
        let store = Store::memory(StoreBounds::keys(8));
        let rule = Rule::counting(&store, name, limiter);
        for key in 0..8 {
            ask(
                &store,
                &rule,
                StepOp::Charge,
                &format!("wrong {key}"),
                LATER,
            );
        }
        assert_eq!(tracked(&store, 0), 0, "{name}");
        for key in 0..8 {
            ask(&store, &rule, StepOp::Charge, &format!("right {key}"), 0);
        }
        assert_eq!(store.evictions(), EvictionCounts::default(), "{name}");
        assert_eq!(tracked(&store, 0), 8, "{name}");
    }
}

#[test]
fn threads_that_read_the_clock_a_moment_apart_agree() {
    for (name, limiter) in limiters(100) {
        let store = Store::memory(StoreBounds::keys(100));
        let rule = Rule::counting(&store, name, limiter);
        let admitted = (0..300).filter(|n| {
            // Around the boundary of two windows, up to two seconds apart.
            let now = at(59).plus(Duration::from_millis((n * 7_919) % 2_000));
            let plan = plan([("k", rule.step(StepOp::Admit, 1))]);
            memory(&store).run(&plan, now)[0].charged
        });
        let admitted = admitted.count();
        // Four more units are released evenly within two seconds; a fixed window restarts at the boundary.
        let most = match limiter.algorithm {
            Algorithm::FixedWindow => 200,
            _ => 104,
        };
        assert!((100..=most).contains(&admitted), "{name}: {admitted}");
    }
}
