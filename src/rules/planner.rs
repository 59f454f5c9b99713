//! Facts → plan: which counters a request touches, and how, in rule order.

use std::ops::{ControlFlow, Range};
use std::time::Duration;

use super::index::Index;
use super::{Candidate, Op, Plan, Rule, RuleSet, Scope, Step};
use crate::decision::{Action, RuleIndex};
use crate::expr::{Context, Facts, Memo, Predicate};
use crate::limit::{Algorithm, Limiter};

/// What a rule has to do with one request.
#[derive(Clone, Copy)]
pub(super) struct Match {
    /// `None`: whether or how much is known only at the response.
    pub(super) counts: Option<bool>,
    pub(super) mitigates: bool,
}

/// What a rule does with its counter.
#[derive(Clone, Copy)]
struct Task {
    op: Op,
    /// A refusal concerns this request.
    acts: bool,
    /// An earlier rule can answer in the origin's place: what a client would be told is looked at
    /// then.
    shadowed: bool,
    /// A rule before that has the same key.
    same_key: Option<RuleIndex>,
}

// === impl RuleSet ===

impl RuleSet {
    /// What a store must do for this request before it is decided.
    pub fn plan(&self, facts: &dyn Facts) -> Plan {
        let mut plan = Plan::default();
        self.plan_into(facts, &mut plan);
        plan
    }

    /// [`RuleSet::plan`], into an empty plan: a request has it copied nowhere.
    pub fn plan_into(&self, facts: &dyn Facts, plan: &mut Plan) {
        if let Some(index) = &self.planning {
            return self.plan_found(index, facts, plan);
        }
        let memo = Memo::default();
        let context = Context::remembering(facts, &memo);
        for (index, rule) in self.iter() {
            if self.ask(index, rule, &context, plan) {
                break;
            }
        }
    }

    /// What a store must count now that the response is known. `before`: the first rule that the
    /// request did not reach.
    pub fn settle(&self, facts: &dyn Facts, before: Option<RuleIndex>) -> Plan {
        let mut plan = Plan::default();
        self.settle_into(facts, before, &mut plan);
        plan
    }

    /// [`RuleSet::settle`], into an empty plan: a request has it copied nowhere.
    pub fn settle_into(&self, facts: &dyn Facts, before: Option<RuleIndex>, plan: &mut Plan) {
        if let Some(index) = &self.settling {
            return self.settle_found(index, facts, before, plan);
        }
        for (index, rule) in self.iter() {
            if before.is_some_and(|end| index >= end) {
                break;
            }
            self.count(index, rule, &Context::of(facts), plan);
        }
    }

    /// Apart from the rest, so that few rules do not pay for the room that candidates take.
    #[inline(never)]
    fn plan_found(&self, index: &Index, facts: &dyn Facts, plan: &mut Plan) {
        let memo = Memo::default();
        let context = Context::remembering(facts, &memo);
        index.candidates(facts, |index| match self.get(index) {
            Some(rule) if self.ask(index, rule, &context, plan) => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        });
    }

    #[inline(never)]
    fn settle_found(
        &self,
        index: &Index,
        facts: &dyn Facts,
        before: Option<RuleIndex>,
        plan: &mut Plan,
    ) {
        let context = Context::of(facts);
        index.candidates(facts, |index| {
            if before.is_some_and(|end| index >= end) {
                return ControlFlow::Break(());
            }
            if let Some(rule) = self.get(index) {
                self.count(index, rule, &context, plan);
            }
            ControlFlow::Continue(())
        });
    }

    #[inline]
    fn same_key(&self, index: RuleIndex) -> Option<RuleIndex> {
        self.same_key.get(usize::from(index.0)).copied().flatten()
    }

    /// Counts the answer in `facts`, if `rule` does.
    #[inline(always)]
    fn count(&self, index: RuleIndex, rule: &Rule, context: &Context<'_>, plan: &mut Plan) {
        if rule.counts_response() && rule.predicates().0.holds(context) {
            let task = Task {
                op: Op::Charge,
                acts: false,
                shadowed: false,
                same_key: self.same_key(index),
            };
            if let Some(step) = self.steps.get(usize::from(index.0)) {
                plan.push(step, rule, task, context.facts());
            }
        }
    }

    /// Adds what `rule` has to do with `facts`; `true`: no later rule is reached.
    #[inline(always)]
    fn ask(&self, index: RuleIndex, rule: &Rule, context: &Context<'_>, plan: &mut Plan) -> bool {
        let Some((op, acts)) = rule.op(rule.matches(context)) else {
            return false;
        };
        self.add(index, rule, (op, acts), context.facts(), plan)
    }

    /// Adds a step for `rule`; `true`: no later rule is reached.
    #[inline(never)]
    fn add(
        &self,
        index: RuleIndex,
        rule: &Rule,
        (op, acts): (Op, bool),
        facts: &dyn Facts,
        plan: &mut Plan,
    ) -> bool {
        let Some(step) = self.steps.get(usize::from(index.0)) else {
            return false;
        };
        let shadowed = self.first_shadow.is_some_and(|shadow| shadow < index);
        let task = Task {
            op,
            acts,
            shadowed,
            same_key: self.same_key(index),
        };
        // Behind a pretence, what a client would be told is still looked at.
        let ends = op == Op::Always && rule.ends_pass() && rule.action != Action::Shadow;
        plan.push(step, rule, task, facts) && ends
    }
}

// === impl Rule ===

impl Rule {
    #[inline]
    pub(super) fn matches(&self, context: &Context<'_>) -> Match {
        match &self.scope {
            Scope::Same(both) if !both.holds(context) => Match {
                counts: Some(false),
                mitigates: false,
            },
            Scope::Same(_) => Match {
                counts: self.known(true),
                mitigates: true,
            },
            Scope::Separate { count, mitigate } => Match {
                counts: self.counts(count, context),
                mitigates: mitigate.holds(context),
            },
        }
    }

    fn counts(&self, count: &Predicate, context: &Context<'_>) -> Option<bool> {
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
    #[inline]
    pub(super) fn op(&self, matched: Match) -> Option<(Op, bool)> {
        let acts = matched.mitigates;
        if self.limiter.is_none() {
            return acts.then_some((Op::Always, true));
        }
        match (matched.counts, acts) {
            (Some(false), false) => None,
            (Some(true), true) => Some((Op::Admit, true)),
            (Some(true), false) => Some((Op::Charge, false)),
            // Its headers show what was known when the request came.
            (None, _) if self.tells() => Some((Op::Peek, acts)),
            (None, false) => None,
            (_, true) => Some((self.look(), true)),
        }
    }

    /// Not counted now: a throttled key is acted on while one more unit would be refused, a banned
    /// one while the ban lasts.
    fn look(&self) -> Op {
        match self.ban.is_never() {
            true => Op::Peek,
            false => Op::Pass,
        }
    }

    fn ends_pass(&self) -> bool {
        self.action.is_terminal() && !self.dry_run
    }

    /// How long a request is held, rather than not be counted.
    fn patience(&self) -> Duration {
        match self.action == Action::Delay && self.ban.is_never() {
            true => self.max_delay,
            false => Duration::ZERO,
        }
    }
}

// === impl Plan ===

impl Plan {
    /// Adds a step like `like`; `false`: the key has an absent part and the rule skips such requests, or what
    /// it costs is unknown and nothing is counted.
    #[inline]
    fn push(&mut self, like: &Step, rule: &Rule, task: Task, facts: &dyn Facts) -> bool {
        let Some(cost) = task.cost(rule, facts) else {
            return false;
        };
        let Some(key) = self.write(rule, task, facts) else {
            return false;
        };
        let step = Step {
            key,
            cost,
            op: task.op,
            acts: task.acts,
            peek_after_end: task.acts && rule.refuses() || task.shadowed && rule.tells(),
            ..like.clone()
        };
        if rule.is_plain() {
            self.steps.push(step);
        } else {
            self.push_unusual(rule, step, facts);
        }
        true
    }

    /// Where the key is, once it is written; `None`: the request is skipped. A rule before may have
    /// written the same.
    #[inline]
    fn write(&mut self, rule: &Rule, task: Task, facts: &dyn Facts) -> Option<Range<u32>> {
        let start = self.keys.len();
        if task.op == Op::Always {
            return Some(start as u32..start as u32);
        }
        let written = |step: &&Step| Some(step.rule) == task.same_key && step.op != Op::Always;
        if let Some(step) = self.steps.iter().find(written) {
            return Some(step.key.clone());
        }
        if !rule.key.write(facts, &mut self.keys) {
            self.keys.truncate(start);
            return None;
        }
        Some(start as u32..self.keys.len() as u32)
    }

    /// Adds a step whose limit is drawn, or beside which another one is tried.
    #[inline(never)]
    fn push_unusual(&mut self, rule: &Rule, mut step: Step, facts: &dyn Facts) {
        if step.op == Op::Always {
            self.steps.push(step);
            return;
        }
        if let Some(mut beside) = rule.candidate.and_then(|c| step.beside(rule, c)) {
            // It has the rule's luck: only what is tried makes a difference.
            beside.limiter = self.drawn(rule, &beside, facts);
            self.steps.push(beside);
        }
        step.limiter = self.drawn(rule, &step, facts);
        self.steps.push(step);
    }

    fn drawn(&self, rule: &Rule, step: &Step, facts: &dyn Facts) -> Limiter {
        let (jitter, key) = (rule.jitter, self.key(step));
        match jitter.0 {
            0 => step.limiter,
            _ => jitter.draw(step.limiter, rule.id.identity, key, facts),
        }
    }
}

// === impl Task ===

impl Task {
    /// What is asked for; `None`: nothing is counted.
    #[inline]
    fn cost(self, rule: &Rule, facts: &dyn Facts) -> Option<u64> {
        match self.op {
            Op::Admit | Op::Charge => rule.cost.of(facts),
            Op::Peek | Op::Pass | Op::Always => Some(1),
        }
    }
}

// === impl Step ===

impl Step {
    /// What all steps of a rule have in common.
    pub(super) fn of((index, rule): (RuleIndex, &Rule)) -> Step {
        Step {
            rule: index,
            id: rule.id,
            key: 0..0,
            limiter: rule.limiter.unwrap_or(NO_LIMIT),
            cost: 1,
            op: Op::Pass,
            ban: rule.ban.clone(),
            patience: rule.patience(),
            candidate: false,
            acts: false,
            ends_pass: rule.ends_pass(),
            peek_after_end: false,
        }
    }

    /// The same for the rule's candidate; `None`: it has nothing to do with the request.
    fn beside(&self, rule: &Rule, candidate: Candidate) -> Option<Step> {
        let op = match self.op {
            Op::Peek if !self.acts => return None,
            Op::Peek => rule.look(),
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

/// Stands in a step that has no counter.
const NO_LIMIT: Limiter = Limiter::new(Algorithm::SlidingWindow, 0, Duration::ZERO);
