//! Strings that a value may contain: one pass over the value finds them all.

use std::collections::BTreeMap;

use aho_corasick::{AhoCorasick, MatchKind};
use smallvec::SmallVec;

use super::{Marks, Rules};
use crate::expr::PrefilterCondition;

/// Strings, compared without ASCII case.
pub(super) struct SubstringSet {
    finder: AhoCorasick,
    /// The rules of each string, by the string's number.
    rules: Box<[Rules]>,
}

// === impl SubstringSet ===

impl SubstringSet {
    /// `None` if there are more strings than one search can take.
    pub(super) fn new(hints: &[(&PrefilterCondition, u16)]) -> Option<SubstringSet> {
        let mut texts: BTreeMap<&[u8], Vec<u16>> = BTreeMap::new();
        for (hint, rule) in hints {
            if let PrefilterCondition::Contains(text) = hint {
                texts.entry(text).or_default().push(*rule);
            }
        }
        let mut builder = AhoCorasick::builder();
        builder
            .ascii_case_insensitive(true)
            .match_kind(MatchKind::Standard);
        Some(SubstringSet {
            finder: builder.build(texts.keys()).ok()?,
            rules: texts.into_values().map(Vec::into_boxed_slice).collect(),
        })
    }

    pub(super) fn mark_matches(&self, value: &[u8], marks: &mut Marks<'_>) {
        let Ok(found) = self.finder.try_find_overlapping_iter(value) else {
            return self.rules.iter().for_each(|rules| marks.add(rules));
        };
        // A client may repeat one string a thousand times.
        let mut seen: SmallVec<[u64; 16]> = SmallVec::new();
        for text in found {
            let text = text.pattern().as_usize();
            if seen.is_empty() {
                seen.resize(self.rules.len().div_ceil(64), 0);
            }
            let Some(word) = seen.get_mut(text / 64) else {
                continue;
            };
            if *word >> (text % 64) & 1 == 0 {
                *word |= 1 << (text % 64);
                marks.add(self.rules.get(text).map_or(&[], |rules| rules));
            }
        }
    }
}
