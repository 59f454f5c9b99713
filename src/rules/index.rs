//! Which rules can have anything to do with a request, found without asking each of them.
//!
//! For most rules one condition is known that must hold before the rule can matter (its guard: a
//! path, a header's value, a network). Guards on the same value stand together in a group that
//! finds all that hold at once. What is found is a candidate, no more: its expressions decide, as
//! they do without an index. Rules without a guard are always candidates.

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
    /// The rules that are always candidates, a bit each.
    always: Box<[u64]>,
    /// By the first rule that each can find.
    groups: Box<[GuardGroup]>,
}

/// What makes a group worth its cost.
#[derive(Clone, Copy)]
pub(super) struct IndexCost<'a> {
    /// How many rules a group must have, where its value costs nothing to read.
    pub least: usize,
    /// Fields that the first test of some rule reads for every request.
    pub read_anyway: &'a HashSet<FieldId>,
}

/// Rules, by their places.
type Rules = Box<[u16]>;

/// A bit a rule.
struct Marks<'m>(&'m mut [u64]);

/// Room for marks. A thousand rules need no memory from the heap.
type Words = SmallVec<[u64; 16]>;

// === impl PrefilterIndex ===

impl PrefilterIndex {
    /// An index of rules with these needs, in rule order.
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
            match GuardGroup::new(site.place, &hints) {
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

    /// Visits the rules that may have something to do with a request, in rule order, until `visit`
    /// breaks.
    ///
    /// A group is asked only when the rules before its first one are through: a value that is
    /// costly to read is not read if the pass ends before.
    #[inline(always)]
    pub(super) fn candidates(
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
                // Without a mark, the first rule of the next word.
                let rule = word * 64 + bits.trailing_zeros() as usize;
                if gate <= rule {
                    // It marks no rule before its first, so none that is through.
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

/// Asks the next group; gives those that follow.
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
