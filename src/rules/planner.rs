//! Facts → plan: which counters a request touches, and how, in rule order.

use std::ops::{ControlFlow, Range};
use std::time::Duration;

use super::compiled_rule::CompiledRule;
use super::index::PrefilterIndex;
use super::{CandidateLimit, Plan, Rule, RuleCost, RuleScope, RuleSet, Step, StepOp};
use crate::decision::{Action, RuleIndex};
use crate::expr::{EvalContext, FieldFacts, FieldMemo, Predicate};
use crate::limit::Limiter;

/// What a rule has to do with one request.
#[derive(Clone, Copy)]
pub(super) struct RuleMatch {
    /// `None`: whether or how much is known only at the response.
    pub(super) counts: Option<bool>,
    pub(super) mitigates: bool,
}

// === impl RuleSet ===

impl RuleSet {
    /// What a store must do for this request before it is decided.
    pub fn plan(&self, facts: &dyn FieldFacts) -> Plan {
        let mut plan = Plan::default();
        self.plan_into(facts, &mut plan);
        plan
    }

    /// [`RuleSet::plan`], into an empty plan: a request has it copied nowhere.
    pub fn plan_into(&self, facts: &dyn FieldFacts, plan: &mut Plan) {
        if let Some(index) = &self.planning {
            return self.plan_found(index, facts, plan);
        }
        let memo = FieldMemo::default();
        let context = EvalContext::remembering(facts, &memo);
        for course in &self.courses {
            if course.plan_request(&context, plan) {
                break;
            }
        }
    }

    /// What a store must count now that the response is known. `before`: the first rule that the
    /// request did not reach.
    pub fn settle(&self, facts: &dyn FieldFacts, before: Option<RuleIndex>) -> Plan {
        let mut plan = Plan::default();
        self.settle_into(facts, before, &mut plan);
        plan
    }

    /// [`RuleSet::settle`], into an empty plan: a request has it copied nowhere.
    pub fn settle_into(&self, facts: &dyn FieldFacts, before: Option<RuleIndex>, plan: &mut Plan) {
        if let Some(index) = &self.settling {
            return self.settle_found(index, facts, before, plan);
        }
        let context = EvalContext::of(facts);
        for course in &self.courses {
            if before.is_some_and(|end| course.like.rule >= end) {
                break;
            }
            course.count(&context, plan);
        }
    }

    /// Apart from the rest, so that few rules do not pay for the room that candidates take.
    #[inline(never)]
    fn plan_found(&self, index: &PrefilterIndex, facts: &dyn FieldFacts, plan: &mut Plan) {
        let memo = FieldMemo::default();
        let context = EvalContext::remembering(facts, &memo);
        index.candidates(&context, |index| match self.compiled(index) {
            Some(course) if course.plan_request(&context, plan) => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        });
    }

    #[inline(never)]
    fn settle_found(
        &self,
        index: &PrefilterIndex,
        facts: &dyn FieldFacts,
        before: Option<RuleIndex>,
        plan: &mut Plan,
    ) {
        let context = EvalContext::of(facts);
        index.candidates(&context, |index| {
            if before.is_some_and(|end| index >= end) {
                return ControlFlow::Break(());
            }
            if let Some(course) = self.compiled(index) {
                course.count(&context, plan);
            }
            ControlFlow::Continue(())
        });
    }
}

// === impl CompiledRule ===

impl CompiledRule {
    /// Adds what the rule has to do with a request; `true`: no later rule is reached.
    #[inline(always)]
    fn plan_request(&self, context: &EvalContext<'_>, plan: &mut Plan) -> bool {
        match &self.rule.scope {
            // Most rules have nothing to do with a request: this is all that happens.
            RuleScope::Same(both) => {
                both.holds(context) && self.add(self.both, true, context, plan)
            }
            RuleScope::Separate { .. } => self.plan_separate(context, plan),
        }
    }

    /// [`CompiledRule::plan_request`] of a rule with two expressions.
    #[inline(never)]
    fn plan_separate(&self, context: &EvalContext<'_>, plan: &mut Plan) -> bool {
        match self.rule.op(self.rule.matches(context)) {
            Some((op, acts)) => self.add(op, acts, context, plan),
            None => false,
        }
    }

    /// Adds a step; `true`: no later rule is reached.
    #[inline(always)]
    fn add(&self, op: StepOp, acts: bool, context: &EvalContext<'_>, plan: &mut Plan) -> bool {
        plan.push(self, op, acts, context) && self.ends && op == StepOp::Always
    }

    /// Counts an answer, if the rule does.
    #[inline(always)]
    fn count(&self, context: &EvalContext<'_>, plan: &mut Plan) {
        if self.counts_response && self.rule.predicates().0.holds(context) {
            plan.push(self, StepOp::Charge, false, context);
        }
    }

    /// A step that does this. Its cost is the rule's, where that is fixed.
    #[inline(always)]
    fn step(&self, key: Range<u32>, op: StepOp, acts: bool) -> Step {
        Step {
            key,
            cost: if op.counts() { self.like.cost } else { 1 },
            op,
            acts,
            peek_after_end: acts && self.refuses || self.shadowed,
            ..self.like.clone()
        }
    }
}

// === impl Rule ===

impl Rule {
    #[inline]
    pub(super) fn matches(&self, context: &EvalContext<'_>) -> RuleMatch {
        match &self.scope {
            RuleScope::Same(both) if !both.holds(context) => RuleMatch {
                counts: Some(false),
                mitigates: false,
            },
            RuleScope::Same(_) => RuleMatch {
                counts: self.known(true),
                mitigates: true,
            },
            RuleScope::Separate { count, mitigate } => RuleMatch {
                counts: self.counts(count, context),
                mitigates: mitigate.holds(context),
            },
        }
    }

    fn counts(&self, count: &Predicate, context: &EvalContext<'_>) -> Option<bool> {
        match count.reads_response() {
            true => None,
            false => self.known(count.holds(context)),
        }
    }

    /// Whether the request is counted now, if `count` holds or not: how much may be unknown yet.
    fn known(&self, counts: bool) -> Option<bool> {
        (!counts || !self.cost.reads_response()).then_some(counts)
    }

    /// What to do with the counter, and whether a refusal concerns this request; `None`: the rule
    /// has nothing to do with it.
    pub(super) fn op(&self, matched: RuleMatch) -> Option<(StepOp, bool)> {
        let acts = matched.mitigates;
        if self.limiter.is_none() {
            return acts.then_some((StepOp::Always, true));
        }
        match (matched.counts, acts) {
            (Some(false), false) => None,
            (Some(true), true) => Some((StepOp::Admit, true)),
            (Some(true), false) => Some((StepOp::Charge, false)),
            // Its headers show what was known when the request came.
            (None, _) if self.sends_quota_headers() => Some((StepOp::Peek, acts)),
            (None, false) => None,
            (_, true) => Some((self.uncounted_op(), true)),
        }
    }

    /// What [`Rule::op`] says where `count` and `mitigate` are one expression that holds.
    pub(super) fn op_if_both_match(&self) -> StepOp {
        let matched = RuleMatch {
            counts: self.known(true),
            mitigates: true,
        };
        self.op(matched).map_or(StepOp::Pass, |(op, _)| op)
    }

    /// Whether all requests cost the same, all keys have the same limit, and nothing is tried
    /// beside it.
    pub(super) fn is_plain(&self) -> bool {
        let is_fixed = matches!(self.cost, RuleCost::Fixed(_));
        is_fixed && self.jitter.0 == 0 && self.candidate.is_none()
    }

    /// Whether its answer is to look like the origin's.
    pub(super) fn poses_as_origin(&self) -> bool {
        self.action.poses_as_origin() && !self.dry_run
    }

    /// Not counted now: a throttled key is acted on while one more unit would be refused, a banned
    /// one while the ban lasts.
    fn uncounted_op(&self) -> StepOp {
        match self.ban.is_never() {
            true => StepOp::Peek,
            false => StepOp::Pass,
        }
    }

    pub(super) fn ends_pass(&self) -> bool {
        self.action.is_terminal() && !self.dry_run
    }

    /// How long a request is held, rather than not be counted.
    pub(super) fn max_hold(&self) -> Duration {
        match self.action == Action::Delay && self.ban.is_never() {
            true => self.max_delay,
            false => Duration::ZERO,
        }
    }
}

// === impl Plan ===

impl Plan {
    /// Adds a step of `course`; `false`: the key has an absent part and the rule skips such
    /// requests, or what it costs is unknown and nothing is counted.
    #[inline(never)]
    fn push(
        &mut self,
        course: &CompiledRule,
        op: StepOp,
        acts: bool,
        context: &EvalContext<'_>,
    ) -> bool {
        if !course.is_plain {
            return self.push_unusual(course, op, acts, context);
        }
        let Some(key) = self.write(course, op, context) else {
            return false;
        };
        self.steps.push(course.step(key, op, acts));
        true
    }

    /// Where the key is, once it is written; `None`: the request is skipped. A rule before may have
    /// written the same.
    #[inline(always)]
    fn write(
        &mut self,
        course: &CompiledRule,
        op: StepOp,
        context: &EvalContext<'_>,
    ) -> Option<Range<u32>> {
        let start = self.keys.len();
        if op == StepOp::Always {
            return Some(start as u32..start as u32);
        }
        if let Some(before) = course.same_key {
            let written = |step: &&Step| step.rule == before && step.op != StepOp::Always;
            if let Some(step) = self.steps.iter().find(written) {
                return Some(step.key.clone());
            }
        }
        if !course.rule.key.write_at(context, &mut self.keys) {
            self.keys.truncate(start);
            return None;
        }
        Some(start as u32..self.keys.len() as u32)
    }

    /// [`Plan::push`] of a step whose cost is computed, whose limit is drawn, or beside which
    /// another one is tried.
    #[inline(never)]
    fn push_unusual(
        &mut self,
        course: &CompiledRule,
        op: StepOp,
        acts: bool,
        context: &EvalContext<'_>,
    ) -> bool {
        let (rule, facts) = (&course.rule, context.facts());
        let cost = match op.counts() {
            true => rule.cost.of(facts),
            false => Some(1),
        };
        let Some(cost) = cost else {
            return false;
        };
        let Some(key) = self.write(course, op, context) else {
            return false;
        };
        let mut step = course.step(key, op, acts);
        step.cost = cost;
        if op != StepOp::Always {
            self.push_candidate(rule, &step, facts);
            step.limiter = self.drawn(rule, &step, facts);
        }
        self.steps.push(step);
        true
    }

    /// Adds a step for the rule's candidate, if it has one.
    fn push_candidate(&mut self, rule: &Rule, step: &Step, facts: &dyn FieldFacts) {
        if let Some(mut beside) = rule.candidate.and_then(|c| step.candidate_step(rule, c)) {
            // It has the rule's luck: only what is tried makes a difference.
            beside.limiter = self.drawn(rule, &beside, facts);
            self.steps.push(beside);
        }
    }

    fn drawn(&self, rule: &Rule, step: &Step, facts: &dyn FieldFacts) -> Limiter {
        let (jitter, key) = (rule.jitter, self.key(step));
        match jitter.0 {
            0 => step.limiter,
            _ => jitter.draw(step.limiter, rule.id.identity, key, facts),
        }
    }
}

// === impl Step ===

impl Step {
    /// The same for the rule's candidate; `None`: it has nothing to do with the request.
    fn candidate_step(&self, rule: &Rule, candidate: CandidateLimit) -> Option<Step> {
        let op = match self.op {
            StepOp::Peek if !self.acts => return None,
            StepOp::Peek => rule.uncounted_op(),
            op => op,
        };
        Some(Step {
            id: candidate.id,
            limiter: candidate.limiter,
            op,
            candidate: true,
            ends_pass: false,
            peek_after_end: false,
            ..self.clone()
        })
    }
}
