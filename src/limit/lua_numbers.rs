//! The algorithms in Lua's only number type, a double, as a script in a shared store computes them. Every
//! intermediate value is a whole number of at most 53 bits, and every result equals that of the Rust code.

use std::time::Duration;

use proptest::prelude::*;

use super::samples::{at, limits, periods, requests, timed};
use super::subject::{Operation, Subject, operations};
use super::{Algorithm, CounterReading, Limiter};

/// The state of a key: a time or a window's number, and two counts.
type Record = (f64, f64, f64);

/// Whether the cost fits, units left, microseconds until a cost fits, microseconds until the reset.
type Result = (bool, f64, Option<f64>, f64);

/// Asserts that Lua computes `value` exactly.
fn exact(value: f64) -> f64 {
    assert!(value.fract() == 0.0 && value.abs() <= 9_007_199_254_740_992.0);
    value
}

/// `a × b / c` rounded down, and the remainder, by long division in digits of 8 bits.
fn divide(a: f64, b: f64, c: f64) -> (f64, f64) {
    if a * b <= 9_007_199_254_740_992.0 {
        let quotient = (a * b / c).floor();
        return (exact(quotient), exact(a * b - quotient * c));
    }
    let (mut quotient, mut rest, mut a) = (0.0, 0.0, a);
    for digit in (0..6).rev() {
        let weight = 256f64.powi(digit);
        let high = (a / weight).floor();
        a = exact(a - high * weight);
        let (old, new) = (exact(rest * 256.0), exact(high * b));
        let (of_old, of_new) = ((old / c).floor(), (new / c).floor());
        rest = exact(old - of_old * c) + exact(new - of_new * c);
        quotient = exact(quotient * 256.0 + of_old + of_new);
        if rest >= c {
            (rest, quotient) = (rest - c, quotient + 1.0);
        }
    }
    (quotient, rest)
}

fn down(a: f64, b: f64, c: f64) -> f64 {
    divide(a, b, c).0
}

fn up(a: f64, b: f64, c: f64) -> f64 {
    let (quotient, rest) = divide(a, b, c);
    quotient + f64::from(rest > 0.0)
}

/// Runs one request on a record; the clock never goes back here.
fn run(limiter: &Limiter, record: &mut Record, now: f64, cost: f64, charge: bool) -> Result {
    match limiter.algorithm {
        Algorithm::SlidingWindow => sliding(limiter, record, now, cost, charge),
        Algorithm::FixedWindow => fixed(limiter, record, now, cost, charge),
        _ => level(limiter, record, now, cost, charge),
    }
}

fn sliding(limiter: &Limiter, record: &mut Record, now: f64, cost: f64, charge: bool) -> Result {
    let (period, limit) = (limiter.micros() as f64, limiter.limit as f64);
    let index = (now / period).floor();
    let elapsed = exact(now - index * period);
    let (previous, mut current) = match index - record.0 {
        0.0 => (record.1, record.2),
        1.0 => (record.2, 0.0),
        _ => (0.0, 0.0),
    };
    let rest = period - elapsed;
    let faded = up(previous, rest, period);
    let fits = current + faded + cost <= limit;
    if fits || charge {
        current = exact((current + cost).min(f64::from(u32::MAX)));
        *record = (index, previous, current);
    }
    let faded_to = |count: f64, room: f64| {
        if count <= room {
            0.0
        } else {
            period - down(room, period, count)
        }
    };
    let room = limit - cost;
    let retry = match (fits, room < 0.0) {
        (true, _) => Some(0.0),
        (_, true) => None,
        _ if room >= current => Some((faded_to(previous, room - current) - elapsed).max(0.0)),
        _ => Some(rest + faded_to(current, room)),
    };
    let reset = match (current > 0.0, previous > 0.0) {
        (true, _) => rest + period,
        (_, true) => rest,
        _ => 0.0,
    };
    (fits, (limit - current - faded).max(0.0), retry, reset)
}

fn fixed(limiter: &Limiter, record: &mut Record, now: f64, cost: f64, charge: bool) -> Result {
    let (period, limit) = (limiter.micros() as f64, limiter.limit as f64);
    let index = (now / period).floor();
    let rest = period - exact(now - index * period);
    let mut count = if record.0 == index { record.1 } else { 0.0 };
    let fits = count + cost <= limit;
    if fits || charge {
        count = exact((count + cost).min(f64::from(u32::MAX)));
        *record = (index, count, 0.0);
    }
    let retry = if fits { 0.0 } else { rest };
    let retry = (fits || cost <= limit).then_some(retry);
    let reset = if count > 0.0 { rest } else { 0.0 };
    (fits, (limit - count).max(0.0), retry, reset)
}

/// `token_bucket`, `gcra` and `leaky_bucket`: the units that have not drained at a time.
fn level(limiter: &Limiter, record: &mut Record, now: f64, cost: f64, charge: bool) -> Result {
    let (period, limit) = (limiter.micros() as f64, limiter.limit as f64);
    let capacity = limiter.capacity() as f64;
    let (mut since, mut units) = (record.0, record.1);
    let periods = ((now - since) / period).floor();
    // If more periods have passed than there are units, nothing is left; otherwise the product is small.
    units = if periods >= units {
        0.0
    } else {
        (units - exact(periods * limit)).max(0.0)
    };
    since = exact(since + exact(periods * period));
    let mut elapsed = exact(now - since);
    let mut drained = if units > 0.0 {
        down(limit, elapsed, period)
    } else {
        0.0
    };
    if drained >= units {
        (units, since, elapsed, drained) = (0.0, now, 0.0, 0.0);
    }
    let fits = units - drained + cost <= capacity;
    let empty_in = |units: f64, room: f64| {
        if units <= room {
            0.0
        } else {
            (up(units - room, period, limit) - elapsed).max(0.0)
        }
    };
    let wait = empty_in(units, 0.0);
    if fits || charge {
        units = exact((units + cost).min(8_589_934_591.0));
        *record = (since, units, 0.0);
    }
    let waits = limiter.algorithm == Algorithm::LeakyBucket;
    let retry = match fits {
        true if waits => Some(wait),
        true => Some(0.0),
        false => (cost <= capacity).then(|| empty_in(units, capacity - cost)),
    };
    (
        fits,
        (capacity - (units - drained)).max(0.0),
        retry,
        empty_in(units, 0.0),
    )
}

fn seen(reading: &CounterReading) -> Result {
    let micros = |duration: Duration| duration.as_micros() as f64;
    let retry = if reading.fits {
        Some(reading.wait())
    } else {
        reading.retry_after()
    };
    let reset = micros(reading.reset_after());
    (
        reading.fits,
        reading.remaining as f64,
        retry.map(micros),
        reset,
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn doubles_give_the_same_results(
        algorithm in prop::sample::select(vec![
            Algorithm::SlidingWindow,
            Algorithm::FixedWindow,
            Algorithm::TokenBucket,
            Algorithm::LeakyBucket,
            Algorithm::Gcra,
        ]),
        (limit, burst, queue) in (limits(), limits(), 0..1_000u32),
        period in periods(),
        operation in operations(),
        requests in requests(),
    ) {
        let limiter = Limiter {
            burst,
            queue,
            ..Limiter::new(algorithm, limit, Duration::from_micros(period))
        };
        let mut subject = Subject::of(&limiter);
        let mut record = (-2.0, 0.0, 0.0);
        let refills = algorithm.row().recovery == super::RecoveryKind::Refills;
        // A level that drains for centuries counts as one that never drains.
        let longest = (1u128 << 34) * u128::from(period) / u128::from(limit);
        prop_assume!(!refills || longest < 1 << 53);
        for (now, cost) in timed(&requests, limiter.capacity(), limiter.micros()) {
            if refills && record.1 == 0.0 {
                record.0 = now as f64;
            }
            let reading = subject.carry_out(operation, now, cost);
            let charge = operation == Operation::Charge;
            let lua = run(&limiter, &mut record, now as f64, cost as f64, charge);
            prop_assert_eq!(lua, seen(&reading), "at {:?}", at(now));
        }
    }
}
