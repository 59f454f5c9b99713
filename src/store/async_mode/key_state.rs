//! The state of one key on one node, and the decisions from it.

mod share;

use std::time::Duration;

use super::demand::RecentDemand;
use super::fleet_record::active_nodes;
use super::{FleetInfo, FleetView, held_units, used_units};
use crate::clock::Timestamp;
use crate::limit::{Algorithm, ChargeUnits, Counter, CounterReading, Limiter, RecoveryKind, State};

/// After a key becomes known to the fleet, the time in which each node assumes that all nodes use it.
const DISCOVERY: Duration = Duration::from_secs(2);

/// The state of one key on one node.
///
/// `estimate` is the fleet's record as last seen plus the units that this node has admitted since, each
/// charged when it was admitted. A key without a view is cold: the estimate holds this node's units only, so
/// the node decides as a lone gateway.
#[derive(Clone, Debug)]
pub struct KeyState {
    estimate: Counter,
    view: Option<ViewInfo>,
    /// The units that were admitted and not reported.
    debt: ChargeUnits,
    /// When the oldest unit of the debt was admitted.
    debt_since: Timestamp,
    /// The units that were reported and not confirmed. `None` if no report is in flight.
    sent: Option<ChargeUnits>,
    pub(super) demand: RecentDemand,
    /// Whether the capacity is used up, so that nodes share what becomes free.
    exhausted: bool,
    /// The smallest cost that did not fit since the last report, or 0.
    refused_cost: u64,
}

/// What a node remembers of the last view, apart from its counter.
#[derive(Clone, Copy, Debug)]
struct ViewInfo {
    at: Timestamp,
    /// When the key became known.
    since: Timestamp,
    active_bits: u32,
}

/// The decision about one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AsyncDecision {
    /// Whether the request is admitted and charged. For a charge: whether the count is within the limit.
    pub admitted: bool,
    /// The reading for the client's quota headers and for `Retry-After`.
    pub reading: CounterReading,
    /// When the node must report the key.
    pub report: ReportTiming,
}

/// When a node must report a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReportTiming {
    /// Not because of this request.
    Later,
    /// With the next regular flush.
    NextFlush,
    /// As soon as the node's last immediate report is [`FleetInfo::gap`] old.
    Immediately,
}

/// A node's report of one key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyReport {
    /// The units to charge. 0 if the node only asks for the record.
    pub units: ChargeUnits,
    /// The smallest cost that did not fit since the last report, or 0 if every cost did.
    pub refused_cost: u64,
    /// The time since the oldest of the units was admitted. Only buckets use it.
    pub age: Duration,
}

// === impl KeyState ===

impl KeyState {
    /// A key that this node has not seen.
    pub fn new(limiter: &Limiter) -> Self {
        Self {
            estimate: Counter::new(limiter.shape(), limiter),
            ..Self::empty()
        }
    }

    /// A key that this node has not seen and whose limiter it does not know. The next view brings its counter.
    pub fn empty() -> Self {
        Self {
            estimate: Counter::Words(State::default()),
            view: None,
            debt: ChargeUnits::default(),
            debt_since: Timestamp::default(),
            sent: None,
            demand: RecentDemand::default(),
            exhausted: false,
            refused_cost: 0,
        }
    }

    /// Admits a request of `cost` or refuses it. `draw` is a uniform random number, at least 0 and below 1: in
    /// an exhausted key, the nodes share what becomes free by chance. With a ratio, nothing becomes free, and every
    /// request that the last view allows is admitted.
    pub fn decide(
        &mut self,
        limiter: &Limiter,
        now: Timestamp,
        units: impl Into<ChargeUnits>,
        fleet: &FleetInfo,
        draw: f64,
    ) -> AsyncDecision {
        let units = units.into();
        let cost = units.count;
        self.age(limiter, now, fleet);
        if limiter.ratio.is_some() {
            return self.decide_share(limiter, now, units);
        }
        let before = self.estimate.peek(limiter, now, cost);
        let rate = self.demand.add(now, cost) * self.active_nodes(now, fleet);
        let is_alone = fleet.count() == 1;
        if !before.fits {
            self.exhausted |= !is_alone;
            self.refused_cost = smaller_cost(self.refused_cost, cost);
            return AsyncDecision::refused(before);
        }
        if self.exhausted && !is_alone && draw >= admitted_share(limiter, before.remaining, rate) {
            let wait = Some(recovery_time(limiter, cost));
            let reading = CounterReading::refusing(0, before.reset_after(), wait);
            return AsyncDecision::refused(reading);
        }
        let reading = self.estimate.charge(limiter, now, cost, 0);
        self.add_debt(now, units);
        AsyncDecision {
            admitted: true,
            reading,
            report: self.report_timing(limiter, now, reading.remaining, rate, fleet),
        }
    }

    /// Charges `units`, even above the limit.
    pub fn charge(
        &mut self,
        limiter: &Limiter,
        now: Timestamp,
        units: impl Into<ChargeUnits>,
        fleet: &FleetInfo,
    ) -> AsyncDecision {
        let units = units.into();
        let cost = units.count;
        self.age(limiter, now, fleet);
        if limiter.ratio.is_some() {
            return self.charge_share(limiter, now, units);
        }
        let rate = self.demand.add(now, cost) * self.active_nodes(now, fleet);
        let reading = self.estimate.charge(limiter, now, cost, 0);
        self.exhausted |= !reading.fits && fleet.count() > 1;
        self.add_debt(now, units);
        AsyncDecision {
            admitted: reading.fits,
            reading,
            report: self.report_timing(limiter, now, reading.remaining, rate, fleet),
        }
    }

    /// Reads the estimate for a request of `units` without charging it.
    pub fn peek(
        &mut self,
        limiter: &Limiter,
        now: Timestamp,
        units: impl Into<ChargeUnits>,
    ) -> CounterReading {
        self.estimate.peek(limiter, now, units)
    }

    /// The units that the key holds, as this node knows them.
    pub fn held(&mut self, limiter: &Limiter, now: Timestamp) -> ChargeUnits {
        held_units(limiter, &mut self.estimate, now)
    }

    /// Whether neither the node nor the fleet, as far as the node knows, has counted anything: the state can
    /// be dropped.
    pub fn is_idle(&mut self, limiter: &Limiter, now: Timestamp) -> bool {
        self.sent.is_none() && used_units(limiter, &mut self.estimate, now) == 0
    }

    /// The units that were admitted and not reported.
    pub fn unreported_units(&self) -> ChargeUnits {
        self.debt
    }

    /// Returns the units to report now. `None` while the last report is neither confirmed nor failed.
    pub fn take_report(
        &mut self,
        limiter: &Limiter,
        now: Timestamp,
        fleet: &FleetInfo,
    ) -> Option<KeyReport> {
        if self.sent.is_some() {
            return None;
        }
        self.age(limiter, now, fleet);
        let units = std::mem::take(&mut self.debt);
        self.sent = Some(units);
        Some(KeyReport {
            units,
            refused_cost: std::mem::take(&mut self.refused_cost),
            age: now.since(self.debt_since),
        })
    }

    /// The store has merged the report and returned `view`.
    pub fn confirm(&mut self, limiter: &Limiter, now: Timestamp, view: FleetView) {
        self.sent = None;
        self.see(limiter, now, view);
    }

    /// The store has not merged the report: its units are reported again.
    pub fn report_failed(&mut self) {
        self.debt = self.debt.plus(self.sent.take().unwrap_or_default());
    }

    /// The store has announced that the key is exhausted. An event that is older than the last view is
    /// ignored.
    pub fn learn(&mut self, limiter: &Limiter, now: Timestamp, view: FleetView) {
        if self.view.is_none_or(|last| last.at < view.at) {
            self.see(limiter, now, view);
            self.exhausted = true;
        }
    }
}

/// The parts of a decision.
impl KeyState {
    /// Replaces the estimate by the record of `view` plus the units that it lacks.
    fn see(&mut self, limiter: &Limiter, now: Timestamp, view: FleetView) {
        let since = self.view.map_or(now, |last| last.since);
        self.view = Some(ViewInfo {
            at: view.at,
            since,
            active_bits: view.active_bits,
        });
        self.estimate = view.counter;
        let missing = self.debt.plus(self.sent.unwrap_or_default());
        if !missing.is_zero() {
            self.estimate.charge(limiter, now, missing, 0);
        }
        self.exhausted |= used_units(limiter, &mut self.estimate, now) > limiter.capacity();
    }

    /// Lets the debt age, forgets a view of a key that is empty again, and ends the exhausted state at half
    /// of the capacity.
    fn age(&mut self, limiter: &Limiter, now: Timestamp, fleet: &FleetInfo) {
        let held = held_units(limiter, &mut self.estimate, now);
        let used = held.total;
        if !self.debt.is_zero() {
            if self.view.is_some() || fleet.count() == 1 {
                // The estimate holds all units of the fleet and ages as the limiter does.
                let left = self.debt.at_most(held);
                if left != self.debt {
                    self.debt = left;
                    self.debt_since = now;
                }
            } else if limiter.algorithm.row().recovery == RecoveryKind::Expires {
                self.debt = self.faded_debt(limiter, now);
            }
        }
        if used == 0 && self.sent.is_none() {
            self.view = None;
        }
        if self.exhausted && used <= limiter.capacity() / 2 {
            self.exhausted = false;
        }
    }

    /// The debt of a cold window fades as the previous window of a sliding window does. The rest counts as
    /// debt of the current window.
    fn faded_debt(&mut self, limiter: &Limiter, now: Timestamp) -> ChargeUnits {
        let period = limiter.period.as_micros().clamp(1, u128::from(u64::MAX));
        let window = |at: Timestamp| u128::from(at.as_micros()) / period;
        let (then, current) = (window(self.debt_since), window(now));
        if current <= then {
            return self.debt;
        }
        self.debt_since = now;
        if current > then + 1 || limiter.algorithm == Algorithm::FixedWindow {
            return ChargeUnits::default();
        }
        let left = period - u128::from(now.as_micros()) % period;
        let faded = |units: u64| (u128::from(units) * left / period) as u64;
        ChargeUnits {
            count: faded(self.debt.count),
            total: faded(self.debt.total),
        }
    }

    fn add_debt(&mut self, now: Timestamp, units: ChargeUnits) {
        if self.debt.is_zero() {
            self.debt_since = now;
        }
        self.debt = self.debt.plus(units);
    }

    /// When to report after a charge that left `remaining` units, if the fleet requests `rate` per second.
    fn report_timing(
        &self,
        limiter: &Limiter,
        now: Timestamp,
        remaining: u64,
        rate: f64,
        fleet: &FleetInfo,
    ) -> ReportTiming {
        if self.view.is_none() {
            let is_due = self.debt.count > fleet.unreported_units(limiter);
            return if is_due {
                ReportTiming::Immediately
            } else {
                ReportTiming::Later
            };
        }
        let others = self.active_nodes(now, fleet) - 1.0;
        let unreported = self.debt.plus(self.sent.unwrap_or_default());
        let unseen = others * unreported.count as f64;
        if remaining as f64 - unseen <= 2.0 * fleet.seconds() * rate {
            ReportTiming::Immediately
        } else {
            ReportTiming::NextFlush
        }
    }

    /// The number of nodes that use the key.
    fn active_nodes(&self, now: Timestamp, fleet: &FleetInfo) -> f64 {
        match self.view {
            Some(view) if now.since(view.since) >= DISCOVERY => {
                active_nodes(view.active_bits, fleet)
            }
            _ => f64::from(fleet.count()),
        }
    }
}

// === impl AsyncDecision ===

impl AsyncDecision {
    /// A refusal. It leaves nothing to report, except for a ban (see [`KeyReport::refused_cost`]).
    fn refused(reading: CounterReading) -> Self {
        Self {
            admitted: false,
            reading,
            report: ReportTiming::Later,
        }
    }
}

/// The share of requests that an exhausted key admits: what is left and what becomes free within a second,
/// over the `rate` of the whole fleet.
fn admitted_share(limiter: &Limiter, remaining: u64, rate: f64) -> f64 {
    let free = limiter.limit as f64 / limiter.period.as_secs_f64().max(1e-6);
    (free + remaining as f64) / rate
}

/// The time in which `cost` units become free.
fn recovery_time(limiter: &Limiter, cost: u64) -> Duration {
    let period = limiter.period.as_micros().min(u128::from(u64::MAX));
    let wait = period * u128::from(cost) / u128::from(limiter.limit.max(1));
    Duration::from_micros(u64::try_from(wait).unwrap_or(u64::MAX))
}

/// The smaller of a cost and an earlier one, where 0 means none.
fn smaller_cost(earlier: u64, cost: u64) -> u64 {
    if earlier == 0 {
        cost
    } else {
        earlier.min(cost)
    }
}
