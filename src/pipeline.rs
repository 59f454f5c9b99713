//! The stages of a connection and of a request, in order.
//!
//! Each stage is called here and returns a value. No stage calls the next. `RequestContext` holds the data of a
//! request until its response starts, `RequestState` what lives until the response ends.

mod access_entry;
mod activity;
mod body;
mod body_inspection;
mod challenge;
mod challenge_endpoint;
mod core;
mod detached_request;
pub mod engine;
mod enter;
mod forward;
mod hold;
mod imitate;
mod known_client;
mod log_throttle;
mod paced_body;
mod request_context;
mod request_state;
mod respond;
pub mod simulate;
mod started_bans;
mod tunnel;

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::Arc;

use http::header::SET_COOKIE;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Request, Response, Version};
use http_body::Body as _;
use tokio::net::TcpStream;

use self::challenge_endpoint::ChallengeRequest;
pub use self::core::CoreState;
use self::detached_request::DetachOnDisconnect;
use self::request_context::RequestContext;
use self::request_state::{LoggedBody, RequestState};
use self::respond::HandledResponse;
use self::tunnel::TunnelClient;
use crate::action::{GatewayError, RequestInfo};
use crate::decision::Verdict;
use crate::facts::{ClientConnection, MalformedRequest, RequestFacts, RequestHead};
use crate::listen::{ConnectionPermit, RequestBody};
use crate::route::edit::HeaderChanges;
use crate::snapshot::{ListenerConfig, Snapshot};

/// accept → PROXY header → ClientHello → handshake → requests, until the connection ends. `listener` has the
/// configuration from when it was opened.
pub async fn connection(
    core: Rc<CoreState>,
    listener: Arc<ListenerConfig>,
    tcp: TcpStream,
    peer: SocketAddr,
    permit: ConnectionPermit,
) {
    let snapshot = core.snapshot();
    // A listener removed by a reload serves its remaining connections with its old configuration.
    let mut listeners = snapshot.listeners.iter();
    let current = listeners.find(|l| l.id == listener.id).unwrap_or(&listener);
    let mut open = current.metrics.open();
    let limits = snapshot.settings.limits;
    let timer = core.timers.start(&limits, permit);
    let metrics = Rc::new(current.metrics.clone());
    let entered = enter::enter(&core, &snapshot, current, (tcp, peer), &timer).await;
    let Some((stream, connection)) = entered else {
        return;
    };
    open.enter(stream.phase());
    // An idle connection must not keep an old configuration alive.
    drop((snapshot, listener));
    let connection = Rc::new(connection);
    let handler = {
        let (core, connection, metrics) = (core.clone(), connection.clone(), metrics.clone());
        move |incoming, response| {
            let state = RequestState::new(core.clone(), metrics.clone(), response);
            // Box it here: it is large, and each move would copy it.
            let request = Box::pin(request(state.clone(), connection.clone(), incoming));
            DetachOnDisconnect::new(state, request)
        }
    };
    let ended = stream.serve(&limits, timer, handler).await;
    let Err(error) = ended else { return };
    if let Some(fault) = error.fault() {
        core.protocol_error(fault.into());
    }
    if let Some(status) = error.status() {
        access_entry::log_unreadable(&core, &connection, &metrics, status);
    }
}

/// head → facts → inspect → decide → hold → respond or forward → settle → observe. `None` if there is no response.
async fn request(
    state: Rc<RequestState>,
    connection: Rc<ClientConnection>,
    request: Request<RequestBody>,
) -> Option<Response<LoggedBody>> {
    let (core, snapshot) = (&state.core, &*state.snapshot);
    let now = core.now();
    let (mut parts, mut incoming) = request.into_parts();
    let tunnel = TunnelClient::of(&mut parts, &mut incoming);
    let id = request_id(&state, &connection, &parts.headers);
    let mut info = RequestInfo::of(&parts, &id, now, snapshot.error_pages(None));
    if core.late.get() {
        return Some(state.refuse(&info, &connection, (GatewayError::Unavailable, "draining")));
    }
    let (secure, ended) = (connection.tls.is_some(), incoming.is_end_stream());
    let read = |tunnel| Ok((read_head(&parts, secure, ended, snapshot)?, tunnel));
    let (head, tunnel) = match tunnel.and_then(read) {
        Ok(head) => head,
        Err(malformed) => {
            let why = core.malformed(malformed).name();
            return Some(state.refuse(&info, &connection, (respond::fault_of(malformed), why)));
        }
    };
    let client = (snapshot.settings.client_ip).resolve(connection.peer.ip(), &parts.headers);
    let route = select_route(&state, &head, &connection, &mut info);
    let geo = &snapshot.settings.geo;
    let mut facts = RequestFacts::new(&head, &parts.headers, &connection, client, now, geo);
    facts.route = route.map(|(pattern, _)| pattern.template());
    facts.id = &id;
    facts.credentials = snapshot.credentials.as_ref();

    let mut request = RequestContext::new(&state, &info, &facts, route);
    if snapshot.has_early_stages() {
        // Boxed, so that other requests do not take its memory.
        match Box::pin(before_rules(&mut request, incoming)).await {
            ControlFlow::Continue(rest) => incoming = rest,
            ControlFlow::Break(response) => return Some(response),
        }
    }
    request.decide().await;
    hold::hold(&mut request).await;
    let handled = match request.decision.verdict {
        Verdict::Block { rule, retry_after } => {
            respond::block(&request, incoming, rule, retry_after).await
        }
        Verdict::Challenge { rule, retry_after } => {
            Box::pin(challenge::challenge(&request, incoming, rule, retry_after)).await
        }
        Verdict::Shadow { rule } => respond::shadow(&request, incoming, rule).await,
        Verdict::Unavailable { .. } => respond::refuse_without_store(&request, incoming).await,
        Verdict::Close { .. } => {
            request.close();
            return None;
        }
        Verdict::Forward | Verdict::Divert { .. } => request.forward(incoming, tunnel).await,
    };
    Some(finish(&mut request, handled, route))
}

/// Selects the route, and applies its limits and error pages.
fn select_route<'a>(
    state: &'a RequestState,
    head: &RequestHead<'_>,
    connection: &ClientConnection,
    info: &mut RequestInfo<'a>,
) -> Option<imitate::Route<'a>> {
    let snapshot = &*state.snapshot;
    let route = snapshot.route_of(head, info.headers, connection);
    let config = route.map(|(_, config)| config);
    state.meter.max.set(snapshot.max_body(config));
    info.errors = snapshot.error_pages(config);
    route
}

/// settle → quota headers → the route's changes → the cookie of a known client.
fn finish(
    request: &mut RequestContext<'_, '_>,
    mut handled: HandledResponse,
    route: Option<imitate::Route<'_>>,
) -> Response<LoggedBody> {
    request.settle(&handled);
    imitate::learn(request, &handled);
    handled.add_quota_headers(request.snapshot(), &request.decision);
    let (edits, cookie) = (handled.edits(route), request.issue_cookie(&handled));
    let mut response = request.start_response(handled);
    edit(&mut response, edits, request.facts);
    add_cookie(&mut response, cookie);
    response
}

/// Serves the path of challenges, or reads the body for the rules. `Continue` has the body for the later stages.
async fn before_rules(
    request: &mut RequestContext<'_, '_>,
    mut incoming: RequestBody,
) -> ControlFlow<Response<LoggedBody>, RequestBody> {
    if let Some(for_challenge) = ChallengeRequest::of(request) {
        request.is_decision.set(false);
        let handled = for_challenge.respond(incoming).await;
        return ControlFlow::Break(request.start_response(handled));
    }
    if request.snapshot().needs_bodies()
        && let Some(fault) = body_inspection::inspect(request, &mut incoming).await
    {
        return ControlFlow::Break(body_inspection::refuse(request, fault));
    }
    ControlFlow::Continue(incoming)
}

/// Adds the cookie of a known client, after the route's changes, so that they cannot remove it.
fn add_cookie<B>(response: &mut Response<B>, cookie: Option<HeaderValue>) {
    if let Some(cookie) = cookie {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
}

/// Applies the route's changes to a response. Rules, the access log and imitations see it before.
fn edit(
    response: &mut Response<LoggedBody>,
    edits: Option<&HeaderChanges>,
    facts: &RequestFacts<'_>,
) {
    if let Some(edits) = edits {
        edits.resolve(facts).apply(response.headers_mut());
    }
    let head = facts.head;
    if head.upgrade.is_some() && head.version == Version::HTTP_2 {
        tunnel::to_extended_connect(response);
    }
}

/// Returns the request id of a trusted proxy, or a new one.
fn request_id<'h>(
    state: &RequestState,
    connection: &ClientConnection,
    headers: &'h HeaderMap,
) -> Cow<'h, str> {
    let client_ip = &state.snapshot.settings.client_ip;
    let given = client_ip.request_id(connection.peer.ip(), headers);
    given.map_or_else(|| Cow::Owned(state.core.request_id()), Cow::Borrowed)
}

/// Checks what hyper does not check in HTTP/2: the number of headers, and whether a body follows.
fn read_head<'p>(
    parts: &'p Parts,
    secure: bool,
    ended: bool,
    snapshot: &Snapshot,
) -> Result<RequestHead<'p>, MalformedRequest> {
    if parts.headers.len() > snapshot.settings.limits.max_headers {
        return Err(MalformedRequest::TooManyFields);
    }
    let head = RequestHead::read(parts, secure)?;
    Ok(if ended { head.without_body() } else { head })
}
