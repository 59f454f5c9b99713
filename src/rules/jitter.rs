//! Each key's own limit: drawn from the rule, the key and the hour, so that every gateway draws the
//! same and nobody has to remember it.

use std::hash::Hasher;

use siphasher::sip::SipHasher13;

use super::LimitJitter;
use crate::expr::FieldFacts;
use crate::facts::fields;
use crate::limit::Limiter;

/// How long a key keeps what was drawn for it, in seconds.
const HOUR: i64 = 3_600;
/// What [`LimitJitter`] counts in.
const WHOLE: u64 = 1_000_000;

// === impl LimitJitter ===

impl LimitJitter {
    /// The limit of `key`, for the rule `identity`, in the hour of `facts`. A burst is drawn
    /// alike, so that one that equals the limit still does.
    #[cold]
    #[inline(never)]
    pub(super) fn draw(
        self,
        limiter: Limiter,
        identity: u64,
        key: &[u8],
        facts: &dyn FieldFacts,
    ) -> Limiter {
        let moment = facts.int(fields::TIMESTAMP);
        let luck = draw_number(identity, key, moment.unwrap_or_default().div_euclid(HOUR));
        Limiter {
            limit: self.within(limiter.limit, luck),
            burst: self.within(limiter.burst, luck),
            ..limiter
        }
    }

    /// A number near `limit`, each that is not too far as likely as the others.
    fn within(self, limit: u64, luck: u64) -> u64 {
        let share = WHOLE.min(self.0.into());
        let span = u128::from(limit) * u128::from(share) / u128::from(WHOLE);
        let drawn = (u128::from(luck) * (2 * span + 1)) >> 64;
        let drawn = u128::from(limit) - span + drawn;
        u64::try_from(drawn).unwrap_or(u64::MAX).max(1)
    }
}

/// A number that looks random. The hash has no secret: every gateway must find the same.
fn draw_number(identity: u64, key: &[u8], hour: i64) -> u64 {
    let mut hasher = SipHasher13::new();
    hasher.write(&identity.to_le_bytes());
    hasher.write(&hour.to_le_bytes());
    hasher.write(key);
    hasher.finish()
}
