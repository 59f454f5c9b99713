//! The local copy of what a remote store has decided, so that a fallback knows recent traffic and a ban that is
//! already known needs no call.

use super::bans::BanRecord;
use super::step_run::StepRun;
use super::{MemoryStore, SHOWN};
use crate::clock::Timestamp;
use crate::rules::plan::{BanLength, KeyStatus, Plan, PlanResult, RuleId, Step, StepOp};
use crate::store::BanEntry;

impl MemoryStore {
    /// Charges what a remote store has charged for `plan`, and learns the bans that it has reported.
    pub fn record(&self, plan: &Plan, result: &PlanResult) {
        let mut scratch = PlanResult::default();
        for done in &result.steps {
            let Some(step) = plan.steps.get(usize::from(done.step)) else {
                continue;
            };
            if let KeyStatus::Banned { until, .. } = done.status {
                let ban = BanEntry {
                    id: step.id,
                    key: shown(plan.key(step)),
                    until,
                    offence: result.offence(done.step),
                };
                let counts = matches!(step.ban, BanLength::Escalating(_));
                self.learn_ban(plan.key(step), ban, counts, result.at);
            } else if done.charged {
                let charge = Step {
                    op: StepOp::Charge,
                    ban: BanLength::Never,
                    ..step.clone()
                };
                let run = StepRun {
                    memory: self,
                    plan,
                    index: done.step,
                    step: &charge,
                    op: StepOp::Charge,
                    now: result.at,
                };
                run.execute(&mut scratch);
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

    /// Bans a key that a remote store has banned. `counts` is whether its rule escalates.
    fn learn_ban(&self, key: &[u8], ban: BanEntry, counts: bool, now: Timestamp) {
        if ban.until <= now || self.ban_end(ban.id, key, now) == Some(ban.until) {
            return;
        }
        let hash = self.hasher.hash(ban.id.identity, key);
        if !self.ban_room.take() && !self.free_ban(now, Some(hash)) {
            return;
        }
        let shard = self.shard(hash.tag);
        let mut data = shard.held.lock();
        let replaced = data.bans.remove_key(hash);
        let began = now;
        data.bans.add(hash, BanRecord { ban, began, counts });
        let spot = data.table.find(hash.tag);
        // Leases stay: their requests are in flight.
        let holds_leases = spot.is_some_and(|spot| data.holds_leases(spot));
        if !holds_leases {
            data.clear_some(spot, self);
        }
        shard.publish(&data.bans);
        drop(data);
        self.ban_room.give(replaced);
    }

    /// Ends the ban of a key.
    pub fn unban(&self, id: RuleId, key: &[u8]) {
        let hash = self.hasher.hash(id.identity, key);
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

/// The part of a banned key that is kept for listings.
fn shown(key: &[u8]) -> Box<[u8]> {
    key.get(..SHOWN).unwrap_or(key).into()
}
