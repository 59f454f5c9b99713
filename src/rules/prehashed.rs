//! The hasher of maps that have hashes as keys.

use std::hash::{BuildHasherDefault, Hasher};

/// Makes a map use its keys as their own hashes. No client may be able to choose keys that collide.
pub type PrehashedKeys = BuildHasherDefault<PassThroughHasher>;

/// Returns a number unchanged, or the low half of one with 128 bits.
#[derive(Clone, Copy, Debug, Default)]
pub struct PassThroughHasher(u64);

// === impl PassThroughHasher ===

impl Hasher for PassThroughHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn write_u128(&mut self, hash: u128) {
        self.0 = hash as u64;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
