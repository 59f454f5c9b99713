//! A counter snapshot that an earlier version wrote must still restore.
//!
//! `tests/data/snapshot/counters` is such a file. It is never regenerated. It was saved 10 seconds
//! into the minute, after these steps, each an [`Op::Admit`] of one unit:
//!
//! - For each rule of [`limiters`]`(6)`, the units of [`KEYS`], one a second from second 1 on.
//! - `gone` bans `x` at 0. `ban` bans `banned` at 1 and `banned for long` at 4, for 600 seconds.
//! - `escalate` (5, then 600 seconds) bans `twice` at 0 and again at 6, and `once` at 0.

use super::fixture::{Rule, TestCounters as _, at, limiters, rules_named};
use super::{RestoreSummary, Store, StoreBounds};
use crate::limit::Algorithm;
use crate::rules::plan::{KeyStatus, StepOp};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/snapshot/counters");

/// A key of which half of the limit is used, and one of which all is used.
const KEYS: [(&str, u64); 2] = [("203.0.113.7", 3), ("2001:db8::/64", 6)];

/// The units left of 6 a minute for each key, 20 and 70 seconds into the minute, and the wait for
/// three units of the second key at 20 seconds, in milliseconds.
const EXPECTED: [(&str, [u64; 2], [u64; 2], u64); 8] = [
    ("sliding_window", [3, 0], [3, 1], 70_000),
    ("slices", [3, 0], [6, 6], 43_750),
    ("fixed_window", [3, 0], [6, 6], 40_000),
    ("sliding_log", [3, 0], [6, 6], 43_000),
    ("token_bucket", [4, 1], [6, 6], 11_000),
    ("leaky_bucket", [4, 1], [6, 6], 11_000),
    ("gcra", [4, 1], [6, 6], 11_000),
    // Requests in flight end with the process.
    ("concurrency", [6, 6], [6, 6], 0),
];

/// The rules of the snapshot, in addition to one for each algorithm.
fn banning(store: &Store) -> (Rule, Rule) {
    let ban = Rule::ban(store, "ban", 0, 600);
    (ban, Rule::escalating(store, "escalate", 0, &[5, 600]))
}

/// The store at 20 seconds, after a restart without the rule `gone`.
fn restored() -> (Store, RestoreSummary) {
    let bytes = std::fs::read(FILE).unwrap();
    let mut store = Store::memory(StoreBounds::keys(1_000));
    banning(&store);
    let mut names = vec!["ban", "escalate"];
    for (name, limiter) in limiters(6) {
        Rule::counting(&store, name, limiter);
        names.push(name);
    }
    store.verify(&*bytes).unwrap();
    let report = store
        .restore(&*bytes, &rules_named(&names), at(20))
        .unwrap();
    (store, report)
}

#[tokio::test]
async fn its_counters_go_on() {
    let (store, report) = restored();
    assert_eq!(report.counters, 14);
    let mut found = Vec::new();
    for (name, limiter) in limiters(6) {
        let rule = Rule::counting(&store, name, limiter);
        let counted = store.keys(at(20)).contains(&(rule.id.slot, KEYS.len()));
        assert_eq!(
            counted,
            limiter.algorithm != Algorithm::Concurrency,
            "{name}"
        );
        let three = store.apply_one(rule.step(StepOp::Peek, 3), KEYS[1].0, at(20));
        let wait = three.await.reading.unwrap().retry_after().unwrap();
        let wait = (wait.as_micros() + 500) / 1_000;
        let mut left = [[0; 2]; 2];
        for (secs, left) in [20, 70].into_iter().zip(&mut left) {
            for ((key, _), left) in KEYS.iter().zip(left) {
                *left = rule.left(&store, key, secs).await;
            }
        }
        let [early, late] = left;
        found.push((name, early, late, wait as u64));
    }
    assert_eq!(found, EXPECTED);
}

#[tokio::test]
async fn its_bans_and_offences_go_on() {
    let (store, report) = restored();
    assert_eq!(report.bans, 3);
    assert_eq!(report.unknown, [("gone".to_owned(), 1)]);
    assert!(report.other_secret);
    let bans = store.bans(at(20)).into_iter();
    let bans: Vec<_> = bans.map(|ban| (ban.key, ban.until, ban.offence)).collect();
    let expected = [
        ("banned", 601, 1),
        ("banned for long", 604, 1),
        ("twice", 606, 2),
    ];
    let expected = expected.map(|(key, secs, nth)| (key.as_bytes().into(), at(secs), nth));
    assert_eq!(bans, expected);
    let (ban, escalate) = banning(&store);
    let until = |secs, started| KeyStatus::Banned {
        until: at(secs),
        started,
    };
    assert_eq!(ban.admit(&store, "banned", 600).await, until(601, false));
    // The offence before the restart counts: the second ban is the longer one.
    assert_eq!(escalate.admit(&store, "once", 20).await, until(620, true));
    assert_eq!(escalate.admit(&store, "new", 20).await, until(25, true));
}
