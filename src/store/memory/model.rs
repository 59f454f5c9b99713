//! Against a plain map, which is never full.

use std::collections::HashMap;
use std::time::Duration;

use proptest::prelude::*;

use super::tests::memory;
use super::*;
use crate::limit::{Algorithm, Limiter, State};
use crate::store::fixture::{Rule, at, plan};
use crate::store::{Bounds, Store};

/// A table that forgets nothing.
#[derive(Default)]
struct Model {
    states: HashMap<u8, State>,
    bans: HashMap<u8, Timestamp>,
}

impl Model {
    fn ask(&mut self, limiter: &Limiter, ban: Duration, key: u8, op: Op, now: Timestamp) -> Found {
        if let Some(until) = self.bans.get(&key).copied().filter(|until| *until > now) {
            let started = false;
            return (Standing::Banned { until, started }, None);
        }
        let state = self.states.entry(key).or_default();
        let reading = match op {
            Op::Admit => limiter.admit(state, now, 1),
            Op::Charge => limiter.charge(state, now, 1),
            Op::Peek => limiter.peek(state, now, 1),
            Op::Pass => return (Standing::Within, None),
            Op::Always => return (Standing::Over, None),
        };
        match reading.fits || (op == Op::Peek && !ban.is_zero()) {
            true => (Standing::Within, Some(reading)),
            false if ban.is_zero() => (Standing::Over, Some(reading)),
            false => {
                *state = State::default();
                let (until, started) = (now.plus(ban), true);
                self.bans.insert(key, until);
                let reading = Reading {
                    remaining: 0,
                    reset_after: ban,
                    retry_after: Some(ban),
                    ..reading
                };
                (Standing::Banned { until, started }, Some(reading))
            }
        }
    }
}

fn ops() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => Just(Op::Admit),
        2 => Just(Op::Charge),
        1 => Just(Op::Peek),
        1 => Just(Op::Pass),
    ]
}

proptest! {
    #[test]
    fn a_table_with_room_gives_the_verdicts_of_a_plain_map(
        limit in 0..6u64,
        period in prop_oneof![Just(1u64), Just(250), Just(1_000), Just(60_000)],
        ban in prop_oneof![Just(0u64), 1..5_000u64],
        requests in prop::collection::vec((0..40u8, ops(), 0..400u64), 1..300),
    ) {
        let store = Store::memory(Bounds::keys(200));
        let rule = Rule::throttle(&store, "r", limit);
        let period = Duration::from_millis(period);
        let limiter = Limiter::new(Algorithm::SlidingWindow, limit, period);
        let ban = Duration::from_millis(ban);
        let mut model = Model::default();
        let mut now = at(0);
        for (key, op, wait) in requests {
            now = now.plus(Duration::from_millis(wait));
            let step = Step { limiter, ban: ban.into(), ..rule.step(op, 1) };
            let name = format!("key {key}");
            let found = memory(&store).apply(&plan([(&*name, step)]), now)[0];
            let expected = model.ask(&limiter, ban, key, op, now);
            prop_assert_eq!((found.standing, found.reading), expected);
        }
        prop_assert_eq!(store.evictions(), Evictions::default());
    }
}
