//! The demand for a key on one node: the units that were requested in the last second.

use crate::clock::Timestamp;

/// The requested units, admitted or not, with an exponential decay of one second. In a steady flow this is
/// the rate in units per second.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RecentDemand {
    units: f64,
    at: Timestamp,
}

// === impl RecentDemand ===

impl RecentDemand {
    /// The units per second at `now`.
    pub(super) fn rate(&self, now: Timestamp) -> f64 {
        self.units * (-now.since(self.at).as_secs_f64()).exp()
    }

    /// Adds the units of one request. Returns the units per second before it.
    pub(super) fn add(&mut self, now: Timestamp, units: u64) -> f64 {
        let rate = self.rate(now);
        self.units = rate + units as f64;
        self.at = now;
        rate
    }
}
