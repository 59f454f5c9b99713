//! `concurrency`: the number of units in flight. A request holds a lease until it ends.
//!
//! A lease has an identity, so taking or releasing it twice has no further effect. The gateway that
//! holds a lease renews it; otherwise it expires after [`LEASE_LIFETIME`], so a gateway that crashes
//! leaks nothing. It is unknown when a unit becomes free: [`CounterReading::retry_after`] is a hint.

use std::collections::BTreeMap;
use std::time::Duration;

use super::reading::until;
use super::{CounterReading, Limiter, MAX_LIMIT, ShareCounts, micros};
use crate::clock::Timestamp;

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

/// How long a lease lasts unless it is renewed.
pub const LEASE_LIFETIME: Duration = Duration::from_secs(30);

/// How often a gateway renews the leases that it holds.
pub const LEASE_RENEWAL: Duration = Duration::from_secs(10);

/// The time after which a refused client may retry, in microseconds.
const RETRY_HINT: u64 = 1_000_000;

/// The most units of one lease: more than any limit, and few enough that a sum of leases fits in 64 bits.
const MAX_UNITS: u64 = MAX_LIMIT + 1;

/// The identity of a lease, unique among all requests of all gateways.
pub type LeaseId = u64;

/// The leases of one key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyLeases {
    held: BTreeMap<LeaseId, HeldLease>,
    /// The sum of their units.
    total: u64,
    /// No lease expires before this time, in microseconds.
    earliest: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct HeldLease {
    units: u64,
    /// The time of expiry, in microseconds since the epoch.
    expires: u64,
}

// === impl KeyLeases ===

impl KeyLeases {
    /// Takes a lease for `cost` units if they fit.
    pub fn admit(
        &mut self,
        limiter: &Limiter,
        now: Timestamp,
        cost: u64,
        id: LeaseId,
    ) -> CounterReading {
        self.expire(now);
        self.release(id);
        let fits = self.fits(limiter, cost);
        if fits {
            self.take(now, cost, id);
        }
        self.reading(limiter, fits, cost)
    }

    /// Takes a lease for `cost` units, even above the limit.
    pub fn charge(
        &mut self,
        limiter: &Limiter,
        now: Timestamp,
        cost: u64,
        id: LeaseId,
    ) -> CounterReading {
        self.expire(now);
        self.release(id);
        let fits = self.fits(limiter, cost);
        self.take(now, cost, id);
        self.reading(limiter, fits, cost)
    }

    /// Returns what [`KeyLeases::admit`] would return, and takes nothing.
    pub fn peek(&mut self, limiter: &Limiter, now: Timestamp, cost: u64) -> CounterReading {
        self.expire(now);
        self.reading(limiter, self.fits(limiter, cost), cost)
    }

    /// Ends a lease, if it exists.
    pub fn release(&mut self, id: LeaseId) {
        if let Some(lease) = self.held.remove(&id) {
            self.total -= lease.units;
        }
    }

    /// Extends a lease, if it exists and has not expired.
    pub fn renew(&mut self, now: Timestamp, id: LeaseId) {
        self.expire(now);
        if let Some(lease) = self.held.get_mut(&id) {
            lease.expires = expiry(now);
        }
    }

    /// Whether no request is in flight.
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Drops expired leases. It scans them only if one may have expired.
    fn expire(&mut self, now: Timestamp) {
        let now = now.as_micros();
        if now < self.earliest || self.held.is_empty() {
            return;
        }
        self.held.retain(|_, lease| lease.expires > now);
        self.total = self.held.values().map(|lease| lease.units).sum();
        let earliest = self.held.values().map(|lease| lease.expires).min();
        self.earliest = earliest.unwrap_or(u64::MAX);
    }

    fn take(&mut self, now: Timestamp, cost: u64, id: LeaseId) {
        let (units, expires) = (cost.min(MAX_UNITS), expiry(now));
        if self.held.is_empty() {
            self.earliest = expires;
        }
        self.earliest = self.earliest.min(expires);
        self.total += units;
        self.held.insert(id, HeldLease { units, expires });
    }

    fn fits(&self, limiter: &Limiter, cost: u64) -> bool {
        self.total.saturating_add(cost) <= limiter.capped()
    }

    fn reading(&self, limiter: &Limiter, fits: bool, cost: u64) -> CounterReading {
        let retry = || until((cost <= limiter.capped()).then_some(RETRY_HINT));
        CounterReading {
            fits,
            remaining: limiter.capped().saturating_sub(self.total),
            reset: if self.held.is_empty() {
                0
            } else {
                micros(LEASE_LIFETIME)
            },
            delay: if fits { 0 } else { retry() },
            share: ShareCounts::default(),
        }
    }
}

fn expiry(now: Timestamp) -> u64 {
    now.as_micros().saturating_add(micros(LEASE_LIFETIME))
}
