//! A rule with what is known of its steps before any request comes.

use std::time::Duration;

use super::{Rule, RuleCost, RuleSet, Step, StepOp};
use crate::decision::RuleIndex;
use crate::limit::{Algorithm, Limiter};

/// A rule at its place among others.
pub(super) struct CompiledRule {
    pub(super) rule: Rule,
    /// What its steps have in common.
    pub(super) like: Step,
    /// What is done with the counter if `count` and `mitigate` are one expression, and it holds.
    pub(super) both: StepOp,
    /// The first rule before it that has the same key.
    pub(super) same_key: Option<RuleIndex>,
    /// Whether what it counts, or how much, is known only once there is a response.
    pub(super) counts_response: bool,
    /// Whether a client may learn of it from headers.
    pub(super) tells: bool,
    /// Whether those that it stops are told to come back later.
    pub(super) refuses: bool,
    /// A client is told of it, and an earlier rule can answer in the origin's place: what would be
    /// told is looked at then.
    pub(super) shadowed: bool,
    /// Whether all requests cost the same, all keys have the same limit, and nothing is tried
    /// beside it.
    pub(super) is_plain: bool,
    /// Whether no later rule is reached where it acts on whatever matches.
    pub(super) ends: bool,
}

/// Stands in a step that has no counter.
const NO_LIMIT: Limiter = Limiter::new(Algorithm::SlidingWindow, 0, Duration::ZERO);

// === impl CompiledRule ===

impl CompiledRule {
    /// The courses of `rules`, in file order.
    pub(super) fn all(rules: Vec<Rule>) -> Vec<CompiledRule> {
        let mut before: Vec<CompiledRule> = Vec::with_capacity(rules.len());
        let mut shadowed = false;
        for (index, rule) in (0..=u16::MAX).map(RuleIndex).zip(rules) {
            let pretends = rule.poses_as_origin();
            before.push(CompiledRule::new(index, rule, &before, shadowed));
            shadowed |= pretends;
        }
        before
    }

    /// `shadowed`: an earlier rule can answer in the origin's place.
    fn new(index: RuleIndex, rule: Rule, before: &[CompiledRule], shadowed: bool) -> CompiledRule {
        let has_same = |other: &&CompiledRule| {
            other.rule.limiter.is_some() && other.rule.key.is_written_as(&rule.key)
        };
        let same_key = before.iter().find(has_same).map(|other| other.like.rule);
        CompiledRule {
            like: step_template(index, &rule),
            both: rule.op_if_both_match(),
            same_key,
            counts_response: rule.counts_response(),
            tells: rule.sends_quota_headers(),
            refuses: rule.refuses(),
            shadowed: shadowed && rule.sends_quota_headers(),
            is_plain: rule.is_plain(),
            // Behind a pretence, what a client would be told is still looked at.
            ends: rule.ends_pass() && !rule.action.poses_as_origin(),
            rule,
        }
    }
}

// === impl RuleSet ===

impl RuleSet {
    /// The course of the rule at `index`.
    #[inline(always)]
    pub(super) fn compiled(&self, index: RuleIndex) -> Option<&CompiledRule> {
        self.courses.get(usize::from(index.0))
    }
}

fn step_template(index: RuleIndex, rule: &Rule) -> Step {
    Step {
        rule: index,
        id: rule.id,
        key: 0..0,
        limiter: rule.limiter.unwrap_or(NO_LIMIT),
        cost: match rule.cost {
            RuleCost::Fixed(cost) => cost,
            _ => 1,
        },
        op: StepOp::Pass,
        ban: rule.ban.clone(),
        patience: rule.max_hold(),
        candidate: false,
        acts: false,
        ends_pass: rule.ends_pass(),
        peek_after_end: false,
        on_failure: rule.on_store_failure,
    }
}
