//! The key parts that most bans of a rule share: a hint at what the banned clients have in common.

use std::collections::HashMap;

use super::KnownBan;
use crate::admin::objects::{CommonPartObject, rounded};
use crate::rules::{Key, RuleId};
use crate::snapshot::Snapshot;

/// The share of the bans that must have the part.
const LEAST_SHARE: f64 = 0.8;
/// The number of bans from which a rule has common parts.
const FEWEST_BANS: usize = 2;

/// The value that may be the most frequent one: it is, if any value has more than half of the bans (Boyer and Moore).
#[derive(Debug, Default)]
struct MajorityVote {
    value: Option<String>,
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
        let shared = shared_parts(&rule.key, bans).into_iter();
        common.extend(shared.map(|(field, value, share)| CommonPartObject {
            rule: rule.name.to_string(),
            field,
            value,
            share_ratio: rounded(share),
        }));
    }
    common
}

/// Returns the field, the value and the share of each common part.
fn shared_parts(key: &Key, bans: &[&KnownBan]) -> Vec<(String, String, f64)> {
    let mut votes: Vec<MajorityVote> = key.parts.iter().map(|_| MajorityVote::default()).collect();
    for known in bans {
        let parts = key.shown_parts(&known.key);
        for (vote, part) in votes.iter_mut().zip(parts) {
            vote.cast(part.value);
        }
    }
    let mut counts = vec![0_usize; votes.len()];
    for known in bans {
        let parts = key.shown_parts(&known.key);
        for ((vote, part), count) in votes.iter().zip(parts).zip(&mut counts) {
            *count += usize::from(part.value.is_some() && part.value == vote.value);
        }
    }
    let all = key.parts.iter().zip(votes).zip(counts);
    let shared = all.filter_map(|((part, vote), count)| {
        let share = count as f64 / bans.len() as f64;
        let value = vote.value.filter(|_| share >= LEAST_SHARE)?;
        Some((part.scalar.source().to_owned(), value, share))
    });
    shared.collect()
}

// === impl MajorityVote ===

impl MajorityVote {
    fn cast(&mut self, value: Option<String>) {
        if self.lead == 0 {
            self.value = value;
            self.lead = 1;
        } else if self.value == value {
            self.lead += 1;
        } else {
            self.lead -= 1;
        }
    }
}
