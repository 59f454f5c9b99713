//! The access log entry of a request, as far as it is known when the response starts.

use std::borrow::Cow;
use std::ops::ControlFlow;

use http::header::{HOST, HeaderName, REFERER, USER_AGENT};
use http::{HeaderMap, HeaderValue};
use smallvec::SmallVec;

use super::Core;
use super::request_context::RequestContext;
use super::respond::HandledResponse;
use crate::action::RequestInfo;
use crate::clock::Timestamp;
use crate::expr::{Facts, FieldId, Type, Value};
use crate::facts::{Connection, RequestFacts, View, version_name};
use crate::observe::ListenerMetrics;
use crate::observe::access::{AccessLog, Closing, Record, Seen};
use crate::snapshot::{KeyField, Snapshot};

/// The entry of a request that was served.
pub fn of(
    access: &AccessLog,
    request: &RequestContext<'_, '_>,
    view: View<'_, '_>,
    handled: &HandledResponse,
) -> Vec<u8> {
    let snapshot = request.snapshot();
    let facts = view.request;
    let (user_agent, referer) = (
        header(facts.headers, &USER_AGENT, snapshot),
        header(facts.headers, &REFERER, snapshot),
    );
    let rule = request.decision.credit.and_then(|credit| {
        let name: &str = &snapshot.rules.get(credit.rule)?.name;
        Some((name, credit.name()))
    });
    let country = facts.country().map(|code| String::from_utf8_lossy(code));
    let key_fields: SmallVec<[_; 4]> = snapshot
        .settings
        .key_fields
        .iter()
        .map(|field| (field.label.as_str(), seen(field, &view, snapshot)))
        .collect();
    let status = handled.response.status().as_u16();
    access.start(&Record {
        asn: facts.asn(),
        country: country.as_deref(),
        upstream: handled.upstream.as_deref(),
        upstream_duration: handled.upstream_latency,
        rule: rule.map(|(name, _)| name),
        action: rule.map(|(_, action)| action),
        held: request.held(),
        user_agent: user_agent.as_deref(),
        referer: referer.as_deref(),
        key_fields: &key_fields,
        ..plain(facts, status)
    })
}

/// The entry of a request that was refused before its head was interpreted.
pub fn of_refused(
    access: &AccessLog,
    snapshot: &Snapshot,
    info: &RequestInfo<'_>,
    connection: &Connection,
    status: u16,
) -> Vec<u8> {
    let (user_agent, referer) = (
        header(info.headers, &USER_AGENT, snapshot),
        header(info.headers, &REFERER, snapshot),
    );
    access.start(&Record {
        proto: version_name(info.version),
        method: info.method.as_str(),
        host: info.headers.get(HOST).map(HeaderValue::as_bytes),
        path: info.uri.path().as_bytes(),
        query: info.uri.query().map(str::as_bytes),
        user_agent: user_agent.as_deref(),
        referer: referer.as_deref(),
        ..bare(info.now, info.id, connection, status)
    })
}

/// What is at hand of a request without any look-up, which is all if the gateway panicked.
pub fn plain<'a>(facts: &RequestFacts<'a>, status: u16) -> Record<'a> {
    Record {
        client_ip: facts.client,
        proto: version_name(facts.head.version),
        method: facts.head.method.as_str(),
        host: Some(facts.head.host.as_bytes()),
        path: facts.head.path.as_bytes(),
        query: facts.head.query.map(str::as_bytes),
        route: facts.route,
        ..bare(facts.now, facts.id, facts.connection, status)
    }
}

/// Logs that a head was refused because it cannot be read.
pub fn log_unreadable(
    core: &Core,
    connection: &Connection,
    metrics: &ListenerMetrics,
    status: u16,
) {
    metrics.unread(status);
    let snapshot = core.snapshot();
    let Some(access) = &snapshot.access else {
        return;
    };
    let id = core.request_id();
    let mut entry = access.start(&bare(core.now(), &id, connection, status));
    access.finish(&mut entry, &Closing::default());
}

/// What is known of a request whose head cannot be read.
fn bare<'a>(now: Timestamp, id: &'a str, connection: &'a Connection, status: u16) -> Record<'a> {
    let tls = connection.tls.as_ref();
    let peer = connection.peer.ip().to_canonical();
    Record {
        ts: now,
        id,
        client_ip: peer,
        peer_ip: peer,
        asn: None,
        country: None,
        ja3: tls.map(|tls| &*tls.hello.ja3),
        ja4: tls.map(|tls| &*tls.hello.ja4),
        tls: tls.map(|tls| tls.version),
        proto: "",
        method: "",
        host: None,
        path: b"",
        query: None,
        route: None,
        status,
        upstream: None,
        upstream_duration: None,
        rule: None,
        action: None,
        held: None,
        user_agent: None,
        referer: None,
        key_fields: &[],
    }
}

/// A header, or a hash of it where it is a secret.
fn header<'a>(
    headers: &'a HeaderMap,
    name: &HeaderName,
    snapshot: &Snapshot,
) -> Option<Cow<'a, [u8]>> {
    let value = headers.get(name)?.as_bytes();
    Some(match snapshot.redactor.is_redacted(name.as_str()) {
        true => Cow::Owned(snapshot.redactor.hash(value).into_bytes()),
        false => Cow::Borrowed(value),
    })
}

/// What a rule may have read there, or a hash of it where it is a secret.
fn seen<'a>(field: &KeyField, facts: &'a View<'_, '_>, snapshot: &Snapshot) -> Seen<'a> {
    let hidden = |value: Value<'a>| match value {
        Value::Bytes(bytes) if field.secret => {
            Value::Bytes(snapshot.redactor.hash(&bytes).into_bytes().into())
        }
        other => other,
    };
    match read(field, facts) {
        Seen::Missing => Seen::Missing,
        Seen::One(one) => Seen::One(hidden(one)),
        Seen::Many(many) => Seen::Many(many.into_iter().map(hidden).collect()),
    }
}

fn read<'a>(field: &KeyField, facts: &'a View<'_, '_>) -> Seen<'a> {
    let (id, entry) = (field.field, field.entry.as_deref());
    let one = match (entry, field.ty) {
        (Some(_), _) | (None, Type::Map | Type::Array) => match facts.element(id, entry, 1) {
            None => facts.element(id, entry, 0).map(Value::Bytes),
            Some(_) => return Seen::Many(all(id, entry, facts)),
        },
        (None, Type::Bytes) => facts.bytes(id).map(Value::Bytes),
        (None, Type::Int) => facts.int(id).map(Value::Int),
        (None, Type::Ip) => facts.ip(id).map(Value::Ip),
        (None, Type::Bool) => facts.bool(id).map(Value::Bool),
    };
    one.map_or(Seen::Missing, Seen::One)
}

fn all<'a>(field: FieldId, entry: Option<&[u8]>, facts: &View<'_, '_>) -> Vec<Value<'a>> {
    let mut values = Vec::new();
    facts.each(field, entry, &mut |value| {
        values.push(Value::Bytes(value.to_vec().into()));
        ControlFlow::Continue(())
    });
    values
}
