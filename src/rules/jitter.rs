//! Each key's own limit: drawn from the rule, the key and the hour, so that every gateway draws an
//! equal limit and no state is kept.

use std::hash::Hasher;

use siphasher::sip::SipHasher13;

use super::LimitJitter;
use crate::expr::FieldFacts;
use crate::facts::fields;
use crate::limit::Limiter;

/// The time after which a key's limit is drawn again, in seconds.
const HOUR: i64 = 3_600;
/// The unit of [`LimitJitter`]: millionths.
const WHOLE: u64 = 1_000_000;

// === impl LimitJitter ===

impl LimitJitter {
    /// Draws the limit of `key` for the rule `identity` in the hour of `facts`. The burst uses the
    /// limit's random number, so a burst that equals the limit stays equal.
    #[cold]
    #[inline(never)]
    pub(super) fn draw(
        self,
        limiter: Limiter,
        identity: u64,
        key: &[u8],
        facts: &dyn FieldFacts,
    ) -> Limiter {
        let timestamp = facts.int(fields::TIMESTAMP);
        let random = draw_number(
            identity,
            key,
            timestamp.unwrap_or_default().div_euclid(HOUR),
        );
        Limiter {
            limit: self.within(limiter.limit, random),
            burst: self.within(limiter.burst, random),
            ..limiter
        }
    }

    /// A uniformly distributed number near `limit`.
    fn within(self, limit: u64, random: u64) -> u64 {
        let share = WHOLE.min(self.0.into());
        let span = u128::from(limit) * u128::from(share) / u128::from(WHOLE);
        let drawn = (u128::from(random) * (2 * span + 1)) >> 64;
        let drawn = u128::from(limit) - span + drawn;
        u64::try_from(drawn).unwrap_or(u64::MAX).max(1)
    }
}

/// A pseudo-random number. The hash has no secret, because every gateway must compute an equal number.
fn draw_number(identity: u64, key: &[u8], hour: i64) -> u64 {
    let mut hasher = SipHasher13::new();
    hasher.write(&identity.to_le_bytes());
    hasher.write(&hour.to_le_bytes());
    hasher.write(key);
    hasher.finish()
}
