//! What a clock that goes back or jumps may do to a key: nothing for the worse.

use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;

use super::samples::Request;
use super::subject::{Operation, Subject};
use super::{Limiter, SKEW};

/// The latest moment that is jumped to, in the year 2112, and the longest wait that is tried.
const LAST: u64 = 1 << 52;

/// A step back that threads could make, as a share of the largest in 1/64: nothing is forgotten,
/// what is taken meanwhile counts later, and what is told to wait is exact.
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

/// A step back by more than threads could make, to a share of the time before in 1/64: what is counted stays, nobody waits for
/// the clock to show the old time again, and neither asking nor looking makes the wait longer.
///
/// `grain` is for how long the algorithm takes all moments for the same.
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

/// A jump forward, to a share of the time to come in 1/64, lets everything expire; back again, only what was taken at the
/// far end counts.
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
