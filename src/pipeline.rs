//! The life of a connection and of a request: the order of everything, and nothing else.
//!
//! Each stage is called here and gives a value back. No stage calls the next.

mod alarm;
mod ban;
mod body;
mod core;
mod drift;
mod enter;
mod entrance;
mod forward;
mod hold;
pub mod imagined;
mod imitate;
mod lesson;
mod line;
mod opening;
mod outlive;
mod pace;
mod places;
mod record;
mod seldom;
mod settle;
mod stop;
mod tab;
mod tunnel;

use std::borrow::Cow;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use http::request::Parts;
use http::{HeaderMap, Request, Version};
use http_body::Body as _;
use tokio::net::TcpStream;

pub use self::core::Core;
use self::entrance::Entrance;
use self::forward::Forward;
use self::record::{Recorded, Visit};
use self::tab::Tab;
use crate::action::{Asked, Fault};
use crate::decision::{Decision, Verdict};
use crate::facts::{Connection, Head, Malformed, RequestFacts};
use crate::listen::{Incoming, Permit};
use crate::route::edit::Fields;
use crate::rules::{Findings, Plan};
use crate::snapshot::{Listener, Snapshot};

/// accept → PROXY header → ClientHello → handshake → requests, until the connection ends.
/// `listener`: as it was when it opened.
pub async fn connection(
    core: Rc<Core>,
    listener: Arc<Listener>,
    tcp: TcpStream,
    peer: SocketAddr,
    permit: Permit,
) {
    let snapshot = core.snapshot();
    // One that is gone by now has accepted its last connections.
    let mut listeners = snapshot.listeners.iter();
    let entrance = listeners.find(|l| l.id == listener.id).unwrap_or(&listener);
    let _open = entrance.metrics.open();
    let limits = snapshot.limits;
    let watch = core.deadlines.watch(&limits, permit);
    let way = Rc::new(Entrance::new(entrance, &watch));
    let entered = enter::enter(&core, &snapshot, entrance, (tcp, peer), &watch).await;
    let Some((stream, connection)) = entered else {
        return;
    };
    // An idle connection must not keep an old configuration alive.
    drop((snapshot, listener));
    let connection = Rc::new(connection);
    let handler = {
        let (core, connection, way) = (core.clone(), connection.clone(), way.clone());
        move |incoming| {
            let tab = Rc::<Tab>::default();
            let (connection, way) = (connection.clone(), way.clone());
            // Where it is made: it is large, and each move would copy it.
            let request = request(core.clone(), connection, way, tab.clone(), incoming);
            outlive::outlive(core.clone(), tab, Box::pin(request))
        }
    };
    let ended = stream.serve(&limits, watch, handler).await;
    core.connection_ended(&ended);
    if let Some(status) = ended.err().and_then(|error| error.answered()) {
        record::unread(&core, &connection, &way, status);
    }
}

/// head → facts → decide → hold → stop or forward → settle → observe; `None`: nobody answers.
async fn request(
    core: Rc<Core>,
    connection: Rc<Connection>,
    way: Rc<Entrance>,
    tab: Rc<Tab>,
    request: Request<Incoming>,
) -> Option<http::Response<Recorded>> {
    let visit = Visit::begin(core, way, tab);
    let (core, snapshot, geo) = (&visit.core, &visit.snapshot, &visit.snapshot.geo);
    let (mut parts, mut incoming) = request.into_parts();
    let tunnel = tunnel::Client::of(&mut parts, &mut incoming);
    let id = id(&visit, &connection, &parts.headers);
    let asked = Asked::of(&parts, &id, visit.now);
    if core.late.get() {
        return Some(visit.refuse(&asked, &connection, Fault::Unavailable));
    }
    let (secure, ended) = (connection.tls.is_some(), incoming.is_end_stream());
    let read = |tunnel| Ok((read_head(&parts, secure, ended, snapshot)?, tunnel));
    let (head, tunnel) = match tunnel.and_then(read) {
        Ok(head) => head,
        Err(malformed) => return Some(visit.malformed(&asked, &connection, malformed)),
    };
    let client = (snapshot.client_ip).resolve(connection.peer.ip(), &parts.headers);
    let route = snapshot.routes.find_pattern(head.authority(), &head.path);
    let mut facts = RequestFacts::new(&head, &parts.headers, &connection, client, visit.now, geo);
    facts.route = route.map(|(pattern, _)| pattern.template());
    facts.id = &id;

    let mut open = visit.unanswered(&facts);
    let decision = &mut open.decision;
    decide(&visit, &asked, &facts, decision).await;
    if !hold::hold(&visit, decision.hold).await {
        hold::cannot_hold(&visit, &asked, decision);
    }
    let mut sent = match decision.verdict {
        Verdict::Block { rule, retry_after } => {
            let meter = &visit.tab.meter;
            stop::block(snapshot, &asked, incoming, meter, rule, retry_after).await
        }
        Verdict::Shadow { rule } => stop::shadow(&visit, &asked, incoming, route, rule).await,
        Verdict::Close { .. } => {
            visit.end_unanswered(&facts, decision);
            return None;
        }
        Verdict::Forward | Verdict::Divert { .. } => {
            let forward = Forward::of(&visit, &facts, &asked, decision);
            forward.to(route, incoming, tunnel).await
        }
    };

    if sent.settles {
        settle::settle(core, snapshot, &visit, &facts, &sent, decision).await;
    } else if decision.verdict.pretends() {
        settle::pretend(core, snapshot, &visit, &facts, &sent, decision);
    }
    imitate::learn(&visit, &facts, &asked, decision, route, &sent);
    sent.tell(snapshot, decision);
    let edits = sent.edits(route);
    Some(edited(visit.end(&facts, decision, sent), edits, &head))
}

/// A trusted proxy's id for the request, or one of ours.
fn id<'h>(visit: &Visit, connection: &Connection, headers: &'h HeaderMap) -> Cow<'h, str> {
    let client_ip = &visit.snapshot.client_ip;
    let given = client_ip.request_id(connection.peer.ip(), headers);
    given.map_or_else(|| Cow::Owned(visit.core.request_id()), Cow::Borrowed)
}

/// Last of all: what rules, the log and imitations go by is what the origin said.
fn edited<B>(
    mut response: http::Response<B>,
    edits: Option<&Fields>,
    head: &Head<'_>,
) -> http::Response<B> {
    if let Some(edits) = edits {
        edits.apply(response.headers_mut());
    }
    match head.upgrade.is_some() && head.version == Version::HTTP_2 {
        true => opening::answer(response),
        false => response,
    }
}

/// plan → apply → decide: what becomes of a request, and the places that it takes.
async fn decide(
    visit: &Visit,
    asked: &Asked<'_>,
    facts: &RequestFacts<'_>,
    decision: &mut Decision,
) {
    let (core, snapshot, now) = (&visit.core, &visit.snapshot, visit.now);
    let store = &core.live.lasting.store;
    let mut plan = Plan::default();
    snapshot.rules.plan_into(facts, &mut plan);
    let mut findings = Findings::new();
    store.carry_out(&plan, now, &mut findings).await;
    let places = places::taken(&core.live, &snapshot.rules, &plan, &findings);
    let rules = &snapshot.rules;
    rules.decide_into(&plan, &findings, now, decision);
    stop::openly(asked, decision);
    // A request that is stopped gives back what it took, before anything else is looked at.
    if let Some(taken) = places.filter(|_| decision.verdict.is_served()) {
        visit.tab.places.keep(taken);
    }
    ban::tell(core, snapshot, &plan, &findings);
    stop::lengthen(store, snapshot, &plan, &findings, decision, now).await;
}

/// What hyper leaves open in HTTP/2: how many fields a head has, and whether a body follows.
fn read_head<'p>(
    parts: &'p Parts,
    secure: bool,
    ended: bool,
    snapshot: &Snapshot,
) -> Result<Head<'p>, Malformed> {
    if parts.headers.len() > snapshot.limits.max_headers {
        return Err(Malformed::TooManyFields);
    }
    let head = Head::read(parts, secure)?;
    Ok(match ended {
        true => head.without_body(),
        false => head,
    })
}
