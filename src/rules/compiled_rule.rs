//! A rule with the parts of its steps that do not depend on the request.

use std::time::Duration;

use super::exemption::ChallengeExemption;
use super::{Rule, RuleCost, RuleSet, Step, StepOp};
use crate::decision::RuleIndex;
use crate::limit::{Algorithm, Limiter};

/// A rule at its position in the rule set.
pub(super) struct CompiledRule {
    pub(super) rule: Rule,
    /// The step template: the values that all steps of the rule share.
    pub(super) step_template: Step,
    /// The counter operation if `count` and `mitigate` are one expression that matches.
    pub(super) op_if_matched: StepOp,
    /// The first earlier rule with an equal key.
    pub(super) same_key: Option<RuleIndex>,
    /// Whether the rule counts only once the response is known, because of `count`, `total` or `cost`.
    pub(super) counts_response: bool,
    /// Whether the rule sends quota headers.
    pub(super) sends_quota_headers: bool,
    /// Whether the rule's refusals carry `Retry-After`.
    pub(super) sends_retry_after: bool,
    /// Whether the rule sends quota headers and an earlier rule can send a shadow response. Its
    /// counter is then peeked at, so that the shadow response carries those headers too.
    pub(super) peeks_after_shadow: bool,
    /// The requests that the rule does not challenge. `None` if it challenges none.
    pub(super) exemption: Option<ChallengeExemption>,
    /// Whether cost and limit are fixed, the rule has no candidate, and it does not challenge.
    pub(super) is_plain: bool,
    /// The units that a request must leave free which is not counted now, if it is throttled: one more, or with a ratio
    /// none, because the action then applies while the key is over.
    pub(super) uncounted_units: u64,
    /// Whether evaluation always ends here if the rule acts on every matching request.
    pub(super) ends_evaluation: bool,
}

/// The limiter of a step without a counter.
const NO_LIMIT: Limiter = Limiter::new(Algorithm::SlidingWindow, 0, Duration::ZERO);

// === impl CompiledRule ===

impl CompiledRule {
    /// Compiles `rules`, in file order.
    pub(super) fn all(rules: Vec<Rule>) -> Vec<CompiledRule> {
        let mut compiled: Vec<CompiledRule> = Vec::with_capacity(rules.len());
        let mut after_shadow = false;
        for (index, rule) in (0..=u16::MAX).map(RuleIndex).zip(rules) {
            let can_shadow = rule.poses_as_origin();
            compiled.push(CompiledRule::new(index, rule, &compiled, after_shadow));
            after_shadow |= can_shadow;
        }
        compiled
    }

    /// `after_shadow` is whether an earlier rule can send a shadow response.
    fn new(
        index: RuleIndex,
        rule: Rule,
        earlier: &[CompiledRule],
        after_shadow: bool,
    ) -> CompiledRule {
        let has_same_key = |other: &&CompiledRule| {
            other.rule.limiter.is_some() && other.rule.key.is_written_as(&rule.key)
        };
        let same_key = earlier
            .iter()
            .find(has_same_key)
            .map(|other| other.step_template.rule);
        CompiledRule {
            step_template: step_template(index, &rule),
            op_if_matched: rule.op_if_both_match(),
            same_key,
            counts_response: rule.counts_response(),
            sends_quota_headers: rule.sends_quota_headers(),
            sends_retry_after: rule.refuses(),
            peeks_after_shadow: after_shadow && rule.sends_quota_headers(),
            exemption: ChallengeExemption::of(&rule),
            is_plain: rule.is_plain(),
            uncounted_units: rule.uncounted_units(),
            // After a shadow response, later rules are still peeked at for their quota headers.
            ends_evaluation: rule.is_terminal() && !rule.action.poses_as_origin(),
            rule,
        }
    }
}

// === impl RuleSet ===

impl RuleSet {
    /// The compiled rule at `index`. `None` if there is none.
    #[inline(always)]
    pub(super) fn compiled(&self, index: RuleIndex) -> Option<&CompiledRule> {
        self.compiled_rules.get(usize::from(index.0))
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
        only_total: false,
        op: StepOp::CheckBan,
        ban: rule.ban.clone(),
        max_hold: rule.max_hold(),
        candidate: false,
        mitigates: false,
        is_terminal: rule.is_terminal(),
        peek_after_end: false,
        on_failure: rule.on_store_failure,
        mode: rule.store_mode,
    }
}
