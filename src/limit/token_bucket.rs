//! `token_bucket`: a bucket of `burst` tokens that refills evenly, `limit` per `period`.
//!
//! The state is the [`BucketLevel`] of missing tokens, so a full bucket needs no state.

use super::level::BucketLevel;
use super::math::CounterMath;
use super::reading::until;
use super::{CounterReading, Limiter, ShareCounts, State};
use crate::clock::Timestamp;

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

/// The bucket at one point in time.
#[derive(Clone, Copy)]
pub(crate) struct TokenBucketMath {
    /// The tokens that are missing.
    missing: BucketLevel,
    size: u64,
}

// === impl TokenBucketMath ===

impl CounterMath for TokenBucketMath {
    #[inline(always)]
    fn at(limiter: &Limiter, state: &State, now: Timestamp) -> Self {
        TokenBucketMath {
            missing: BucketLevel::at(limiter, state, now),
            size: limiter.burst_capped(),
        }
    }

    #[inline]
    fn fits(&self, _: &Limiter, cost: u64) -> bool {
        self.missing.used().saturating_add(cost) <= self.size
    }

    #[inline]
    fn add(&mut self, cost: u64) {
        self.missing.add(cost);
    }

    #[inline]
    fn state(&self) -> State {
        self.missing.state()
    }

    fn rebased(&self) -> bool {
        self.missing.rebased()
    }

    #[inline]
    fn reading(&self, _: &Limiter, fits: bool, cost: u64) -> CounterReading {
        let reset = self.missing.falls_to(0).unwrap_or(u64::MAX);
        CounterReading {
            fits,
            remaining: self.size.saturating_sub(self.missing.used()),
            reset,
            delay: if fits {
                0
            } else {
                until(self.retry_after(cost))
            },
            share: ShareCounts::default(),
        }
    }
}

impl TokenBucketMath {
    /// The least wait after which there are `cost` tokens, if no others are taken.
    #[inline]
    fn retry_after(&self, cost: u64) -> Option<u64> {
        let room = self.size.checked_sub(cost)?;
        self.missing.falls_to(room)
    }
}
