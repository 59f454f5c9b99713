//! The proof of work: eight small puzzles of PBKDF2, which browsers compute natively.
//!
//! A solution of part `j` is an integer `i` such that PBKDF2-HMAC-SHA-256 of the password `SALT.j.i` starts with
//! enough zero bits. SALT is the nonce in base64url, and its text is also the salt of PBKDF2.

use std::num::NonZeroU32;
use std::ops::RangeInclusive;

use aws_lc_rs::pbkdf2;

use super::{Nonce, text};

const ITERATIONS: NonZeroU32 = NonZeroU32::new(250).expect("not zero");
const DIFFICULTIES: RangeInclusive<u8> = 1..=6;
/// The zero bits of a part, without the difficulty.
const BASE_BITS: u32 = 7;

/// What a client must solve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkProof {
    salt: String,
    bits: u32,
}

// === impl WorkProof ===

impl WorkProof {
    /// The number of parts.
    pub const PARTS: usize = 8;

    /// Creates the problem of a token. `difficulty` is 1 to 6; each step doubles the work.
    pub(super) fn new(nonce: &Nonce, difficulty: u8) -> Self {
        Self {
            salt: text::encode(nonce),
            bits: BASE_BITS + u32::from(difficulty),
        }
    }

    /// Returns whether `difficulty` is in range.
    pub fn is_difficulty(difficulty: u8) -> bool {
        DIFFICULTIES.contains(&difficulty)
    }

    /// Returns the salt, and the first part of each password.
    pub fn salt(&self) -> &str {
        &self.salt
    }

    /// Returns the number of zero bits with which the hash of each part starts.
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// Returns the iterations of PBKDF2.
    pub fn iterations(&self) -> u32 {
        ITERATIONS.get()
    }

    /// Verifies the parts in order, and stops at the first wrong one. Each part takes about 60 µs.
    pub fn is_solved_by(&self, solution: &[u32; Self::PARTS]) -> bool {
        let mut parts = solution.iter().enumerate();
        parts.all(|(part, number)| self.is_part_solved(part, *number))
    }

    /// Verifies one part.
    pub fn is_part_solved(&self, part: usize, number: u32) -> bool {
        let password = format!("{}.{part}.{number}", self.salt);
        // The bits are within the first of the blocks that PBKDF2 computes independently, and within its first bytes.
        let mut hash = [0; 4];
        pbkdf2::derive(
            pbkdf2::PBKDF2_HMAC_SHA256,
            ITERATIONS,
            self.salt.as_bytes(),
            password.as_bytes(),
            &mut hash,
        );
        u32::from_be_bytes(hash).leading_zeros() >= self.bits
    }
}
