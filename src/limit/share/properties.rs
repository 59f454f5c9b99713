//! Against two logs of timestamps, which forget nothing and round nothing.

use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;

use super::*;
use crate::limit::samples::{Request, at, limits, periods, requests, timed};
use crate::limit::subject::any_limiter;

/// The charges of a counter, as (time, units).
type Charges = Vec<(u64, u64)>;

/// The units of a window algorithm at `now`, rounded up.
fn naive(limiter: &Limiter, charges: &Charges, now: u64) -> u128 {
    let period = limiter.micros();
    let counted = |wanted: Option<u64>| -> u128 {
        let inside = charges
            .iter()
            .filter(|(time, _)| Some(time / period) == wanted);
        inside.map(|(_, units)| u128::from(*units)).sum()
    };
    let (window, period) = (now / period, u128::from(period));
    let left = period - u128::from(now) % period;
    let before = if limiter.algorithm == Algorithm::FixedWindow {
        0
    } else {
        counted(window.checked_sub(1)) * left
    };
    before.div_ceil(period) + counted(Some(window))
}

fn is_over(limiter: &Limiter, count: u128, total: u128) -> bool {
    let parts = u128::from(limiter.ratio.unwrap().parts());
    count > u128::from(limiter.limit) && 10_000 * count > parts * total
}

fn windows() -> impl Strategy<Value = Algorithm> {
    prop_oneof![Just(Algorithm::SlidingWindow), Just(Algorithm::FixedWindow)]
}

/// What requests do: whether they match `count`, and whether they are admitted or charged.
fn kinds() -> impl Strategy<Value = Vec<(bool, bool)>> {
    prop::collection::vec((any::<bool>(), any::<bool>()), 64)
}

fn agrees(limiter: &Limiter, requests: &[Request], kinds: &[(bool, bool)]) -> TestCaseResult {
    let mut key = ShareCounter::default();
    let (mut counted, mut all) = (Charges::new(), Charges::new());
    // A count of 32 bits must not be full.
    let timed = timed(requests, limiter.limit.min(1_000_000), limiter.micros());
    for ((now, cost), (is_counted, admits)) in timed.zip(kinds.iter().cycle()) {
        let units = ChargeUnits {
            count: if *is_counted { cost } else { 0 },
            total: cost,
        };
        let (count, total) = (naive(limiter, &counted, now), naive(limiter, &all, now));
        let after = (count + u128::from(units.count), total + u128::from(cost));
        let fits = !is_over(limiter, after.0, after.1);
        let looked = key.clone().peek(limiter, at(now), units);
        prop_assert_eq!(looked.fits, fits);
        let reading = if *admits {
            key.admit(limiter, at(now), units)
        } else {
            key.charge(limiter, at(now), units)
        };
        prop_assert_eq!(reading.fits, fits);
        let charged = fits || !admits;
        if charged {
            counted.push((now, units.count));
            all.push((now, cost));
        }
        let expected = if charged { after } else { (count, total) };
        let found = (reading.share.count.into(), reading.share.total.into());
        prop_assert_eq!(found, expected);
        prop_assert_eq!(reading.retry_after().is_some(), fits);
        let reset = now + reading.reset_after().as_micros() as u64;
        prop_assert_eq!(naive(limiter, &all, reset), 0);
        prop_assert!(reset == now || naive(limiter, &all, reset - 1) > 0);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn decides_as_the_logs_do(
        algorithm in windows(), limit in limits(), period in periods(), parts in 1..10_000u16,
        requests in requests(), kinds in kinds()
    ) {
        let limiter = Limiter {
            ratio: Some(ShareRatio::nearest(f64::from(parts) / 10_000.0)),
            ..Limiter::new(algorithm, limit, Duration::from_micros(period))
        };
        prop_assert_eq!(limiter.ratio.unwrap().parts(), parts);
        agrees(&limiter, &requests, &kinds)?;
    }

    /// After any order of times, both counters are in one window, and the total includes the count.
    #[test]
    fn both_counters_share_a_window(
        algorithm in windows(), period in periods(), moments in prop::collection::vec((0..256u64, any::<bool>()), 1..100)
    ) {
        let limiter = Limiter {
            ratio: Some(ShareRatio::nearest(0.5)),
            ..Limiter::new(algorithm, 5, Duration::from_micros(period))
        };
        let mut key = ShareCounter::default();
        for (moment, is_counted) in moments {
            let now = crate::limit::samples::START + (u128::from(moment) * u128::from(period) / 64) as u64;
            let units = if is_counted { 1.into() } else { ChargeUnits::of_total(1) };
            let reading = key.charge(&limiter, at(now), units);
            prop_assert!(reading.share.count <= reading.share.total);
            prop_assert_eq!(key.count[0], key.total[0]);
        }
    }

    #[test]
    fn no_input_overflows(
        limiter in any_limiter(Algorithm::SlidingWindow), algorithm in windows(), parts in 1..10_000u16,
        count: State, total: State, now: u64, units: (u64, u64)
    ) {
        let ratio = Some(ShareRatio::nearest(f64::from(parts) / 10_000.0));
        let limiter = Limiter { algorithm, ratio, ..limiter };
        let units = ChargeUnits { count: units.0, total: units.1 };
        let mut key = ShareCounter { count, total };
        for moment in [now, now / 2, u64::MAX, 0, now] {
            let looked = key.clone().peek(&limiter, at(moment), units);
            prop_assert_eq!(key.admit(&limiter, at(moment), units).fits, looked.fits);
            key.charge(&limiter, at(moment), units);
        }
    }
}
