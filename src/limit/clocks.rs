//! Tests that a clock that goes back or jumps never puts a key at a disadvantage.

use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;

use super::samples::Request;
use super::subject::{Operation, Subject};
use super::{Limiter, SKEW};

/// The latest time that a test jumps to, in the year 2112, and the longest wait that it tries.
const LAST: u64 = 1 << 52;

/// Tests a small step back, as between threads, in 1/64 of the largest: nothing is forgotten, units
/// charged meanwhile count later, and `retry_after` is exact.
pub(super) fn small_step_back(
    limiter: &Limiter,
    operation: Operation,
    requests: &[Request],
    share: u64,
) -> TestCaseResult {
    let (mut subject, now) = Subject::after(limiter, operation, requests);
    let largest = u128::from(limiter.micros().max(SKEW));
    let past = now - (largest * u128::from(share) / 64) as u64;
    subject.charge(now, 1);
    let before = subject.peek(now, 1);
    let after = subject.peek(past, 1);
    prop_assert!(after.remaining <= before.remaining);
    prop_assert!(before.fits || !after.fits);
    let wait = after
        .retry_after()
        .map_or(0, |wait| wait.as_micros() as u64);
    if wait > 0 && wait < LAST {
        prop_assert!(subject.peek(past + wait, 1).fits);
        prop_assert!(!subject.peek(past + wait - 1, 1).fits);
    }
    if subject.admit(past, after.remaining).fits {
        let caught_up = subject.peek(now, 1).remaining;
        prop_assert!(caught_up <= before.remaining - after.remaining);
    }
    Ok(())
}

/// Tests a large step back, to a time in 1/64 of the time before: counts stay, no key waits for the
/// clock to reach the old time again, and neither charges nor peeks extend the wait.
///
/// `grain` is the time within which the algorithm does not distinguish two points in time.
pub(super) fn large_step_back(
    limiter: &Limiter,
    operation: Operation,
    requests: &[Request],
    (share, grain): (u64, u64),
) -> TestCaseResult {
    let (mut subject, now) = Subject::after(limiter, operation, requests);
    subject.charge(now, 1);
    let latest = now - limiter.micros().max(SKEW) - limiter.micros() - 1;
    let past = latest - latest / 64 * share;
    let before = subject.peek(now, 1);
    let after = subject.peek(past, 1);
    prop_assert!(after.remaining <= subject.peek(now + grain, 1).remaining);
    let slack = limiter.period;
    prop_assert!(after.reset_after() <= before.reset_after().saturating_add(slack));
    let (Some(wait), Some(wait_before)) = (after.retry_after(), before.retry_after()) else {
        return Ok(());
    };
    prop_assert!(wait <= wait_before.saturating_add(slack));
    let wait = wait.as_micros() as u64;
    if wait > 0 && wait < LAST {
        for ask in [Subject::admit, Subject::look] {
            let mut subject = subject.clone();
            for moment in [past, past + wait / 3, past + wait - 1] {
                prop_assert!(!ask(&mut subject, moment, 1).fits);
            }
            prop_assert!(ask(&mut subject, past + wait, 1).fits);
        }
    }
    Ok(())
}

/// Tests a jump forward, in 1/64 of the remaining time: everything expires. After the jump back,
/// only the units charged at the later time count.
pub(super) fn jump_forward(
    limiter: &Limiter,
    operation: Operation,
    requests: &[Request],
    share: u64,
) -> TestCaseResult {
    let (mut subject, now) = Subject::after(limiter, operation, requests);
    let reset = subject.peek(now, 1).reset_after().as_micros() as u64;
    let end = now.saturating_add(reset);
    if end >= LAST {
        return Ok(());
    }
    let farthest = limiter.micros().saturating_mul(1 << 30).min(LAST - end);
    let future = end + farthest / 64 * share;
    let capacity = limiter.capacity();
    prop_assert_eq!(
        subject.peek(future, 1).remaining,
        subject_of_nothing(limiter, future)
    );
    let reading = subject.admit(future, 1);
    prop_assert!(reading.fits);
    let back = subject.peek(now, 1);
    prop_assert!(back.remaining >= (capacity - 1).min(reading.remaining));
    Ok(())
}

fn subject_of_nothing(limiter: &Limiter, now: u64) -> u64 {
    Subject::of(limiter).peek(now, 1).remaining
}
