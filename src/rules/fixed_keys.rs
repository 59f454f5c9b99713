//! Keys that a person sets for a simulated request, in place of those that the request itself has: a key with a hashed
//! part cannot be sent again.

use std::ops::Range;

use super::compiled_rule::CompiledRule;
use super::{Plan, RuleSet, StepOp};
use crate::clock::Timestamp;
use crate::decision::RuleIndex;
use crate::expr::{EvalContext, FieldFacts};

/// The keys of a simulated request that a person has set, at most one per rule.
#[derive(Clone, Debug, Default)]
pub struct FixedKeys(pub Vec<FixedKey>);

/// The key of one rule.
#[derive(Clone, Debug)]
pub struct FixedKey {
    /// The rule.
    pub rule: RuleIndex,
    /// The key as listings show it.
    pub text: String,
    /// What is known of the key.
    pub value: FixedKeyValue,
}

/// What is known of a key that a person has set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FixedKeyValue {
    /// Its complete bytes.
    Bytes(Box<[u8]>),
    /// Only that it is banned until this time, because listings do not have all of its bytes.
    BannedUntil(Timestamp),
}

// === impl FixedKeys ===

impl FixedKeys {
    /// Returns the key of a rule.
    pub fn of(&self, rule: RuleIndex) -> Option<&FixedKey> {
        self.0.iter().find(|key| key.rule == rule)
    }

    /// Returns when the ban of a rule's key ends, if that is all that is known of the key.
    pub fn known_ban(&self, rule: RuleIndex) -> Option<Timestamp> {
        match self.of(rule)?.value {
            FixedKeyValue::BannedUntil(until) => Some(until),
            FixedKeyValue::Bytes(_) => None,
        }
    }
}

// === impl FixedKey ===

impl FixedKey {
    /// The bytes to plan with. A key that is known by its ban alone has none.
    fn bytes(&self) -> &[u8] {
        match &self.value {
            FixedKeyValue::Bytes(bytes) => bytes,
            FixedKeyValue::BannedUntil(_) => &[],
        }
    }
}

// === impl RuleSet ===

impl RuleSet {
    /// Plans the rules with fixed keys again, in a plan that [`RuleSet::plan_into`] has written.
    pub fn fix_request_keys(&self, keys: &FixedKeys, facts: &dyn FieldFacts, plan: &mut Plan) {
        let context = EvalContext::of(facts);
        let last = plan.steps.last().filter(|step| step.op == StepOp::Always);
        let last = last.filter(|step| step.is_terminal).map(|step| step.rule);
        for key in &keys.0 {
            if let Some(compiled) = self.compiled(key.rule)
                && last.is_none_or(|last| key.rule < last)
            {
                plan.replace_steps(key, |plan| compiled.plan_fixed(key, &context, plan));
            }
        }
    }

    /// Plans the rules with fixed keys again, in a plan that [`RuleSet::settle_into`] has written.
    pub fn fix_response_keys(
        &self,
        keys: &FixedKeys,
        facts: &dyn FieldFacts,
        unreached: Option<RuleIndex>,
        plan: &mut Plan,
    ) {
        let context = EvalContext::of(facts);
        for key in &keys.0 {
            if let Some(compiled) = self.compiled(key.rule)
                && unreached.is_none_or(|first| key.rule < first)
            {
                plan.replace_steps(key, |plan| compiled.count_fixed(key, &context, plan));
            }
        }
    }
}

// === impl CompiledRule ===

impl CompiledRule {
    /// Adds the rule's step for a request with a fixed key, if any.
    fn plan_fixed(&self, key: &FixedKey, context: &EvalContext<'_>, plan: &mut Plan) {
        let matched = self.rule.matches(context);
        if let Some((op, mitigates)) = self.rule.op(matched) {
            plan.push_computed(self, op, mitigates, Some(key.bytes()), context);
            plan.set_only_total(key.rule, matched.only_total);
        }
    }

    /// Adds a charge for the response with a fixed key, if the rule counts it.
    fn count_fixed(&self, key: &FixedKey, context: &EvalContext<'_>, plan: &mut Plan) {
        let counts = self.rule.predicates().0.holds(context);
        let has_total = || self.rule.total().is_some_and(|total| total.holds(context));
        if self.counts_response && (counts || has_total()) {
            plan.push_computed(self, StepOp::Charge, false, Some(key.bytes()), context);
            plan.set_only_total(key.rule, !counts);
        }
    }
}

// === impl Plan ===

impl Plan {
    /// Replaces the steps of a rule by those that `push` appends. Steps stay in rule order.
    fn replace_steps(&mut self, key: &FixedKey, push: impl FnOnce(&mut Plan)) {
        self.steps.retain(|step| step.rule != key.rule);
        push(self);
        if matches!(key.value, FixedKeyValue::BannedUntil(_)) {
            // Nothing is known of the candidate's counter.
            self.steps
                .retain(|step| step.rule != key.rule || !step.candidate);
        }
        self.steps.sort_by_key(|step| step.rule);
    }

    /// Appends a key and returns its range.
    pub(super) fn append_key(&mut self, key: &[u8]) -> Range<u32> {
        let start = self.keys.len() as u32;
        self.keys.extend_from_slice(key);
        start..self.keys.len() as u32
    }

    fn set_only_total(&mut self, rule: RuleIndex, only_total: bool) {
        let own = self.steps.iter_mut().filter(|step| step.rule == rule);
        own.for_each(|step| step.only_total = only_total);
    }
}
