//! Reads counters for people, without charging them.

use super::{InspectedRule, KeyUsage, StoreHandle};
use crate::decision::RuleIndex;
use crate::limit::Limiter;
use crate::rules::plan::{
    BanLength, KeyStatus, OnStoreFailure, Plan, PlanResult, Step, StepOp, StepResult, StoreMode,
};

/// The number of keys whose counters one call reads.
const MAX_PEEKS: usize = 100;

// === impl StoreHandle ===

impl StoreHandle {
    /// Returns the counters and the bans of keys of one rule. In exact mode they are those of the fleet, as far as the
    /// shared store replies; a counter that holds more than its limit then reads as full.
    pub async fn peek(&self, rule: &InspectedRule, keys: &[Vec<u8>]) -> Vec<KeyUsage> {
        let mut found = Vec::with_capacity(keys.len());
        let is_exact = rule.mode == StoreMode::Exact && !self.store().is_local();
        let per_call = match &self.link {
            // In a Cluster, each key is a call of its own within the same timeout.
            Some(link) if link.is_cluster() => 1,
            _ => MAX_PEEKS,
        };
        for keys in keys.chunks(per_call) {
            let of_fleet = if is_exact {
                self.peek_in_fleet(rule, keys).await
            } else {
                None
            };
            let now = self.fleet_time();
            let own = |key: &Vec<u8>| self.store().key_usage(rule, key, now);
            match of_fleet {
                Some(usage) => found.extend(usage),
                None => found.extend(keys.iter().map(own)),
            }
        }
        found
    }

    async fn peek_in_fleet(&self, rule: &InspectedRule, keys: &[Vec<u8>]) -> Option<Vec<KeyUsage>> {
        let plan = peeking_plan(rule, keys);
        let mut result = PlanResult::default();
        let (now, steps) = (self.clock().now(), 0..plan.steps.len());
        self.call(&plan, steps, now, &mut result).await.ok()?;
        let usage = |done: &StepResult| usage_of(done, &rule.limiter);
        (result.steps.len() == keys.len()).then(|| result.steps.iter().map(usage).collect())
    }
}

/// A plan that reads the counters of `keys` and ends at none of them.
fn peeking_plan(rule: &InspectedRule, keys: &[Vec<u8>]) -> Plan {
    let mut plan = Plan::default();
    for key in keys {
        let start = plan.keys.len() as u32;
        plan.keys.extend_from_slice(key);
        plan.steps.push(Step {
            rule: RuleIndex(0),
            id: rule.id,
            key: start..plan.keys.len() as u32,
            limiter: rule.limiter,
            cost: 1,
            only_total: false,
            op: StepOp::Peek,
            ban: BanLength::Never,
            max_hold: std::time::Duration::ZERO,
            candidate: false,
            mitigates: false,
            is_terminal: false,
            peek_after_end: false,
            on_failure: OnStoreFailure::Local,
            mode: StoreMode::Exact,
        });
    }
    plan
}

fn usage_of(done: &StepResult, limiter: &Limiter) -> KeyUsage {
    if let KeyStatus::Banned { until, .. } = done.status {
        return KeyUsage::banned(until);
    }
    let Some(reading) = done.reading else {
        return KeyUsage::default();
    };
    if limiter.ratio.is_some() {
        return KeyUsage::counted(reading.share.count.into());
    }
    KeyUsage::counted(limiter.capacity().saturating_sub(reading.remaining))
}
