//! Strings that a value may equal or start with: one hash per length, however many strings there are.

use std::collections::{BTreeSet, HashMap};

use super::{Marks, Rules};
use crate::expr::PrefilterCondition;
use crate::rules::PrehashedKeys;

/// The number of bytes of a value that are hashed. A longer string is found by its prefix.
const LONGEST: usize = 64;

/// Strings by the hash of their lower case. A hash collision only costs the evaluation of a rule
/// that does not match.
pub(super) struct StringHashes {
    /// The lengths of prefixes, ascending.
    lengths: Box<[usize]>,
    /// The lengths of whole strings, one bit per length.
    wholes: u128,
    rules: HashMap<u64, Rules, PrehashedKeys>,
    /// A bit for the last six bits of each hash: rules most strings out without a search.
    hashes: u64,
}

/// A hash that is extended byte by byte.
#[derive(Clone, Copy)]
struct Growing(u64);

// === impl StringHashes ===

impl StringHashes {
    pub(super) fn new(hints: &[(&PrefilterCondition, u16)]) -> StringHashes {
        let mut lengths = BTreeSet::new();
        let mut wholes = 0;
        let mut rules: HashMap<u64, Vec<u16>> = HashMap::new();
        for (hint, rule) in hints {
            let hash = match hint {
                PrefilterCondition::Exact(text) if text.len() <= LONGEST => {
                    wholes |= 1 << text.len();
                    Growing::new().with(text).whole()
                }
                PrefilterCondition::Exact(text) | PrefilterCondition::Prefix(text) => {
                    let start = text.get(..LONGEST).unwrap_or(text);
                    lengths.insert(start.len());
                    Growing::new().with(start).start()
                }
                _ => continue,
            };
            rules.entry(hash).or_default().push(*rule);
        }
        let hashes = rules.keys().fold(0, |bits, hash| bits | bit(*hash));
        let rules = rules.into_iter().map(|(hash, rules)| (hash, rules.into()));
        StringHashes {
            hashes,
            lengths: lengths.into_iter().collect(),
            wholes,
            rules: rules.collect(),
        }
    }

    pub(super) fn mark_matches(&self, value: &[u8], marks: &mut Marks<'_>) {
        let (mut hash, mut at) = (Growing::new(), 0);
        for &length in &self.lengths {
            let Some(more) = value.get(at..length) else {
                break;
            };
            (hash, at) = (hash.with(more), length);
            self.mark(hash.start(), marks);
        }
        if value.len() <= LONGEST && self.wholes >> value.len() & 1 == 1 {
            let rest = value.get(at..).unwrap_or_default();
            self.mark(hash.with(rest).whole(), marks);
        }
    }

    fn mark(&self, hash: u64, marks: &mut Marks<'_>) {
        if self.hashes & bit(hash) != 0
            && let Some(rules) = self.rules.get(&hash)
        {
            marks.add(rules);
        }
    }
}

fn bit(hash: u64) -> u64 {
    1 << (hash % 64)
}

// === impl Growing ===

impl Growing {
    fn new() -> Growing {
        Growing(0x9e37_79b9_7f4a_7c15)
    }

    /// FNV-1a over the lower case: fast for short strings, and every prefix has a hash on the fly.
    fn with(self, text: &[u8]) -> Growing {
        Growing(text.iter().fold(self.0, |hash, byte| {
            let byte = u64::from(byte.to_ascii_lowercase());
            (hash ^ byte).wrapping_mul(0x0000_0100_0000_01b3)
        }))
    }

    fn start(self) -> u64 {
        (self.0 ^ self.0 >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    fn whole(self) -> u64 {
        !self.start()
    }
}
