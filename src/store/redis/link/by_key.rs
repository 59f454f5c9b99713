//! Applies a plan in a Cluster, where a script reaches only the keys of one slot: one call per key, in rule order.

use std::ops::Range;

use super::RedisLink;
use crate::clock::Timestamp;
use crate::rules::plan::{Plan, PlanResult, Step};
use crate::store::StoreError;

// === impl RedisLink ===

impl RedisLink {
    /// Applies consecutive steps with one key in one call.
    pub(super) async fn apply_by_key(
        &self,
        plan: &Plan,
        all: Range<usize>,
        now: Timestamp,
        result: &mut PlanResult,
    ) -> Result<(), StoreError> {
        let (mut next, mut at, mut ended_at) = (all.start, None, None);
        let steps = plan.steps.get(..all.end).unwrap_or_default();
        while let Some(first) = steps.get(next) {
            let same_key = |step: &&Step| plan.key(step) == plan.key(first);
            let rest = steps.get(next..).unwrap_or_default();
            let group = next..next + rest.iter().take_while(same_key).count();
            next = group.end;
            let is_peeked = |step: &Step| step.peek_after_end;
            let own = plan.steps.get(group.clone()).unwrap_or_default();
            if ended_at.is_some() && !own.iter().any(is_peeked) {
                continue;
            }
            let scope = self.scope(group, ended_at.is_some(), now);
            self.run_plan(plan, &scope, now, result).await?;
            at = at.or(Some(result.at));
            ended_at = ended_at.or_else(|| plan.ending_step(result));
        }
        if let Some(ending) = ended_at {
            self.peek_filled_up(plan, ending, now, result).await?;
        }
        result.at = at.unwrap_or(now);
        Ok(())
    }

    /// Peeks at the steps of other calls that this request has filled up before the step `ending`.
    async fn peek_filled_up(
        &self,
        plan: &Plan,
        ending: u16,
        now: Timestamp,
        result: &mut PlanResult,
    ) -> Result<(), StoreError> {
        let ending_key = plan.steps.get(usize::from(ending)).map(|s| plan.key(s));
        let earlier = result.steps.clone();
        for earlier in earlier.iter().filter(|earlier| earlier.step < ending) {
            let Some(step) = plan.steps.get(usize::from(earlier.step)) else {
                continue;
            };
            // The call of the ending step has peeked at the steps of its own key.
            if step.is_filled_up(earlier) && Some(plan.key(step)) != ending_key {
                let index = usize::from(earlier.step);
                let scope = self.scope(index..index + 1, true, now);
                self.run_plan(plan, &scope, now, result).await?;
            }
        }
        Ok(())
    }
}
