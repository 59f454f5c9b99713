//! A rule with what is known of its steps before any request comes.

use std::time::Duration;

use super::{Cost, Op, Rule, RuleSet, Step};
use crate::decision::RuleIndex;
use crate::limit::{Algorithm, Limiter};

/// A rule at its place among others.
pub(super) struct Course {
    pub(super) rule: Rule,
    /// What its steps have in common.
    pub(super) like: Step,
    /// What is done with the counter if `count` and `mitigate` are one expression, and it holds.
    pub(super) both: Op,
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

// === impl Course ===

impl Course {
    /// The courses of `rules`, in file order.
    pub(super) fn all(rules: Vec<Rule>) -> Vec<Course> {
        let mut before: Vec<Course> = Vec::with_capacity(rules.len());
        let mut shadowed = false;
        for (index, rule) in (0..=u16::MAX).map(RuleIndex).zip(rules) {
            let pretends = rule.pretends();
            before.push(Course::new(index, rule, &before, shadowed));
            shadowed |= pretends;
        }
        before
    }

    /// `shadowed`: an earlier rule can answer in the origin's place.
    fn new(index: RuleIndex, rule: Rule, before: &[Course], shadowed: bool) -> Course {
        let has_same = |other: &&Course| {
            other.rule.limiter.is_some() && other.rule.key.is_written_as(&rule.key)
        };
        let same_key = before.iter().find(has_same).map(|other| other.like.rule);
        Course {
            like: like(index, &rule),
            both: rule.when_both(),
            same_key,
            counts_response: rule.counts_response(),
            tells: rule.tells(),
            refuses: rule.refuses(),
            shadowed: shadowed && rule.tells(),
            is_plain: rule.is_plain(),
            // Behind a pretence, what a client would be told is still looked at.
            ends: rule.ends_pass() && !rule.action.pretends(),
            rule,
        }
    }
}

// === impl RuleSet ===

impl RuleSet {
    /// The course of the rule at `index`.
    #[inline(always)]
    pub(super) fn course(&self, index: RuleIndex) -> Option<&Course> {
        self.courses.get(usize::from(index.0))
    }
}

fn like(index: RuleIndex, rule: &Rule) -> Step {
    Step {
        rule: index,
        id: rule.id,
        key: 0..0,
        limiter: rule.limiter.unwrap_or(NO_LIMIT),
        cost: match rule.cost {
            Cost::Fixed(cost) => cost,
            _ => 1,
        },
        op: Op::Pass,
        ban: rule.ban.clone(),
        patience: rule.patience(),
        candidate: false,
        acts: false,
        ends_pass: rule.ends_pass(),
        peek_after_end: false,
        on_failure: rule.on_store_failure,
    }
}
