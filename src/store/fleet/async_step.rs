//! One step of a plan in async mode, on the state of its key.

use super::key_table::{BanNews, CountedRule, KeyEntry, KeyNews};
use crate::clock::Timestamp;
use crate::limit::{CounterReading, Limiter};
use crate::rules::plan::{BanLength, KeyStatus, Plan, Step, StepOp, StepResult};
use crate::store::async_mode::{FleetInfo, KeyState, ReportTiming};
use crate::store::memory::MemoryStore;
use crate::store::redis::{FleetKey, NameHash};

/// One step in async mode.
#[derive(Clone, Copy)]
pub(in crate::store) struct AsyncStep<'a> {
    /// Has the bans that this node knows.
    pub(in crate::store) local: &'a MemoryStore,
    pub(in crate::store) plan: &'a Plan,
    /// The step's index in the plan.
    pub(in crate::store) index: u16,
    pub(in crate::store) step: &'a Step,
    /// The limiter of the whole fleet. That of the step can be a share of it.
    pub(in crate::store) fleet_limiter: Limiter,
    /// The hash of the step's key.
    pub(in crate::store) hash: NameHash,
    /// The operation. After evaluation has ended it is weaker than the step's own.
    pub(in crate::store) op: StepOp,
    /// The store's time.
    pub(in crate::store) now: Timestamp,
    /// A uniform random number, at least 0 and below 1.
    pub(in crate::store) draw: f64,
    /// Whether the node decides without the fleet, because the store cannot be reached. It then starts bans itself.
    pub(in crate::store) is_alone: bool,
}

/// The outcome of a step that counts.
pub(super) struct CountResult {
    pub(super) reading: CounterReading,
    pub(super) is_charged: bool,
    pub(super) report: ReportTiming,
    /// Whether the key is above the limit of a rule that bans. The store starts the ban when it merges the report.
    pub(super) must_ban: bool,
}

// === impl AsyncStep ===

impl AsyncStep<'_> {
    /// The key of the counter.
    pub(super) fn key(&self) -> FleetKey {
        FleetKey {
            identity: self.step.id.identity,
            hash: self.hash,
        }
    }

    /// When a ban that this node knows ends. `None` if there is none.
    pub(super) fn known_ban(&self) -> Option<Timestamp> {
        let key = self.plan.key(self.step);
        self.local.known_ban(self.step.id, key, self.now)
    }

    /// Applies events that concern the key. Returns its ban, if that is in force.
    pub(super) fn apply_news(&self, entry: &mut KeyEntry) -> Option<BanNews> {
        let news = entry.news.take()?;
        match *news {
            KeyNews::Exhausted(view) => {
                let at = view.at;
                entry.state.learn(&self.step.limiter, at, view);
                None
            }
            KeyNews::Banned(ban) if ban.until > self.now => Some(ban),
            KeyNews::Banned(_) => {
                entry.state = KeyState::new(&self.step.limiter);
                None
            }
        }
    }

    /// Adds a ban of the store to the bans that this node knows.
    pub(super) fn learn_ban(&self, ban: BanNews) -> StepResult {
        let (step, key) = (self.step, self.plan.key(self.step));
        self.local
            .learn_ban(step, key, (ban.until, ban.offence), self.now);
        let status = KeyStatus::Banned {
            until: ban.until,
            started: ban.started,
        };
        self.without_counter(status)
    }

    /// Starts a ban on this node alone.
    pub(super) fn start_ban(&self) -> StepResult {
        self.local
            .ban_now(self.plan, self.index, self.step, self.now)
    }

    /// Runs a step that does not count, for a key that has counted nothing.
    pub(super) fn run_on_new_key(&self) -> StepResult {
        if self.op == StepOp::Peek {
            self.peek(&mut KeyState::new(&self.step.limiter))
        } else {
            self.without_counter(KeyStatus::Within)
        }
    }

    /// Reads the counter.
    pub(super) fn peek(&self, state: &mut KeyState) -> StepResult {
        let reading = state.peek(&self.step.limiter, self.now, self.step.units());
        self.result(reading, false)
    }

    /// Admits or charges the cost, and keeps the entry as long as its counter needs.
    pub(super) fn count(&self, entry: &mut KeyEntry, fleet: FleetInfo) -> CountResult {
        let counted = self.count_on(&mut entry.state, fleet);
        entry.slot = self.step.id.slot;
        entry.touch(&self.step.limiter, self.now, &counted.reading);
        counted
    }

    fn count_on(&self, state: &mut KeyState, fleet: FleetInfo) -> CountResult {
        let (limiter, now, units) = (&self.step.limiter, self.now, self.step.units());
        let fleet = if self.is_alone {
            FleetInfo { nodes: 1, ..fleet }
        } else {
            fleet
        };
        let bans = !self.step.ban.is_never();
        // With a ratio, the store bans a key because of what it has counted, so every request is charged.
        let charges = self.op == StepOp::Charge || bans && limiter.ratio.is_some();
        let decision = if charges {
            state.charge(limiter, now, units, &fleet)
        } else {
            state.decide(limiter, now, units, &fleet, self.draw)
        };
        let reading = decision.reading;
        if self.op == StepOp::Admit && !reading.fits && !bans && self.will_wait(&reading) {
            let report = state.charge(limiter, now, units, &fleet).report;
            return CountResult {
                reading,
                is_charged: true,
                report,
                must_ban: false,
            };
        }
        let must_ban = bans && !reading.fits;
        CountResult {
            reading,
            is_charged: reading.fits || self.op == StepOp::Charge,
            report: if must_ban {
                ReportTiming::Immediately
            } else {
                decision.report
            },
            must_ban,
        }
    }

    /// Whether a request that does not fit is charged because it waits for its turn.
    fn will_wait(&self, reading: &CounterReading) -> bool {
        let wait = self.step.limiter.wait_for_turn(reading);
        !self.step.max_hold.is_zero() && wait.is_some_and(|wait| wait <= self.step.max_hold)
    }

    /// What the store needs to merge a report of the key.
    pub(super) fn counted_rule(&self) -> CountedRule {
        CountedRule {
            limiter: self.fleet_limiter,
            ban: self.step.ban.clone(),
        }
    }

    /// The result of a step with a counter. A ban rule mitigates a key only while it is banned; a full counter matters
    /// only to steps that count.
    pub(super) fn result(&self, reading: CounterReading, charged: bool) -> StepResult {
        let bans = self.step.ban != BanLength::Never;
        let is_within = reading.fits || self.step.op == StepOp::Peek && bans;
        StepResult {
            reading: Some(reading),
            charged,
            ..self.without_counter(if is_within {
                KeyStatus::Within
            } else {
                KeyStatus::Over
            })
        }
    }

    /// The result of a step that read no counter.
    pub(super) fn without_counter(&self, status: KeyStatus) -> StepResult {
        StepResult::without_counter(self.index, status)
    }
}
