//! Serves requests that no rule stopped: forwards them to an origin server, or sends the response of the route.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use http::StatusCode;
use http_body::Body as _;

use super::known_client::take_named_user;
use super::request_context::RequestContext;
use super::respond::{self, HandledResponse};
use super::{body, tunnel};
use crate::action::{GatewayError, client_left};
use crate::decision::Verdict;
use crate::facts::{BodyLength, ClientStanding, RequestFacts};
use crate::listen::{DrainOutcome, RequestBody};
use crate::route::RouteEdits;
use crate::rules::Rule;
use crate::snapshot::{RouteTarget, Snapshot};
use crate::upstream::{
    CredentialHeaders, ForwardedHeaders, OutboundRequest, Upstream, UpstreamError, UpstreamResponse,
};

// === impl RequestContext ===

impl RequestContext<'_, '_> {
    /// Sends the request to the target of its route, or to that of a `divert` rule.
    pub async fn forward(
        &self,
        incoming: RequestBody,
        client: Option<tunnel::TunnelClient>,
    ) -> HandledResponse {
        let route = self.route.map(|(_, route)| route);
        let target = self.snapshot().leads(self.decision.verdict, route);
        self.state.is_countable.set(self.is_countable());
        if let Some(fault) = fault(self.snapshot(), self.facts, self.state.meter.max.get()) {
            return respond::refuse(self, incoming, fault).await;
        }
        let incoming = if self.awaits_end(&incoming) {
            match self.read_empty_body(incoming).await {
                Ok(incoming) => incoming,
                Err(handled) => return handled,
            }
        } else {
            incoming
        };
        match target {
            None => respond::refuse(self, incoming, GatewayError::NoRoute).await,
            Some(RouteTarget::Reply(reply)) => {
                let rest = body::discard(self, incoming).await;
                let response = HandledResponse::by_route(reply.to_response(self.info));
                HandledResponse {
                    countable: self.is_countable(),
                    ..response.leaving(&rest, self.info)
                }
            }
            Some(RouteTarget::Redirect(template, status)) => {
                let rest = body::discard(self, incoming).await;
                respond::redirect(self.info, self.facts, template, *status)
                    .leaving(&rest, self.info)
            }
            Some(RouteTarget::Upstream { upstream, hash_key }) => {
                let key = hash_key.as_ref().map_or(0, |key| key.digest(self.facts));
                let edits = route.and_then(|route| route.edits.as_ref());
                if let Some(edits) = edits {
                    self.state.edits.get_or_init(|| edits.clone());
                }
                let edits = edits.map(|edits| &**edits);
                let to = (upstream, key);
                self.send_upstream(to, edits, incoming, client).await
            }
        }
    }

    /// Returns whether the declared body is empty and its stream has not ended. HTTP/2 can announce an empty body and
    /// still continue (RFC 9113, section 8.1.1): the request is forwarded only after the stream has ended.
    fn awaits_end(&self, incoming: &RequestBody) -> bool {
        self.facts.head.body == BodyLength::Declared(0) && !incoming.is_end_stream()
    }

    /// Waits for the end of a stream with an empty declared body.
    async fn read_empty_body(&self, incoming: RequestBody) -> Result<RequestBody, HandledResponse> {
        let rest = body::discard(self, incoming).await;
        if rest.drained == DrainOutcome::Whole {
            return Ok(rest.incoming);
        }
        let response = GatewayError::Malformed.to_response(self.info);
        Err(HandledResponse::own(response).leaving(&rest, self.info))
    }

    /// Forwards to `upstream`. Requests with equal `key` are sent to one server.
    async fn send_upstream(
        &self,
        (upstream, key): (&Arc<Upstream>, u64),
        edits: Option<&RouteEdits>,
        incoming: RequestBody,
        client: Option<tunnel::TunnelClient>,
    ) -> HandledResponse {
        let head = self.facts.head;
        let target = edits.map_or_else(|| head.uri(), |edits| edits.path.target(head));
        let rules = if self.decision.tags.is_empty() {
            String::new()
        } else {
            self.tag_names()
        };
        let changes = edits.map(|edits| edits.request.resolve(self.facts));
        let outbound = OutboundRequest {
            method: head.method,
            target: &target,
            headers: self.info.headers,
            edits: changes.as_deref(),
            version: head.version,
            host: None,
            forwarding: self.forwarding(head.authority(), &rules),
            body: body::streamed(incoming, self.state),
            upgrade: head.upgrade.is_some(),
            key,
            response_timeout: self.route.and_then(|(_, route)| route.response_timeout),
        };
        // Pinned here, because moving it would copy it.
        let answer = pin!(self.state.core.pool.forward(upstream, outbound));
        let Some(answer) = self.while_wanted(answer).await else {
            return HandledResponse::own(client_left());
        };
        let latency = self.upstream_latency();
        let mut handled = match answer.and_then(|answer| tunnel::checked(answer, client.as_ref())) {
            Ok(answer) => {
                let status = answer.response.status();
                answer.server.count_latency(status, latency);
                self.to_client(answer, client)
            }
            Err(error) => self.failed(&error, upstream),
        };
        handled.upstream = Some(upstream.name.clone());
        handled.upstream_latency = Some(latency);
        handled
    }

    /// Returns the time since the origin server received the whole request, without the time that a rule held
    /// the request or that its client took to send it.
    fn upstream_latency(&self) -> Duration {
        let sent = self.state.meter.ended.get();
        let since = sent.map_or(self.released_at, |sent| sent.max(self.released_at));
        self.state.core.instant() - since
    }

    /// Waits for the response. `None` if the client has disconnected and no rule would count the response.
    async fn while_wanted<A>(&self, mut answer: Pin<&mut impl Future<Output = A>>) -> Option<A> {
        poll_fn(|cx| {
            if self.state.is_disconnected.get() && !self.may_be_counted() {
                Poll::Ready(None)
            } else {
                answer.as_mut().poll(cx).map(Some)
            }
        })
        .await
    }

    /// Returns whether a rule that the request reached may count its response.
    fn may_be_counted(&self) -> bool {
        let rules = &self.snapshot().rules;
        self.is_countable() && rules.may_count_response(self.facts, self.decision.settle_before)
    }

    /// Returns whether rules count the response: not if a rule diverts the request.
    fn is_countable(&self) -> bool {
        self.decision.verdict == Verdict::Forward
    }

    /// Returns the names of the rules that tag the request.
    fn tag_names(&self) -> String {
        let rules = self.decision.tags.iter();
        let mut rules = rules.filter_map(|rule| self.snapshot().rules.get(*rule));
        let first = rules.next().map_or("", |rule| &rule.name);
        rules.fold(first.to_owned(), |names, rule| names + ", " + &rule.name)
    }

    /// Returns the first rule that the request passed thanks to its clearance. `None` if it needed none.
    pub fn passed_challenge(&self) -> Option<&Rule> {
        let rule = self.snapshot().rules.get(self.decision.unchallenged?);
        rule.filter(|_| self.facts.clearance().is_some())
    }

    fn forwarding<'f>(&'f self, authority: &'f str, rules: &'f str) -> ForwardedHeaders<'f> {
        let peer = self.facts.connection.peer.ip();
        ForwardedHeaders {
            peer: peer.to_canonical(),
            client: self.facts.client,
            trusted_peer: self.snapshot().settings.client_ip.trusts(peer),
            host: authority,
            https: self.facts.connection.tls.is_some(),
            request_id: self.info.id,
            rules,
            credentials: self.credential_headers(),
        }
    }

    /// Returns what origin servers learn about the client. Reads the user, because the request's body is not kept.
    fn credential_headers(&self) -> Option<CredentialHeaders<'_>> {
        self.facts.credentials?;
        self.facts.user();
        let standing = self.facts.client_standing();
        Some(CredentialHeaders {
            client: standing.map(ClientStanding::name),
            challenge: self.passed_challenge().map_or("", |rule| &rule.name),
        })
    }

    fn to_client(
        &self,
        mut answer: UpstreamResponse,
        client: Option<tunnel::TunnelClient>,
    ) -> HandledResponse {
        let credentials = self.facts.credentials;
        let headers = answer.response.headers_mut();
        let named_user = credentials.and_then(|credentials| take_named_user(credentials, headers));
        if let (Some(origin), Some(client)) = (answer.upgraded, client) {
            tunnel::spawn(self, client, origin);
        }
        let (server, attempts) = (answer.server, answer.attempts);
        let closes = self.closes_after(answer.response.status());
        let mut handled = HandledResponse::by_route(answer.response)
            .closing_if_endless(self.info)
            .closing(closes, self.info);
        (handled.server, handled.attempts) = (Some(server), attempts);
        handled.countable = self.is_countable();
        handled.named_user = named_user;
        handled
    }

    /// Returns whether a response that arrives before the end of the request body ends the connection. A client may stop
    /// sending at an error; after other responses, the rest of the body is read and the connection continues.
    fn closes_after(&self, status: StatusCode) -> bool {
        let (head, meter) = (self.facts.head, &self.state.meter);
        if !head.has_body() || meter.ended.get().is_some() || status.is_informational() {
            return false;
        }
        let linger = self.snapshot().settings.limits.linger;
        let rest = head
            .body_size()
            .unwrap_or(0)
            .saturating_sub(meter.bytes.get());
        !status.is_success() || rest > linger.bytes || linger.time.is_zero()
    }

    fn failed(&self, error: &UpstreamError, upstream: &Upstream) -> HandledResponse {
        let (info, core, meter) = (self.info, &self.state.core, &self.state.meter);
        let fault_of_body = match (meter.too_large.get(), meter.too_slow.get()) {
            (true, _) => Some(GatewayError::BodyTooLarge),
            (_, true) => Some(GatewayError::BodyTooSlow),
            _ => error.is_bad_request().then_some(GatewayError::Malformed),
        };
        if let Some(fault) = fault_of_body {
            core.fault(fault);
            return HandledResponse::of_fault(fault, info).closing(true, info);
        }
        core.upstream_failed(&upstream.name, error);
        let fault = match error.status().as_u16() {
            504 => GatewayError::GatewayTimeout,
            503 => GatewayError::Unavailable,
            _ => GatewayError::BadGateway,
        };
        // The rest of the body was not read.
        let mut handled =
            HandledResponse::of_fault(fault, info).closing(self.facts.head.has_body(), info);
        if let Some(time) = error.retry_after() {
            handled.set_retry_after(time);
        }
        handled.countable = self.is_countable();
        handled.error = Some(error.reason());
        handled.fault = handled.error;
        (handled.server, handled.attempts) = (error.server().cloned(), error.attempts());
        handled
    }
}

/// Returns why a request is refused regardless of its route, although no rule stopped it. `None` if it is not.
pub fn fault(
    snapshot: &Snapshot,
    facts: &RequestFacts<'_>,
    max_body: Option<u64>,
) -> Option<GatewayError> {
    if is_misdirected(snapshot, facts) {
        return Some(GatewayError::Misdirected);
    }
    is_too_large(facts, max_body).then_some(GatewayError::BodyTooLarge)
}

/// Returns whether the declared body length is larger than allowed.
pub fn is_too_large(facts: &RequestFacts<'_>, max_body: Option<u64>) -> bool {
    let declared = facts.head.body_size().unwrap_or(0);
    max_body.is_some_and(|max| declared > max)
}

fn is_misdirected(snapshot: &Snapshot, facts: &RequestFacts<'_>) -> bool {
    let Some(tls) = &facts.connection.tls else {
        return false;
    };
    let listeners = snapshot.listeners.iter();
    let mut own = listeners.filter(|l| l.label == facts.connection.listener);
    let terminator = own
        .next()
        .and_then(|listener| listener.settings.tls.as_ref());
    terminator.is_some_and(|t| t.misdirects(tls.sni.as_deref(), &facts.head.host))
}
