//! Finds the rules that can affect a request without evaluating each of them.
//!
//! Most rules have a guard: one condition (a path, a header's value, a network) that must hold
//! before the rule can matter. Guards on one value form a group, which finds all guards that hold
//! at once. A rule that a group finds is only a candidate: its expressions decide, as they do
//! without an index. Rules without a guard are always candidates.

mod choose;
mod cost;
mod group;
pub(super) mod needs;
mod ranges;
mod string_hashes;
mod substrings;

#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use smallvec::SmallVec;

use self::choose::GuardSite;
use self::group::GuardGroup;
use crate::decision::RuleIndex;
use crate::expr::{EvalContext, FieldId, Prefilter, PrefilterCondition};

/// An index over rules.
#[derive(Default)]
pub(super) struct PrefilterIndex {
    /// The rules that are always candidates, one bit each.
    always: Box<[u64]>,
    /// The groups, ordered by the first rule that each can find.
    groups: Box<[GuardGroup]>,
}

/// The threshold above which a group pays off.
#[derive(Clone, Copy)]
pub(super) struct IndexCost<'a> {
    /// The least number of rules in a group with a value that costs nothing to read.
    pub least: usize,
    /// Fields that the first test of some rule reads for every request.
    pub read_anyway: &'a HashSet<FieldId>,
}

/// Rules, by their indexes.
type Rules = Box<[u16]>;

/// One bit per rule.
struct Marks<'m>(&'m mut [u64]);

/// Storage for marks. A thousand rules need no heap allocation.
type Words = SmallVec<[u64; 16]>;

// === impl PrefilterIndex ===

impl PrefilterIndex {
    /// Builds an index of rules with these prefilters, in rule order.
    pub(super) fn new(needs: &[Prefilter], worth: IndexCost<'_>) -> PrefilterIndex {
        let mut always = vec![0; needs.len().div_ceil(64)];
        let mut sites: HashMap<GuardSite<'_>, Vec<(&PrefilterCondition, u16)>> = HashMap::new();
        for (rule, guard) in (0..=u16::MAX).zip(choose::guards(needs, worth)) {
            let Some(guard) = guard else {
                set(&mut always, rule);
                continue;
            };
            for atom in guard {
                let site = sites.entry(GuardSite::of(atom)).or_default();
                site.push((&atom.hint, rule));
            }
        }
        let mut groups = Vec::with_capacity(sites.len());
        for (site, hints) in sites {
            match GuardGroup::new(site.source, &hints) {
                Some(group) => groups.push(group),
                None => hints.iter().for_each(|(_, rule)| set(&mut always, *rule)),
            }
        }
        groups.sort_by_key(GuardGroup::first);
        PrefilterIndex {
            always: always.into(),
            groups: groups.into(),
        }
    }

    /// Whether every rule is always a candidate, or never.
    pub(super) fn is_idle(&self) -> bool {
        self.groups.is_empty()
    }

    /// Calls `visit` with the rules that may affect a request, in rule order, until it breaks.
    ///
    /// A group is searched only after the rules before its first one have been evaluated, so a
    /// value that is costly to read is not read if evaluation ends earlier.
    #[inline(always)]
    pub(super) fn for_each_match(
        &self,
        context: &EvalContext<'_>,
        mut visit: impl FnMut(RuleIndex) -> ControlFlow<()>,
    ) {
        let (mut few, mut many);
        let mut marks = Marks(match *self.always {
            [word] => {
                few = [word];
                &mut few
            }
            _ => {
                many = Words::from_slice(&self.always);
                &mut many
            }
        });
        let mut groups = &*self.groups;
        let mut gate = first(groups);
        for word in 0..marks.0.len() {
            let mut bits = marks.word(word);
            loop {
                // If no mark is left, this is the first rule of the next word.
                let rule = word * 64 + bits.trailing_zeros() as usize;
                if gate <= rule {
                    // A group marks no rule before its first, so no rule that has been evaluated.
                    marks.set_word(word, bits);
                    groups = mark_next_group(groups, context, &mut marks);
                    gate = first(groups);
                    bits = marks.word(word);
                } else if bits == 0 {
                    break;
                } else {
                    bits &= bits - 1;
                    if visit(RuleIndex(rule as u16)).is_break() {
                        return;
                    }
                }
            }
        }
    }
}

/// Searches the next group and returns the groups after it.
#[inline(never)]
fn mark_next_group<'g>(
    groups: &'g [GuardGroup],
    context: &EvalContext<'_>,
    marks: &mut Marks<'_>,
) -> &'g [GuardGroup] {
    let Some((group, rest)) = groups.split_first() else {
        return groups;
    };
    group.mark_matches(context, marks);
    rest
}

/// The first rule that `groups` can find.
#[inline]
fn first(groups: &[GuardGroup]) -> usize {
    groups
        .first()
        .map_or(usize::MAX, |group| group.first().into())
}

// === impl Marks ===

impl Marks<'_> {
    #[inline]
    fn word(&self, at: usize) -> u64 {
        self.0.get(at).copied().unwrap_or_default()
    }

    #[inline]
    fn set_word(&mut self, at: usize, bits: u64) {
        if let Some(word) = self.0.get_mut(at) {
            *word = bits;
        }
    }

    fn add(&mut self, rules: &[u16]) {
        rules.iter().for_each(|rule| set(self.0, *rule));
    }
}

fn set(bits: &mut [u64], rule: u16) {
    if let Some(word) = bits.get_mut(usize::from(rule / 64)) {
        *word |= 1 << (rule % 64);
    }
}
