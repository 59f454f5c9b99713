//! All guards that test one value with one kind of test.

use std::net::IpAddr;
use std::ops::ControlFlow;

use super::ranges::RangeGuards;
use super::string_hashes::StringHashes;
use super::substrings::SubstringSet;
use super::{Marks, Rules};
use crate::expr::{
    EvalContext, FieldFacts, IntSet, IpSet, PrefilterCondition, StringSet, ValueSource,
};

/// Guards on one value.
pub(super) struct GuardGroup {
    source: ValueSource,
    /// The first rule that the group can find.
    first: u16,
    look: Look,
}

/// The search structure for the kind of test.
enum Look {
    Heads(StringHashes),
    Parts(SubstringSet),
    Ints(RangeGuards<i64>),
    Ips(RangeGuards<u32>, RangeGuards<u128>),
    InStrings(StringSet, Rules),
    InInts(IntSet, Rules),
    InIps(IpSet, Rules),
}

// === impl GuardGroup ===

impl GuardGroup {
    /// Builds a group from `hints` of one kind. `None` if they are too many.
    pub(super) fn new(
        source: &ValueSource,
        hints: &[(&PrefilterCondition, u16)],
    ) -> Option<GuardGroup> {
        let rules = || hints.iter().map(|(_, rule)| *rule);
        let look = match hints.first()?.0 {
            PrefilterCondition::Exact(_) | PrefilterCondition::Prefix(_) => {
                Look::Heads(StringHashes::new(hints))
            }
            PrefilterCondition::Contains(_) => Look::Parts(SubstringSet::new(hints)?),
            PrefilterCondition::Ints(..) => {
                Look::Ints(RangeGuards::new(hints.iter().filter_map(ints)))
            }
            PrefilterCondition::Ips(..) => Look::Ips(
                RangeGuards::new(hints.iter().filter_map(v4)),
                RangeGuards::new(hints.iter().filter_map(v6)),
            ),
            PrefilterCondition::InStrings(set) => Look::InStrings(set.clone(), rules().collect()),
            PrefilterCondition::InInts(set) => Look::InInts(set.clone(), rules().collect()),
            PrefilterCondition::InIps(set) => Look::InIps(set.clone(), rules().collect()),
        };
        Some(GuardGroup {
            source: source.clone(),
            first: rules().min()?,
            look,
        })
    }

    /// The first rule that the group can find.
    #[inline]
    pub(super) fn first(&self) -> u16 {
        self.first
    }

    /// Marks the rules with a guard that holds.
    #[inline]
    pub(super) fn mark_matches(&self, context: &EvalContext<'_>, marks: &mut Marks<'_>) {
        match (&self.source, &self.look) {
            // The value is nearly always a path.
            (ValueSource::Field(field), Look::Heads(heads)) => {
                if let Some(text) = context.text(*field) {
                    heads.mark_matches(&text, marks);
                }
            }
            _ => self.mark_scalar(context.facts(), marks),
        }
    }

    #[inline(never)]
    fn mark_scalar(&self, facts: &dyn FieldFacts, marks: &mut Marks<'_>) {
        let field = self.source.field();
        match &self.look {
            Look::Ints(spans) => {
                if let Some(value) = facts.int(field) {
                    spans.mark_matches(value, marks);
                }
            }
            Look::Ips(v4, v6) => match facts.ip(field).map(|ip| ip.to_canonical()) {
                Some(IpAddr::V4(ip)) => v4.mark_matches(ip.to_bits(), marks),
                Some(IpAddr::V6(ip)) => v6.mark_matches(ip.to_bits(), marks),
                None => {}
            },
            Look::InInts(set, rules) => {
                if facts.int(field).is_some_and(|value| set.contains(value)) {
                    marks.add(rules);
                }
            }
            Look::InIps(set, rules) => {
                if facts.ip(field).is_some_and(|ip| set.contains(ip)) {
                    marks.add(rules);
                }
            }
            look => self.each(facts, |text| look.mark_text(text, marks)),
        }
    }

    /// Calls `visit` with each string of the group's value source.
    fn each(&self, facts: &dyn FieldFacts, mut visit: impl FnMut(&[u8])) {
        match &self.source {
            ValueSource::Field(field) => {
                if let Some(text) = facts.bytes(*field) {
                    visit(&text);
                }
            }
            ValueSource::Element { field, name, index } => {
                if let Some(text) = facts.element(*field, name.as_deref(), *index) {
                    visit(&text);
                }
            }
            ValueSource::Each { field, name } => facts.each(*field, name.as_deref(), &mut |text| {
                visit(text);
                ControlFlow::Continue(())
            }),
        }
    }
}

// === impl Look ===

impl Look {
    fn mark_text(&self, text: &[u8], marks: &mut Marks<'_>) {
        match self {
            Look::Heads(heads) => heads.mark_matches(text, marks),
            Look::Parts(parts) => parts.mark_matches(text, marks),
            Look::InStrings(set, rules) if set.contains(text) => marks.add(rules),
            _ => {}
        }
    }
}

fn ints((hint, rule): &(&PrefilterCondition, u16)) -> Option<(i64, i64, u16)> {
    match hint {
        PrefilterCondition::Ints(low, high) => Some((*low, *high, *rule)),
        _ => None,
    }
}

fn v4((hint, rule): &(&PrefilterCondition, u16)) -> Option<(u32, u32, u16)> {
    match hint {
        PrefilterCondition::Ips(IpAddr::V4(low), IpAddr::V4(high)) => {
            Some((low.to_bits(), high.to_bits(), *rule))
        }
        _ => None,
    }
}

fn v6((hint, rule): &(&PrefilterCondition, u16)) -> Option<(u128, u128, u16)> {
    match hint {
        PrefilterCondition::Ips(IpAddr::V6(low), IpAddr::V6(high)) => {
            Some((low.to_bits(), high.to_bits(), *rule))
        }
        _ => None,
    }
}
