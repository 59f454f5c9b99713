//! Random plans on the memory store and on Redis: the results are equal.

use std::time::Duration;

use futures_util::future::join_all;

use super::super::encode::NEVER;
use super::{connected, on_a_core, server::TestServer};
use crate::clock::Timestamp;
use crate::limit::{CounterReading, CounterShape, Limiter, ShareRatio};
use crate::rules::plan::{BanLength, Plan, PlanResult, Step, StepOp, StepResult};
use crate::store::fixture::{Rule, at, limiters, plan};
use crate::store::memory::MemoryStore;
use crate::store::{Store, StoreBounds, StoreHandle};

/// The operations of the test. `LOCKGATE_DIFFERENTIAL` sets another number.
const OPERATIONS: usize = 100_000;

/// Independent sequences of operations, which run at the same time.
const SEQUENCES: usize = 20;

/// How far the clock goes back, in microseconds. Beyond ten seconds, the memory store takes it for a clock that was set.
const MOST_BACK: u64 = 9_000_000;

/// A pseudo-random generator (SplitMix64).
pub(super) struct Draws(pub(super) u64);

/// What a sequence of operations does with the clock.
#[derive(Clone, Copy, PartialEq)]
enum Time {
    /// It goes forward.
    Forward,
    /// It also goes back by up to nine seconds. There are no bans then.
    Back,
}

impl Draws {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    pub(super) fn one_of<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len() as u64) as usize]
    }

    pub(super) fn chance(&mut self, one_in: u64) -> bool {
        self.below(one_in) == 0
    }

    fn limiter(&mut self, time: Time) -> Limiter {
        let limits = [1, 2, 3, 5, 7, 10, 100, 4_294_967_295];
        let periods = [31_622_400_000u64, 3_600_000, 60_000, 1_000, 250, 7, 1];
        // A record that has expired in one store can be valid again in the other once the clock is set back.
        let (limits, periods) = match time {
            Time::Forward => (&limits[..], &periods[..]),
            Time::Back => (&limits[..6], &periods[..2]),
        };
        let limit = self.one_of(limits);
        // Logs and sub-windows in memory also remember the time of a peek, which Redis does not write.
        let limiters = limiters(limit.min(1_000_000)).into_iter();
        let is_usable = |(_, limiter): &(_, Limiter)| {
            let shape = limiter.shape();
            time == Time::Forward || !matches!(shape, CounterShape::Log | CounterShape::Slices)
        };
        let limiters: Vec<_> = limiters.filter(is_usable).collect();
        let (_, limiter) = self.one_of(&limiters);
        let period = self.one_of(periods);
        let burst = self.one_of(&[limit, 1, 20]);
        Limiter {
            limit,
            period: Duration::from_millis(period),
            burst,
            slices: if limiter.slices > 1 {
                self.one_of(&[2, 12, 60])
            } else {
                1
            },
            max_wait: self.one_of(&[Duration::MAX, Duration::from_secs(5), Duration::ZERO]),
            ratio: self.ratio(&limiter),
            ..limiter
        }
    }

    /// A ratio for one in two limiters that can have one.
    pub(super) fn ratio(&mut self, limiter: &Limiter) -> Option<ShareRatio> {
        let can = limiter.algorithm.has_ratio() && limiter.shape() == CounterShape::Words;
        let share = self.one_of(&[0.0001, 0.1, 0.4, 0.5, 0.75, 0.9999]);
        (can && self.chance(2)).then(|| ShareRatio::nearest(share))
    }

    fn ban(&mut self, time: Time) -> BanLength {
        if time == Time::Back || !self.chance(3) {
            return BanLength::Never;
        }
        let length = |draws: &mut Self| Duration::from_millis(1 + draws.below(90_000));
        if self.chance(2) {
            BanLength::For(length(self))
        } else {
            BanLength::Escalating((0..3).map(|_| length(self)).collect())
        }
    }

    /// A rule: everything of a step that stays the same.
    fn rule(&mut self, name: &str, time: Time) -> Step {
        let store = Store::memory(StoreBounds::keys(1));
        let rule = Rule::throttle(&store, name, 1);
        let max_hold = self.one_of(&[0, 0, 0, 500, 100_000]);
        Step {
            limiter: self.limiter(time),
            ban: self.ban(time),
            max_hold: Duration::from_millis(max_hold),
            mitigates: !self.chance(4),
            is_terminal: !self.chance(4),
            peek_after_end: self.chance(2),
            ..rule.step(StepOp::Admit, 1)
        }
    }

    fn step(&mut self, rules: &[Step]) -> Step {
        let rule = rules[self.below(rules.len() as u64) as usize].clone();
        let op = self.one_of(&[
            StepOp::Admit,
            StepOp::Admit,
            StepOp::Admit,
            StepOp::Charge,
            StepOp::Charge,
            StepOp::Peek,
            StepOp::CheckBan,
            StepOp::Always,
        ]);
        let cost = self.one_of(&[1, 1, 1, 1, 0, 2, 3, 50, 5_000_000_000]);
        let only_total = rule.limiter.ratio.is_some() && self.chance(3);
        Step {
            op,
            cost,
            only_total,
            ..rule
        }
    }

    /// Microseconds until the next operation, forward or back.
    fn wait(&mut self, time: Time) -> i64 {
        let ranges = [
            1,
            1_000,
            300_000,
            20_000_000,
            4_000_000_000,
            100_000_000_000,
        ];
        if time == Time::Back && self.chance(5) {
            let range = self.one_of(&[1, 1_000, 300_000, 9_000_000]);
            return -(self.below(range) as i64);
        }
        let ranges = if time == Time::Back {
            &ranges[..3]
        } else {
            &ranges[..]
        };
        let range = self.one_of(ranges);
        self.below(range) as i64
    }
}

/// Compares the stores for a number of operations. Returns the number of steps.
async fn compare(redis: &StoreHandle, sequence: usize, operations: usize, time: Time) -> usize {
    let memory = MemoryStore::new(StoreBounds::keys(100_000));
    let mut draws = Draws(sequence as u64 * 7_919 + if time == Time::Back { 1 } else { 0 });
    let prefix = format!("differential-{sequence}-{}", time == Time::Back);
    let rules: Vec<Step> = (0..24)
        .map(|rule| draws.rule(&format!("{prefix}-{rule}"), time))
        .collect();
    // In the middle of an hour, so that the clock does not go back over the end of a window.
    let start = at(1_800).as_micros();
    let (mut now, mut latest, mut steps) = (start, start, 0);
    let mut in_flight: Vec<Plan> = Vec::new();
    for number in 0..operations {
        let moved = now.saturating_add_signed(draws.wait(time));
        latest = latest.max(moved);
        now = moved.max(latest - MOST_BACK);
        if draws.chance(4) && !in_flight.is_empty() {
            let done = in_flight.swap_remove(draws.below(in_flight.len() as u64) as usize);
            let leases = done.leases().unwrap();
            memory.release(&leases);
            redis.release_remote(&leases).await.unwrap();
        }
        let keys = ["a", "b", "c", "a longer key"];
        let count = 1 + draws.below(5) as usize;
        let mut chosen: Vec<_> = (0..count)
            .map(|_| (draws.one_of(&keys), draws.step(&rules)))
            .collect();
        // A plan has each rule once.
        chosen.sort_by_key(|(_, step)| step.id.identity);
        chosen.dedup_by_key(|(_, step)| step.id.identity);
        let plan = plan(chosen);
        let moment = Timestamp::from_micros(now);
        let (mut expected, mut found) = (PlanResult::default(), PlanResult::default());
        memory.apply(&plan, moment, &mut expected);
        redis
            .call(&plan, 0..plan.steps.len(), moment, &mut found)
            .await
            .unwrap();
        found.offences.clear();
        expected.steps.iter_mut().for_each(cap_times);
        assert_eq!(
            found, expected,
            "operation {number} of {sequence}: {plan:#?}"
        );
        steps += plan.steps.len();
        if plan.leases().is_some() {
            in_flight.push(plan);
        }
    }
    steps
}

/// Redis counts centuries as never.
fn cap_times(result: &mut StepResult) {
    let never = |micros: u64| if micros < NEVER { micros } else { u64::MAX };
    result.reading = result.reading.map(|reading| {
        let delay = reading
            .retry_after()
            .unwrap_or(Duration::MAX)
            .max(reading.wait());
        let delay = u64::try_from(delay.as_micros()).unwrap_or(u64::MAX);
        let reset = never(reading.reset_micros());
        CounterReading::from_micros(reading.fits, reading.remaining, reset, never(delay))
            .with_share(reading.share)
    });
}

async fn compare_all(redis: &StoreHandle, operations: usize, time: Time) {
    let each = operations.div_ceil(SEQUENCES);
    let runs = (0..SEQUENCES).map(|sequence| compare(redis, sequence, each, time));
    let steps: usize = join_all(runs).await.into_iter().sum();
    println!("{} plans with {steps} steps are equal", each * SEQUENCES);
}

#[test]
fn redis_decides_as_the_memory_store() {
    let operations = std::env::var("LOCKGATE_DIFFERENTIAL").ok();
    let operations = operations.map_or(OPERATIONS, |number| number.parse().unwrap());
    on_a_core(async {
        let server = TestServer::start(&[]);
        let redis = connected(&server).await;
        compare_all(&redis, operations * 4 / 5, Time::Forward).await;
        compare_all(&redis, operations / 5, Time::Back).await;
    });
}
