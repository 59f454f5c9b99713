//! Builds the gateway's own responses, and completes every response before it is sent.

use std::sync::Arc;
use std::time::Duration;

use http::header::{CONNECTION, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode, Version};
use http_body::Body as _;

use super::body::{self, DiscardedBody};
use super::imitate::{self, Route};
use super::request_context::RequestContext;
use crate::action::{
    self, GatewayError, RedirectResponse, RefusingRule, RequestInfo, ResponseTemplate,
};
use crate::body::Body;
use crate::decision::{Decision, RuleIndex};
use crate::facts::{MalformedRequest, RequestFacts, ResponseFacts};
use crate::listen::{DrainOutcome, RequestBody};
use crate::observe::RuleMetrics;
use crate::route::RedirectTemplate;
use crate::route::edit::HeaderChanges;
use crate::snapshot::Snapshot;
use crate::upstream::UpstreamServer;

/// A response, with the data that rules and the access log need. It is moved several times for every request, so what
/// most responses lack is boxed.
pub struct HandledResponse {
    /// The response.
    pub response: Response<Body>,
    /// Whether rules may count the response.
    pub countable: bool,
    /// The upstream to which the request was forwarded.
    pub upstream: Option<Arc<str>>,
    /// The server that sent the response, or the last one that failed. `None` if there was no attempt.
    pub server: Option<Arc<UpstreamServer>>,
    /// The number of times that the request was sent to a server.
    pub attempts: u32,
    /// The time from the last byte of the request received so far to the head of the upstream's response.
    pub upstream_latency: Option<Duration>,
    /// Why the upstream sent no response. `None` if it did.
    pub error: Option<&'static str>,
    /// Why the gateway itself responds with an error, for the access log. `None` if it does not.
    pub fault: Option<&'static str>,
    /// The user that the origin server names. `None` if it names none.
    pub named_user: Option<Box<HeaderValue>>,
    /// Whether it is the route's response or a shadow response: the route's header changes apply.
    pub by_route: bool,
    /// What happened to a challenge, for the access log. `None` if there was none.
    pub challenge: Option<&'static str>,
}

// === impl HandledResponse ===

impl HandledResponse {
    /// Creates a response of the gateway that no rule counts.
    pub fn own(response: Response<Body>) -> Self {
        Self {
            response,
            countable: false,
            upstream: None,
            server: None,
            attempts: 0,
            upstream_latency: None,
            error: None,
            fault: None,
            named_user: None,
            by_route: false,
            challenge: None,
        }
    }

    /// Creates the response for an error.
    pub fn of_fault(fault: GatewayError, info: &RequestInfo<'_>) -> Self {
        Self {
            fault: Some(fault.name()),
            ..Self::own(fault.to_response(info))
        }
    }

    /// Creates a response of the route.
    pub fn by_route(response: Response<Body>) -> Self {
        Self {
            by_route: true,
            ..Self::own(response)
        }
    }

    /// Sets `Retry-After` in whole seconds, rounded up, at least one.
    pub fn set_retry_after(&mut self, time: Duration) {
        let seconds = time.as_millis().div_ceil(1000).max(1);
        let seconds = HeaderValue::from(u64::try_from(seconds).unwrap_or(u64::MAX));
        self.response.headers_mut().insert(RETRY_AFTER, seconds);
    }

    /// Closes an HTTP/1 connection after this response if `must`.
    pub fn closing(mut self, must: bool, info: &RequestInfo<'_>) -> Self {
        if must && info.version != Version::HTTP_2 {
            let headers = self.response.headers_mut();
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        self
    }

    /// Closes an HTTP/1.0 connection after a body without a length, because it has no chunked coding.
    pub fn closing_if_endless(self, info: &RequestInfo<'_>) -> Self {
        let exact = self.response.body().size_hint().exact();
        let endless = info.version == Version::HTTP_10 && exact.is_none();
        self.closing(endless, info)
    }

    /// Closes an HTTP/1 connection after the response if the request body was not read to its end.
    pub fn leaving(self, rest: &DiscardedBody, info: &RequestInfo<'_>) -> Self {
        self.closing(rest.drained != DrainOutcome::Whole, info)
    }

    /// Returns the fields of the response that rules can read; the response took `latency`.
    pub fn facts(&self, latency: Duration) -> ResponseFacts<'_> {
        ResponseFacts {
            status: self.response.status().as_u16(),
            headers: self.response.headers(),
            duration_ms: u64::try_from(latency.as_millis()).unwrap_or(u64::MAX),
            body_size: self.response.body().size_hint().exact(),
            upstream: self.upstream.as_deref(),
            upstream_error: self.error,
        }
    }

    /// Returns the route's changes to the headers of this response. `None` if there are none.
    pub fn edits<'a>(&self, route: Option<Route<'a>>) -> Option<&'a HeaderChanges> {
        let edits = route.and_then(|(_, route)| route.edits.as_deref());
        edits.map(|edits| &edits.response).filter(|_| self.by_route)
    }

    /// Adds the quota headers of the rules that counted.
    pub fn add_quota_headers(&mut self, snapshot: &Snapshot, decision: &Decision) {
        if !decision.quotas.is_empty() {
            let headers = self.response.headers_mut();
            action::add_quota_headers(&snapshot.quota_names, &decision.quotas, headers);
        }
    }
}

/// Refuses a request because of `rule`.
pub async fn block(
    request: &RequestContext<'_, '_>,
    incoming: RequestBody,
    rule: RuleIndex,
    retry_after: Option<u64>,
) -> HandledResponse {
    let (info, snapshot) = (request.info, request.snapshot());
    let rest = body::discard(request, incoming).await;
    HandledResponse::own(refusal(snapshot, info, rule, retry_after)).leaving(&rest, info)
}

/// Responds with `fault`.
pub async fn refuse(
    request: &RequestContext<'_, '_>,
    incoming: RequestBody,
    fault: GatewayError,
) -> HandledResponse {
    request.state.core.fault(fault);
    let rest = body::discard(request, incoming).await;
    HandledResponse::of_fault(fault, request.info).leaving(&rest, request.info)
}

/// Refuses a request because of a rule that fails closed during a store outage.
pub async fn refuse_without_store(
    request: &RequestContext<'_, '_>,
    incoming: RequestBody,
) -> HandledResponse {
    HandledResponse {
        fault: Some("store_unavailable"),
        ..refuse(request, incoming, GatewayError::Unavailable).await
    }
}

/// Builds the response of a redirect. 400 if the target needs the host of a request without one.
pub fn redirect(
    info: &RequestInfo<'_>,
    facts: &RequestFacts<'_>,
    template: &RedirectTemplate,
    status: StatusCode,
) -> HandledResponse {
    match template.expand(facts.head) {
        Some(location) => {
            let redirect = RedirectResponse { location, status };
            HandledResponse::by_route(redirect.to_response(info))
        }
        None => HandledResponse::of_fault(GatewayError::Malformed, info),
    }
}

/// Sends a shadow response after reading the whole request body.
pub async fn shadow(
    request: &RequestContext<'_, '_>,
    incoming: RequestBody,
    rule: RuleIndex,
) -> HandledResponse {
    let (state, info) = (request.state, request.info);
    let (core, snapshot) = (&state.core, &state.snapshot);
    let whole = incoming.is_end_stream();
    let rest = body::swallow(state, incoming).await;
    let asked_at = if whole { state.began } else { core.instant() };
    let handled = match rest.drained {
        DrainOutcome::TooLong if state.meter.max.get().is_some() => {
            HandledResponse::of_fault(GatewayError::BodyTooLarge, info)
        }
        DrainOutcome::Broken => HandledResponse::of_fault(GatewayError::Malformed, info),
        DrainOutcome::TooSlow => {
            core.fault(GatewayError::BodyTooSlow);
            HandledResponse::of_fault(GatewayError::BodyTooSlow, info)
        }
        _ => match imitate::imitated_response(request, asked_at, rule).await {
            Some(imitation) => HandledResponse::by_route(imitation).closing_if_endless(info),
            None => HandledResponse::by_route(shadow_response(snapshot, info, rule)),
        },
    };
    handled.leaving(&rest, info)
}

/// Builds the response of a rule that refuses.
pub fn refusal(
    snapshot: &Snapshot,
    info: &RequestInfo<'_>,
    rule: RuleIndex,
    retry_after: Option<u64>,
) -> Response<Body> {
    let refused = RefusingRule {
        rule: snapshot.rules.get(rule).map_or("", |rule| &rule.name),
        response: response_template(snapshot, rule),
        retry_after,
    };
    action::block(info, &refused)
}

/// Builds the shadow response of a rule.
pub fn shadow_response(
    snapshot: &Snapshot,
    info: &RequestInfo<'_>,
    rule: RuleIndex,
) -> Response<Body> {
    action::shadow(info, response_template(snapshot, rule))
}

/// Returns the configured response of `rule`. `None` if it has none.
pub fn response_template(snapshot: &Snapshot, rule: RuleIndex) -> Option<&ResponseTemplate> {
    let kit = snapshot.rule_resources.get(usize::from(rule.0))?;
    kit.response.as_deref()
}

/// Returns the metrics of `rule`. `None` if there is no such rule.
pub fn rule_metrics(snapshot: &Snapshot, rule: RuleIndex) -> Option<&RuleMetrics> {
    let kit = snapshot.rule_resources.get(usize::from(rule.0))?;
    Some(&kit.metrics)
}

/// Returns the error response for a malformed or ambiguous request.
pub fn fault_of(malformed: MalformedRequest) -> GatewayError {
    match malformed.status() {
        501 => GatewayError::UnknownCoding,
        431 => GatewayError::HeadTooLarge,
        _ => GatewayError::Malformed,
    }
}
