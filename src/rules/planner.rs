//! Facts → plan: the counter operations of a request, in rule order.

use std::ops::{ControlFlow, Range};
use std::time::Duration;

use super::compiled_rule::CompiledRule;
use super::index::PrefilterIndex;
use super::{Plan, Rule, RuleCost, RuleScope, RuleSet, Step, StepOp};
use crate::decision::{Action, RuleIndex};
use crate::expr::{EvalContext, FieldFacts, FieldMemo, Predicate};
use crate::limit::Limiter;

/// Which of a rule's expressions match one request.
#[derive(Clone, Copy)]
pub(super) struct RuleMatch {
    /// Whether the request is counted. `None` if that, or the cost, is known only from the response.
    pub(super) counts: Option<bool>,
    /// Whether the request is counted in the total and not in the count. False if that is known only from the response.
    pub(super) only_total: bool,
    pub(super) mitigates: bool,
}

// === impl RuleSet ===

impl RuleSet {
    /// The counter operations to carry out before this request is decided.
    pub fn plan(&self, facts: &dyn FieldFacts) -> Plan {
        let mut plan = Plan::default();
        self.plan_into(facts, &mut plan);
        plan
    }

    /// Writes the plan of [`RuleSet::plan`] into an empty `plan`, to avoid copying it.
    pub fn plan_into(&self, facts: &dyn FieldFacts, plan: &mut Plan) {
        if let Some(index) = &self.planning {
            return self.plan_indexed(index, facts, plan);
        }
        let memo = FieldMemo::default();
        let context = EvalContext::remembering(facts, &memo);
        for compiled in &self.compiled_rules {
            if compiled.plan_request(&context, plan) {
                break;
            }
        }
    }

    /// The counter operations to carry out once the response is known. `unreached` is the first
    /// rule that the request did not reach; `None` if it reached all rules.
    pub fn settle(&self, facts: &dyn FieldFacts, unreached: Option<RuleIndex>) -> Plan {
        let mut plan = Plan::default();
        self.settle_into(facts, unreached, &mut plan);
        plan
    }

    /// Writes the plan of [`RuleSet::settle`] into an empty `plan`, to avoid copying it.
    pub fn settle_into(
        &self,
        facts: &dyn FieldFacts,
        unreached: Option<RuleIndex>,
        plan: &mut Plan,
    ) {
        if let Some(index) = &self.settling {
            return self.settle_indexed(index, facts, unreached, plan);
        }
        let context = EvalContext::of(facts);
        for compiled in &self.compiled_rules {
            if unreached.is_some_and(|first| compiled.step_template.rule >= first) {
                break;
            }
            compiled.count(&context, plan);
        }
    }

    /// Plans with the index. Not inlined, so that small rule sets do not pay for the stack space of the found rules.
    #[inline(never)]
    fn plan_indexed(&self, index: &PrefilterIndex, facts: &dyn FieldFacts, plan: &mut Plan) {
        let memo = FieldMemo::default();
        let context = EvalContext::remembering(facts, &memo);
        index.for_each_match(&context, |rule| match self.compiled(rule) {
            Some(compiled) if compiled.plan_request(&context, plan) => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        });
    }

    #[inline(never)]
    fn settle_indexed(
        &self,
        index: &PrefilterIndex,
        facts: &dyn FieldFacts,
        unreached: Option<RuleIndex>,
        plan: &mut Plan,
    ) {
        let context = EvalContext::of(facts);
        index.for_each_match(&context, |rule| {
            if unreached.is_some_and(|first| rule >= first) {
                return ControlFlow::Break(());
            }
            if let Some(compiled) = self.compiled(rule) {
                compiled.count(&context, plan);
            }
            ControlFlow::Continue(())
        });
    }
}

// === impl CompiledRule ===

impl CompiledRule {
    /// Adds the rule's step for a request, if any. Returns `true` if no later rule is reached.
    #[inline(always)]
    fn plan_request(&self, context: &EvalContext<'_>, plan: &mut Plan) -> bool {
        match &self.rule.scope {
            // Most rules do not match a request, and nothing more happens.
            RuleScope::Same(both) => {
                both.holds(context) && self.add(self.op_if_matched, true, context, plan)
            }
            _ => self.plan_separate(context, plan),
        }
    }

    /// [`CompiledRule::plan_request`] of a rule with several expressions.
    #[inline(never)]
    fn plan_separate(&self, context: &EvalContext<'_>, plan: &mut Plan) -> bool {
        let matched = self.rule.matches(context);
        let Some((op, mitigates)) = self.rule.op(matched) else {
            return false;
        };
        if matched.only_total {
            return self.push_total(op, mitigates, context, plan);
        }
        self.add(op, mitigates, context, plan)
    }

    /// Adds a step. Returns `true` if no later rule is reached.
    #[inline(always)]
    fn add(&self, op: StepOp, mitigates: bool, context: &EvalContext<'_>, plan: &mut Plan) -> bool {
        plan.push(self, op, mitigates, context)
            && self.ends_evaluation
            && op == StepOp::Always
            && plan.steps.last().is_some_and(|step| step.is_terminal)
    }

    /// Adds a charge for the response, if the rule counts it.
    #[inline(always)]
    fn count(&self, context: &EvalContext<'_>, plan: &mut Plan) {
        if !self.counts_response {
            return;
        }
        if self.rule.predicates().0.holds(context) {
            plan.push(self, StepOp::Charge, false, context);
        } else if self.rule.total().is_some_and(|total| total.holds(context)) {
            self.push_total(StepOp::Charge, false, context, plan);
        }
    }

    /// A step with this operation, and with the rule's cost if that is fixed.
    #[inline(always)]
    fn step(&self, key: Range<u32>, op: StepOp, mitigates: bool) -> Step {
        let extends_retry_after = mitigates && self.sends_retry_after;
        Step {
            key,
            cost: if op.counts() {
                self.step_template.cost
            } else {
                self.uncounted_units
            },
            op,
            mitigates,
            peek_after_end: extends_retry_after || self.peeks_after_shadow,
            ..self.step_template.clone()
        }
    }
}

// === impl Rule ===

impl Rule {
    #[inline(always)]
    pub(super) fn matches(&self, context: &EvalContext<'_>) -> RuleMatch {
        match &self.scope {
            RuleScope::Same(both) if !both.holds(context) => RuleMatch {
                counts: Some(false),
                only_total: false,
                mitigates: false,
            },
            RuleScope::Same(_) => RuleMatch {
                counts: self.counts_now(true),
                only_total: false,
                mitigates: true,
            },
            RuleScope::Separate { count, mitigate } => RuleMatch {
                counts: self.counts(count, context),
                only_total: false,
                mitigates: mitigate.holds(context),
            },
            RuleScope::Share {
                count,
                total,
                mitigate,
            } => self.share_match(count, total, mitigate.holds(context), context),
        }
    }

    fn counts(&self, count: &Predicate, context: &EvalContext<'_>) -> Option<bool> {
        if count.reads_response() {
            None
        } else {
            self.counts_now(count.holds(context))
        }
    }

    /// Whether the request is counted now, given the value of `count`. `None` if the cost is not known yet.
    fn counts_now(&self, counts: bool) -> Option<bool> {
        if counts && self.cost.reads_response() {
            None
        } else {
            Some(counts)
        }
    }

    /// The counter operation, and whether the request matches `mitigate`. `None` if the rule has no
    /// step for this request.
    pub(super) fn op(&self, matched: RuleMatch) -> Option<(StepOp, bool)> {
        let mitigates = matched.mitigates;
        if self.limiter.is_none() {
            return mitigates.then_some((StepOp::Always, true));
        }
        match (matched.counts, mitigates) {
            (Some(false), false) => None,
            (Some(true), true) => Some((StepOp::Admit, true)),
            (Some(true), false) => Some((StepOp::Charge, false)),
            // The quota headers show the counter as of the request.
            (None, _) if self.sends_quota_headers() => Some((StepOp::Peek, mitigates)),
            (None, false) => None,
            (_, true) => Some((self.uncounted_op(), true)),
        }
    }

    /// The operation of [`Rule::op`] if `count` and `mitigate` are one expression that matches.
    pub(super) fn op_if_both_match(&self) -> StepOp {
        let matched = RuleMatch {
            counts: self.counts_now(true),
            only_total: false,
            mitigates: true,
        };
        self.op(matched).map_or(StepOp::CheckBan, |(op, _)| op)
    }

    /// Whether cost and limit are fixed, the rule has no candidate, and it does not challenge.
    pub(super) fn is_plain(&self) -> bool {
        let is_fixed = matches!(self.cost, RuleCost::Fixed(_));
        let is_constant = is_fixed && self.jitter.0 == 0 && self.candidate.is_none();
        is_constant && !self.challenges()
    }

    /// Whether the rule's response imitates the origin server.
    pub(super) fn poses_as_origin(&self) -> bool {
        self.action.poses_as_origin() && !self.dry_run
    }

    /// The operation for a request that is not counted now: a throttled key is mitigated while one
    /// more unit would not fit, a banned key until its ban ends.
    pub(super) fn uncounted_op(&self) -> StepOp {
        if self.ban.is_never() {
            StepOp::Peek
        } else {
            StepOp::CheckBan
        }
    }

    pub(super) fn is_terminal(&self) -> bool {
        self.action.is_terminal() && !self.dry_run
    }

    /// How long a request that does not fit is held instead of being refused.
    pub(super) fn max_hold(&self) -> Duration {
        if self.action == Action::Delay && self.ban.is_never() {
            self.max_delay
        } else {
            Duration::ZERO
        }
    }
}

// === impl Plan ===

impl Plan {
    /// Adds a step of `compiled`. Returns `false` if a key part is missing and the rule skips such
    /// requests, or if there is no cost to count.
    #[inline(never)]
    pub(super) fn push(
        &mut self,
        compiled: &CompiledRule,
        op: StepOp,
        mitigates: bool,
        context: &EvalContext<'_>,
    ) -> bool {
        if !compiled.is_plain {
            return self.push_computed(compiled, op, mitigates, None, context);
        }
        let Some(key) = self.write(compiled, op, context) else {
            return false;
        };
        self.steps.push(compiled.step(key, op, mitigates));
        true
    }

    /// Writes the key and returns its range. `None` if the request is skipped. Reuses the bytes of
    /// an earlier rule with an equal key.
    #[inline(always)]
    fn write(
        &mut self,
        compiled: &CompiledRule,
        op: StepOp,
        context: &EvalContext<'_>,
    ) -> Option<Range<u32>> {
        let start = self.keys.len();
        if op == StepOp::Always {
            return Some(start as u32..start as u32);
        }
        if let Some(earlier) = compiled.same_key {
            let written = |step: &&Step| step.rule == earlier && step.op != StepOp::Always;
            if let Some(step) = self.steps.iter().find(written) {
                return Some(step.key.clone());
            }
        }
        if !compiled.rule.key.write_at(context, &mut self.keys) {
            self.keys.truncate(start);
            return None;
        }
        Some(start as u32..self.keys.len() as u32)
    }

    /// [`Plan::push`] of a step with a computed cost, a jittered limit or a candidate, of a challenge, or with a key that
    /// is not that of the request.
    #[inline(never)]
    pub(super) fn push_computed(
        &mut self,
        compiled: &CompiledRule,
        op: StepOp,
        mitigates: bool,
        fixed_key: Option<&[u8]>,
        context: &EvalContext<'_>,
    ) -> bool {
        let (rule, facts) = (&compiled.rule, context.facts());
        let cost = if op.counts() {
            rule.cost.of(facts)
        } else {
            Some(compiled.uncounted_units)
        };
        let Some(cost) = cost else {
            return false;
        };
        let written = match fixed_key {
            Some(key) => Some(self.append_key(key)),
            None => self.write(compiled, op, context),
        };
        let Some(key) = written else {
            return false;
        };
        let mut step = compiled.step(key, op, mitigates);
        step.cost = cost;
        let exemption = compiled.exemption.filter(|_| mitigates);
        let passes = exemption.is_some_and(|exemption| exemption.lets_pass(facts));
        if op != StepOp::Always {
            self.push_candidate(rule, &step, passes, facts);
            step.limiter = self.jittered_limiter(rule, &step, facts);
        }
        if passes {
            step.let_pass();
        }
        self.steps.push(step);
        true
    }

    /// Adds a step for the rule's candidate, if it has one.
    fn push_candidate(&mut self, rule: &Rule, step: &Step, passes: bool, facts: &dyn FieldFacts) {
        if let Some(mut candidate) = rule.candidate.and_then(|c| step.candidate_step(rule, c)) {
            // The candidate shares the rule's jitter draw, so only the limiter differs.
            candidate.limiter = self.jittered_limiter(rule, &candidate, facts);
            if passes {
                candidate.let_pass();
            }
            self.steps.push(candidate);
        }
    }

    fn jittered_limiter(&self, rule: &Rule, step: &Step, facts: &dyn FieldFacts) -> Limiter {
        let (jitter, key) = (rule.jitter, self.key(step));
        match jitter.0 {
            0 => step.limiter,
            _ => jitter.draw(step.limiter, rule.id.identity, key, facts),
        }
    }
}
