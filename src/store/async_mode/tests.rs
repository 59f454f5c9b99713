//! Tests of single decisions, reports and merges.

use std::time::Duration;

use super::*;
use crate::limit::{Algorithm, ChargeUnits, ShareRatio};

const PERIOD: Duration = Duration::from_secs(60);
/// The start of a window.
const START: Timestamp = Timestamp::from_secs(1_767_225_600);

fn fleet(nodes: u32) -> FleetInfo {
    FleetInfo {
        nodes,
        sync_interval: Duration::from_millis(100),
    }
}

fn window(limit: u64) -> Limiter {
    Limiter::new(Algorithm::SlidingWindow, limit, PERIOD)
}

fn bucket(limit: u64) -> Limiter {
    Limiter::new(Algorithm::TokenBucket, limit, PERIOD)
}

fn after(seconds: u64) -> Timestamp {
    START.plus(Duration::from_secs(seconds))
}

fn units(units: u64) -> KeyReport {
    KeyReport {
        units: units.into(),
        ..KeyReport::default()
    }
}

/// Reports the key and confirms it with the merged record.
fn flush(
    state: &mut KeyState,
    record: &mut FleetRecord,
    limiter: &Limiter,
    now: Timestamp,
    fleet: &FleetInfo,
) -> KeyReport {
    let report = state.take_report(limiter, now, fleet).unwrap();
    let merged = record.merge(limiter, now, report, 1, fleet);
    state.confirm(limiter, now, merged.view);
    report
}

/// A view of a record with `units` that ten nodes have reported.
fn view(limiter: &Limiter, now: Timestamp, total: u64) -> FleetView {
    let mut record = FleetRecord::new(limiter);
    for node in 1..10 {
        record.merge(limiter, now, units(0), node, &fleet(10));
    }
    record.merge(limiter, now, units(total), 0, &fleet(10)).view
}

#[test]
fn a_cold_key_costs_the_store_nothing_until_its_share_is_used() {
    let (limiter, fleet) = (window(100), fleet(10));
    let mut state = KeyState::new(&limiter);
    let timings: Vec<_> = (0..3)
        .map(|_| state.decide(&limiter, START, 1, &fleet, 0.5).report)
        .collect();
    let later = ReportTiming::Later;
    assert_eq!(timings, [later, later, ReportTiming::Immediately]);
    assert_eq!(state.take_report(&limiter, START, &fleet), Some(units(3)));
}

#[test]
fn a_cold_key_reads_as_on_a_lone_gateway() {
    let (limiter, fleet) = (bucket(60), fleet(100));
    let mut state = KeyState::new(&limiter);
    let mut lone = Counter::new(limiter.shape(), &limiter);
    for seconds in 0..10 {
        let now = after(seconds / 3);
        let decision = state.decide(&limiter, now, 2, &fleet, 0.5);
        assert_eq!(decision.reading, lone.admit(&limiter, now, 2, 0));
    }
}

#[test]
fn a_node_refuses_what_other_nodes_have_used() {
    let (limiter, fleet) = (window(100), fleet(10));
    let mut state = KeyState::new(&limiter);
    state.confirm(&limiter, START, view(&limiter, START, 98));
    let admitted: Vec<_> = (0..4)
        .map(|_| state.decide(&limiter, START, 1, &fleet, 0.0).admitted)
        .collect();
    assert_eq!(admitted, [true, true, false, false]);
    let refusal = state.decide(&limiter, START, 1, &fleet, 0.0);
    assert_eq!(refusal.reading.remaining, 0);
    assert!(refusal.reading.retry_after() > Some(Duration::from_secs(60)));
}

#[test]
fn units_in_flight_and_unreported_units_stay_in_the_estimate() {
    let (limiter, fleet) = (window(100), fleet(10));
    let mut state = KeyState::new(&limiter);
    state.charge(&limiter, START, 5, &fleet);
    state.take_report(&limiter, START, &fleet);
    state.charge(&limiter, START, 7, &fleet);
    state.learn(&limiter, START, view(&limiter, START, 50));
    assert_eq!(state.peek(&limiter, START, 1).remaining, 38);
    state.confirm(&limiter, START, view(&limiter, START, 55));
    assert_eq!(state.peek(&limiter, START, 1).remaining, 38);
}

#[test]
fn an_exhausted_key_admits_by_chance() {
    let (limiter, fleet) = (window(60), fleet(10));
    let mut state = KeyState::new(&limiter);
    state.learn(&limiter, START, view(&limiter, START, 61));
    for _ in 0..1000 {
        assert!(!state.decide(&limiter, START, 1, &fleet, 0.0).admitted);
    }
    // After 65 s, 56 units count. The demand of 1,000 units has decayed; a fresh one exceeds what is left.
    let now = after(65);
    for _ in 0..30 {
        state.demand_for_test(now, 10);
    }
    assert!(
        !state
            .clone()
            .decide(&limiter, now, 1, &fleet, 0.01)
            .admitted
    );
    let admitted = state.decide(&limiter, now, 1, &fleet, 0.0);
    assert!(admitted.admitted);
    assert_eq!(admitted.report, ReportTiming::Immediately);
}

#[test]
fn a_quiet_hot_key_reports_with_the_next_flush() {
    let (limiter, fleet) = (window(1_000), fleet(10));
    let mut state = KeyState::new(&limiter);
    state.confirm(&limiter, START, view(&limiter, START, 300));
    let decision = state.decide(&limiter, after(3), 1, &fleet, 0.0);
    assert_eq!(decision.report, ReportTiming::NextFlush);
}

#[test]
fn an_event_that_is_older_than_the_view_is_ignored() {
    let limiter = window(100);
    let mut state = KeyState::new(&limiter);
    state.confirm(&limiter, after(2), view(&limiter, after(2), 40));
    state.learn(&limiter, after(2), view(&limiter, after(1), 101));
    assert_eq!(state.peek(&limiter, after(2), 1).remaining, 60);
}

#[test]
fn an_empty_key_is_cold_again() {
    let (limiter, fleet) = (bucket(1_000), fleet(10));
    let mut state = KeyState::new(&limiter);
    state.confirm(&limiter, START, view(&limiter, START, 500));
    assert!(!state.is_idle(&limiter, after(29)));
    assert!(state.is_idle(&limiter, after(30)));
    let decision = state.decide(&limiter, after(30), 1, &fleet, 0.0);
    assert_eq!(decision.report, ReportTiming::Later);
}

#[test]
fn cold_debt_of_a_window_fades_with_it() {
    let (limiter, fleet) = (window(1_000), fleet(10));
    let mut state = KeyState::new(&limiter);
    state.charge(&limiter, after(59), 20, &fleet);
    let mut later = state.clone();
    let report = state.take_report(&limiter, after(90), &fleet).unwrap();
    assert_eq!(report.units, 10.into());
    let report = later.take_report(&limiter, after(125), &fleet).unwrap();
    assert_eq!(report.units, 0.into());
}

#[test]
fn late_reports_share_the_drain_of_a_bucket_once() {
    // Ten nodes admit 20 units each within 6 s. A lone bucket of 1,000 per minute drains 100 of the 200.
    let (limiter, fleet) = (bucket(1_000), fleet(10));
    let mut record = FleetRecord::new(&limiter);
    let report = KeyReport {
        units: 20.into(),
        age: Duration::from_secs(6),
        ..KeyReport::default()
    };
    let views = (0..10).map(|node| record.merge(&limiter, after(6), report, node, &fleet).view);
    let mut last = views.last().unwrap();
    assert_eq!(used_units(&limiter, &mut last.counter, after(6)), 100);
}

#[test]
fn the_store_announces_a_key_above_its_limit_once_per_interval() {
    let (limiter, fleet) = (window(10), fleet(10));
    let mut record = FleetRecord::new(&limiter);
    let mut merge = |millis: u64, total: u64| {
        let now = START.plus(Duration::from_millis(millis));
        let merged = record.merge(&limiter, now, units(total), 1, &fleet);
        (merged.is_over, merged.is_announced)
    };
    assert_eq!(merge(0, 10), (false, false));
    assert_eq!(merge(1, 1), (true, true));
    assert_eq!(merge(2, 1), (true, false));
    assert_eq!(merge(101, 0), (true, true));
}

#[test]
fn a_refused_cost_puts_a_full_key_over_its_limit() {
    let (limiter, fleet) = (window(10), fleet(1));
    let (mut state, mut record) = (KeyState::new(&limiter), FleetRecord::new(&limiter));
    state.charge(&limiter, START, 8, &fleet);
    flush(&mut state, &mut record, &limiter, START, &fleet);
    assert!(!state.decide(&limiter, START, 3, &fleet, 0.0).admitted);
    let report = state.take_report(&limiter, START, &fleet).unwrap();
    assert_eq!((report.units.count, report.refused_cost), (0, 3));
    assert!(record.merge(&limiter, START, report, 1, &fleet).is_over);
    let fits = KeyReport {
        refused_cost: 2,
        ..KeyReport::default()
    };
    assert!(!record.merge(&limiter, START, fits, 1, &fleet).is_over);
}

#[test]
fn active_nodes_are_estimated_from_the_map() {
    let limiter = window(10);
    let fleet = fleet(1_000);
    for nodes in [1u64, 10, 100, 300] {
        let mut record = FleetRecord::new(&limiter);
        // SplitMix64, as an example of a hash of the node's identity.
        let hash = |node: u64| {
            let z = node.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        };
        let views = (1..=nodes).map(|node| {
            let merged = record.merge(&limiter, START, units(0), hash(node), &fleet);
            merged.view
        });
        let active = views.last().unwrap().active_nodes(&fleet);
        let error = (active / nodes as f64 - 1.0).abs();
        assert!(error < 0.25, "{active} instead of {nodes}");
    }
}

#[test]
fn the_intervals_of_a_fleet_have_bounds() {
    let millis = Duration::from_millis;
    let gaps = [1, 100, 1_000, 1_000_000].map(|nodes| fleet(nodes).gap());
    assert_eq!(
        gaps,
        [
            millis(2),
            Duration::from_micros(2_500),
            millis(25),
            millis(100)
        ]
    );
    assert_eq!(fleet(1_000).event_interval(&window(300)), millis(100));
    assert_eq!(fleet(1_000).event_interval(&window(301)), millis(1_000));
    assert_eq!(fleet(10).event_interval(&window(301)), millis(100));
}

#[test]
fn algorithms_that_need_an_order_are_not_supported() {
    let all = Algorithm::ALL.into_iter();
    let supported: Vec<_> = all.filter(|a| a.async_obstacle(60).is_none()).collect();
    let expected = [
        Algorithm::SlidingWindow,
        Algorithm::FixedWindow,
        Algorithm::TokenBucket,
        Algorithm::Gcra,
    ];
    assert_eq!(supported, expected);
    assert!(Algorithm::SlidingWindow.async_obstacle(61).is_some());
}

impl KeyState {
    /// Adds demand without a decision.
    fn demand_for_test(&mut self, now: Timestamp, cost: u64) {
        self.demand.add(now, cost);
    }
}

/// More than 10 a minute, and more than half.
fn share() -> Limiter {
    Limiter {
        ratio: Some(ShareRatio::nearest(0.5)),
        ..window(10)
    }
}

#[test]
fn both_counters_of_a_ratio_are_reported_with_the_next_flush() {
    let (limiter, fleet) = (share(), fleet(2));
    let (mut one, mut other) = (KeyState::new(&limiter), KeyState::new(&limiter));
    let mut record = FleetRecord::new(&limiter);
    let decided = one.decide(&limiter, START, 1, &fleet, 0.5);
    assert_eq!(decided.report, ReportTiming::NextFlush);
    // A key without any failure matters too: the share of the others would be too large.
    let charged = other.charge(&limiter, START, ChargeUnits::of_total(40), &fleet);
    assert_eq!(charged.report, ReportTiming::NextFlush);
    let report = flush(&mut other, &mut record, &limiter, START, &fleet);
    assert_eq!(report.units, ChargeUnits::of_total(40));
    flush(&mut one, &mut record, &limiter, START, &fleet);
    let reading = one.peek(&limiter, START, ChargeUnits::default());
    assert_eq!((reading.share.count, reading.share.total), (1, 41));
}

#[test]
fn a_ratio_is_decided_from_the_last_view() {
    let (limiter, fleet) = (share(), fleet(2));
    let mut state = KeyState::new(&limiter);
    for _ in 0..10 {
        assert!(state.decide(&limiter, START, 1, &fleet, 0.99).admitted);
    }
    let refused = state.decide(&limiter, START, 1, &fleet, 0.0);
    assert!(!refused.admitted);
    assert_eq!(refused.reading.retry_after(), None);
    // The other nodes have seen 20 requests of the total.
    let mut record = FleetRecord::new(&limiter);
    let others = KeyReport {
        units: ChargeUnits::of_total(20),
        ..KeyReport::default()
    };
    record.merge(&limiter, START, others, 2, &fleet);
    flush(&mut state, &mut record, &limiter, START, &fleet);
    for _ in 0..10 {
        assert!(state.decide(&limiter, START, 1, &fleet, 0.99).admitted);
    }
    assert!(!state.charge(&limiter, START, 1, &fleet).admitted);
}

#[test]
fn a_failed_report_of_a_ratio_is_reported_again() {
    let (limiter, fleet) = (share(), fleet(2));
    let mut state = KeyState::new(&limiter);
    state.charge(&limiter, START, 2, &fleet);
    state.take_report(&limiter, START, &fleet).unwrap();
    state.charge(&limiter, START, ChargeUnits::of_total(3), &fleet);
    state.report_failed();
    let report = state.take_report(&limiter, START, &fleet).unwrap();
    assert_eq!((report.units.count, report.units.total), (2, 5));
    assert!(!state.is_idle(&limiter, START));
}

#[test]
fn a_record_above_the_ratio_is_over() {
    let (limiter, fleet) = (share(), fleet(2));
    let mut record = FleetRecord::new(&limiter);
    let mut merge = |count: u64, total: u64| {
        let units = ChargeUnits { count, total };
        let report = KeyReport {
            units,
            ..KeyReport::default()
        };
        record.merge(&limiter, START, report, 1, &fleet).is_over
    };
    assert!(!merge(8, 30));
    assert!(!merge(7, 7));
    assert!(merge(8, 8));
}
