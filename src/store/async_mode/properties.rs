//! Properties that hold for any limiter and any requests.

use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::limit::Algorithm;

/// The start of a window of any whole number of seconds below a minute.
const START: u64 = 1_767_225_600 * 1_000_000;

/// An operation on a key: a wait in microseconds, a cost, a draw and what happens after the request.
type Operation = (u64, u64, f64, Exchange);

/// What a node does with the store after a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exchange {
    Nothing,
    Confirmed,
    Failed,
}

fn limiters() -> impl Strategy<Value = Limiter> {
    let algorithms = prop_oneof![
        Just(Algorithm::SlidingWindow),
        Just(Algorithm::FixedWindow),
        Just(Algorithm::TokenBucket),
        Just(Algorithm::Gcra),
    ];
    let numbers = (1..200u64, 1..50u64, 1..10u16, 1..20_000u64);
    (algorithms, numbers).prop_map(|(algorithm, (limit, burst, slices, millis))| Limiter {
        burst,
        slices,
        ..Limiter::new(algorithm, limit, Duration::from_millis(millis))
    })
}

fn any_limiter() -> impl Strategy<Value = Limiter> {
    let period = (any::<u64>(), 0..1_000_000_000u32).prop_map(|(s, n)| Duration::new(s, n));
    let numbers = (any::<u64>(), any::<u64>(), 0..100u16);
    (limiters(), period, numbers).prop_map(|(limiter, period, (limit, burst, slices))| Limiter {
        limit,
        burst,
        slices,
        period,
        ..limiter
    })
}

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let wait = prop_oneof![3 => 0..10_000u64, 2 => 0..1_000_000u64, 1 => 0..20_000_000u64];
    let cost = prop_oneof![3 => Just(1u64), 1 => 0..20u64];
    let exchange = prop_oneof![
        Just(Exchange::Nothing),
        Just(Exchange::Confirmed),
        Just(Exchange::Failed),
    ];
    prop::collection::vec((wait, cost, 0.0..1.0f64, exchange), 1..200)
}

fn fleet(nodes: u32) -> FleetInfo {
    FleetInfo {
        nodes,
        sync_interval: Duration::from_millis(100),
    }
}

proptest! {
    #[test]
    fn a_lone_node_that_reports_at_once_decides_as_the_limiter(
        limiter in limiters(),
        operations in operations(),
    ) {
        let (fleet, mut now) = (fleet(1), START);
        let (mut state, mut record) = (KeyState::new(&limiter), FleetRecord::new(&limiter));
        let mut truth = Counter::new(limiter.shape(), &limiter);
        for (wait, cost, _, _) in operations {
            now += wait;
            let at = Timestamp::from_micros(now);
            let decision = state.decide(&limiter, at, cost, &fleet, 0.0);
            let reading = truth.admit(&limiter, at, cost, 0);
            prop_assert_eq!(decision.admitted, reading.fits);
            prop_assert_eq!(decision.reading, reading);
            let report = state.take_report(&limiter, at, &fleet).unwrap();
            let merged = record.merge(&limiter, at, report, 0, &fleet);
            state.confirm(&limiter, at, merged.view);
        }
    }

    #[test]
    fn a_lone_node_never_admits_more_than_the_limiter(
        limiter in limiters(),
        operations in operations(),
    ) {
        let (fleet, mut now) = (fleet(1), START);
        let (mut state, mut record) = (KeyState::new(&limiter), FleetRecord::new(&limiter));
        let mut truth = Counter::new(limiter.shape(), &limiter);
        for (wait, cost, draw, exchange) in operations {
            now += wait;
            let at = Timestamp::from_micros(now);
            if state.decide(&limiter, at, cost, &fleet, draw).admitted {
                prop_assert!(truth.admit(&limiter, at, cost, 0).fits);
            }
            if exchange == Exchange::Nothing {
                continue;
            }
            let report = state.take_report(&limiter, at, &fleet).unwrap();
            if exchange == Exchange::Failed {
                state.report_failed();
            } else {
                let merged = record.merge(&limiter, at, report, 0, &fleet);
                state.confirm(&limiter, at, merged.view);
            }
        }
    }

    #[test]
    fn no_unit_is_lost_or_reported_twice(
        operations in operations(),
        nodes in 1..20u32,
    ) {
        // A window so long that nothing ages.
        let limiter = Limiter::new(Algorithm::SlidingWindow, 500, Duration::from_secs(1 << 40));
        let (fleet, mut now) = (fleet(nodes), START);
        let (mut state, mut record) = (KeyState::new(&limiter), FleetRecord::new(&limiter));
        let (mut admitted, mut merged_units) = (0, 0);
        for (wait, cost, draw, exchange) in operations {
            now += wait;
            let at = Timestamp::from_micros(now);
            if state.decide(&limiter, at, cost, &fleet, draw).admitted {
                admitted += cost;
            }
            match (exchange, state.take_report(&limiter, at, &fleet)) {
                (Exchange::Nothing | Exchange::Failed, _) => state.report_failed(),
                (_, Some(report)) => {
                    merged_units += report.units.count;
                    let merged = record.merge(&limiter, at, report, 0, &fleet);
                    state.confirm(&limiter, at, merged.view);
                }
                (_, None) => {}
            }
            let left = limiter.limit - admitted;
            prop_assert_eq!(state.peek(&limiter, at, 1).remaining, left);
        }
        state.report_failed();
        let last = state.take_report(&limiter, Timestamp::from_micros(now), &fleet).unwrap();
        prop_assert_eq!(merged_units + last.units.count, admitted);
    }

    #[test]
    fn nothing_overflows(
        limiter in any_limiter(),
        fleet in (any::<u32>(), any::<u64>()),
        operations in prop::collection::vec(
            (any::<u64>(), any::<u64>(), 0.0..1.0f64, any::<u64>(), any::<u8>()),
            1..30,
        ),
    ) {
        let fleet = FleetInfo { nodes: fleet.0, sync_interval: Duration::from_micros(fleet.1) };
        let (mut state, mut record) = (KeyState::new(&limiter), FleetRecord::new(&limiter));
        for (now, cost, draw, node, choice) in operations {
            let at = Timestamp::from_micros(now);
            state.decide(&limiter, at, cost, &fleet, draw);
            if choice & 1 > 0 {
                state.charge(&limiter, at, cost, &fleet);
            }
            state.peek(&limiter, at, cost);
            state.is_idle(&limiter, at);
            if choice & 2 > 0 && let Some(report) = state.take_report(&limiter, at, &fleet) {
                let merged = record.merge(&limiter, at, report, node, &fleet);
                merged.view.active_nodes(&fleet);
                if choice & 4 > 0 {
                    state.confirm(&limiter, at, merged.view);
                } else if choice & 8 > 0 {
                    state.learn(&limiter, at, merged.view);
                }
            }
            if choice & 16 > 0 {
                state.report_failed();
            }
            fleet.gap();
        }
    }
}
