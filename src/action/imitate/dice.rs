//! Random numbers for made values. Keyed, so that nobody who sees some can tell the next.

use std::hash::Hasher as _;

use siphasher::sip::SipHasher13;

/// A sequence of random numbers.
#[derive(Debug)]
pub(super) struct Dice {
    key: (u64, u64),
    thrown: u64,
}

// === impl Dice ===

impl Dice {
    pub(super) fn new() -> Self {
        // Without random numbers the sequence is a known one, which is better than no answer.
        let draw = || getrandom::u64().unwrap_or_default();
        Self {
            key: (draw(), draw()),
            thrown: 0,
        }
    }

    pub(super) fn throw(&mut self) -> u64 {
        let mut hasher = SipHasher13::new_with_keys(self.key.0, self.key.1);
        hasher.write_u64(self.thrown);
        self.thrown = self.thrown.wrapping_add(1);
        hasher.finish()
    }

    /// A number below `end`; 0 where that is 0.
    pub(super) fn below(&mut self, end: usize) -> usize {
        let wide = u128::from(self.throw()) * end as u128;
        (wide >> 64) as usize
    }

    /// A number from 0 to 1, without 1.
    pub(super) fn share(&mut self) -> f64 {
        (self.throw() >> 11) as f64 / (1u64 << 53) as f64
    }
}
