//! The decisions about keys of rules with a ratio.

use super::{AsyncDecision, KeyState, ReportTiming};
use crate::clock::Timestamp;
use crate::limit::{ChargeUnits, Limiter};

// === impl KeyState ===

impl KeyState {
    /// Admits a request of a rule with a ratio unless the key would be over.
    pub(super) fn decide_share(
        &mut self,
        limiter: &Limiter,
        now: Timestamp,
        units: ChargeUnits,
    ) -> AsyncDecision {
        let before = self.estimate.peek(limiter, now, units);
        if !before.fits {
            return AsyncDecision::refused(before);
        }
        self.charge_share(limiter, now, units)
    }

    /// Charges the units of a rule with a ratio. The other nodes need the total as much as the count, so every key
    /// is reported with the next flush.
    pub(super) fn charge_share(
        &mut self,
        limiter: &Limiter,
        now: Timestamp,
        units: ChargeUnits,
    ) -> AsyncDecision {
        let reading = self.estimate.charge(limiter, now, units, 0);
        self.add_debt(now, units);
        AsyncDecision {
            admitted: reading.fits,
            reading,
            report: ReportTiming::NextFlush,
        }
    }
}
