//! The key parts that most bans of a rule share: a hint at what the banned clients have in common.

use std::borrow::Cow;
use std::collections::HashMap;

use super::KnownBan;
use crate::admin::mitigations::key_text;
use crate::admin::objects::{CommonPartObject, rounded};
use crate::rules::{Key, Rule, RuleId};
use crate::snapshot::Snapshot;

/// The share of the bans that must have the part.
const LEAST_SHARE: f64 = 0.8;
/// The number of bans from which a rule has common parts.
const FEWEST_BANS: usize = 2;

/// The keys of the bans of one rule. They are texts if the store has only the text of some of them.
struct RuleKeys<'a> {
    key: &'a Key,
    keys: Vec<Cow<'a, [u8]>>,
    are_texts: bool,
}

/// The value that may be the most frequent one: it is, if any value has more than half of the bans (Boyer and Moore).
#[derive(Clone, Copy, Debug, Default)]
struct MajorityVote<'a> {
    /// The value, and the index of a key that has it.
    value: Option<(&'a [u8], usize)>,
    lead: usize,
}

/// Returns the parts that at least 80 % of the bans of a rule share.
pub(super) fn common_parts(snapshot: &Snapshot, bans: &[KnownBan]) -> Vec<CommonPartObject> {
    let mut by_rule: HashMap<RuleId, Vec<&KnownBan>> = HashMap::new();
    for known in bans {
        by_rule.entry(known.ban.rule).or_default().push(known);
    }
    let mut common = Vec::new();
    for (_, rule) in snapshot.rules.iter() {
        let bans = by_rule.get(&rule.id).map_or(&[][..], Vec::as_slice);
        if bans.len() < FEWEST_BANS {
            continue;
        }
        let keys = RuleKeys::new(snapshot, rule, bans);
        for (field, index, share) in keys.shared_parts() {
            let Some(value) = bans.get(index).and_then(|known| {
                let text = key_text(snapshot, rule, &known.ban.key);
                let mut parts = rule.key.shown_parts(&text).into_iter();
                parts.find(|part| part.field == field)?.value
            }) else {
                continue;
            };
            common.push(CommonPartObject {
                rule: rule.name.to_string(),
                field: field.to_owned(),
                value,
                share_ratio: rounded(share),
            });
        }
    }
    common
}

// === impl RuleKeys ===

impl<'a> RuleKeys<'a> {
    fn new(snapshot: &Snapshot, rule: &'a Rule, bans: &[&'a KnownBan]) -> Self {
        let are_texts = bans.iter().any(|known| known.key_bytes().1);
        let keys = bans.iter().map(|known| match known.key_bytes() {
            (bytes, is_text) if is_text == are_texts => Cow::Borrowed(bytes),
            _ => Cow::Owned(key_text(snapshot, rule, &known.ban.key).into_bytes()),
        });
        Self {
            key: &rule.key,
            keys: keys.collect(),
            are_texts,
        }
    }

    /// Returns the field, the index of a key that has the value, and the share of each common part.
    fn shared_parts(&self) -> Vec<(&'a str, usize, f64)> {
        let mut votes = vec![MajorityVote::default(); self.key.parts.len()];
        for (index, key) in self.keys.iter().enumerate() {
            for (vote, part) in votes.iter_mut().zip(self.parts(key)) {
                vote.cast(part, index);
            }
        }
        let mut counts = vec![0_usize; votes.len()];
        for key in &self.keys {
            for ((vote, part), count) in votes.iter().zip(self.parts(key)).zip(&mut counts) {
                *count += usize::from(vote.value.is_some_and(|(value, _)| value == part));
            }
        }
        let all = self.key.parts.iter().zip(votes).zip(counts);
        let shared = all.filter_map(|((part, vote), count)| {
            let share = count as f64 / self.keys.len() as f64;
            let (_, index) = vote.value.filter(|_| share >= LEAST_SHARE)?;
            Some((part.scalar.source(), index, share))
        });
        shared.collect()
    }

    /// Splits a key into its parts.
    fn parts<'k>(&self, key: &'k [u8]) -> impl Iterator<Item = &'k [u8]> {
        let (mut rest, are_texts) = (key, self.are_texts);
        std::iter::from_fn(move || {
            let (part, after) = if are_texts {
                Key::split_text_part(rest)?
            } else {
                Key::split_part(rest)?
            };
            rest = after;
            Some(part)
        })
    }
}

// === impl MajorityVote ===

impl<'a> MajorityVote<'a> {
    fn cast(&mut self, part: &'a [u8], index: usize) {
        if self.lead == 0 {
            self.value = Some((part, index));
            self.lead = 1;
        } else if self.value.is_some_and(|(value, _)| value == part) {
            self.lead += 1;
        } else {
            self.lead -= 1;
        }
    }
}
