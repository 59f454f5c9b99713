//! Sets of strings: a scan of few, a hash of many.

use std::collections::HashSet;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;

use super::SCAN;

/// A set of strings.
#[derive(Clone, Debug)]
pub struct StringSet(Strings);

#[derive(Clone, Debug)]
enum Strings {
    Few(Arc<[Box<[u8]>]>),
    Many(Arc<Many>),
}

#[derive(Debug)]
struct Many {
    values: HashSet<Box<[u8]>, Key>,
    /// What is longer need not be hashed, however long a client makes it.
    longest: usize,
}

/// Makes hashes that are cheap rather than strong. Who sends a request chooses only what is looked
/// for; how many values share a place was settled by the list. The key is random all the same,
/// so that who feeds a list cannot make its values crowd.
#[derive(Clone, Debug)]
struct Key(u64);

struct Fold(u64);

// === impl StringSet ===

impl StringSet {
    /// The set of `values`.
    pub fn new(values: impl IntoIterator<Item = Box<[u8]>>) -> StringSet {
        let mut set = HashSet::with_hasher(Key(RandomState::new().hash_one(0)));
        set.extend(values);
        match set.len() <= SCAN {
            true => StringSet(Strings::Few(set.into_iter().collect())),
            false => StringSet(Strings::Many(Arc::new(Many {
                longest: set.iter().map(|value| value.len()).max().unwrap_or(0),
                values: set,
            }))),
        }
    }

    /// Whether `value` is in the set.
    #[inline]
    pub fn contains(&self, value: &[u8]) -> bool {
        match &self.0 {
            Strings::Few(values) => values.iter().any(|one| **one == *value),
            Strings::Many(many) => value.len() <= many.longest && many.values.contains(value),
        }
    }

    /// Its values, if they are at most `most`.
    pub(in super::super) fn values(&self, most: usize) -> Option<Vec<&[u8]>> {
        let values: Vec<&[u8]> = match &self.0 {
            Strings::Few(values) => values.iter().map(|value| &**value).collect(),
            Strings::Many(many) if many.values.len() > most => return None,
            Strings::Many(many) => many.values.iter().map(|value| &**value).collect(),
        };
        Some(values)
    }

    /// A number that two big sets share only if one is a copy of the other.
    pub fn id(&self) -> usize {
        match &self.0 {
            Strings::Few(values) => Arc::as_ptr(values).cast::<()>().addr(),
            Strings::Many(many) => Arc::as_ptr(many).addr(),
        }
    }

    /// The length of every value, when they are few and of one length; else 0.
    pub(in super::super) fn one_length(&self) -> usize {
        let mut lengths = self
            .few()
            .unwrap_or_default()
            .iter()
            .map(|value| value.len());
        match lengths.next() {
            Some(first) if lengths.all(|length| length == first) => first,
            _ => 0,
        }
    }

    /// The values, when they are few.
    pub(in super::super) fn few(&self) -> Option<&[Box<[u8]>]> {
        match &self.0 {
            Strings::Few(values) => Some(values),
            Strings::Many(_) => None,
        }
    }
}

// === impl Key ===

impl BuildHasher for Key {
    type Hasher = Fold;

    #[inline]
    fn build_hasher(&self) -> Fold {
        Fold(self.0)
    }
}

// === impl Fold ===

impl Fold {
    /// Multiplies and folds the two halves onto each other, so that every bit reaches every other.
    #[inline]
    fn mix(&mut self, word: u64) {
        const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
        let wide = u128::from(self.0 ^ word).wrapping_mul(u128::from(ODD));
        self.0 = (wide as u64) ^ ((wide >> 64) as u64);
    }
}

impl Hasher for Fold {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.mix(u64::from_le_bytes(*word));
        }
        let rest = rest.iter().rev();
        self.mix(rest.fold(0, |word, byte| word << 8 | u64::from(*byte)));
    }

    #[inline]
    fn write_usize(&mut self, length: usize) {
        self.mix(length as u64);
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}
