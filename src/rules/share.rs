//! Rules with a ratio: requests that match `total` count too, in the total only.

use super::compiled_rule::CompiledRule;
use super::planner::RuleMatch;
use super::{Plan, Rule, StepOp};
use crate::expr::{EvalContext, Predicate};

// === impl Rule ===

impl Rule {
    /// The match of a rule with a ratio. A request that matches only `total` is counted too.
    pub(super) fn share_match(
        &self,
        count: &Predicate,
        total: &Predicate,
        mitigates: bool,
        context: &EvalContext<'_>,
    ) -> RuleMatch {
        if self.counts_response() {
            return RuleMatch {
                counts: None,
                only_total: false,
                mitigates,
            };
        }
        let counts = count.holds(context);
        let only_total = !counts && total.holds(context);
        RuleMatch {
            counts: Some(counts || only_total),
            only_total,
            mitigates,
        }
    }

    /// The units that must be free for a request and are not counted now: see [`CompiledRule::uncounted_units`].
    pub(super) fn uncounted_units(&self) -> u64 {
        let has_ratio = self.limiter.is_some_and(|limiter| limiter.ratio.is_some());
        if has_ratio { 0 } else { 1 }
    }
}

// === impl CompiledRule ===

impl CompiledRule {
    /// Adds a step that counts in the total and not in the count. Later rules are reached.
    #[cold]
    #[inline(never)]
    pub(super) fn push_total(
        &self,
        op: StepOp,
        mitigates: bool,
        context: &EvalContext<'_>,
        plan: &mut Plan,
    ) -> bool {
        let first = plan.steps.len();
        plan.push(self, op, mitigates, context);
        for step in plan.steps.iter_mut().skip(first) {
            step.only_total = true;
        }
        false
    }
}
