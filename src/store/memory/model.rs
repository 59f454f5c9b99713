//! Every algorithm against a plain map, which is never full and forgets nothing.

use std::collections::HashMap;
use std::time::Duration;

use proptest::prelude::*;

use super::tests::memory;
use super::*;
use crate::limit::concurrency::LeaseId;
use crate::limit::{Algorithm, Counter, CounterReading, Limiter};
use crate::rules::plan::BanLength;
use crate::rules::plan::{KeyStatus, Step, StepOp, StepResult};
use crate::store::fixture::{Rule, at, limiters, plan};
use crate::store::{Store, StoreBounds};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A store of one rule, as it would be without bounds.
struct Model {
    limiter: Limiter,
    ban: BanLength,
    max_hold: Duration,
    counters: HashMap<u8, Counter>,
    /// The last ban of each key: its end, and which offence it was.
    bans: HashMap<u8, (Timestamp, u32)>,
}

/// What a client does.
#[derive(Clone, Copy, Debug)]
enum Act {
    Ask(StepOp, u64),
    /// Ends the oldest request that is in flight.
    Leave,
}

impl Model {
    fn ask(
        &mut self,
        key: u8,
        (op, cost, lease): (StepOp, u64, LeaseId),
        now: Timestamp,
    ) -> StepResult {
        let last = self.bans.get(&key).copied();
        if let Some((until, _)) = last.filter(|(until, _)| *until > now) {
            let started = false;
            return found(KeyStatus::Banned { until, started });
        }
        let limiter = self.limiter;
        let new = || Counter::new(limiter.shape(), &limiter);
        let counter = self.counters.entry(key).or_insert_with(new);
        let look = counter.peek(&limiter, now, cost);
        let (reading, charged) = match op {
            StepOp::CheckBan => return found(KeyStatus::Within),
            StepOp::Always => return found(KeyStatus::Over),
            StepOp::Peek => (look, false),
            StepOp::Admit | StepOp::Charge if !look.fits && !self.ban.is_never() => {
                return self.start(key, now);
            }
            StepOp::Charge => (counter.charge(&limiter, now, cost, lease), true),
            StepOp::Admit if look.fits => (counter.admit(&limiter, now, cost, lease), true),
            StepOp::Admit => {
                let waits = limiter
                    .wait_for_turn(&look)
                    .is_some_and(|wait| wait <= self.max_hold);
                if waits {
                    counter.charge(&limiter, now, cost, lease);
                }
                (look, waits)
            }
        };
        let matters = self.ban.is_never() || op != StepOp::Peek;
        let status = if !reading.fits && matters {
            KeyStatus::Over
        } else {
            KeyStatus::Within
        };
        StepResult {
            reading: Some(reading),
            charged,
            ..found(status)
        }
    }

    fn start(&mut self, key: u8, now: Timestamp) -> StepResult {
        if self.limiter.algorithm != Algorithm::Concurrency {
            self.counters.remove(&key);
        }
        let recent = self.bans.get(&key).filter(|(end, _)| end.plus(DAY) > now);
        let before = match self.ban {
            BanLength::Escalating(_) => recent.map_or(0, |(_, offence)| *offence),
            _ => 0,
        };
        let length = self.ban.length(before);
        let (until, started) = (now.plus(length), true);
        self.bans.insert(key, (until, before + 1));
        let reading = CounterReading::refusing(0, length, Some(length));
        StepResult {
            reading: Some(reading),
            ..found(KeyStatus::Banned { until, started })
        }
    }

    fn leave(&mut self, key: u8, lease: LeaseId) {
        if let Some(Counter::Leases(leases)) = self.counters.get_mut(&key) {
            leases.release(lease);
        }
    }
}

/// What is found without a look at a counter.
fn found(status: KeyStatus) -> StepResult {
    StepResult {
        step: 0,
        status,
        reading: None,
        charged: false,
    }
}

fn acts() -> impl Strategy<Value = Act> {
    let costs = prop_oneof![6 => Just(1u64), 1 => Just(0), 1 => 2..5u64];
    let ops = prop_oneof![
        4 => Just(StepOp::Admit),
        2 => Just(StepOp::Charge),
        1 => Just(StepOp::Peek),
        1 => Just(StepOp::CheckBan),
    ];
    prop_oneof![
        5 => (ops, costs).prop_map(|(op, cost)| Act::Ask(op, cost)),
        1 => Just(Act::Leave),
    ]
}

fn bans() -> impl Strategy<Value = BanLength> {
    let lengths = prop::collection::vec(1..5_000u64, 1..4);
    let lengths = lengths.prop_map(|lengths| lengths.into_iter().map(Duration::from_millis));
    prop_oneof![
        Just(BanLength::Never),
        (1..5_000u64).prop_map(|length| BanLength::For(Duration::from_millis(length))),
        lengths.prop_map(|lengths| BanLength::Escalating(lengths.collect())),
    ]
}

/// Between two requests, in milliseconds: mostly short, sometimes a day.
fn waits() -> impl Strategy<Value = u64> {
    prop_oneof![60 => 0..400u64, 1 => 86_390_000..86_400_000u64]
}

proptest! {
    #[test]
    fn a_table_with_room_gives_the_verdicts_of_a_plain_map(
        algorithm in 0..8usize,
        limit in 0..6u64,
        period in prop_oneof![Just(1u64), Just(250), Just(1_000), Just(60_000)],
        ban in bans(),
        max_hold in prop_oneof![Just(0u64), 1..2_000u64],
        requests in prop::collection::vec((0..40u8, acts(), waits()), 1..300),
    ) {
        let store = Store::memory(StoreBounds::keys(200));
        let rule = Rule::throttle(&store, "r", limit);
        let period = Duration::from_millis(period);
        let limiter = Limiter { period, ..limiters(limit)[algorithm].1 };
        let max_hold = Duration::from_millis(max_hold);
        let mut model = Model {
            limiter,
            ban: ban.clone(),
            max_hold,
            counters: HashMap::new(),
            bans: HashMap::new(),
        };
        let mut in_flight = Vec::new();
        let mut now = at(0);
        for (key, act, wait) in requests {
            now = now.plus(Duration::from_millis(wait));
            let Act::Ask(op, cost) = act else {
                if let Some((key, plan)) = in_flight.pop() {
                    store.give_back(&plan);
                    model.leave(key, plan.lease);
                }
                continue;
            };
            let step = Step { limiter, ban: ban.clone(), max_hold, ..rule.step(op, cost) };
            let plan = plan([(&*format!("key {key}"), step)]);
            let result = memory(&store).run(&plan, now);
            prop_assert_eq!(result[0], model.ask(key, (op, cost, plan.lease), now));
            if result[0].charged {
                in_flight.push((key, plan));
            }
        }
        prop_assert_eq!(store.evictions(), EvictionCounts::default());
    }
}
