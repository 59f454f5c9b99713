//! What a node knows of its fleet, and the intervals and shares that follow from it.

use std::time::Duration;

use crate::limit::Limiter;

/// The share of a limit that the whole fleet may use before it reports a key: φ.
const REPORTING_SHARE: f64 = 0.2;
/// The interval between immediate reports, per node of the fleet.
const GAP_PER_NODE: Duration = Duration::from_micros(25);
/// The shortest interval between immediate reports.
const SHORTEST_GAP: Duration = Duration::from_millis(2);
/// The interval between two events of a key that recovers quickly, per node of the fleet.
const EVENT_PER_NODE: Duration = Duration::from_millis(1);

/// The fleet as a node knows it from the heartbeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FleetInfo {
    /// The number of nodes, this one included. 0 counts as 1.
    pub nodes: u32,
    /// The interval between two flushes of a node.
    pub sync_interval: Duration,
}

// === impl FleetInfo ===

impl FleetInfo {
    /// The shortest interval between two immediate reports of a node: 25 µs per node, so that the fleet
    /// makes at most 40,000 such calls per second; at least 2 ms, at most `sync_interval`.
    pub fn gap(&self) -> Duration {
        (GAP_PER_NODE * self.count())
            .max(SHORTEST_GAP)
            .min(self.sync_interval)
    }

    /// The shortest interval between two `exhausted` events of a key: `sync_interval`, and at least 1 ms per
    /// node if the key recovers a unit in less than two `sync_interval`.
    pub fn event_interval(&self, limiter: &Limiter) -> Duration {
        let slowly =
            limiter.period.as_secs_f64() >= 2.0 * self.seconds() * limiter.limit.max(1) as f64;
        if slowly {
            self.sync_interval
        } else {
            self.sync_interval.max(EVENT_PER_NODE * self.count())
        }
    }

    /// The units that a node may admit before it reports a key that no other node is known to use:
    /// its part of φ of the capacity.
    pub fn unreported_units(&self, limiter: &Limiter) -> u64 {
        (REPORTING_SHARE * limiter.capacity() as f64 / f64::from(self.count())) as u64
    }

    /// The number of nodes, never zero.
    pub(super) fn count(&self) -> u32 {
        self.nodes.max(1)
    }

    /// `sync_interval` in seconds.
    pub(super) fn seconds(&self) -> f64 {
        self.sync_interval.as_secs_f64()
    }
}
