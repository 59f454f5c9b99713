//! Limits the time that a core spends on verifying solutions, so that wrong ones cannot become a denial of service.

use std::time::Duration;

use crate::clock::Timestamp;

/// The time that accrues per second, and the most that accrues.
const CAPACITY: Duration = Duration::from_millis(100);

/// The time that one core may spend on verification: 10 % of it.
#[derive(Clone, Debug)]
pub struct VerifyBudget {
    available: Duration,
    /// Time spent beyond the budget, which later seconds repay.
    debt: Duration,
    updated: Timestamp,
}

// === impl VerifyBudget ===

impl VerifyBudget {
    /// Creates a full budget.
    pub fn new(now: Timestamp) -> Self {
        Self {
            available: CAPACITY,
            debt: Duration::ZERO,
            updated: now,
        }
    }

    /// Returns whether the core may verify a solution now. Charge the time that it took.
    pub fn admits(&mut self, now: Timestamp) -> bool {
        let accrued = now.since(self.updated) / 10;
        self.updated = now;
        let repaid = accrued.min(self.debt);
        self.debt -= repaid;
        self.available = CAPACITY.min(self.available + (accrued - repaid));
        self.debt.is_zero() && !self.available.is_zero()
    }

    /// Charges the time that a verification took.
    pub fn charge(&mut self, used: Duration) {
        self.debt += used.saturating_sub(self.available);
        self.available = self.available.saturating_sub(used);
    }
}
