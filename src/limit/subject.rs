//! A key under test, whatever its shape, and the comparison with a log of timestamps that forgets
//! nothing and rounds nothing.

use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;

use super::samples::{Request, SECOND, at, timed};
use super::{Counter, CounterReading, Limiter, State};

/// The longest wait that a test can add to a time without overflow.
const LONGEST: u64 = 1 << 52;

/// Whether a limiter admits `cost` at `now` after these charges of (time, cost), in plain exact
/// arithmetic.
pub(super) type Naive = fn(&Limiter, &[(u64, u64)], u64, u64) -> bool;

/// A limiter with the counter of one key.
#[derive(Clone)]
pub(super) struct Subject {
    pub(super) limiter: Limiter,
    counter: Counter,
    /// The identity of the next lease: each request takes its own.
    lease: u64,
}

/// The operation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Admit,
    Charge,
}

// === impl Subject ===

impl Subject {
    pub(super) fn of(limiter: &Limiter) -> Self {
        Self {
            limiter: *limiter,
            counter: Counter::new(limiter.shape(), limiter),
            lease: 0,
        }
    }

    pub(super) fn admit(&mut self, now: u64, cost: u64) -> CounterReading {
        self.lease += 1;
        self.counter.admit(&self.limiter, at(now), cost, self.lease)
    }

    pub(super) fn charge(&mut self, now: u64, cost: u64) -> CounterReading {
        self.lease += 1;
        self.counter
            .charge(&self.limiter, at(now), cost, self.lease)
    }

    /// Peeks at a copy of the counter.
    pub(super) fn peek(&self, now: u64, cost: u64) -> CounterReading {
        self.counter.clone().peek(&self.limiter, at(now), cost)
    }

    /// Peeks as the store does: the counter moves if the clock was set back.
    pub(super) fn look(&mut self, now: u64, cost: u64) -> CounterReading {
        self.counter.peek(&self.limiter, at(now), cost)
    }

    pub(super) fn carry_out(
        &mut self,
        operation: Operation,
        now: u64,
        cost: u64,
    ) -> CounterReading {
        match operation {
            Operation::Admit => self.admit(now, cost),
            Operation::Charge => self.charge(now, cost),
        }
    }

    /// The subject after `requests`, and the time of the last one.
    pub(super) fn after(
        limiter: &Limiter,
        operation: Operation,
        requests: &[Request],
    ) -> (Self, u64) {
        let mut subject = Self::of(limiter);
        let mut last = 0;
        for (now, cost) in timed(requests, limiter.capacity(), limiter.micros()) {
            subject.carry_out(operation, now, cost);
            last = now;
        }
        (subject, last)
    }
}

pub(super) fn operations() -> impl Strategy<Value = Operation> {
    prop_oneof![Just(Operation::Admit), Just(Operation::Charge)]
}

/// Checks that every reading of the requests equals the naive log's.
pub(super) fn agrees(
    limiter: &Limiter,
    naive: Naive,
    operation: Operation,
    requests: &[Request],
) -> TestCaseResult {
    let mut subject = Subject::of(limiter);
    let mut charges = Vec::new();
    for (now, cost) in timed(requests, limiter.capacity(), limiter.micros()) {
        let looked = subject.peek(now, cost);
        let fits = naive(limiter, &charges, now, cost);
        let reading = subject.carry_out(operation, now, cost);
        prop_assert_eq!(reading.fits, fits);
        prop_assert_eq!(looked.fits, fits);
        prop_assert_eq!(looked.wait(), reading.wait());
        if fits || operation == Operation::Charge {
            charges.push((now, cost));
        } else {
            prop_assert_eq!(looked, reading);
        }
        let fits = |wait: u64, cost: u64| {
            let naive = naive(limiter, &charges, now + wait, cost);
            assert_eq!(subject.peek(now + wait, cost).fits, naive);
            naive
        };
        retry_is_exact(limiter, &reading, cost, fits)?;
        remaining_is_exact(&subject, now, reading.remaining)?;
        reset_is_exact(limiter, &reading, fits)?;
    }
    Ok(())
}

/// Checks that `retry_after` is exact, in microseconds and rounded up to seconds.
fn retry_is_exact(
    limiter: &Limiter,
    reading: &CounterReading,
    cost: u64,
    fits: impl Fn(u64, u64) -> bool,
) -> TestCaseResult {
    let Some(wait) = reading.retry_after() else {
        prop_assert!(cost > limiter.capacity());
        return Ok(());
    };
    prop_assert!(cost <= limiter.capacity());
    prop_assert_eq!(wait.is_zero(), reading.fits);
    let wait = wait.as_micros() as u64;
    if wait > 0 && wait < LONGEST {
        prop_assert!(fits(wait, cost) && !fits(wait - 1, cost));
        let seconds = wait.div_ceil(SECOND);
        prop_assert!(fits(seconds * SECOND, cost));
        prop_assert!(!fits((seconds - 1) * SECOND, cost));
    }
    Ok(())
}

/// Checks that the remaining units are admitted at once, and not one more.
fn remaining_is_exact(subject: &Subject, now: u64, remaining: u64) -> TestCaseResult {
    let mut subject = subject.clone();
    if remaining > 1 {
        prop_assert!(subject.admit(now, remaining - 1).fits);
    }
    prop_assert_eq!(subject.admit(now, 1).fits, remaining > 0);
    prop_assert!(!subject.admit(now, 1).fits);
    Ok(())
}

/// Checks that the full capacity is admitted from the reset on, and not before.
fn reset_is_exact(
    limiter: &Limiter,
    reading: &CounterReading,
    fits: impl Fn(u64, u64) -> bool,
) -> TestCaseResult {
    let reset = reading.reset_after().as_micros() as u64;
    if reset < LONGEST {
        prop_assert!(fits(reset, limiter.capacity()));
        prop_assert!(reset == 0 || !fits(reset - 1, limiter.capacity()));
    }
    Ok(())
}

/// Checks that nothing overflows and that peek agrees with admit, for any words.
pub(super) fn survives(limiter: &Limiter, state: State, now: u64, cost: u64) -> TestCaseResult {
    for mut state in [state, State::default()] {
        limiter.fill(&state, at(now));
        limiter.expires(&state, at(now));
        let looked = limiter.peek(&state, at(now), cost);
        prop_assert_eq!(limiter.admit(&mut state, at(now), cost).fits, looked.fits);
        limiter.charge(&mut state, at(now), cost);
        limiter.rebase(&mut state, at(now));
    }
    let mut subject = Subject::of(limiter);
    for moment in [now, now / 2, u64::MAX, 0, now] {
        subject.charge(moment, cost);
        subject.admit(moment, cost);
    }
    Ok(())
}

/// Any limiter with this algorithm.
pub(super) fn any_limiter(algorithm: super::Algorithm) -> impl Strategy<Value = Limiter> {
    let duration = (any::<u64>(), 0..1_000_000_000u32).prop_map(|(s, n)| Duration::new(s, n));
    let short = (0..100_000u64).prop_map(Duration::from_micros);
    let duration = prop_oneof![duration, short];
    let numbers = (any::<u64>(), any::<u64>(), 0..200u16, any::<u32>());
    (numbers, duration.clone(), duration).prop_map(move |(numbers, period, max_wait)| {
        let (limit, burst, slices, queue) = numbers;
        Limiter {
            burst,
            slices,
            queue,
            max_wait,
            ..Limiter::new(algorithm, limit, period)
        }
    })
}
