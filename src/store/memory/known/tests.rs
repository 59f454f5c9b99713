//! The short way finds and leaves what the long one does.

use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::rules::plan::{Op, Plan};
use crate::store::fixture::{Rule, at, limiters, plan};
use crate::store::memory::bucket::Entry;
use crate::store::memory::tests::memory;
use crate::store::memory::visit::Notes;
use crate::store::memory::{Memory, second};
use crate::store::{Bounds, Store};

/// All that is kept: the entries but for their handles, how long they may last, and the bytes that
/// are taken.
type Kept = (Vec<Entry>, Vec<u32>, [usize; 2]);

fn store(max_log_bytes: usize) -> Store {
    let max_keys = 1_000;
    let mut store = Store::memory(Bounds {
        max_keys,
        max_log_bytes,
    });
    let Store::Memory(memory) = &mut store;
    memory.set_secret(b"the same");
    store
}

/// What [`Memory::apply`] does for a key that is not known.
fn at_length(memory: &Memory, plan: &Plan, now: Timestamp) -> Findings {
    let mut findings = Findings::new();
    let (index, step) = (0, &plan.steps[0]);
    let hash = memory.hash(plan, step);
    let visit = memory.visit(hash.tag, plan, Ask { index, step, now }, Op::Admit);
    visit.run(hash, &mut Notes::new(&mut findings));
    findings
}

fn kept(memory: &Memory, now: Timestamp) -> Kept {
    let (mut entries, mut longest) = (Vec::new(), Vec::new());
    for shard in &memory.shards {
        let held = shard.held.lock();
        entries.extend(held.table.live(second(now)).map(without_handle));
        longest.push(held.table.longest());
    }
    (entries, longest, memory.budgets.taken())
}

fn without_handle(entry: Entry) -> Entry {
    let state = match entry.kind {
        Kind::Handle => Default::default(),
        Kind::Words | Kind::Places => entry.state,
    };
    Entry { state, ..entry }
}

proptest! {
    #[test]
    fn what_is_known_is_counted_the_same(
        algorithm in 0..8usize,
        (limit, bytes) in (1..30u64, prop_oneof![0..4_000usize, Just(1 << 20)]),
        (ban, patience) in (prop_oneof![4 => Just(0), 1 => Just(20u64)], 0..2u64),
        requests in prop::collection::vec(
            (0..3u8, 0..4u64, prop_oneof![0..1_500u64, 0..20_000u64, Just(90_000)], 0..200i64),
            1..200,
        ),
    ) {
        let stores = [store(bytes), store(bytes)];
        let rules = stores.each_ref().map(|store| Rule {
            ban,
            patience,
            ..Rule::counting(store, "rule", limiters(limit)[algorithm].1)
        });
        let mut now = at(1_000);
        for (key, cost, wait, jump) in requests {
            now = now.plus(Duration::from_millis(wait));
            // Now and then the clock shows less, by a little or by much.
            let back = [5, 30, 400].get(jump as usize).map_or(0, |secs| secs * 1_000_000_000);
            let now = Timestamp::from_nanos(now.as_nanos() - back);
            let step = rules[0].step(Op::Admit, cost);
            let plan = plan([(&*key.to_string(), step)]);
            let [short, long] = stores.each_ref().map(memory);
            prop_assert_eq!(short.apply(&plan, now), at_length(long, &plan, now));
            prop_assert_eq!(kept(short, now), kept(long, now));
        }
    }
}
