//! Simulates a request with the head, facts, engine and responses of live traffic, and a given response of the
//! origin server. Requests are not forwarded, held or logged, and leases are released immediately.

mod client;
mod outcome;
mod phases;

pub use client::SimulatedClient;
pub use outcome::SimulatedOutcome;

use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use http::request::Parts;
use http::{HeaderMap, Response, StatusCode};

mod geo;

use self::geo::SimulatedGeo;
use super::body_inspection::InspectionPlan;
use super::challenge;
use super::engine::{Engine, ResponsePhase};
use super::forward::{fault, is_too_large};
use super::imitate::Route;
use super::known_client::take_named_user;
use super::respond::{self, HandledResponse};
use super::{add_cookie, read_head};
use crate::action::{GatewayError, RequestInfo};
use crate::body::Body;
use crate::clock::Timestamp;
use crate::decision::{Decision, Verdict};
use crate::facts::{
    ClientConnection, InspectedBody, MalformedRequest, RequestFacts, RequestHead, ResponseFacts,
};
use crate::rules::FixedKeys;
use crate::rules::trace::{self, RequestPass, RuleTrace};
use crate::snapshot::{RouteTarget, Snapshot};
use crate::store::StoreHandle;

/// The id of a simulated request.
const ID: &str = "00000000000000000000000000000000";

/// A request to simulate, with the response of its origin server.
pub struct Simulation {
    /// The request head.
    pub parts: Parts,
    /// Why the head is malformed; the target in `parts` is then meaningless. `None` if it is valid.
    pub unreadable: Option<MalformedRequest>,
    /// The connection that the request arrives on.
    pub connection: ClientConnection,
    /// The client's address. `None` to derive it as for a real request.
    pub client: Option<IpAddr>,
    /// The client's autonomous system, instead of what the databases return.
    pub asn: Option<u32>,
    /// The client's country, instead of what the databases return.
    pub country: Option<[u8; 2]>,
    /// The body. Its length is that of `parts`.
    pub body: Bytes,
    /// The status of the response. `None` for the route's status, or 200 from an upstream.
    pub status: Option<StatusCode>,
    /// Additional headers of the response.
    pub response_headers: HeaderMap,
    /// The known client that sends the request. `None` to derive it from the cookies, as for a real request.
    pub known: Option<SimulatedClient>,
    /// Whether the client has a clearance.
    pub has_clearance: bool,
    /// The keys of rules that replace those of the request.
    pub keys: FixedKeys,
}

/// The result of a simulation.
pub struct SimulationReport {
    /// The outcome.
    pub outcome: SimulatedOutcome,
    /// The rule and the action that the access log would show. `None` also for a request that an exemption lets pass:
    /// its outcome is `Allow`.
    pub decided_by: Option<(Arc<str>, &'static str)>,
    /// How long the request would be held.
    pub held: Duration,
    /// The rules that tag the request.
    pub tags: Vec<Arc<str>>,
    /// The target of the route or of a `divert` rule: `upstream`, `respond` or `redirect`.
    pub to: Option<&'static str>,
    /// The upstream that the request is forwarded to.
    pub upstream: Option<String>,
    /// The name of the route, or its path template.
    pub route: Option<String>,
    /// The client's address.
    pub client: IpAddr,
    /// The response. `None` if the connection is closed without one.
    pub response: Option<Response<Body>>,
    /// Whether rules could count that response.
    pub response_counted: bool,
    /// The trace of each rule in the configuration, in order.
    pub rules: Vec<RuleTrace>,
}

// === impl Simulation ===

impl Simulation {
    /// Runs the simulation. With `detail`, the report explains each part of every expression.
    pub async fn run(
        &self,
        snapshot: &Snapshot,
        store: &Rc<StoreHandle>,
        now: Timestamp,
        detail: bool,
    ) -> SimulationReport {
        let (peer, headers) = (self.connection.peer.ip(), &self.parts.headers);
        let id = snapshot.settings.client_ip.request_id(peer, headers);
        let id = id.unwrap_or(ID);
        let mut info = RequestInfo::of(&self.parts, id, now, snapshot.error_pages(None));
        let head = match self.head(snapshot) {
            Ok(head) => head,
            Err(malformed) => return self.malformed(snapshot, &info, malformed),
        };
        let route = snapshot.route_of(&head, headers, &self.connection);
        let target = route.map(|(_, route)| route);
        info.errors = snapshot.error_pages(target);
        let geo = SimulatedGeo(self, &snapshot.settings.geo);
        let client = self.client(snapshot);
        let mut facts = RequestFacts::new(&head, headers, &self.connection, client, now, &geo);
        facts.route = route.map(|(pattern, _)| pattern.template());
        facts.id = id;
        facts.credentials = snapshot.credentials.as_ref();
        self.assume_client(&facts);
        self.inspect(snapshot, &info, &facts, snapshot.max_body(target));
        let engine = Engine {
            rules: &snapshot.rules,
            store,
        };
        self.evaluate(snapshot, engine, &info, (&facts, route), detail)
            .await
    }

    /// Adds the start of the body to the facts if a rule may need it, as for a real request.
    fn inspect(
        &self,
        snapshot: &Snapshot,
        info: &RequestInfo<'_>,
        facts: &RequestFacts<'_>,
        max_body: Option<u64>,
    ) {
        if let InspectionPlan::Read(kind) = InspectionPlan::of(snapshot, info, facts, max_body) {
            let read = self.body.len().min(snapshot.settings.inspect_body);
            let is_complete = read == self.body.len();
            let start = self.body.slice(..read);
            facts.set_body(InspectedBody::new(start, is_complete, kind));
        }
    }

    async fn evaluate(
        &self,
        snapshot: &Snapshot,
        engine: Engine<'_>,
        info: &RequestInfo<'_>,
        (facts, route): (&RequestFacts<'_>, Option<Route<'_>>),
        detail: bool,
    ) -> SimulationReport {
        let (evaluation, mut decision) = self.decide(snapshot, &engine, info, facts).await;
        let config = route.map(|(_, route)| route);
        let target = snapshot.leads(decision.verdict, config);
        let to = (target, snapshot.max_body(config));
        let (handled, refused) = self.respond(snapshot, info, facts, to, decision.verdict);
        let countable = handled.as_ref().is_some_and(|handled| handled.countable);
        let response = handled.as_ref().map(response_facts);
        let view = response.as_ref().map(|r| facts.with_response(r));
        let issued = |view| client::issued_cookie(view, handled.as_ref()?);
        let cookie = view.as_ref().and_then(issued);
        let phase = view.as_ref().map(|facts| ResponsePhase {
            facts,
            countable,
            now: info.now,
        });
        let settlement = self.settle(&engine, phase, &mut decision).await;
        let pass = RequestPass {
            rules: &snapshot.rules,
            lists: &snapshot.settings.lists,
            facts: match &view {
                Some(view) if countable => view,
                _ => facts,
            },
            keys: &self.keys,
            now: info.now,
            planned: (&evaluation.plan, &evaluation.result),
            decision: &decision,
            settled: countable.then_some((&settlement.plan, &settlement.result)),
            secrets: &snapshot.redactor,
        };
        let rules = with_disabled(snapshot, pass.trace(detail));
        let name = |rule| snapshot.rules.get(rule).map(|rule| rule.name.clone());
        SimulationReport {
            outcome: SimulatedOutcome::of(&decision, refused),
            decided_by: (decision.decided_by).and_then(|by| Some((name(by.rule)?, by.name()))),
            held: decision.hold,
            tags: decision.tags.iter().filter_map(|tag| name(*tag)).collect(),
            to: target.map(RouteTarget::kind),
            upstream: target.and_then(RouteTarget::name).map(str::to_owned),
            route: route.map(|(pattern, _)| pattern.name().to_owned()),
            client: facts.client,
            response: handled.map(|handled| {
                let mut response = finish(handled, snapshot, &decision, (facts, route));
                add_cookie(&mut response, cookie);
                response
            }),
            response_counted: countable,
            rules,
        }
    }

    /// Returns the response for `verdict`, and why the gateway refused the request if no rule did.
    fn respond(
        &self,
        snapshot: &Snapshot,
        info: &RequestInfo<'_>,
        facts: &RequestFacts<'_>,
        (target, max_body): (Option<&RouteTarget>, Option<u64>),
        verdict: Verdict,
    ) -> (Option<HandledResponse>, Option<&'static str>) {
        let refuse = |fault: GatewayError| HandledResponse::of_fault(fault, info);
        let handled = match verdict {
            Verdict::Block { rule, retry_after } => {
                HandledResponse::own(respond::refusal(snapshot, info, rule, retry_after))
            }
            Verdict::Challenge { rule, retry_after } => {
                let audience = challenge::audience(info, facts);
                let response =
                    challenge::response(snapshot, info, facts, rule, retry_after, audience);
                HandledResponse::own(response)
            }
            // A shadow response requires reading the whole body, as the origin server would.
            Verdict::Shadow { .. } if is_too_large(facts, max_body) => {
                refuse(GatewayError::BodyTooLarge)
            }
            Verdict::Shadow { rule } => {
                HandledResponse::by_route(respond::shadow_response(snapshot, info, rule))
            }
            Verdict::Unavailable { .. } => refuse(GatewayError::Unavailable),
            Verdict::Close { .. } => return (None, None),
            Verdict::Forward | Verdict::Divert { .. } => {
                match (fault(snapshot, facts, max_body), target) {
                    (None, Some(target)) => {
                        let is_countable = verdict == Verdict::Forward;
                        self.forward(target, info, facts, is_countable)
                    }
                    (fault, _) => {
                        let fault = fault.unwrap_or(GatewayError::NoRoute);
                        return (Some(refuse(fault)), Some(fault.reason()));
                    }
                }
            }
        };
        (Some(handled), None)
    }

    fn forward(
        &self,
        target: &RouteTarget,
        info: &RequestInfo<'_>,
        facts: &RequestFacts<'_>,
        is_countable: bool,
    ) -> HandledResponse {
        let (response, upstream) = match target {
            RouteTarget::Redirect(template, status) => {
                return respond::redirect(info, facts, template, *status);
            }
            RouteTarget::Reply(reply) => (reply.to_response(info), None),
            RouteTarget::Upstream { upstream, .. } => {
                (Response::new(Body::Empty), Some(&upstream.name))
            }
        };
        let mut response = self.changed(response);
        let headers = response.headers_mut();
        let named_user =
            (facts.credentials).and_then(|credentials| take_named_user(credentials, headers));
        HandledResponse {
            countable: is_countable,
            upstream: upstream.cloned(),
            named_user,
            ..HandledResponse::by_route(response)
        }
    }

    /// Applies the simulation's status and headers to the response.
    fn changed(&self, mut response: Response<Body>) -> Response<Body> {
        if let Some(status) = self.status {
            *response.status_mut() = status;
        }
        let headers = response.headers_mut();
        for name in self.response_headers.keys() {
            headers.remove(name);
        }
        for (name, value) in &self.response_headers {
            headers.append(name, value.clone());
        }
        response
    }

    fn head(&self, snapshot: &Snapshot) -> Result<RequestHead<'_>, MalformedRequest> {
        self.unreadable.map_or(Ok(()), Err)?;
        let headers = &self.parts.headers;
        let is_empty = headers
            .get(CONTENT_LENGTH)
            .is_none_or(|length| length == "0");
        let ended = is_empty && !headers.contains_key(TRANSFER_ENCODING);
        read_head(&self.parts, self.connection.tls.is_some(), ended, snapshot)
    }

    fn client(&self, snapshot: &Snapshot) -> IpAddr {
        let (peer, headers) = (self.connection.peer.ip(), &self.parts.headers);
        let found = || snapshot.settings.client_ip.resolve(peer, headers);
        self.client.map_or_else(found, |ip| ip.to_canonical())
    }

    fn malformed(
        &self,
        snapshot: &Snapshot,
        info: &RequestInfo<'_>,
        malformed: MalformedRequest,
    ) -> SimulationReport {
        let why = "not reached: the gateway refused the request before any rule";
        SimulationReport {
            outcome: SimulatedOutcome::Refuse(malformed.reason()),
            decided_by: None,
            held: Duration::ZERO,
            tags: Vec::new(),
            to: None,
            upstream: None,
            route: None,
            client: self.client(snapshot),
            response: Some(respond::fault_of(malformed).to_response(info)),
            response_counted: false,
            rules: with_disabled(snapshot, trace::unreached(&snapshot.rules, why)),
        }
    }
}

/// Returns the fields of a response that rules can read. The size of a simulated response is unknown.
fn response_facts(handled: &HandledResponse) -> ResponseFacts<'_> {
    let facts = handled.facts(Duration::ZERO);
    let body_size = facts.body_size.filter(|_| facts.upstream.is_none());
    ResponseFacts { body_size, ..facts }
}

/// Completes the response as the client would receive it.
fn finish(
    mut handled: HandledResponse,
    snapshot: &Snapshot,
    decision: &Decision,
    (facts, route): (&RequestFacts<'_>, Option<Route<'_>>),
) -> Response<Body> {
    handled.add_quota_headers(snapshot, decision);
    if let Some(edits) = handled.edits(route) {
        edits.resolve(facts).apply(handled.response.headers_mut());
    }
    handled.response
}

/// Returns the traces of all rules in the configuration, including disabled ones, in order.
fn with_disabled(snapshot: &Snapshot, mut traces: Vec<RuleTrace>) -> Vec<RuleTrace> {
    for disabled in snapshot.settings.disabled.iter().rev() {
        let index = usize::from(disabled.next.0).min(traces.len());
        traces.insert(index, RuleTrace::disabled(&disabled.rule.name));
    }
    traces
}
