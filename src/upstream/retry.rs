//! Handles a failed attempt: whether the failure counts against the server, and whether the request is
//! sent again.
//!
//! A request is sent again only if no server can have processed it, or if it is idempotent (RFC 9110,
//! section 9.2.2) and has no body. It is never sent again after the first byte of a response, except a
//! 503 with `Retry-After`, and never beyond the retry budget, which a refusal by HTTP/2 does not use up.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use http::header::RETRY_AFTER;
use http::{HeaderValue, StatusCode};
use smallvec::SmallVec;

use super::balance::{BalanceState, ChosenServer};
use super::error::{UpstreamError, UpstreamErrorKind};
use super::http1::response_head::{ExpectedResponse, plain_number};
use super::pool::{Pool, PreparedRequest};
use super::server::{AttemptOutcome, ServerInFlight, TrialRequest};
use super::server_health::Eligibility;
use super::{OriginHost, Upstream, UpstreamResponse, UpstreamServer};
use crate::clock::{HttpDate, Timestamp};

/// The number of requests that add one retry to the budget: 20 %.
const REQUESTS_PER_RETRY: u32 = 5;

/// The retries that each refill adds.
const REFILL: u32 = 10;

/// The maximum number of retries in the budget.
const MAX_RETRIES: u32 = 100;

/// The result of sending a request to one server.
pub(super) type Attempt<'a> = Result<UpstreamResponse, Box<FailedAttempt<'a>>>;

/// An attempt without a response, or with a 503 that allows another attempt.
pub(super) struct FailedAttempt<'a> {
    end: AttemptEnd,
    /// The request, if it can be sent again.
    request: Option<PreparedRequest<'a>>,
    /// Whether the connection was idle before. Its end then does not count against the server.
    pub(super) was_idle: bool,
}

/// How an attempt ended.
enum AttemptEnd {
    Failed(UpstreamError),
    /// The origin server is busy: its 503 response and the value of `Retry-After`.
    Busy(Box<UpstreamResponse>, HeaderValue),
}

/// A request after its first failed attempt.
pub(super) struct RetryLoop<'a> {
    pool: &'a Pool,
    chooser: BalanceState<'a>,
    expected: ExpectedResponse,
    /// The ids of the servers that the request was sent to.
    tried: SmallVec<[u64; 4]>,
    retries: u32,
    /// The number of retries so far.
    retried: u32,
    /// The 503 response for the client, if no other server has a better one.
    busy: Option<UpstreamResponse>,
}

/// Limits retries to a share of all requests, so that failing servers do not get more load. Each core has
/// its own budget. Counts fractions of a retry and reads no clock.
pub(super) struct RetryBudget(Cell<u32>);

// === impl FailedAttempt ===

impl<'a> FailedAttempt<'a> {
    /// Creates a failed attempt. `request` is set if it can be sent again.
    pub(super) fn new(error: UpstreamError, request: Option<PreparedRequest<'a>>) -> Box<Self> {
        Box::new(Self {
            end: AttemptEnd::Failed(error),
            request,
            was_idle: false,
        })
    }

    /// Creates a failed attempt with a request that cannot be sent again.
    pub(super) fn lost(error: UpstreamError) -> Box<Self> {
        Self::new(error, None)
    }

    /// Returns a 503 with `Retry-After` as a failed attempt. `copy` is the request if it can be sent twice.
    pub(super) fn unless_busy(
        answer: UpstreamResponse,
        copy: Option<PreparedRequest<'a>>,
    ) -> Attempt<'a> {
        let response = &answer.response;
        match response.headers().get(RETRY_AFTER).cloned() {
            Some(wait) if response.status() == StatusCode::SERVICE_UNAVAILABLE => {
                Err(Box::new(Self {
                    end: AttemptEnd::Busy(Box::new(answer), wait),
                    request: copy,
                    was_idle: false,
                }))
            }
            _ => Ok(answer),
        }
    }

    /// Takes the request for another connection to this server, if the origin server did not process it or
    /// (with `may_close`) an idle connection closed before a response.
    pub(super) fn take_unread(&mut self, may_close: bool) -> Option<PreparedRequest<'a>> {
        let closed = self.was_idle && may_close && self.is(&[UpstreamErrorKind::Closed]);
        let unread = closed || self.is(&[UpstreamErrorKind::Refused]);
        self.request.take_if(|_| unread)
    }

    /// Takes the request for another connection to this server, if the connection closed before a response.
    pub(super) fn take_closed(&mut self) -> Option<(ServerInFlight, PreparedRequest<'a>)> {
        if !self.is(&[UpstreamErrorKind::Closed]) {
            return None;
        }
        Some((ServerInFlight::begin(self.server()?), self.request.take()?))
    }

    /// Returns whether the attempt failed with an error of one of these kinds.
    pub(super) fn is(&self, kinds: &[UpstreamErrorKind]) -> bool {
        matches!(&self.end, AttemptEnd::Failed(error) if kinds.contains(&error.kind))
    }

    /// Returns the client's response if there is no other attempt.
    pub(super) fn into_result(self) -> Result<UpstreamResponse, UpstreamError> {
        match self.end {
            AttemptEnd::Busy(answer, _) => Ok(*answer),
            AttemptEnd::Failed(error) => Err(error),
        }
    }

    fn server(&self) -> Option<&Arc<UpstreamServer>> {
        match &self.end {
            AttemptEnd::Failed(error) => error.server(),
            AttemptEnd::Busy(answer, _) => Some(&answer.server),
        }
    }
}

// === impl RetryLoop ===

impl<'a> RetryLoop<'a> {
    pub(super) fn new(
        pool: &'a Pool,
        chooser: BalanceState<'a>,
        expected: ExpectedResponse,
    ) -> Self {
        Self {
            pool,
            expected,
            tried: SmallVec::new(),
            retries: chooser.upstream.retries,
            retried: 0,
            chooser,
            busy: None,
        }
    }

    /// Tries other servers until there is a response or no further retry. `trial` is set if the failed attempt
    /// was the trial request of its server.
    pub(super) async fn run(
        mut self,
        mut failed: Box<FailedAttempt<'a>>,
        mut trial: Option<TrialRequest>,
    ) -> Result<UpstreamResponse, UpstreamError> {
        loop {
            self.count(&failed, trial);
            let Some((chosen, request)) = self.next(&mut failed) else {
                let attempts = self.attempts();
                let result = failed.into_result().map_err(|error| error.after(attempts));
                let result = result.or_else(|error| self.busy.ok_or(error));
                return result.map(|answer| UpstreamResponse { attempts, ..answer });
            };
            self.retried += 1;
            if let AttemptEnd::Busy(answer, _) = failed.end {
                self.busy = Some(*answer);
            }
            trial = chosen.trial;
            let upstream = self.chooser.upstream;
            let attempt = self
                .pool
                .attempt(upstream, chosen.in_flight, self.expected, request);
            match attempt.await {
                Ok(answer) => {
                    answer.server.responded(trial);
                    let attempts = self.attempts();
                    return Ok(UpstreamResponse { attempts, ..answer });
                }
                Err(next) => failed = next,
            }
        }
    }

    /// Returns how many times the request was sent, the first time included.
    fn attempts(&self) -> u32 {
        self.retried + 1
    }

    /// Returns the next server. `None` if the request must not be sent again or no server is left.
    fn next(
        &mut self,
        failed: &mut FailedAttempt<'a>,
    ) -> Option<(ChosenServer, PreparedRequest<'a>)> {
        self.retries = self.retries.checked_sub(1)?;
        let mut request = failed.request.take()?;
        let server = failed.server()?;
        self.tried.push(server.id());
        let limit = match failed.end {
            AttemptEnd::Busy(..) => Eligibility::Try,
            AttemptEnd::Failed(_) => Eligibility::Reluctant,
        };
        let chosen = self.chooser.other(&self.tried, limit).or_else(|| {
            // A broken connection is weaker evidence against a server than a failed connect.
            let broken = failed.is(&[UpstreamErrorKind::Closed, UpstreamErrorKind::Reset]);
            broken.then(|| self.chooser.other(&[], limit)).flatten()
        })?;
        // A refused request cost the server nothing, and `retries` limits how often it is sent again.
        let is_free = failed.is(&[UpstreamErrorKind::Refused]);
        if !is_free && !self.pool.budget.take() {
            return None;
        }
        server.counts.add(AttemptOutcome::Retried);
        let upstream = self.chooser.upstream;
        if upstream.host == OriginHost::Server {
            let new = upstream.own_host(chosen.in_flight.server());
            request.replace_host(&upstream.own_host(server), new);
        }
        Some((chosen, request))
    }

    /// Counts a failed attempt against its server. Releases a `trial` without a result, after a failure of the
    /// client or the end of an idle connection.
    fn count(&self, failed: &FailedAttempt<'_>, trial: Option<TrialRequest>) {
        let Some(server) = failed.server() else {
            return;
        };
        match &failed.end {
            AttemptEnd::Busy(_, value) => {
                server.responded(trial);
                let now = self.pool.clock.now();
                if let Some(time) = retry_after(value, now) {
                    server.health.requested_pause(time, now);
                }
            }
            AttemptEnd::Failed(error) if error.is_bad_request() => {}
            AttemptEnd::Failed(error) => {
                server.counts.add(outcome(error));
                if !(failed.was_idle && failed.is(&[UpstreamErrorKind::Closed])) {
                    server.note_failure(error);
                    self.strike(server, TrialRequest::end(trial));
                }
            }
        }
    }

    fn strike(&self, server: &UpstreamServer, tried: bool) {
        let Upstream {
            members, breaker, ..
        } = self.chooser.upstream;
        let now = self.pool.clock.now();
        // At most half of the servers, so that failures with a common cause do not shift all load to a few.
        let half = || {
            let members = members.load();
            let servers = members.all().iter().map(|member| &member.server);
            let others = servers.filter(|other| other.id() != server.id());
            let others: Vec<_> = others.filter(|other| !other.health.is_drained()).collect();
            let out = others.iter().filter(|other| other.health.is_ejected());
            (out.count() + 1) * 2 <= others.len() + 1
        };
        server.health.failed(tried, now, breaker.as_ref(), half);
    }
}

/// Returns the counted outcome of a server's failure.
fn outcome(error: &UpstreamError) -> AttemptOutcome {
    match error {
        error if error.is_timeout() => AttemptOutcome::Timeout,
        error if error.is_unreachable() => AttemptOutcome::ConnectError,
        _ => AttemptOutcome::Error,
    }
}

/// Returns the wait in `Retry-After`, in seconds or as a date (RFC 9110, section 10.2.3).
fn retry_after(value: &HeaderValue, now: Timestamp) -> Option<Duration> {
    if let Some(seconds) = plain_number(value.as_bytes()) {
        return Some(Duration::from_secs(seconds));
    }
    HttpDate::parse(value.as_bytes()).map(|HttpDate(then)| then.since(now))
}

// === impl RetryBudget ===

impl RetryBudget {
    pub(super) fn new() -> Self {
        Self(Cell::new(REFILL * REQUESTS_PER_RETRY))
    }

    /// Adds one request. Called for each request.
    pub(super) fn add_request(&self) {
        self.add(1);
    }

    /// Adds `REFILL` retries. Called every few seconds.
    pub(super) fn refill(&self) {
        self.add(REFILL * REQUESTS_PER_RETRY);
    }

    /// Takes one retry. Returns `false` if none is left.
    fn take(&self) -> bool {
        let left = self.0.get().checked_sub(REQUESTS_PER_RETRY);
        left.inspect(|left| self.0.set(*left)).is_some()
    }

    fn add(&self, parts: u32) {
        let most = MAX_RETRIES * REQUESTS_PER_RETRY;
        self.0.set((self.0.get() + parts).min(most));
    }
}
