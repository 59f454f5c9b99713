//! Maps a key to its slots in the table, with a keyed hash that a client cannot predict.
//!
//! A counter's slots depend only on its tag, so that a counter can be moved to another table without its key.

use sha2::{Digest as _, Sha256};

use self::sip::SipState;

mod sip;

/// Hashes keys under a secret.
pub(super) struct KeyHasher {
    /// The initial state, which includes the secret.
    start: SipState,
}

/// The 128-bit hash of a key.
#[derive(Clone, Copy)]
pub(super) struct KeyHash {
    /// The half that identifies a counter.
    pub(super) tag: KeyTag,
    /// The other half, for bans, where a collision is worse.
    rest: HashRest,
}

/// Identifies a counter and selects its buckets. It is the only part of the key that a counter stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KeyTag(u64);

/// The second half of a hash, which few lookups need.
#[derive(Clone, Copy)]
enum HashRest {
    Known(u64),
    /// Not computed yet.
    Later(SipState),
}

// === impl KeyHasher ===

impl KeyHasher {
    /// Creates a hasher with a new random secret.
    pub(super) fn random() -> Self {
        let mut secret = [0; 16];
        getrandom::fill(&mut secret).expect("the operating system gives random bytes");
        Self::keyed(secret)
    }

    /// Creates a hasher with this secret.
    pub(super) fn keyed(secret: [u8; 16]) -> Self {
        let whole = u128::from_le_bytes(secret);
        let start = SipState::keyed([whole as u64, (whole >> 64) as u64]);
        Self { start }
    }

    /// Creates a hasher with a key derived from `secret`. The key does not reveal `secret`.
    pub(super) fn derived(secret: &[u8]) -> Self {
        let digest = Sha256::new()
            .chain_update(b"lockgate store\0")
            .chain_update(secret)
            .finalize();
        let mut key = [0; 16];
        key.iter_mut().zip(digest).for_each(|(k, d)| *k = d);
        Self::keyed(key)
    }

    /// Returns the secret.
    pub(super) fn secret(&self) -> [u8; 16] {
        let [low, high] = self.start.key().map(u128::from);
        (high << 64 | low).to_le_bytes()
    }

    /// Hashes `key` for the rule `identity`.
    #[inline]
    pub(super) fn hash(&self, identity: u64, key: &[u8]) -> KeyHash {
        let (first, later) = self.start.hash(identity, key);
        KeyHash {
            tag: KeyTag::of(first),
            rest: HashRest::Later(later),
        }
    }
}

impl std::fmt::Debug for KeyHasher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KeyHasher")
    }
}

// === impl KeyHash ===

impl KeyHash {
    /// Returns the complete hash, for a map.
    pub(super) fn whole(self) -> u128 {
        let rest = match self.rest {
            HashRest::Known(rest) => rest,
            HashRest::Later(later) => later.second(),
        };
        u128::from(rest) << 64 | u128::from(self.tag.get())
    }

    /// Splits a complete hash, the inverse of [`KeyHash::whole`].
    pub(super) fn from_whole(whole: u128) -> Self {
        Self {
            tag: KeyTag::of(whole as u64),
            rest: HashRest::Known((whole >> 64) as u64),
        }
    }
}

// === impl KeyTag ===

impl KeyTag {
    /// Creates a tag from half of a hash. Zero becomes one.
    pub(super) fn of(half: u64) -> Self {
        Self(half.max(1))
    }

    /// Returns the tag as a number, never zero.
    pub(super) fn get(self) -> u64 {
        self.0
    }

    /// Returns the index of the shard; `mask` is one less than a power of two up to 256.
    pub(super) fn shard(self, mask: usize) -> usize {
        (self.mixed_bits() >> 56) as usize & mask
    }

    /// Returns the indexes of the tag's two buckets of `count`. They differ if `count` is above one.
    pub(super) fn buckets(self, count: usize) -> [usize; 2] {
        [self.bucket(count), self.other_bucket(count)]
    }

    /// Returns the first bucket's index.
    #[inline]
    pub(super) fn bucket(self, count: usize) -> usize {
        scale(self.mixed_bits() as u32, count)
    }

    /// Returns the second bucket's index.
    #[inline]
    pub(super) fn other_bucket(self, count: usize) -> usize {
        let first = self.bucket(count);
        match scale((self.mixed_bits() >> 24) as u32, count) {
            second if second != first => second,
            _ if first + 1 < count => first + 1,
            _ => 0,
        }
    }

    /// Returns the bits that select shard and buckets. They are mixed, because the maps within a shard use the
    /// tag's own bits, which must not all be equal there.
    fn mixed_bits(self) -> u64 {
        self.0.wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }
}

/// Scales `bits`, read as a fraction of 2³², to `count`: the high bits decide.
fn scale(bits: u32, count: usize) -> usize {
    ((u64::from(bits) * count as u64) >> 32) as usize
}

#[cfg(test)]
mod tests {
    use siphasher::sip128::SipHasher13;

    use super::*;

    #[test]
    fn a_place_follows_from_what_is_stored() {
        let hasher = KeyHasher::keyed([3; 16]);
        let again = KeyHasher::keyed(hasher.secret());
        for n in 0..1_000u32 {
            let hash = hasher.hash(u64::from(n % 7), &n.to_le_bytes());
            let same = again.hash(u64::from(n % 7), &n.to_le_bytes());
            assert_eq!(hash.whole(), same.whole());
            let same = KeyHash::from_whole(hash.whole());
            assert_eq!((hash.tag, hash.whole()), (same.tag, same.whole()));
            assert_eq!(KeyTag::of(hash.tag.get()), hash.tag);
        }
    }

    #[test]
    fn a_key_is_hashed_behind_its_rule() {
        let secret = *b"sixteen bytes 16";
        let hasher = KeyHasher::keyed(secret);
        assert_eq!(hasher.secret(), secret);
        let mut bytes = 77u64.to_le_bytes().to_vec();
        for n in 0..40 {
            let whole = SipHasher13::new_with_key(&secret).hash(&bytes);
            let hash = hasher.hash(77, &bytes[8..]);
            assert_eq!(hash.tag.get(), whole.h1, "{n} bytes");
            assert_eq!(hash.whole() >> 64, u128::from(whole.h2), "{n} bytes");
            bytes.push(n);
        }
    }

    #[test]
    fn keys_spread_over_shards_and_buckets() {
        let hasher = KeyHasher::keyed([7; 16]);
        let (mut shards, mut buckets) = ([0; 256], [0; 100]);
        for n in 0..100_000u32 {
            let tag = hasher.hash(1, &n.to_le_bytes()).tag;
            shards[tag.shard(255)] += 1;
            let [first, second] = tag.buckets(100);
            assert_ne!(first, second);
            buckets[first] += 1;
            buckets[second] += 1;
        }
        assert!(shards.iter().all(|count| (280..510).contains(count)));
        assert!(buckets.iter().all(|count| (1_700..2_300).contains(count)));
    }
}
