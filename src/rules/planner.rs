//! Facts → plan: which counters a request touches, and how, in rule order.

use std::time::Duration;

use super::index::Index;
use super::{Op, Plan, Rule, RuleSet, Scope, Step};
use crate::decision::{Action, RuleIndex};
use crate::expr::Facts;
use crate::limit::{Algorithm, Limiter};

/// What a rule has to do with one request.
#[derive(Clone, Copy)]
pub(super) struct Match {
    /// `None`: known only at the response.
    pub(super) counts: Option<bool>,
    pub(super) mitigates: bool,
}

// === impl RuleSet ===

impl RuleSet {
    /// What a store must do for this request before it is decided.
    pub fn plan(&self, facts: &dyn Facts) -> Plan {
        let mut plan = Plan::default();
        if let Some(index) = &self.planning {
            self.plan_found(index, facts, &mut plan);
            return plan;
        }
        for (index, rule) in self.iter() {
            if plan.ask(index, rule, facts) {
                break;
            }
        }
        plan
    }

    /// What a store must count now that the response is known. `before`: the first rule that the
    /// request did not reach.
    pub fn settle(&self, facts: &dyn Facts, before: Option<RuleIndex>) -> Plan {
        let mut plan = Plan::default();
        if let Some(index) = &self.settling {
            self.settle_found(index, facts, before, &mut plan);
            return plan;
        }
        for (index, rule) in self.iter() {
            if before.is_some_and(|end| index >= end) {
                break;
            }
            plan.settle(index, rule, facts);
        }
        plan
    }

    /// Apart from the rest, so that few rules do not pay for the room that candidates take.
    #[inline(never)]
    fn plan_found(&self, index: &Index, facts: &dyn Facts, plan: &mut Plan) {
        for index in index.candidates(facts) {
            if self
                .get(index)
                .is_some_and(|rule| plan.ask(index, rule, facts))
            {
                break;
            }
        }
    }

    #[inline(never)]
    fn settle_found(
        &self,
        index: &Index,
        facts: &dyn Facts,
        before: Option<RuleIndex>,
        plan: &mut Plan,
    ) {
        for index in index.candidates(facts) {
            if before.is_some_and(|end| index >= end) {
                break;
            }
            if let Some(rule) = self.get(index) {
                plan.settle(index, rule, facts);
            }
        }
    }
}

// === impl Rule ===

impl Rule {
    pub(super) fn matches(&self, facts: &dyn Facts) -> Match {
        match &self.scope {
            Scope::Same(both) => {
                let matched = both.test(facts);
                Match {
                    counts: Some(matched),
                    mitigates: matched,
                }
            }
            Scope::Separate { count, mitigate } => Match {
                counts: (!count.reads_response()).then(|| count.test(facts)),
                mitigates: mitigate.test(facts),
            },
        }
    }

    /// What to do with the counter, and whether a refusal concerns this request; `None`: the rule
    /// has nothing to do with it.
    pub(super) fn op(&self, matched: Match) -> Option<(Op, bool)> {
        let acts = matched.mitigates;
        if self.limiter.is_none() {
            return acts.then_some((Op::Always, true));
        }
        match (matched.counts, acts) {
            (Some(false), false) => None,
            (Some(true), true) => Some((Op::Admit, true)),
            (Some(true), false) => Some((Op::Charge, false)),
            // Not counted now: a throttled key is acted on while one more unit would be refused, a
            // banned one while the ban lasts.
            (Some(false), true) if self.ban.is_never() => Some((Op::Peek, true)),
            (Some(false), true) => Some((Op::Pass, true)),
            // Its headers show what was known when the request came.
            (None, _) if self.tells() => Some((Op::Peek, acts)),
            (None, true) if self.ban.is_never() => Some((Op::Peek, true)),
            (None, true) => Some((Op::Pass, true)),
            (None, false) => None,
        }
    }

    fn ends_pass(&self) -> bool {
        self.action.is_terminal() && !self.dry_run
    }
}

// === impl Plan ===

impl Plan {
    /// Adds what `rule` has to do with `facts`; `true`: no later rule is reached.
    #[inline(always)]
    fn ask(&mut self, index: RuleIndex, rule: &Rule, facts: &dyn Facts) -> bool {
        let Some(op) = rule.op(rule.matches(facts)) else {
            return false;
        };
        self.push(index, rule, op, facts) && op.0 == Op::Always && rule.ends_pass()
    }

    /// Counts the answer in `facts`, if `rule` does.
    #[inline(always)]
    fn settle(&mut self, index: RuleIndex, rule: &Rule, facts: &dyn Facts) {
        if rule.counts_response() && rule.predicates().0.test(facts) {
            self.push(index, rule, (Op::Charge, false), facts);
        }
    }

    /// Adds a step; `false`: the key has an absent part and the rule skips such requests.
    fn push(
        &mut self,
        index: RuleIndex,
        rule: &Rule,
        (op, acts): (Op, bool),
        facts: &dyn Facts,
    ) -> bool {
        let start = self.keys.len();
        if op != Op::Always && !rule.key.write(facts, &mut self.keys) {
            self.keys.truncate(start);
            return false;
        }
        self.steps.push(Step {
            rule: index,
            id: rule.id,
            key: start as u32..self.keys.len() as u32,
            limiter: rule.limiter.unwrap_or(NO_LIMIT),
            cost: 1,
            op,
            ban: rule.ban.clone(),
            patience: Duration::ZERO,
            candidate: false,
            acts,
            ends_pass: rule.ends_pass(),
            peek_after_end: acts && rule.action == Action::Block && rule.ends_pass(),
        });
        true
    }
}

/// Stands in a step that has no counter.
const NO_LIMIT: Limiter = Limiter::new(Algorithm::SlidingWindow, 0, Duration::ZERO);
