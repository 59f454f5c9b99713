//! Threads that share a store.

use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use super::tests::{ask, memory, tracked};
use super::*;
use crate::limit::{Algorithm, Limiter};
use crate::rules::plan::{KeyStatus, StepOp};
use crate::store::fixture::{Rule, at, limiters, plan};
use crate::store::{Store, StoreBounds};

#[test]
fn threads_admit_no_more_than_the_limit() {
    const LIMIT: u64 = 200;
    for (name, limiter) in limiters(LIMIT) {
        let store = Store::memory(StoreBounds::keys(10_000));
        let rule = Rule::counting(&store, name, limiter);
        let admitted: Vec<_> = (0..17).map(|_| AtomicUsize::new(0)).collect();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    // Every other request is for one key, the others for sixteen more.
                    for n in 0..960 {
                        let key = if n % 2 == 0 { 0 } else { 1 + n / 2 % 16 };
                        let found = ask(&store, &rule, StepOp::Admit, &key.to_string(), 1);
                        if found == KeyStatus::Within {
                            admitted[key].fetch_add(1, Ordering::Relaxed);
                        }
                    }
                });
            }
        });
        for count in admitted {
            assert_eq!(count.into_inner() as u64, LIMIT, "{name}");
        }
    }
}

#[test]
fn threads_never_have_more_in_flight_than_the_limit() {
    const LIMIT: usize = 5;
    let store = Store::memory(StoreBounds::keys(10_000));
    let limiter = Limiter::new(Algorithm::Concurrency, LIMIT as u64, Duration::ZERO);
    let rule = Rule::counting(&store, "places", limiter);
    let in_flight: Vec<_> = (0..3).map(|_| AtomicUsize::new(0)).collect();
    let entered = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let (store, rule, in_flight, entered) = (&store, &rule, &in_flight, &entered);
            scope.spawn(move || {
                for n in 0..1_500 {
                    let cost = 1 + n % 2;
                    let key = (n / 7 + thread) % 3;
                    let plan = plan([(&*key.to_string(), rule.step(StepOp::Admit, cost as u64))]);
                    let result = memory(store).run(&plan, at(0));
                    if result[0].charged {
                        let before = in_flight[key].fetch_add(cost, Ordering::SeqCst);
                        assert!(before + cost <= LIMIT);
                        entered.fetch_add(1, Ordering::Relaxed);
                        std::thread::yield_now();
                        in_flight[key].fetch_sub(cost, Ordering::SeqCst);
                    }
                    store.give_back(&plan);
                }
            });
        }
    });
    assert!(entered.into_inner() > 1_000);
    assert_eq!(tracked(&store, 0), 0);
}

#[test]
fn threads_start_one_ban_and_charge_nothing_beside_it() {
    let store = Store::memory(StoreBounds::keys(10_000));
    for round in 0..50 {
        let rule = Rule::ban(&store, &format!("r{round}"), 40, 30);
        let [within, started, banned] = [0; 3].map(AtomicUsize::new);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..25 {
                        let count = match ask(&store, &rule, StepOp::Charge, "k", 0) {
                            KeyStatus::Within => &within,
                            KeyStatus::Banned { started: true, .. } => &started,
                            _ => &banned,
                        };
                        count.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        let counts = [within, started, banned].map(AtomicUsize::into_inner);
        assert_eq!(counts, [40, 1, 59]);
        assert_eq!(tracked(&store, 0), 0);
    }
}

#[test]
fn threads_at_the_bound_of_bans_keep_it() {
    let store = Store::memory(StoreBounds::keys(8_192));
    std::thread::scope(|scope| {
        for part in 0..4 {
            let store = &store;
            scope.spawn(move || {
                for key in 0..1_500 {
                    let rule = Rule::ban(store, "ban", 0, 60 + key % 50);
                    let key = format!("{part}/{key}");
                    let found = ask(store, &rule, StepOp::Admit, &key, 0);
                    assert!(matches!(found, KeyStatus::Banned { started: true, .. }));
                }
            });
        }
    });
    assert_eq!(store.bans(at(0)).len(), 2_048);
    assert_eq!(store.evictions().bans, 6_000 - 2_048);
    assert_eq!(store.bans(at(110)).len(), 0);
}
