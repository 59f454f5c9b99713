//! What people see of the counters of a rule.

use crate::clock::Timestamp;
use crate::limit::{ChargeUnits, Limiter};
use crate::rules::plan::{RuleId, StoreMode};

/// A rule of which counters are read.
#[derive(Clone, Copy, Debug)]
pub struct InspectedRule {
    /// The identity of the rule's counters.
    pub id: RuleId,
    /// The rule's limiter.
    pub limiter: Limiter,
    /// How a fleet shares the counters.
    pub mode: StoreMode,
}

/// The counter and the ban of a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyUsage {
    /// The units that the counter holds. 0 during a ban, which clears the counter.
    pub count: u64,
    /// When the ban of the key ends. `None` if it is not banned.
    pub banned_until: Option<Timestamp>,
}

/// How many keys of a rule have used how much of their limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FillLevels(pub [usize; 6]);

// === impl KeyUsage ===

impl KeyUsage {
    /// A key that is banned.
    pub fn banned(until: Timestamp) -> Self {
        Self {
            count: 0,
            banned_until: Some(until),
        }
    }

    /// A key that is not banned.
    pub fn counted(count: u64) -> Self {
        Self {
            count,
            banned_until: None,
        }
    }
}

// === impl FillLevels ===

impl FillLevels {
    /// The names of the levels.
    pub const LABELS: [&str; 6] = [
        "below 10 %",
        "10–25 %",
        "25–50 %",
        "50–80 %",
        "80–100 %",
        "over",
    ];

    /// The share of the limit at which each level but the first and the last starts, in percent.
    const STARTS: [u128; 4] = [10, 25, 50, 80];

    /// Adds a key with these units. A key without units is not counted: it is the same as one that was never seen.
    ///
    /// A key is over its limit if it holds more units than the limiter admits. With a ratio, the count is compared
    /// with the limit alone.
    pub fn add(&mut self, units: ChargeUnits, limiter: &Limiter) {
        let (count, capacity) = (units.count, limiter.capacity());
        if count == 0 && units.total == 0 {
            return;
        }
        let percent = u128::from(count) * 100;
        let is_reached = |start: &&u128| percent >= **start * u128::from(capacity);
        let level = if count > capacity {
            Self::STARTS.len() + 1
        } else {
            Self::STARTS.iter().filter(is_reached).count()
        };
        self.add_to(level, 1);
    }

    /// Adds banned keys: they are over their limit.
    pub fn add_banned(&mut self, keys: usize) {
        self.add_to(Self::STARTS.len() + 1, keys);
    }

    fn add_to(&mut self, level: usize, keys: usize) {
        if let Some(count) = self.0.get_mut(level) {
            *count += keys;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::limit::Algorithm;

    fn levels(limit: u64, counts: impl IntoIterator<Item = u64>) -> [usize; 6] {
        let limiter = Limiter::new(Algorithm::SlidingWindow, limit, Duration::from_secs(60));
        let mut levels = FillLevels::default();
        for count in counts {
            levels.add(count.into(), &limiter);
        }
        levels.0
    }

    #[test]
    fn a_level_includes_its_start() {
        let counts = [1, 9, 10, 24, 25, 49, 50, 79, 80, 100, 101, 1_000];
        assert_eq!(levels(100, counts), [2; 6]);
        assert_eq!(levels(100, [0]), [0; 6]);
        assert_eq!(levels(0, [1]), [0, 0, 0, 0, 0, 1]);
    }

    #[test]
    fn a_banned_key_is_over_its_limit() {
        let mut levels = FillLevels::default();
        levels.add_banned(3);
        assert_eq!(levels.0, [0, 0, 0, 0, 0, 3]);
    }
}
