//! The reasons to avoid a server: failed health checks, an open circuit, consecutive failures, a 503 with
//! `Retry-After`. Never selects a server and never reads a clock.
//!
//! For a server without any of these, a request only loads the atomic `marks`. The record behind the lock
//! is read for marked servers.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use super::{BreakerPolicy, HealthPolicy};
use crate::clock::Timestamp;

/// The number of consecutive failures that ejects a server.
const STRIKES: u32 = 3;

/// The duration of the first ejection. Each consecutive ejection lasts twice as long.
const EJECTED: Duration = Duration::from_secs(1);

/// The longest ejection.
const EJECTED_MOST: Duration = Duration::from_secs(30);

/// The maximum of an origin server's `Retry-After`.
const BUSY_MOST: Duration = Duration::from_secs(60);

/// The health of one server, shared by all cores.
#[derive(Debug, Default)]
pub(super) struct ServerHealth {
    marks: AtomicU8,
    record: Mutex<HealthRecord>,
}

/// The bits of `ServerHealth::marks`.
pub(super) mod mark {
    /// The health checks fail.
    pub(crate) const UNHEALTHY: u8 = 1;
    /// The circuit is open.
    pub(crate) const OPEN: u8 = 2;
    /// The server is ejected after consecutive failures.
    pub(crate) const EJECTED: u8 = 4;
    /// The server sent a 503 with `Retry-After`.
    pub(crate) const BUSY: u8 = 8;
    /// The last request failed. The server is still eligible.
    pub(super) const STRUCK: u8 = 16;
    /// An operator drains the server.
    pub(crate) const DRAINED: u8 = 32;
}

/// Whether a server may receive a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Eligibility {
    /// Without restriction.
    Yes,
    /// For one trial request, which decides about the server.
    Try,
    /// Only if no other server is eligible.
    Reluctant,
    /// Not now. The duration until the server may be eligible, if known.
    No(Option<Duration>),
}

/// The right to send a server its trial request.
#[derive(Clone, Copy, Debug)]
pub(super) struct TrialClaim {
    at: Timestamp,
    /// The marks that the trial decides about.
    kinds: u8,
}

#[derive(Debug, Default)]
struct HealthRecord {
    /// Consecutive failures.
    strikes: u32,
    /// Consecutive ejections.
    ejections: u32,
    ejected: Until,
    /// The times of recent failures, for the circuit breaker.
    failures: VecDeque<Timestamp>,
    open: Until,
    busy: Until,
    /// Consecutive health checks that contradict the current health.
    checks: u32,
}

/// A time span that ends even if the clock is set back.
#[derive(Clone, Copy, Debug, Default)]
struct Until {
    end: Timestamp,
    span: Duration,
}

// === impl ServerHealth ===

impl ServerHealth {
    /// Returns whether the server has none of the `relevant_marks` marks.
    pub(super) fn is_clear(&self, relevant_marks: u8) -> bool {
        self.marks.load(Ordering::Relaxed) & relevant_marks == 0
    }

    /// Returns whether the server is ejected after consecutive failures.
    pub(super) fn is_ejected(&self) -> bool {
        !self.is_clear(mark::EJECTED)
    }

    /// Returns whether the server may receive a request now, given the `relevant_marks` marks.
    pub(super) fn eligibility(&self, relevant_marks: u8, now: Timestamp) -> Eligibility {
        if self.is_clear(relevant_marks) {
            return Eligibility::Yes;
        }
        let record = self.record.lock();
        let marks = self.marks.load(Ordering::Relaxed) & relevant_marks;
        let left = |kind, until: Until| (marks & kind != 0).then(|| until.left(now));
        if marks & (mark::UNHEALTHY | mark::DRAINED) != 0 {
            return Eligibility::No(None);
        }
        if left(mark::BUSY, record.busy) == Some(None) {
            self.unmark(mark::BUSY);
        }
        match (
            left(mark::OPEN, record.open),
            left(mark::EJECTED, record.ejected),
            left(mark::BUSY, record.busy),
        ) {
            (Some(left @ Some(_)), ..) => Eligibility::No(left),
            (_, Some(Some(_)), _) | (.., Some(Some(_))) => Eligibility::Reluctant,
            (None, None, _) => Eligibility::Yes,
            _ => Eligibility::Try,
        }
    }

    /// Claims the trial request of a server. `None` if another request has claimed it. If that request never
    /// ends, another may claim it after the span of the mark has passed again.
    pub(super) fn claim(&self, now: Timestamp) -> Option<TrialClaim> {
        let mut record = self.record.lock();
        let marks = self.marks.load(Ordering::Relaxed);
        let mut claim = TrialClaim { at: now, kinds: 0 };
        for (kind, until) in record.tried() {
            if marks & kind != 0 && until.left(now).is_none() {
                *until = Until::after(until.span, now);
                claim.kinds |= kind;
            }
        }
        (claim.kinds != 0).then_some(claim)
    }

    /// Releases a claim without a result, so that the next request may try the server. Later results and
    /// claims are kept.
    pub(super) fn release(&self, claim: TrialClaim) {
        let mut record = self.record.lock();
        for (kind, until) in record.tried() {
            if claim.kinds & kind != 0 && until.end == claim.at.plus(until.span) {
                until.end = claim.at;
            }
        }
    }

    /// Records a response. `tried` is set if the request was the server's trial.
    pub(super) fn succeeded(&self, tried: bool) {
        const PAST: u8 = mark::EJECTED | mark::STRUCK;
        if self.is_clear(PAST | if tried { mark::OPEN } else { 0 }) {
            return;
        }
        let mut record = self.record.lock();
        record.strikes = 0;
        record.ejections = 0;
        self.unmark(PAST);
        if tried {
            record.failures.clear();
            self.unmark(mark::OPEN);
        }
    }

    /// Records a failure. `may_eject` returns whether enough other servers are left to eject this one.
    pub(super) fn failed(
        &self,
        tried: bool,
        now: Timestamp,
        breaker: Option<&BreakerPolicy>,
        may_eject: impl FnOnce() -> bool,
    ) {
        let mut record = self.record.lock();
        self.mark(mark::STRUCK);
        if let Some(breaker) = breaker {
            let is_open = !self.is_clear(mark::OPEN);
            if (is_open && tried) || (!is_open && record.is_too_often(breaker, now)) {
                record.open = Until::after(breaker.open_for, now);
                self.mark(mark::OPEN);
            }
        }
        record.strikes = record.strikes.saturating_add(1);
        let again = self.is_ejected() && !tried;
        if record.strikes >= STRIKES && !again && may_eject() {
            let span = EJECTED * (1 << record.ejections.min(10));
            record.ejections = record.ejections.saturating_add(1);
            record.ejected = Until::after(span.min(EJECTED_MOST), now);
            self.mark(mark::EJECTED);
        }
    }

    /// Marks the server as busy for `time`.
    pub(super) fn requested_pause(&self, time: Duration, now: Timestamp) {
        let mut record = self.record.lock();
        record.busy = Until::after(time.min(BUSY_MOST), now);
        self.mark(mark::BUSY);
    }

    /// Records the result of a health check. Returns the new health, `None` if it did not change.
    pub(super) fn checked(&self, passed: bool, health: &HealthPolicy) -> Option<bool> {
        let mut record = self.record.lock();
        let is_healthy = self.is_clear(mark::UNHEALTHY);
        if passed == is_healthy {
            record.checks = 0;
            return None;
        }
        record.checks = record.checks.saturating_add(1);
        let enough = if passed {
            health.healthy
        } else {
            health.unhealthy
        };
        if record.checks < enough {
            return None;
        }
        record.checks = 0;
        if passed {
            self.unmark(mark::UNHEALTHY)
        } else {
            self.mark(mark::UNHEALTHY)
        }
        Some(passed)
    }

    /// Returns the marks of the server.
    pub(super) fn marks(&self) -> u8 {
        self.marks.load(Ordering::Relaxed)
    }

    pub(super) fn mark(&self, marks: u8) {
        self.marks.fetch_or(marks, Ordering::Relaxed);
    }

    pub(super) fn unmark(&self, marks: u8) {
        self.marks.fetch_and(!marks, Ordering::Relaxed);
    }
}

// === impl HealthRecord ===

impl HealthRecord {
    /// Returns the spans that a trial request ends.
    fn tried(&mut self) -> [(u8, &mut Until); 2] {
        [
            (mark::OPEN, &mut self.open),
            (mark::EJECTED, &mut self.ejected),
        ]
    }

    /// Adds a failure. Returns whether the circuit must open.
    fn is_too_often(&mut self, breaker: &BreakerPolicy, now: Timestamp) -> bool {
        self.failures.push_back(now);
        let recent = |then: &Timestamp| now.since(*then) <= breaker.within;
        while self.failures.len() > breaker.failures as usize
            || self.failures.front().is_some_and(|then| !recent(then))
        {
            self.failures.pop_front();
        }
        let enough = self.failures.len() >= breaker.failures as usize;
        if enough {
            self.failures.clear();
        }
        enough
    }
}

// === impl Until ===

impl Until {
    fn after(span: Duration, now: Timestamp) -> Self {
        let end = now.plus(span);
        Self { end, span }
    }

    /// Returns the time left. `None` if the span is over.
    fn left(self, now: Timestamp) -> Option<Duration> {
        let left = self.end.since(now);
        (left > Duration::ZERO && left <= self.span).then_some(left)
    }
}
