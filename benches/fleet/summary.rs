//! The figures of one simulation.

use crate::score::KeyScore;
use crate::simulation::{Outcome, Scenario};

/// The figures of one simulation.
pub struct Summary {
    pub scenario: Scenario,
    /// The number of keys of which a lone gateway refuses requests.
    pub hot_keys: usize,
    /// The overshoot of hot keys as a share of the capacity: median and 99th percentile.
    pub overshoot: [f64; 2],
    /// The bound of hot keys as a share of the capacity: median and 99th percentile.
    pub bound: [f64; 2],
    /// The largest overshoot of any key as a share of its own bound.
    pub worst: f64,
    /// The number of keys whose overshoot exceeds their bound.
    pub above_bound: usize,
    /// What the fleet admitted of hot keys, as a share of what a lone gateway admits.
    pub hot_admitted: f64,
    /// The refused share of the requests of all keys that a lone gateway never refuses.
    pub innocent_refused: f64,
    /// Calls of the store per second, by the whole fleet.
    pub calls: f64,
    /// Reports of a key per second, by the whole fleet.
    pub merges: f64,
    /// Events per second.
    pub events: f64,
}

// === impl Summary ===

impl Summary {
    pub fn new(scenario: &Scenario, outcome: &Outcome) -> Self {
        let (hot, innocent): (Vec<&KeyScore>, Vec<&KeyScore>) =
            outcome.keys.iter().partition(|key| key.is_hot());
        let nodes = u64::from(scenario.fleet.nodes);
        let unreported = scenario.fleet.unreported_units(&scenario.limiter);
        let bound = |key: &KeyScore| key.bound(nodes, scenario.largest_cost, unreported);
        let capacity = scenario.limiter.capacity() as f64;
        let share = |units: u64| units as f64 / capacity;
        let sum = |keys: &[&KeyScore], of: fn(&KeyScore) -> u64| -> f64 {
            keys.iter().map(|key| of(key) as f64).sum()
        };
        let per_second = |count: u64| count as f64 / scenario.seconds as f64;
        let used = |key: &KeyScore| key.overshoot as f64 / bound(key) as f64;
        Self {
            scenario: *scenario,
            hot_keys: hot.len(),
            overshoot: percentiles(hot.iter().map(|key| share(key.overshoot))),
            bound: percentiles(hot.iter().map(|key| share(bound(key)))),
            worst: outcome.keys.iter().map(used).fold(0.0, f64::max),
            above_bound: outcome.keys.iter().filter(|key| used(key) > 1.0).count(),
            hot_admitted: sum(&hot, |key| key.requests - key.refused)
                / sum(&hot, |key| key.requests - key.exactly_refused).max(1.0),
            innocent_refused: sum(&innocent, |key| key.refused)
                / sum(&innocent, |key| key.requests).max(1.0),
            calls: per_second(outcome.calls),
            merges: per_second(outcome.merges),
            events: per_second(outcome.events),
        }
    }

    /// The position of the row in the report.
    pub fn order(&self) -> (&'static str, u32, u64, u64) {
        let Scenario {
            limiter,
            fleet,
            round_trip,
            ..
        } = &self.scenario;
        let algorithm = limiter.algorithm.row().name;
        (algorithm, fleet.nodes, limiter.limit, *round_trip)
    }
}

/// The median and the 99th percentile.
fn percentiles(values: impl Iterator<Item = f64>) -> [f64; 2] {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    [0.5, 0.99].map(|share| {
        let last = sorted.len().saturating_sub(1) as f64;
        sorted.get((last * share) as usize).copied().unwrap_or(0.0)
    })
}
