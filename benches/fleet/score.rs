//! What a simulation is judged by, per key: the admitted units beside an exact counter, and the bound.

use std::collections::VecDeque;

use lockgate::clock::Timestamp;
use lockgate::limit::{Counter, Limiter};
use lockgate::store::async_mode::used_units;

/// The intervals of the bound, in microseconds.
#[derive(Clone, Copy, Debug)]
pub struct BoundIntervals {
    /// The longest time until every node has learned that a key is exhausted: T_b.
    pub event: u64,
    /// The longest time from an immediate report to its confirmation: δ.
    pub report: u64,
}

/// The score of one key.
pub struct KeyScore {
    /// What the fleet has admitted.
    admitted: Counter,
    /// What a lone, exact gateway would have admitted.
    exact: Counter,
    pub requests: u64,
    pub refused: u64,
    /// The requests that a lone gateway would have refused.
    pub exactly_refused: u64,
    /// The most units above the capacity at any time.
    pub overshoot: u64,
    in_event: BusiestInterval,
    in_report: BusiestInterval,
}

/// The most units that were requested in any interval of one length.
#[derive(Default)]
struct BusiestInterval {
    requests: VecDeque<(u64, u64)>,
    units: u64,
    most: u64,
}

// === impl KeyScore ===

impl KeyScore {
    pub fn new(limiter: &Limiter) -> Self {
        let empty = || Counter::new(limiter.shape(), limiter);
        Self {
            admitted: empty(),
            exact: empty(),
            requests: 0,
            refused: 0,
            exactly_refused: 0,
            overshoot: 0,
            in_event: BusiestInterval::default(),
            in_report: BusiestInterval::default(),
        }
    }

    /// Counts a request of `cost` at `now` and the fleet's decision.
    pub fn add(
        &mut self,
        limiter: &Limiter,
        now: u64,
        cost: u64,
        admitted: bool,
        intervals: &BoundIntervals,
    ) {
        let at = Timestamp::from_micros(now);
        self.requests += 1;
        self.in_event.add(now, cost, intervals.event);
        self.in_report.add(now, cost, intervals.report);
        if !self.exact.admit(limiter, at, cost, 0).fits {
            self.exactly_refused += 1;
        }
        if !admitted {
            self.refused += 1;
            return;
        }
        self.admitted.charge(limiter, at, cost, 0);
        let used = used_units(limiter, &mut self.admitted, at);
        let above = used.saturating_sub(limiter.capacity());
        self.overshoot = self.overshoot.max(above);
    }

    /// Whether a lone gateway would have refused a request of the key.
    pub fn is_hot(&self) -> bool {
        self.exactly_refused > 0
    }

    /// The largest overshoot that the design permits: c·(min(N, R·T_b) + R·δ + 1) + N·⌊φL/N⌋. R·x is the most
    /// units that were requested in any interval of the length x, which includes the bursts of random times.
    pub fn bound(&self, nodes: u64, cost: u64, unreported: u64) -> u64 {
        let unaware = (nodes * cost).min(self.in_event.most);
        unaware + self.in_report.most + cost + nodes * unreported
    }
}

// === impl BusiestInterval ===

impl BusiestInterval {
    fn add(&mut self, now: u64, units: u64, length: u64) {
        self.requests.push_back((now, units));
        self.units += units;
        while let Some(&(first, old)) = self.requests.front()
            && now - first > length
        {
            self.requests.pop_front();
            self.units -= old;
        }
        self.most = self.most.max(self.units);
    }
}
