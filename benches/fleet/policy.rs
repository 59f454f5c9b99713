//! How a node decides: with the gateway's own async mode, or with one of the designs that it is compared with.

use std::time::Duration;

use lockgate::clock::Timestamp;
use lockgate::limit::{Counter, Limiter};
use lockgate::store::async_mode::{FleetInfo, FleetView, KeyReport, KeyState, ReportTiming};

/// A design.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Design {
    /// `lockgate::store::async_mode`.
    Async,
    /// Each node adds its counts to the store every sync interval and decides from what it read then, as the
    /// plugins of Kong and APISIX do.
    DeltaSync,
    /// Each node enforces the limit divided by the number of nodes. There is no store.
    Divided,
}

/// A key's state on one node.
pub enum KeyPolicy {
    Async(Box<KeyState>),
    DeltaSync(DeltaState),
    Divided(Counter),
}

/// A key's state on one node with delta sync.
pub struct DeltaState {
    /// The record as last read, plus the units admitted since.
    estimate: Counter,
    debt: u64,
    sent: Option<u64>,
}

/// What a decision depends on, apart from the key and the request.
#[derive(Clone, Copy)]
pub struct Circumstances<'a> {
    pub limiter: &'a Limiter,
    pub fleet: &'a FleetInfo,
    pub now: Timestamp,
}

// === impl KeyPolicy ===

impl KeyPolicy {
    pub fn new(design: Design, limiter: &Limiter) -> Self {
        let empty = || Counter::new(limiter.shape(), limiter);
        match design {
            Design::Async => KeyPolicy::Async(Box::new(KeyState::new(limiter))),
            Design::DeltaSync => KeyPolicy::DeltaSync(DeltaState {
                estimate: empty(),
                debt: 0,
                sent: None,
            }),
            Design::Divided => KeyPolicy::Divided(empty()),
        }
    }

    /// Decides a request of `cost`: whether it is admitted, and when the node reports the key.
    pub fn decide(&mut self, at: Circumstances<'_>, cost: u64, draw: f64) -> (bool, ReportTiming) {
        match self {
            KeyPolicy::Async(state) => {
                let decision = state.decide(at.limiter, at.now, cost, at.fleet, draw);
                (decision.admitted, decision.report)
            }
            KeyPolicy::DeltaSync(state) => state.decide(at, cost),
            KeyPolicy::Divided(counter) => {
                let part = divided(at.limiter, at.fleet.nodes);
                let admitted = counter.admit(&part, at.now, cost, 0).fits;
                (admitted, ReportTiming::Later)
            }
        }
    }

    /// The report to send. `None` if one is in flight.
    pub fn take_report(&mut self, at: Circumstances<'_>) -> Option<KeyReport> {
        match self {
            KeyPolicy::Async(state) => state.take_report(at.limiter, at.now, at.fleet),
            KeyPolicy::DeltaSync(state) => state.take_report(),
            KeyPolicy::Divided(_) => None,
        }
    }

    /// Takes the store's reply to a report.
    pub fn confirm(&mut self, at: Circumstances<'_>, view: FleetView) {
        match self {
            KeyPolicy::Async(state) => state.confirm(at.limiter, at.now, view),
            KeyPolicy::DeltaSync(state) => state.confirm(at, view),
            KeyPolicy::Divided(_) => {}
        }
    }

    /// Takes an event.
    pub fn learn(&mut self, at: Circumstances<'_>, view: FleetView) {
        if let KeyPolicy::Async(state) = self {
            state.learn(at.limiter, at.now, view);
        }
    }
}

// === impl DeltaState ===

impl DeltaState {
    fn decide(&mut self, at: Circumstances<'_>, cost: u64) -> (bool, ReportTiming) {
        let admitted = self.estimate.admit(at.limiter, at.now, cost, 0).fits;
        if !admitted {
            return (false, ReportTiming::Later);
        }
        self.debt += cost;
        (true, ReportTiming::NextFlush)
    }

    fn take_report(&mut self) -> Option<KeyReport> {
        if self.sent.is_some() {
            return None;
        }
        let units = std::mem::take(&mut self.debt);
        self.sent = Some(units);
        Some(KeyReport {
            units: units.into(),
            ..KeyReport::default()
        })
    }

    fn confirm(&mut self, at: Circumstances<'_>, view: FleetView) {
        self.sent = None;
        self.estimate = view.counter;
        self.estimate.charge(at.limiter, at.now, self.debt, 0);
    }
}

/// A node's part of a limit, at least 1.
fn divided(limiter: &Limiter, nodes: u32) -> Limiter {
    let part = |units: u64| (units / u64::from(nodes)).max(1);
    let period = if limiter.limit < u64::from(nodes) && limiter.algorithm.has_burst() {
        // A bucket with one token refills at the node's part of the rate.
        limiter
            .period
            .mul_f64(f64::from(nodes) / limiter.limit as f64)
    } else {
        limiter.period
    };
    Limiter {
        limit: part(limiter.limit),
        burst: part(limiter.burst),
        period: period.max(Duration::from_millis(1)),
        ..*limiter
    }
}
