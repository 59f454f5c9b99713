//! Which place in the table belongs to a key: a keyed hash that a client cannot foresee.

use std::hash::{BuildHasherDefault, Hasher};

use siphasher::sip128::SipHasher13;

/// Hashes keys under a secret of this process.
#[derive(Debug)]
pub(super) struct KeyHasher(SipHasher13);

/// A key's hash. 64 bits say where to look, the others are what is compared there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KeyHash {
    /// Which shard, and which two of its buckets.
    pub(super) place: u64,
    /// What an entry is known by; never zero.
    pub(super) tag: u64,
}

/// For maps whose keys are hashes already.
pub(super) type Prehashed = BuildHasherDefault<LowBits>;

/// Takes the low half of a 128-bit hash as it is.
#[derive(Debug, Default)]
pub(super) struct LowBits(u64);

// === impl KeyHasher ===

impl KeyHasher {
    /// A hasher with a new random secret.
    pub(super) fn random() -> Self {
        let mut secret = [0; 16];
        getrandom::fill(&mut secret).expect("the operating system gives random bytes");
        Self(SipHasher13::new_with_key(&secret))
    }

    /// The hash of `key`, counted for the rule `identity`.
    pub(super) fn hash(&self, identity: u64, key: &[u8]) -> KeyHash {
        let mut hasher = self.0;
        hasher.write_u64(identity);
        let hash = hasher.hash(key);
        KeyHash {
            place: hash.h1,
            tag: hash.h2.max(1),
        }
    }
}

// === impl KeyHash ===

impl KeyHash {
    /// All of it, for a map.
    pub(super) fn whole(self) -> u128 {
        u128::from(self.place) << 64 | u128::from(self.tag)
    }

    /// The shard, by the highest bits of `place`; `mask` is one less than a power of two up to 256.
    pub(super) fn shard(self, mask: usize) -> usize {
        (self.place >> 56) as usize & mask
    }

    /// Its two buckets of `count`. They are different if there is more than one.
    pub(super) fn buckets(self, count: usize) -> [usize; 2] {
        let first = scale(self.place as u32, count);
        let second = scale((self.place >> 24) as u32, count);
        if second != first {
            [first, second]
        } else if first + 1 < count {
            [first, first + 1]
        } else {
            [first, 0]
        }
    }
}

/// `bits`, seen as a fraction, of `count`: the high bits decide.
fn scale(bits: u32, count: usize) -> usize {
    ((u64::from(bits) * count as u64) >> 32) as usize
}

// === impl LowBits ===

impl Hasher for LowBits {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u128(&mut self, hash: u128) {
        self.0 = hash as u64;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
