//! What is seen of counters.

use crate::rules::plan::{StepOp, StoreMode};
use crate::store::fixture::{Rule, at, limiters};
use crate::store::memory::tests::ask;
use crate::store::{InspectedRule, KeyUsage, Store, StoreBounds};

fn inspected(rule: &Rule) -> InspectedRule {
    InspectedRule {
        id: rule.id,
        limiter: rule.step(StepOp::Peek, 1).limiter,
        mode: StoreMode::Exact,
    }
}

#[test]
fn the_units_of_a_key_are_read_with_every_algorithm() {
    for (name, limiter) in limiters(10) {
        let store = Store::memory(StoreBounds::keys(1_000));
        let rule = Rule::counting(&store, &format!("usage-{name}"), limiter);
        for _ in 0..7 {
            ask(&store, &rule, StepOp::Charge, "k", 0);
        }
        let usage = |key: &[u8]| store.key_usage(&inspected(&rule), key, at(0));
        assert_eq!(usage(b"k"), KeyUsage::counted(7), "{name}");
        assert_eq!(usage(b"other"), KeyUsage::default(), "{name}");
        let levels = store.fill_levels(&inspected(&rule), at(0));
        assert_eq!(levels.0, [0, 0, 0, 1, 0, 0], "{name}");
    }
}

#[test]
fn a_banned_key_has_no_units_and_is_over_its_limit() {
    let store = Store::memory(StoreBounds::keys(1_000));
    let rule = Rule::ban(&store, "usage-ban", 2, 300);
    for _ in 0..3 {
        ask(&store, &rule, StepOp::Admit, "banned", 0);
    }
    ask(&store, &rule, StepOp::Admit, "half", 0);
    let levels = |secs| store.fill_levels(&inspected(&rule), at(secs)).0;
    assert_eq!(levels(0), [0, 0, 0, 1, 0, 1]);
    assert_eq!(levels(300), [0; 6]);
    let usage = |secs| store.key_usage(&inspected(&rule), b"banned", at(secs));
    assert_eq!(usage(0), KeyUsage::banned(at(300)));
    assert_eq!(usage(300), KeyUsage::default());
}
