//! Which rules need the body of a request, and whether one of them may match it.

use super::{Rule, RuleCost, RuleSet};
use crate::decision::RuleIndex;
use crate::expr::{EvalContext, FieldFacts, FieldId};
use crate::facts::BodyReads;
use crate::facts::fields::FORM_FIELDS;

/// The rules that need request bodies.
#[derive(Default)]
pub(super) struct BodyNeed {
    readers: Vec<(RuleIndex, BodyReads)>,
    /// The named form fields that the rules read.
    form_names: Vec<Box<str>>,
}

// === impl BodyNeed ===

impl BodyNeed {
    /// The need of `rules`, in file order.
    pub(super) fn of(rules: &[Rule]) -> Self {
        let indexed = (0..=u16::MAX).map(RuleIndex).zip(rules);
        let readers = indexed.map(|(index, rule)| (index, rule.body_reads()));
        let mut form_names: Vec<Box<str>> = rules.iter().flat_map(Rule::form_names).collect();
        form_names.sort_unstable();
        form_names.dedup();
        Self {
            readers: readers.filter(|(_, reads)| !reads.is_none()).collect(),
            form_names,
        }
    }
}

// === impl RuleSet ===

impl RuleSet {
    /// Whether any rule needs request bodies.
    #[inline]
    pub fn needs_bodies(&self) -> bool {
        !self.body_need.readers.is_empty()
    }

    /// What the rules read of the body of this request, judged from its head: the parts that a rule reads which may
    /// still match for some body.
    pub fn body_reads(&self, facts: &dyn FieldFacts) -> BodyReads {
        let context = EvalContext::of(facts);
        let may_match = |rule: RuleIndex| {
            let rule = self.get(rule);
            rule.is_some_and(|rule| rule.can_match(&context))
        };
        let readers = self.body_need.readers.iter();
        let needed = readers.filter(|(rule, _)| may_match(*rule));
        needed.fold(BodyReads::default(), |all, (_, reads)| all.or(*reads))
    }

    /// The named form fields that rules read.
    pub fn form_names(&self) -> &[Box<str>] {
        &self.body_need.form_names
    }
}

// === impl Rule ===

impl Rule {
    /// What the rule reads of request bodies.
    fn body_reads(&self) -> BodyReads {
        let reads = self.reads().map(|(fields, _)| BodyReads::of(fields));
        reads.fold(BodyReads::default(), BodyReads::or)
    }

    fn form_names(&self) -> Vec<Box<str>> {
        let entries = self.reads().flat_map(|(_, entries)| entries);
        let of_form = entries.filter(|(field, _)| FORM_FIELDS.contains(field));
        of_form.map(|(_, name)| name.clone()).collect()
    }

    /// The fields and the map entries that each of the rule's expressions reads.
    fn reads(&self) -> impl Iterator<Item = (&[FieldId], &[(FieldId, Box<str>)])> {
        let parts = self.key.parts.iter().map(|part| &part.scalar);
        let cost = match &self.cost {
            RuleCost::Computed(cost) => Some(cost),
            RuleCost::Fixed(_) | RuleCost::Header(_) => None,
        };
        let values = parts.chain(cost);
        let values = values.map(|value| (value.reads(), value.reads_entries()));
        let tests = self.expressions();
        let tests = tests.map(|test| (test.reads(), test.reads_entries()));
        tests.chain(values)
    }

    /// Whether the request may be counted or mitigated, judged from its head.
    fn can_match(&self, context: &EvalContext<'_>) -> bool {
        let (count, mitigate) = self.predicates();
        let counted = [Some(count), self.total()].into_iter().flatten();
        let mut counted = counted.filter(|_| self.limiter.is_some());
        mitigate.can_hold(context) || counted.any(|test| test.can_hold(context))
    }
}
