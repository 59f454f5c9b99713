//! Runs many operations at the limits in random order: all capacity is returned.

use std::cell::RefCell;
use std::time::Duration;

use proptest::prelude::*;
use proptest::sample::Index;
use sha2::{Digest as _, Sha256};

use super::tests::memory;
use super::*;
use crate::limit::Limiter;
use crate::rules::plan::BanLength;
use crate::rules::plan::{Plan, Step, StepOp};
use crate::store::fixture::{Rule, limiters, plan};
use crate::store::{Store, StoreBounds};

const RULES: usize = 16;
const MOST: u64 = u32::MAX as u64;

/// Costs around the ends of what can be counted.
const COSTS: [u64; 8] = [0, 1, 2, 7, MOST - 1, MOST, MOST + 1, u64::MAX];

/// A moment of 2026, in nanoseconds.
const START: u64 = 1_767_225_600_000_000_000;

/// Moments from one end of time to the other.
const MOMENTS: [u64; 8] = [
    0,
    1,
    START,
    START + 1,
    MOST * 1_000_000_000,
    (1 << 63) - 1,
    1 << 63,
    u64::MAX,
];

/// One thing that happens to a store.
#[derive(Clone, Debug)]
enum Event {
    /// A request comes: rule, operation, key, cost.
    Come(usize, StepOp, u8, u64),
    /// One of them ends.
    Leave(Index),
    /// This many nanoseconds pass.
    Wait(u64),
    /// The clock is set.
    Set(u64),
    /// A reload drops rules.
    Retire(u16),
}

/// A store, its clock and the requests that are in flight.
struct World {
    store: Store,
    rules: RefCell<RuleRegistry>,
    limit: u64,
    period: Duration,
    now: Timestamp,
    inside: Vec<Plan>,
}

prop_compose! {
    fn worlds()(
        max_keys in prop_oneof![1..4usize, 1..40usize],
        max_log_bytes in prop_oneof![Just(0), 0..3_000usize, Just(1 << 20)],
        limit in prop_oneof![1..4u64, Just(MOST)],
        period in prop::sample::select(vec![1, 60_000, 366 * 86_400_000]),
    ) -> (StoreBounds, u64, Duration) {
        (StoreBounds { max_keys, max_log_bytes }, limit, Duration::from_millis(period))
    }
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let ops = prop::sample::select(vec![
        StepOp::Admit,
        StepOp::Charge,
        StepOp::Peek,
        StepOp::CheckBan,
    ]);
    let costs = prop::sample::select(COSTS.to_vec());
    let come = (0..RULES, ops, 0..40u8, costs);
    let event = prop_oneof![
        40 => come.prop_map(|(rule, op, key, cost)| Event::Come(rule, op, key, cost)),
        6 => any::<Index>().prop_map(Event::Leave),
        4 => (0..200_000_000_000u64).prop_map(Event::Wait),
        1 => prop::sample::select(MOMENTS.to_vec()).prop_map(Event::Set),
        1 => any::<u16>().prop_map(Event::Retire),
    ];
    prop::collection::vec(event, 1..200)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_place_is_given_back((bounds, limit, period) in worlds(), events in events()) {
        let mut world = World::new(bounds, limit, period);
        for event in events {
            world.happen(event);
            let bans = world.store.bans(world.now).len();
            prop_assert!(bans <= (bounds.max_keys / 4).max(1), "{} bans", bans);
        }
        world.end();
    }

    /// Its checksum proves that it is undamaged, not its author.
    #[test]
    fn no_snapshot_makes_a_store_panic(
        (bounds, limit, period) in worlds(),
        before in events(),
        changes in prop::collection::vec(any::<(Index, u8)>(), 0..12),
        after in events(),
    ) {
        let mut old = World::new(bounds, limit, period);
        before.into_iter().for_each(|event| old.happen(event));
        let mut new = World::new(bounds, limit, period);
        new.now = old.now;
        // Whether it can be read is not the question.
        let forged = old.forged(&changes);
        let rules = new.rules.borrow().rules();
        let _ = new.store.restore(&forged[..], &rules, old.now);
        after.into_iter().for_each(|event| new.happen(event));
        new.store.save(Vec::new(), &rules, new.now).unwrap();
    }
}

// === impl World ===

impl World {
    fn new(bounds: StoreBounds, limit: u64, period: Duration) -> Self {
        let world = Self {
            store: Store::memory(bounds).keyed(b"secret"),
            rules: RefCell::default(),
            limit,
            period,
            now: Timestamp::from_nanos(START),
            inside: Vec::new(),
        };
        (0..RULES).for_each(|rule| _ = world.rule(rule));
        world
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Come(rule, op, key, cost) => self.come(rule, op, key, cost),
            Event::Leave(_) if self.inside.is_empty() => {}
            Event::Leave(index) => {
                let index = index.index(self.inside.len());
                let plan = self.inside.swap_remove(index);
                self.store.give_back(&plan);
            }
            Event::Wait(nanos) => self.now = self.now.plus(Duration::from_nanos(nanos)),
            Event::Set(nanos) => self.now = Timestamp::from_nanos(nanos),
            Event::Retire(kept) => {
                let kept = (0..RULES).filter(|rule| kept & (1 << rule) != 0);
                let kept: Vec<_> = kept.map(|rule| self.rule(rule).id.identity).collect();
                self.retire(&kept);
            }
        }
    }

    fn come(&mut self, rule: usize, op: StepOp, key: u8, cost: u64) {
        let step = Step {
            limiter: self.limiter(rule),
            ban: ban(rule),
            ..self.rule(rule).step(op, cost)
        };
        let plan = plan([(&*key.to_string(), step)]);
        memory(&self.store).run(&plan, self.now);
        self.inside.push(plan);
    }

    /// All requests end, and all rules go: nothing is left.
    fn end(self) {
        for plan in &self.inside {
            self.store.give_back(plan);
        }
        (0..RULES).for_each(|rule| _ = self.rule(rule));
        self.retire(&[]);
        let memory = memory(&self.store);
        assert_eq!(memory.counter_room.taken(), 0, "keys");
        assert_eq!(memory.ban_room.taken(), 0, "bans");
        assert_eq!(memory.budgets.taken(), [0, 0], "bytes");
        let mut shards = memory.shards.iter();
        assert!(shards.all(|shard| shard.held.lock().large.is_empty()));
    }

    /// The store as it is saved, with some bytes changed and signed again.
    fn forged(&self, changes: &[(Index, u8)]) -> Vec<u8> {
        let rules = self.rules.borrow().rules();
        let mut bytes = self.store.save(Vec::new(), &rules, self.now).unwrap();
        // The length and the checksum.
        bytes.truncate(bytes.len() - 40);
        for (place, byte) in changes {
            *place.get_mut(&mut bytes) = *byte;
        }
        let (length, hash) = (bytes.len() as u64, Sha256::digest(&bytes));
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.extend_from_slice(&hash);
        bytes
    }

    fn rule(&self, rule: usize) -> Rule {
        let name = format!("r{rule}");
        let id = self.rules.borrow_mut().register(rule as u64, &name);
        Rule {
            id,
            ..Rule::throttle(&self.store, &name, self.limit)
        }
    }

    fn retire(&self, keep: &[u64]) {
        let removed = self.rules.borrow_mut().retain(keep);
        let removed: Vec<_> = removed.iter().map(|rule| rule.id).collect();
        self.store.remove_rules(&removed, self.now);
    }

    fn limiter(&self, rule: usize) -> Limiter {
        let (_, limiter) = limiters(3)[rule % 8];
        Limiter {
            limit: self.limit,
            period: self.period,
            burst: 2 * self.limit,
            ..limiter
        }
    }
}

/// Two rules of each algorithm, with different bans.
fn ban(rule: usize) -> BanLength {
    match (rule + rule / 8) % 3 {
        0 => BanLength::Never,
        1 => BanLength::For(Duration::from_secs(30)),
        _ => BanLength::Escalating([10, 100, u64::MAX].map(Duration::from_secs).into()),
    }
}
