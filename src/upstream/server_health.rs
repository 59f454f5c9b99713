//! What is known against a server: failed health checks, an open circuit, failures in a row, an
//! origin that asked for time. Decides nothing about a request. Only a health check reads a clock.
//!
//! A server against which nothing is known costs a request one look at `marks`. The record behind
//! the lock is for the others.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use http::header::USER_AGENT;
use http::{HeaderMap, HeaderValue, Method, StatusCode, Version};
use parking_lot::Mutex;

use super::error::UpstreamError;
use super::http1::connection::IdleConnections;
use super::http1::response_head::ExpectedResponse;
use super::pool::{Pool, PreparedRequest};
use super::server::ServerInFlight;
use super::{
    BreakerPolicy, ForwardedHeaders, HealthPolicy, OutboundRequest, ServerEndpoint, Upstream,
    UpstreamServer,
};
use crate::body::Body;
use crate::clock::Timestamp;

/// Failures in a row after which a server is left out for a while.
const STRIKES: u32 = 3;

/// How long the first time; each time in a row is twice as long.
const EJECTED: Duration = Duration::from_secs(1);

/// The longest that a server is left out for failures in a row.
const EJECTED_MOST: Duration = Duration::from_secs(30);

/// The longest that an origin's `Retry-After` is heeded.
const BUSY_MOST: Duration = Duration::from_secs(60);

/// What is known against one server, for the whole process.
#[derive(Debug, Default)]
pub(super) struct ServerHealth {
    marks: AtomicU8,
    record: Mutex<HealthRecord>,
}

/// Kinds of things that are known against a server.
pub(super) mod mark {
    /// Its health checks fail.
    pub(crate) const UNHEALTHY: u8 = 1;
    /// Its circuit is open.
    pub(crate) const OPEN: u8 = 2;
    /// It failed several times in a row.
    pub(crate) const EJECTED: u8 = 4;
    /// It asked for time.
    pub(crate) const BUSY: u8 = 8;
    /// Its last request failed; nothing against it yet.
    pub(super) const STRUCK: u8 = 16;
}

/// Whether a server is to be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Eligibility {
    /// As any other.
    Yes,
    /// For one request, whose end decides.
    Try,
    /// Only where there is no other.
    Reluctant,
    /// Not before then, if that is known.
    No(Option<Duration>),
}

/// The right to try a server.
#[derive(Clone, Copy, Debug)]
pub(super) struct TrialClaim {
    at: Timestamp,
    /// What is to be decided.
    kinds: u8,
}

#[derive(Debug, Default)]
struct HealthRecord {
    /// Failures in a row.
    strikes: u32,
    /// Ejections in a row.
    ejections: u32,
    ejected: Until,
    /// When it failed, for the circuit.
    failures: VecDeque<Timestamp>,
    open: Until,
    busy: Until,
    /// Health checks in a row with the same end.
    checks: u32,
}

/// A time that ends, also if the clock is set back meanwhile.
#[derive(Clone, Copy, Debug, Default)]
struct Until {
    end: Timestamp,
    span: Duration,
}

/// The result of a health check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckResult {
    /// The server has become healthy or unhealthy.
    pub changed: Option<bool>,
    /// The reason for a failed check, in a word or two.
    pub why: String,
    /// The same as a sentence.
    pub error: String,
}

// === impl ServerHealth ===

impl ServerHealth {
    /// Whether nothing of what is `heeded` is known against it.
    pub(super) fn is_clear(&self, heeded: u8) -> bool {
        self.marks.load(Ordering::Relaxed) & heeded == 0
    }

    /// Whether it is left out for failures in a row.
    pub(super) fn is_ejected(&self) -> bool {
        !self.is_clear(mark::EJECTED)
    }

    /// Whether it is to be used now, by what is `heeded`.
    pub(super) fn eligibility(&self, heeded: u8, now: Timestamp) -> Eligibility {
        if self.is_clear(heeded) {
            return Eligibility::Yes;
        }
        let record = self.record.lock();
        let marks = self.marks.load(Ordering::Relaxed) & heeded;
        let left = |kind, until: Until| (marks & kind != 0).then(|| until.left(now));
        if marks & mark::UNHEALTHY != 0 {
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

    /// Takes the one request that a server is tried with; `None`: another has it. One that never
    /// ends is followed by another after the same time.
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

    /// Gives a claim back that nothing came of: the next request tries. What was decided or
    /// claimed since stays.
    pub(super) fn release(&self, claim: TrialClaim) {
        let mut record = self.record.lock();
        for (kind, until) in record.tried() {
            if claim.kinds & kind != 0 && until.end == claim.at.plus(until.span) {
                until.end = claim.at;
            }
        }
    }

    /// It answered. `tried`: the request that was to decide.
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

    /// It did not answer, or not in HTTP. `may_eject` says whether enough others are left.
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

    /// It asked to be left alone for so long.
    pub(super) fn requested_pause(&self, time: Duration, now: Timestamp) {
        let mut record = self.record.lock();
        record.busy = Until::after(time.min(BUSY_MOST), now);
        self.mark(mark::BUSY);
    }

    /// A health check ended; `Some`: that changed whether it is healthy.
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
        match passed {
            true => self.unmark(mark::UNHEALTHY),
            false => self.mark(mark::UNHEALTHY),
        }
        Some(passed)
    }

    /// What is known against it.
    pub(super) fn marks(&self) -> u8 {
        self.marks.load(Ordering::Relaxed)
    }

    fn mark(&self, marks: u8) {
        self.marks.fetch_or(marks, Ordering::Relaxed);
    }

    fn unmark(&self, marks: u8) {
        self.marks.fetch_and(!marks, Ordering::Relaxed);
    }
}

// === impl HealthRecord ===

impl HealthRecord {
    /// What one request decides about.
    fn tried(&mut self) -> [(u8, &mut Until); 2] {
        [
            (mark::OPEN, &mut self.open),
            (mark::EJECTED, &mut self.ejected),
        ]
    }

    /// Whether this failure is one too many within the circuit's time.
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

    /// What is left of it; `None`: it is over.
    fn left(self, now: Timestamp) -> Option<Duration> {
        let left = self.end.since(now);
        (left > Duration::ZERO && left <= self.span).then_some(left)
    }
}

// === impl Pool ===

impl Pool {
    /// Asks a server once whether it is well, and takes down what it says.
    pub async fn check(&self, upstream: &Upstream, server: &Arc<UpstreamServer>) -> CheckResult {
        let Some(health) = &upstream.health else {
            return CheckResult::default();
        };
        let asking = self.probe(upstream, server, health);
        let told = match tokio::time::timeout(health.timeout, asking).await {
            Ok(Ok(status)) if status.as_u16() < 400 => Ok(()),
            Ok(Ok(status)) => {
                let status = status.as_u16();
                let error = format!("the check was answered with status {status}, not below 400");
                Err((format!("status {status}"), error))
            }
            Ok(Err(error)) => Err((error.reason().to_owned(), error.to_string())),
            Err(_) => {
                let error = "the check was not answered within `health.timeout`";
                Err(("timeout".to_owned(), error.to_owned()))
            }
        };
        let changed = server.health.checked(told.is_ok(), health);
        let (why, error) = told.err().unwrap_or_default();
        CheckResult {
            changed,
            why,
            error,
        }
    }

    /// Sends one request on a connection of its own.
    async fn probe(
        &self,
        upstream: &Upstream,
        server: &Arc<UpstreamServer>,
        health: &HealthPolicy,
    ) -> Result<StatusCode, UpstreamError> {
        let host = match server.endpoint {
            ServerEndpoint::Tcp(_) => server.label(),
            ServerEndpoint::Unix(_) => "localhost",
        };
        let agent = HeaderValue::from_static("lockgate-health");
        let outbound = OutboundRequest {
            method: &Method::GET,
            target: &health.path,
            headers: &HeaderMap::from_iter([(USER_AGENT, agent)]),
            edits: None,
            version: Version::HTTP_11,
            forwarding: ForwardedHeaders {
                peer: IpAddr::V4(Ipv4Addr::LOCALHOST),
                client: IpAddr::V4(Ipv4Addr::LOCALHOST),
                trusted_peer: false,
                host,
                https: false,
                request_id: "health",
                rules: "",
            },
            body: Body::Empty,
            upgrade: false,
            key: 0,
        };
        let request = PreparedRequest::new(upstream, outbound)?;
        let asked = ExpectedResponse::new(&Method::GET, false);
        // With a limit of zero, so the connection closes afterwards.
        let idle = Rc::new(IdleConnections::new(Rc::clone(&self.shared)));
        let server = ServerInFlight::begin(server);
        let sent = self.open_and_send(upstream, idle, server, asked, request);
        let answer = sent.await.or_else(|failed| failed.into_result())?;
        Ok(answer.response.status())
    }
}
