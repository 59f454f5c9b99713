//! The suite, on each store.

use std::rc::Rc;
use std::sync::atomic::Ordering;

use super::fixture::{Rule, limiters};
use super::*;
use crate::clock::Clock;
use crate::limit::Algorithm;
use crate::rules::plan::{KeyStatus, StepOp};

#[tokio::test]
async fn memory_conforms() {
    let store = handle(Store::memory(StoreBounds::keys(100_000)));
    conformance::all(&store).await;
    conformance::administration::all(&store).await;
}

#[tokio::test]
async fn a_small_memory_conforms() {
    conformance::all(&handle(Store::memory(StoreBounds::keys(200)))).await;
}

#[tokio::test]
async fn every_algorithm_is_admitted_charged_and_peeked() {
    let store = Store::memory(StoreBounds::keys(1_000));
    let mut seen = [false; ALGORITHMS];
    for (name, limiter) in limiters(2) {
        seen[number(limiter.algorithm)] = true;
        let rule = Rule::counting(&store, &format!("every-{name}"), limiter);
        for (op, left) in [
            (StepOp::Peek, 2),
            (StepOp::Admit, 1),
            (StepOp::Charge, 0),
            (StepOp::Peek, 0),
        ] {
            let result = rule.ask(&store, op, "k", 0).await;
            assert_eq!(result.reading.unwrap().remaining, left, "{name} {op:?}");
        }
        let refused = rule.ask(&store, StepOp::Admit, "k", 0).await;
        assert_eq!(
            (refused.status, refused.charged),
            (KeyStatus::Over, false),
            "{name}"
        );
    }
    assert_eq!(seen, [true; ALGORITHMS]);
}

const ALGORITHMS: usize = 7;

/// A new algorithm fails to compile here until `limiters` has it too.
fn number(algorithm: Algorithm) -> usize {
    match algorithm {
        Algorithm::SlidingWindow => 0,
        Algorithm::FixedWindow => 1,
        Algorithm::SlidingLog => 2,
        Algorithm::TokenBucket => 3,
        Algorithm::LeakyBucket => 4,
        Algorithm::Gcra => 5,
        Algorithm::Concurrency => 6,
    }
}

#[tokio::test]
async fn a_remote_store_conforms() {
    conformance::all(&handle(Store::faulty(StoreBounds::keys(100_000)))).await;
}

#[tokio::test]
async fn a_slow_store_conforms() {
    let store = Store::faulty(StoreBounds::keys(100_000));
    store.faults().latency.store(1, Ordering::SeqCst);
    conformance::all(&handle(store)).await;
}

#[tokio::test]
async fn a_store_with_another_clock_conforms() {
    for skew in [-3_600_000, -1, 40_000, 86_400_000] {
        let store = Store::faulty(StoreBounds::keys(100_000));
        store.faults().skew.store(skew, Ordering::SeqCst);
        conformance::all(&handle(store)).await;
    }
}

#[tokio::test]
async fn a_store_that_fails_applies_nothing_and_conforms_when_asked_again() {
    let store = Store::faulty(StoreBounds::keys(100_000));
    store
        .faults()
        .fails_every_other
        .store(true, Ordering::SeqCst);
    conformance::all(&handle(store)).await;
}

/// A core's handle of `store`.
fn handle(store: Store) -> Rc<StoreHandle> {
    StoreHandle::new(Arc::new(store), Clock::System)
}
