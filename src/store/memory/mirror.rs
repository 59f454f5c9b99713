//! The local copy of what a remote store has decided, so that a fallback knows recent traffic and a ban that is
//! already known needs no call.

use super::bans::BanRecord;
use super::hash::KeyHash;
use super::step_run::StepRun;
use super::{MemoryStore, shown};
use crate::clock::Timestamp;
use crate::limit::{Limiter, ShareRatio};
use crate::rules::BanId;
use crate::rules::plan::{
    BanLength, KeyStatus, Plan, PlanResult, RuleId, Step, StepOp, StepResult,
};
use crate::store::{BanAuthor, BanEntry};

impl MemoryStore {
    /// Charges what a remote store has charged for `plan`, and learns the bans that it has reported.
    pub fn record(&self, plan: &Plan, result: &PlanResult) {
        for done in &result.steps {
            let Some(step) = plan.steps.get(usize::from(done.step)) else {
                continue;
            };
            if let KeyStatus::Banned { until, .. } = done.status {
                let ban = (until, result.offence(done.step));
                self.learn_ban(step, plan.key(step), ban, result.at);
            } else if done.charged {
                let charge = Step {
                    op: StepOp::Charge,
                    ban: BanLength::Never,
                    ..step.clone()
                };
                self.run_as(plan, done.step, &charge, result.at);
            }
        }
    }

    /// The first step of `plan` with a ban that ends evaluation. `None` if no key is banned at `now`.
    pub fn first_ban(&self, plan: &Plan, now: Timestamp) -> Option<usize> {
        if self.ban_room.is_empty() {
            return None;
        }
        plan.steps.iter().position(|step| {
            let ends = step.mitigates && step.is_terminal && step.op != StepOp::Always;
            ends && self.ban_end(step.id, plan.key(step), now).is_some()
        })
    }

    /// Returns when the ban of a key ends. `None` if it is not banned at `now`.
    pub fn known_ban(&self, id: RuleId, key: &[u8], now: Timestamp) -> Option<Timestamp> {
        if self.ban_room.is_empty() {
            return None;
        }
        self.ban_end(id, key, now)
    }

    /// Bans the key of a step, whatever its counter says.
    pub fn ban_now(&self, plan: &Plan, index: u16, step: &Step, now: Timestamp) -> StepResult {
        let above_limit = Step {
            op: StepOp::Charge,
            limiter: Limiter {
                limit: 0,
                ratio: step.limiter.ratio.map(|_| ShareRatio::SMALLEST),
                ..step.limiter
            },
            only_total: false,
            // Above the smallest share of any total.
            cost: step.cost.max(u64::from(u32::MAX)),
            ..step.clone()
        };
        self.run_as(plan, index, &above_limit, now)
    }

    /// Runs the step `index` of a plan with another operation.
    pub fn run_step(&self, plan: &Plan, index: u16, op: StepOp, now: Timestamp) -> StepResult {
        let Some(step) = plan.steps.get(usize::from(index)) else {
            return StepResult::without_counter(index, KeyStatus::Within);
        };
        let run = StepRun {
            memory: self,
            plan,
            index,
            step,
            op,
            now,
        };
        run.alone()
    }

    /// Runs `step` for the key and in place of the step `index` of a plan.
    fn run_as(&self, plan: &Plan, index: u16, step: &Step, now: Timestamp) -> StepResult {
        let run = StepRun {
            memory: self,
            plan,
            index,
            step,
            op: step.op,
            now,
        };
        run.alone()
    }

    /// Bans a key that a remote store has banned, with the end of the ban and the ordinal of the offence.
    pub fn learn_ban(
        &self,
        step: &Step,
        key: &[u8],
        (until, offence): (Timestamp, u32),
        now: Timestamp,
    ) {
        if until <= now || self.ban_end(step.id, key, now) == Some(until) {
            return;
        }
        let counts = matches!(step.ban, BanLength::Escalating(_));
        let ban = BanEntry {
            id: step.id,
            ban_id: BanId::of(step.id, key),
            key: shown(key),
            until,
            offence,
            since: now,
            by: BanAuthor::Rule,
            is_shared: true,
        };
        let learned = BanRecord {
            ban,
            began: now,
            counts,
        };
        let hash = self.hasher.hash(step.id.identity, key);
        self.put_ban(hash, learned, now);
    }

    /// Bans the key with this hash, instead of its ban or past offence, and clears its counter. Returns `false` if
    /// other threads use all of the capacity for bans.
    pub(super) fn put_ban(&self, hash: KeyHash, record: BanRecord, now: Timestamp) -> bool {
        if !self.ban_room.take() && !self.free_ban(now, Some(hash)) {
            return false;
        }
        let shard = self.shard(hash.tag);
        let mut data = shard.held.lock();
        let replaced = data.bans.remove_key(hash);
        data.bans.add(hash, record);
        let spot = data.table.find(hash.tag);
        // Leases stay: their requests are in flight.
        let holds_leases = spot.is_some_and(|spot| data.holds_leases(spot));
        if !holds_leases {
            data.clear_some(spot, self);
        }
        shard.publish(&data.bans);
        drop(data);
        self.ban_room.give(replaced);
        true
    }

    /// Ends the ban of a key.
    pub fn unban(&self, id: RuleId, key: &[u8]) {
        self.remove_hash(self.hasher.hash(id.identity, key));
    }

    /// Ends the ban of the key with this hash, and forgets its offences.
    pub(super) fn remove_hash(&self, hash: KeyHash) {
        let shard = self.shard(hash.tag);
        let mut data = shard.held.lock();
        let removed = data.bans.remove_key(hash);
        shard.publish(&data.bans);
        drop(data);
        self.ban_room.give(removed);
    }

    /// Returns when the ban of a key ends. `None` if it is not banned at `now`.
    fn ban_end(&self, id: RuleId, key: &[u8], now: Timestamp) -> Option<Timestamp> {
        let hash = self.hasher.hash(id.identity, key);
        let shard = self.shard(hash.tag);
        let mut data = shard.held.lock();
        if data.bans.is_empty() {
            return None;
        }
        self.banned(shard, &mut data.bans, hash.whole(), now)
    }
}
