//! `leaky_bucket`: one request is forwarded at once, `queue` more wait, and they leave `period / limit` apart.
//!
//! The [`BucketLevel`] is the number of units that have not drained yet, including the last
//! forwarded request. A request waits until the level before it has drained. It is refused if the
//! queue is full or if it would wait longer than `max_wait`.

use super::level::BucketLevel;
use super::math::CounterMath;
use super::reading::until;
use super::{CounterReading, Limiter, ShareCounts, State, micros};
use crate::clock::Timestamp;

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

/// A `max_wait` above this many microseconds (292 years) is unlimited.
const LONGEST: u64 = u64::MAX / 2_000;

/// The queue at one point in time.
#[derive(Clone, Copy)]
pub(crate) struct LeakyBucketMath {
    level: BucketLevel,
    /// The capacity: the queue plus the request that is forwarded at once.
    size: u64,
    /// The longest allowed wait, in microseconds.
    longest: u64,
    /// The wait of a request that arrives now, in microseconds.
    wait: u64,
}

// === impl LeakyBucketMath ===

impl CounterMath for LeakyBucketMath {
    #[inline(always)]
    fn at(limiter: &Limiter, state: &State, now: Timestamp) -> Self {
        LeakyBucketMath::of(limiter, BucketLevel::at(limiter, state, now))
    }

    #[inline]
    fn fits(&self, _: &Limiter, cost: u64) -> bool {
        self.level.used().saturating_add(cost) <= self.size && self.wait <= self.longest
    }

    #[inline]
    fn add(&mut self, cost: u64) {
        self.level.add(cost);
    }

    #[inline]
    fn state(&self) -> State {
        self.level.state()
    }

    fn rebased(&self) -> bool {
        self.level.rebased()
    }

    #[inline]
    fn reading(&self, _: &Limiter, fits: bool, cost: u64) -> CounterReading {
        let reset = self.level.falls_to(0).unwrap_or(u64::MAX);
        CounterReading {
            fits,
            remaining: self.remaining(),
            reset,
            delay: if fits {
                self.wait
            } else {
                until(self.retry_after(cost))
            },
            share: ShareCounts::default(),
        }
    }
}

impl LeakyBucketMath {
    #[inline(always)]
    fn of(limiter: &Limiter, level: BucketLevel) -> Self {
        LeakyBucketMath {
            level,
            size: limiter.queue_size(),
            longest: micros(limiter.max_wait),
            wait: level.drains_to(0).unwrap_or(u64::MAX),
        }
    }

    /// The number of single units that still fit.
    #[inline]
    fn remaining(&self) -> u64 {
        let places = self.size.saturating_sub(self.level.used());
        if self.longest > LONGEST {
            return places;
        }
        places.min(self.level.capacity_within(self.longest))
    }

    /// The least wait after which the queue has capacity for `cost` and the turn comes within `longest`.
    #[inline]
    fn retry_after(&self, cost: u64) -> Option<u64> {
        let room = self.size.checked_sub(cost)?;
        let place = self.level.falls_to(room)?;
        let turn = match self.level.drains_to(0)?.saturating_sub(self.longest) {
            0 => 0,
            late => late.saturating_add(self.level.ahead()),
        };
        Some(place.max(turn))
    }
}
