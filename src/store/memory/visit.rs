//! One step of a plan at its key's shard, under that shard's lock.

use std::time::Duration;

use super::bucket::{Entry, Kind};
use super::counter::Count;
use super::hash::KeyHash;
use super::table::Spot;
use super::{Held, Memory, Shard, second};
use crate::clock::Timestamp;
use crate::limit::{Algorithm, Reading, Shape, State};
use crate::rules::plan::{Op, Standing, Step};

mod ban;
mod long;
mod places;

/// A step, its key and its moment.
pub(super) struct Visit<'a> {
    pub(super) memory: &'a Memory,
    pub(super) step: &'a Step,
    /// What to do, which is less than the step says after the pass has ended.
    pub(super) op: Op,
    pub(super) key: &'a [u8],
    pub(super) hash: KeyHash,
    pub(super) now: Timestamp,
}

/// What a step found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) standing: Standing,
    pub(super) reading: Option<Reading>,
    pub(super) charged: bool,
}

/// What an operation did to a counter.
struct Outcome {
    /// What is told.
    reading: Reading,
    /// How the counter stands after the charge.
    after: Option<Reading>,
    /// The cost was taken.
    charged: bool,
}

// === impl Visit ===

impl Visit<'_> {
    /// Carries the step out.
    pub(super) fn run(&self) -> Found {
        let found = self.attempt(&mut false);
        found.unwrap_or_else(|| self.run_with_room())
    }

    /// Carries the step out after room for a ban was made. That is done while no lock is held,
    /// because the ban that ends first is often in another shard.
    #[cold]
    fn run_with_room(&self) -> Found {
        loop {
            let mut reserved = self.memory.free_ban(self.now);
            if !reserved {
                // All places are in the hands of other threads, for a moment.
                std::thread::yield_now();
            }
            let found = self.attempt(&mut reserved);
            if reserved {
                self.memory.ban_room.give(1);
            }
            if let Some(found) = found {
                return found;
            }
        }
    }

    /// `None`: a ban must start, but there is no room; nothing was changed. A place that was
    /// `reserved` is used first.
    fn attempt(&self, reserved: &mut bool) -> Option<Found> {
        let shard = self.memory.shard(self.hash);
        let held = &mut *shard.held.lock();
        if let Some(until) = self.banned(shard, held) {
            return Some(Found::banned(until));
        }
        let limiter = &self.step.limiter;
        match limiter.shape() {
            _ if self.op == Op::Pass => Some(Found::NOTHING),
            Shape::Words if limiter.algorithm == Algorithm::Concurrency => {
                self.count_places(shard, held, reserved)
            }
            Shape::Words => self.count(shard, held, reserved),
            Shape::Slices | Shape::Log => self.count_long(shard, held, reserved),
        }
    }

    fn banned(&self, shard: &Shard, held: &mut Held) -> Option<Timestamp> {
        if held.bans.is_empty() {
            return None;
        }
        if held.bans.is_behind(self.now) {
            self.memory.ban_room.give(held.bans.catch_up(self.now));
            shard.publish(&held.bans);
        }
        held.bans.until(self.hash)
    }

    fn count(&self, shard: &Shard, held: &mut Held, reserved: &mut bool) -> Option<Found> {
        let spot = held.table.find(self.hash);
        let second = second(self.now);
        let kept = spot.map_or_else(State::default, |spot| held.table.state(spot, second));
        let mut state = kept;
        let outcome = self.operate(&mut state);
        if self.may_ban() && !outcome.reading.fits {
            let found = self.ban(shard, held, reserved)?;
            held.clear_some(spot, self.memory);
            return Some(found);
        }
        if let Some(after) = &outcome.after {
            self.write(held, spot, state, after);
        } else if state != kept {
            self.write(held, spot, state, &outcome.reading);
        }
        Some(self.found(&outcome))
    }

    fn operate(&self, counter: &mut impl Count) -> Outcome {
        let (limiter, cost) = (&self.step.limiter, self.step.cost);
        let reading = match self.op {
            Op::Admit => counter.admit(limiter, self.now, cost),
            Op::Charge => counter.charge(limiter, self.now, cost),
            Op::Peek | Op::Pass | Op::Always => counter.peek(limiter, self.now, cost),
        };
        if self.op == Op::Charge || (self.op == Op::Admit && reading.fits) {
            return Outcome::charged(reading, reading);
        }
        if self.waits(&reading) {
            return Outcome::charged(reading, counter.charge(limiter, self.now, cost));
        }
        Outcome::kept(reading)
    }

    /// Does not fit, but is charged all the same because it will wait.
    fn waits(&self, reading: &Reading) -> bool {
        let patience = self.step.patience;
        let soon = |wait: Duration| wait <= patience;
        let may = self.op == Op::Admit && !patience.is_zero() && self.step.ban.is_never();
        may && reading.retry_after.is_some_and(soon)
    }

    /// What does not fit bans the key.
    fn may_ban(&self) -> bool {
        matches!(self.op, Op::Admit | Op::Charge) && !self.step.ban.is_never()
    }

    fn found(&self, outcome: &Outcome) -> Found {
        Found {
            standing: self.standing(&outcome.reading),
            reading: Some(outcome.reading),
            charged: outcome.charged,
        }
    }

    /// A key with a ban rule is only acted on while it is banned; that it is full matters to
    /// those who count it.
    fn standing(&self, reading: &Reading) -> Standing {
        let counts = self.step.ban.is_never() || self.step.op != Op::Peek;
        if reading.fits || !counts {
            Standing::Within
        } else {
            Standing::Over
        }
    }

    fn write(&self, held: &mut Held, spot: Option<Spot>, state: State, after: &Reading) {
        let entry = self.entry(held, state, after);
        if let Some(spot) = spot {
            held.put(spot, entry, self.memory);
        } else if !after.reset_after.is_zero() {
            held.insert(self.hash, entry, second(self.now), self.memory);
        }
    }

    fn entry(&self, held: &mut Held, state: State, after: &Reading) -> Entry {
        let expires = next_second(self.now.plus(after.reset_after));
        held.table.allow(expires.saturating_sub(second(self.now)));
        Entry {
            tag: self.hash.tag,
            expires,
            state,
            slot: self.step.id.slot,
            fill: self.step.limiter.level(after.remaining),
            kind: Kind::Words,
        }
    }
}

// === impl Outcome ===

impl Outcome {
    fn charged(reading: Reading, after: Reading) -> Self {
        let (after, charged) = (Some(after), true);
        Self {
            reading,
            after,
            charged,
        }
    }

    fn kept(reading: Reading) -> Self {
        let (after, charged) = (None, false);
        Self {
            reading,
            after,
            charged,
        }
    }
}

// === impl Found ===

impl Found {
    /// Nothing stands against the request, and no counter was looked at.
    pub(super) const NOTHING: Found = Found {
        standing: Standing::Within,
        reading: None,
        charged: false,
    };

    /// The rule acts on whatever matches.
    pub(super) const ALWAYS: Found = Found {
        standing: Standing::Over,
        ..Found::NOTHING
    };

    /// Banned, since before.
    fn banned(until: Timestamp) -> Self {
        let started = false;
        Found {
            standing: Standing::Banned { until, started },
            ..Found::NOTHING
        }
    }
}

/// The first second that does not begin before `time`.
fn next_second(time: Timestamp) -> u32 {
    u32::try_from(time.as_nanos().div_ceil(1_000_000_000)).unwrap_or(u32::MAX)
}
