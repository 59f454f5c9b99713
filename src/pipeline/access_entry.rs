//! Builds the access log entry of a request, as far as it is known when the response starts.

use std::borrow::Cow;
use std::ops::ControlFlow;

use http::header::{HOST, HeaderName, REFERER, USER_AGENT};
use http::{HeaderMap, HeaderValue};
use smallvec::SmallVec;

use super::CoreState;
use super::request_context::RequestContext;
use super::respond::HandledResponse;
use crate::action::RequestInfo;
use crate::clock::Timestamp;
use crate::credential::CredentialId;
use crate::expr::{FieldFacts, FieldId, ScalarValue, ValueType};
use crate::facts::{
    ClientConnection, ClientStanding, FactsView, RequestFacts, trace_id, version_name,
};
use crate::observe::ListenerMetrics;
use crate::observe::access::{AccessEnd, AccessLog, AccessRecord, CredentialRecord, LoggedField};
use crate::observe::activity::ActionClass;
use crate::snapshot::{KeyField, LogField, Snapshot};

/// Builds the entry of a request that was evaluated.
pub fn of(
    access: &AccessLog,
    request: &RequestContext<'_, '_>,
    view: FactsView<'_, '_>,
    handled: &HandledResponse,
) -> Vec<u8> {
    let snapshot = request.snapshot();
    let facts = view.request;
    let (user_agent, referer) = (
        header(facts.headers, &USER_AGENT, snapshot),
        header(facts.headers, &REFERER, snapshot),
    );
    let decided_by = request.decision.decided_by;
    let rule = decided_by.and_then(|decided_by| snapshot.rules.get(decided_by.rule));
    let country = facts.country().map(|code| String::from_utf8_lossy(code));
    let key_fields: SmallVec<[_; 4]> = snapshot
        .settings
        .logged
        .key_fields
        .iter()
        .map(|field| (field.label.as_str(), seen(field, &view, snapshot)))
        .collect();
    let log_fields = snapshot.settings.logged.fields.iter();
    let fields: SmallVec<[_; 4]> = log_fields
        .map(|field| (field.name.as_str(), custom(field, &view, snapshot)))
        .collect();
    let status = handled.response.status().as_u16();
    access.start(&AccessRecord {
        asn: facts.asn(),
        country: country.as_deref(),
        route: request.route.map(|(pattern, _)| pattern.name()),
        upstream: handled.upstream.as_deref(),
        server: handled.server.as_deref().map(|server| &**server.label()),
        attempts: handled.attempts,
        upstream_duration: handled.upstream_latency,
        rule: rule.map(|rule| &*rule.name),
        action: request.decision.action_name(),
        held: request.held(),
        error: handled.fault,
        user_agent: user_agent.as_deref(),
        referer: referer.as_deref(),
        credentials: credentials(request, handled),
        key_fields: &key_fields,
        fields: &fields,
        ..plain(facts, status)
    })
}

/// Returns what the gateway's cookies prove. `None` if it gives clients no cookies.
fn credentials<'a>(
    request: &'a RequestContext<'_, '_>,
    handled: &HandledResponse,
) -> Option<CredentialRecord<'a>> {
    let facts = request.facts;
    facts.credentials?;
    let passed = request.passed_challenge().map(|_| "passed");
    Some(CredentialRecord {
        client: facts.client_standing().map(ClientStanding::name),
        client_id: facts.client_id().map(CredentialId::as_str),
        clearance: facts.clearance().map(CredentialId::as_str),
        challenge: handled.challenge.or(passed),
    })
}

/// Builds the entry of a request that was refused before its head was interpreted.
pub fn of_refused(
    access: &AccessLog,
    snapshot: &Snapshot,
    info: &RequestInfo<'_>,
    connection: &ClientConnection,
    (status, why): (u16, &'static str),
) -> Vec<u8> {
    let (user_agent, referer) = (
        header(info.headers, &USER_AGENT, snapshot),
        header(info.headers, &REFERER, snapshot),
    );
    let fields = no_values(snapshot);
    access.start(&AccessRecord {
        proto: version_name(info.version),
        method: info.method.as_str(),
        host: info.headers.get(HOST).map(HeaderValue::as_bytes),
        path: info.uri.path().as_bytes(),
        query: info.uri.query().map(str::as_bytes),
        trace_id: trace_id(info.headers),
        error: Some(why),
        user_agent: user_agent.as_deref(),
        referer: referer.as_deref(),
        fields: &fields,
        ..bare(info.now, info.id, connection, status)
    })
}

/// Builds an entry without any lookup, for a request during which the gateway panicked.
pub fn of_panic(
    access: &AccessLog,
    snapshot: &Snapshot,
    facts: &RequestFacts<'_>,
    status: u16,
) -> Vec<u8> {
    access.start(&AccessRecord {
        fields: &no_values(snapshot),
        ..plain(facts, status)
    })
}

fn plain<'a>(facts: &RequestFacts<'a>, status: u16) -> AccessRecord<'a> {
    AccessRecord {
        client_ip: facts.client,
        proto: version_name(facts.head.version),
        method: facts.head.method.as_str(),
        host: Some(facts.head.host.as_bytes()),
        path: facts.head.path.as_bytes(),
        query: facts.head.query.map(str::as_bytes),
        trace_id: trace_id(facts.headers),
        route: facts.route,
        ..bare(facts.now, facts.id, facts.connection, status)
    }
}

/// Logs a request that was refused because its head cannot be parsed.
pub fn log_unreadable(
    core: &CoreState,
    connection: &ClientConnection,
    metrics: &ListenerMetrics,
    status: u16,
) {
    metrics.unread(status);
    core.activity.count(ActionClass::Own, None);
    let snapshot = core.snapshot();
    let Some(access) = &snapshot.access else {
        return;
    };
    let id = core.request_id();
    let mut entry = access.start(&AccessRecord {
        error: Some(match status {
            408 => "timeout",
            431 => "head_too_large",
            _ => "malformed",
        }),
        fields: &no_values(&snapshot),
        ..bare(core.now(), &id, connection, status)
    });
    access.finish(&mut entry, &AccessEnd::default());
}

/// Builds the entry of a request with a head that cannot be parsed.
fn bare<'a>(
    now: Timestamp,
    id: &'a str,
    connection: &'a ClientConnection,
    status: u16,
) -> AccessRecord<'a> {
    let tls = connection.tls.as_ref();
    let peer = connection.peer.ip().to_canonical();
    AccessRecord {
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
        trace_id: None,
        listener: &connection.listener,
        route: None,
        status,
        upstream: None,
        server: None,
        attempts: 0,
        upstream_duration: None,
        rule: None,
        action: None,
        held: None,
        error: None,
        user_agent: None,
        referer: None,
        credentials: None,
        key_fields: &[],
        fields: &[],
    }
}

/// Returns a header, or a hash of it if it is secret.
pub fn header<'a>(
    headers: &'a HeaderMap,
    name: &HeaderName,
    snapshot: &Snapshot,
) -> Option<Cow<'a, [u8]>> {
    let value = headers.get(name)?.as_bytes();
    Some(if snapshot.redactor.is_redacted(name.as_str()) {
        Cow::Owned(snapshot.redactor.hash(value).into_bytes())
    } else {
        Cow::Borrowed(value)
    })
}

/// Returns the fields of `log.fields` for a request of which none is evaluated.
fn no_values(snapshot: &Snapshot) -> SmallVec<[(&str, LoggedField<'_>); 4]> {
    let fields = snapshot.settings.logged.fields.iter();
    fields
        .map(|field| (field.name.as_str(), LoggedField::Missing))
        .collect()
}

/// Returns the value of a field of `log.fields`, or a hash of it if it is secret.
fn custom<'a>(
    field: &LogField,
    facts: &'a FactsView<'_, '_>,
    snapshot: &Snapshot,
) -> LoggedField<'a> {
    let value = field.scalar.eval(facts);
    value.map_or(LoggedField::Missing, |value| {
        LoggedField::One(shown(value, field.secret, snapshot))
    })
}

/// Returns a value, or a hash of it if it is secret.
fn shown<'a>(value: ScalarValue<'a>, secret: bool, snapshot: &Snapshot) -> ScalarValue<'a> {
    let hash = |bytes: &[u8]| ScalarValue::Bytes(snapshot.redactor.hash(bytes).into_bytes().into());
    match value {
        other if !secret => other,
        ScalarValue::Bytes(bytes) => hash(&bytes),
        ScalarValue::Int(int) => hash(int.to_string().as_bytes()),
        other => other,
    }
}

/// Returns a value that rules read, or a hash of it if it is secret.
fn seen<'a>(
    field: &KeyField,
    facts: &'a FactsView<'_, '_>,
    snapshot: &Snapshot,
) -> LoggedField<'a> {
    let hidden = |value| shown(value, field.secret, snapshot);
    match read(field, facts) {
        LoggedField::Missing => LoggedField::Missing,
        LoggedField::One(one) => LoggedField::One(hidden(one)),
        LoggedField::Many(many) => LoggedField::Many(many.into_iter().map(hidden).collect()),
    }
}

fn read<'a>(field: &KeyField, facts: &'a FactsView<'_, '_>) -> LoggedField<'a> {
    let (id, entry) = (field.field, field.entry.as_deref());
    let one = match (entry, field.ty) {
        (Some(_), _) | (None, ValueType::Map | ValueType::Array) => {
            match facts.element(id, entry, 1) {
                None => facts.element(id, entry, 0).map(ScalarValue::Bytes),
                Some(_) => return LoggedField::Many(all(id, entry, facts)),
            }
        }
        (None, ValueType::Bytes) => facts.bytes(id).map(ScalarValue::Bytes),
        (None, ValueType::Int) => facts.int(id).map(ScalarValue::Int),
        (None, ValueType::Ip) => facts.ip(id).map(ScalarValue::Ip),
        (None, ValueType::Bool) => facts.bool(id).map(ScalarValue::Bool),
    };
    one.map_or(LoggedField::Missing, LoggedField::One)
}

fn all<'a>(
    field: FieldId,
    entry: Option<&[u8]>,
    facts: &FactsView<'_, '_>,
) -> Vec<ScalarValue<'a>> {
    let mut values = Vec::new();
    facts.each(field, entry, &mut |value| {
        values.push(ScalarValue::Bytes(value.to_vec().into()));
        ControlFlow::Continue(())
    });
    values
}
