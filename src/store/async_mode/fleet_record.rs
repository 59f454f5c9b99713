//! The fleet's record of one key, and how the shared store adds a node's report to it.

use std::time::Duration;

use super::{FleetInfo, KeyReport};
use crate::clock::Timestamp;
use crate::limit::{Counter, Limiter, RecoveryKind};

/// The number of bits in the map of active nodes.
const BITS: u32 = u128::BITS;

/// The fleet's record of one key in the shared store.
///
/// - `counter`: the limiter's counter, exactly as in exact mode.
/// - `window`: the number of the period since the epoch in which `bits` were set: `now / period`.
/// - `bits`: a map of 128 bits; each node that reports sets the bit `node mod 128`.
/// - `previous`: the number of bits that were set in the period before `window`.
/// - `announced`: when the store last appended an `exhausted` event for the key.
#[derive(Clone, Debug)]
pub struct FleetRecord {
    counter: Counter,
    window: u64,
    bits: u128,
    previous: u32,
    announced: Option<Timestamp>,
}

/// A copy of the fleet's record as a node has last seen it.
#[derive(Clone, Debug)]
pub struct FleetView {
    /// The counter.
    pub counter: Counter,
    /// The bits in the map of active nodes: the larger number of this period and the one before.
    pub active_bits: u32,
    /// The store's clock when it returned the view.
    pub at: Timestamp,
}

/// The result of [`FleetRecord::merge`].
#[derive(Clone, Debug)]
pub struct MergeResult {
    /// The record after the merge.
    pub view: FleetView,
    /// Whether the key is above its limit, or a cost that the node refused does not fit in the record either.
    /// The store then starts the rule's ban, if the rule has one.
    pub is_over: bool,
    /// Whether the store must append an `exhausted` event with the view.
    pub is_announced: bool,
}

// === impl FleetRecord ===

impl FleetRecord {
    /// An empty record.
    pub fn new(limiter: &Limiter) -> Self {
        Self {
            counter: Counter::new(limiter.shape(), limiter),
            window: 0,
            bits: 0,
            previous: 0,
            announced: None,
        }
    }

    /// Adds the report of `node` at the store's time `now`, in this order:
    ///
    /// 1. If `now / period` differs from `window`: `previous` becomes the number of set bits if exactly one
    ///    period has passed and 0 otherwise, `bits` becomes 0, and `window` is stored.
    /// 2. The bit `node mod 128` is set. `node` is a hash of the node's identity.
    /// 3. The counter is charged with the reported units, also above the limit: at `now` for a window, at
    ///    `now − min(age, period)` for a bucket. The bucket keeps the start of its busy time, so units that
    ///    several nodes report late share the drain of that time once, and none of it is lost. If the bucket
    ///    has started later than that, the units are added without a drain (see `limit`: a clock that goes
    ///    back). A report of 0 units only marks the node as active.
    ///    A rule with a ratio adds the units of both counters.
    /// 4. The key is over if the refused cost of the report, or 0, does not fit.
    /// 5. If the key is over and its last event is at least [`FleetInfo::event_interval`] old, the store
    ///    appends an event.
    ///
    /// A store that bans the key replaces the record by the ban. It keeps the record until the counter is empty, and a
    /// bucket for at least the age of the report: other nodes may report units of the same time.
    pub fn merge(
        &mut self,
        limiter: &Limiter,
        now: Timestamp,
        report: KeyReport,
        node: u64,
        fleet: &FleetInfo,
    ) -> MergeResult {
        self.mark_active(limiter, now, node);
        self.charge(limiter, now, report);
        let is_over = !self.counter.peek(limiter, now, report.refused_cost).fits;
        let is_announced = is_over && self.is_event_due(limiter, now, fleet);
        if is_announced {
            self.announced = Some(now);
        }
        MergeResult {
            view: self.view(now),
            is_over,
            is_announced,
        }
    }

    fn charge(&mut self, limiter: &Limiter, now: Timestamp, report: KeyReport) {
        if report.units.is_zero() {
            return;
        }
        let drains = limiter.algorithm.row().recovery == RecoveryKind::Refills;
        let at = if drains {
            before(now, report.age.min(limiter.period))
        } else {
            now
        };
        self.counter.charge(limiter, at, report.units, 0);
    }

    fn mark_active(&mut self, limiter: &Limiter, now: Timestamp, node: u64) {
        let period = limiter.period.as_micros().max(1);
        let window = (u128::from(now.as_micros()) / period) as u64;
        if window != self.window {
            let follows = self.window.checked_add(1) == Some(window);
            self.previous = if follows { self.bits.count_ones() } else { 0 };
            self.bits = 0;
            self.window = window;
        }
        self.bits |= 1 << (node % u64::from(BITS));
    }

    fn is_event_due(&self, limiter: &Limiter, now: Timestamp, fleet: &FleetInfo) -> bool {
        let interval = fleet.event_interval(limiter);
        // A clock that was set back must not silence the key.
        self.announced
            .is_none_or(|last| last > now || now.since(last) >= interval)
    }

    fn view(&self, now: Timestamp) -> FleetView {
        FleetView {
            counter: self.counter.clone(),
            active_bits: self.bits.count_ones().max(self.previous),
            at: now,
        }
    }
}

// === impl FleetView ===

impl FleetView {
    /// The number of active nodes, estimated from the set bits: nodes may share a bit. At most the number of
    /// nodes in the fleet; from about 600 active nodes on, all of them.
    pub fn active_nodes(&self, fleet: &FleetInfo) -> f64 {
        active_nodes(self.active_bits, fleet)
    }
}

/// The time `age` before `now`.
fn before(now: Timestamp, age: Duration) -> Timestamp {
    let age = u64::try_from(age.as_micros()).unwrap_or(u64::MAX);
    Timestamp::from_micros(now.as_micros().saturating_sub(age))
}

/// [`FleetView::active_nodes`] for a number of set bits: the most likely number of nodes, −m·ln(1 − bits/m)
/// with m bits.
pub(super) fn active_nodes(bits: u32, fleet: &FleetInfo) -> f64 {
    let all = f64::from(fleet.count());
    if bits >= BITS {
        return all;
    }
    let size = f64::from(BITS);
    let likely = -size * (1.0 - f64::from(bits) / size).ln();
    likely.clamp(1.0, all)
}
