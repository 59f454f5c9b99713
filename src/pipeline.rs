//! The life of a connection and of a request: the order of everything, and nothing else.
//!
//! Each stage is called here and gives a value back. No stage calls the next.

mod ban;
mod body;
mod core;
mod enter;
mod forward;
mod hold;
pub mod imagined;
mod line;
mod outlive;
mod record;
mod settle;
mod stop;
mod tunnel;

use std::net::SocketAddr;
use std::rc::Rc;

use http::Request;
use http::request::Parts;
use hyper::body::{Body as _, Incoming};
use tokio::net::TcpStream;

pub use self::core::Core;
use self::forward::Forward;
use self::record::{Recorded, Visit};
use crate::action::Asked;
use crate::decision::Verdict;
use crate::facts::{Connection, Head, Malformed, RequestFacts};
use crate::listen::Permit;
use crate::snapshot::Snapshot;

/// accept → ClientHello → handshake → requests, until the connection ends.
pub async fn connection(
    core: Rc<Core>,
    listener: usize,
    tcp: TcpStream,
    peer: SocketAddr,
    permit: Permit,
) {
    let snapshot = core.snapshot();
    let Some(entrance) = snapshot.listeners.get(listener) else {
        return;
    };
    let _open = entrance.metrics.open();
    let limits = snapshot.limits;
    let watch = core.deadlines.watch(&limits, permit);
    let Some((stream, connection)) = enter::enter(&core, entrance, tcp, peer, &watch).await else {
        return;
    };
    // An idle connection must not keep an old configuration alive.
    drop(snapshot);
    let connection = Rc::new(connection);
    let handler = {
        let core = core.clone();
        move |incoming| {
            let request = request(core.clone(), connection.clone(), listener, incoming);
            outlive::outlive(core.clone(), request)
        }
    };
    let ended = stream.serve(&limits, watch, handler).await;
    core.connection_ended(&ended);
}

/// head → facts → plan → apply → decide → stop or forward → settle → observe.
async fn request(
    core: Rc<Core>,
    connection: Rc<Connection>,
    listener: usize,
    request: Request<Incoming>,
) -> http::Response<Recorded> {
    let snapshot = core.snapshot();
    let visit = Visit::begin(&core, &snapshot, listener);
    let id = core.request_id();
    let (mut parts, incoming) = request.into_parts();
    let upgrade = parts.extensions.remove();
    let asked = Asked::of(&parts, &id, visit.now);

    let (secure, ended) = (connection.tls.is_some(), incoming.is_end_stream());
    let head = match read_head(&parts, secure, ended, &snapshot) {
        Ok(head) => head,
        Err(malformed) => return visit.malformed(&asked, &connection, malformed),
    };
    let peer = connection.peer.ip();
    let client = snapshot.client_ip.resolve(peer, &parts.headers);
    let route = snapshot.routes.find(head.authority(), &head.path);
    let geo = &snapshot.geo;
    let mut facts = RequestFacts::new(&head, &parts.headers, &connection, client, visit.now, geo);
    facts.route = route.map(|(template, _)| template);
    facts.id = &id;
    let _unanswered = visit.unanswered(&facts);

    let store = &core.live.lasting.store;
    let plan = snapshot.rules.plan(&facts);
    let findings = store.apply(&plan, visit.now).await;
    let mut decision = snapshot.rules.decide(&plan, &findings, visit.now);
    ban::tell(&core, &snapshot, &plan, &findings);
    stop::lengthen(store, &snapshot, &plan, &findings, &mut decision, visit.now).await;
    hold::hold(&core, &snapshot, visit.began, decision.hold).await;
    let mut sent = match decision.verdict {
        Verdict::Block { rule, retry_after } => {
            stop::block(&snapshot, &asked, incoming, &visit.meter, rule, retry_after).await
        }
        Verdict::Shadow { rule } => {
            stop::shadow(&snapshot, &asked, incoming, &visit.meter, rule).await
        }
        Verdict::Forward | Verdict::Divert { .. } | Verdict::Close { .. } => {
            let forward = Forward {
                core: &core,
                snapshot: &snapshot,
                facts: &facts,
                asked: &asked,
                began: visit.began,
                meter: &visit.meter,
            };
            forward.to(route.map(|(_, to)| to), incoming, upgrade).await
        }
    };

    if sent.settles {
        settle::settle(&core, &snapshot, &visit, &facts, &sent, &mut decision).await;
    }
    sent.tell(&snapshot, &decision);
    visit.end(&facts, &decision, sent)
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
