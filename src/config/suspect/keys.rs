//! Keys: whom a ban would hit, and who could dodge a counter.

use std::ops::Range;

use super::logic::covers;
use super::{Case, Warnings};
use crate::config::Text;
use crate::config::file::{File, Route};
use crate::expr::{self, FieldId, Outline, Phase, Relation, Scheme as _, Subject};
use crate::facts::fields::{self, Fields};
use crate::rules::{KeyPart, Missing};

/// Warns of a key that is shared, missing, chosen by the client, or new with every request.
pub(super) fn warn(case: &Case<'_>, all: &[Case<'_>], file: &File, warnings: &mut Warnings<'_>) {
    if case.rule.limiter.is_none() {
        return;
    }
    let parts = &case.rule.key.parts;
    if parts.iter().any(|part| reads(part, is_new_each_time)) {
        return new_each_time(case, warnings);
    }
    let has_client = parts.iter().any(|part| reads(part, is_address));
    behind_a_proxy(case, file, warnings);
    let bans_many = case.bans() && !has_client;
    if bans_many && parts.iter().all(|part| reads_only(part, is_shared)) {
        return shared(case, warnings);
    }
    if bans_many && case.rule.key.missing == Missing::Group {
        grouped(case, file, warnings);
    }
    let free = |part: &KeyPart| is_free(part, case, file);
    if parts.iter().any(free) && !all.iter().any(|other| guards(other, case, file)) {
        dodged(case, warnings);
    }
}

/// Whether a client writes what it likes there, and is counted all the same.
fn is_free(part: &KeyPart, case: &Case<'_>, file: &File) -> bool {
    let wild = |host: &Text| host.value.starts_with('*');
    let any = |route: &Route| route.hosts.is_empty() || route.hosts.iter().any(wild);
    let any_host = file.routes.iter().any(any);
    let tested = |name: &str| {
        let said = case.said().flat_map(|said| said.outline.leaves());
        let mut fields = said.filter_map(|leaf| leaf.subject.field.as_deref());
        fields.any(|field| field == name)
    };
    let free = |name: &str| match name {
        "http.host" => any_host && !tested(name),
        "http.request.method" => !tested(name),
        _ => is_chosen(name),
    };
    reads(part, free) && !is_known(part, case)
}

/// Whether only some values are counted at all: a made-up one is not.
fn is_known(part: &KeyPart, case: &Case<'_>) -> bool {
    let test = format!("{} eq \"\"", part.scalar.source());
    let Ok(Outline::Leaf(own)) = expr::outline(&test) else {
        return false;
    };
    let counted = case.counts().map(Outline::conjuncts).unwrap_or_default();
    counted.into_iter().any(|test| match test {
        Outline::Leaf(leaf) => limits(&leaf.relation) && is_same(&leaf.subject, &own.subject),
        _ => false,
    })
}

fn limits(relation: &Relation) -> bool {
    matches!(relation, Relation::Eq | Relation::In | Relation::InList(_))
}

/// In a key the first value is meant where none is named.
fn is_same(one: &Subject, other: &Subject) -> bool {
    let first = |subject: &Subject| Subject {
        index: Some(subject.index.unwrap_or(0)),
        ..subject.clone()
    };
    first(one) == first(other)
}

/// Whether `other` counts the same requests by something that costs a client more to change: every
/// part of its key, as a key is no harder to change than its easiest part.
fn guards(other: &Case<'_>, case: &Case<'_>, file: &File) -> bool {
    let parts = &other.rule.key.parts;
    let by_client = parts.iter().any(|part| reads(part, is_address))
        && !parts.iter().any(|part| is_free(part, other, file));
    let limits = other.rule.limiter.is_some() && !other.rule.dry_run;
    let Some(narrow) = case.counts().filter(|_| by_client && limits) else {
        return false;
    };
    // A rule that counts what the origin refuses catches made-up values too.
    let counted = other.counts().map(Outline::conjuncts).unwrap_or_default();
    let mut counted = counted.into_iter().filter(|part| !of_response(part));
    counted.all(|wide| covers(wide, narrow))
        && other.stops().is_some_and(|wide| covers(wide, narrow))
}

/// Whether a part of an expression looks at the answer.
fn of_response(part: &Outline) -> bool {
    let fields = part.leaves().into_iter();
    let mut fields = fields.filter_map(|leaf| Fields.field(leaf.subject.field.as_deref()?));
    fields.any(|field| field.phase == Phase::Response)
}

fn shared(case: &Case<'_>, warnings: &mut Warnings<'_>) {
    let bans = &case.written.escalate;
    let (ban, key) = match (bans.first(), bans.last()) {
        (Some(first), Some(last)) => (first.span.start..last.span.end, "escalate"),
        _ => (case.written.duration.span.clone(), "duration"),
    };
    let help = format!("or remove `{key}` to refuse only what is over the limit");
    let Some(span) = key_span(case) else {
        warnings
            .at(ban, "a ban without a key stops everybody at once")
            .help(format!("add `key = [\"ip.src\"]`, {help}"));
        return;
    };
    warnings
        .at(span, "a ban on this key stops everybody who shares it")
        .related(ban, "the ban")
        .help(format!("add `ip.src` or a cookie to the key, {help}"));
}

fn grouped(case: &Case<'_>, file: &File, warnings: &mut Warnings<'_>) {
    let tls = file.listeners.iter().all(|listener| listener.tls.is_some());
    let mut parts = case.rule.key.parts.iter();
    let Some(part) = parts.find(|part| reads(part, |name| can_be_missing(name, tls))) else {
        return;
    };
    let source = part.scalar.source();
    let message = format!("clients without `{source}` share one counter and one ban");
    let mut written = case.written.key.iter();
    let span = written.find(|text| text.value == source);
    let span = span.map_or(case.written.span.clone(), |text| text.span.clone());
    warnings.at(span, message).help(
        "add `missing = \"skip\"` to leave them alone, or `ip.src` to the key to tell them apart",
    );
}

fn dodged(case: &Case<'_>, warnings: &mut Warnings<'_>) {
    let span = key_span(case).unwrap_or(case.written.span.clone());
    let source = case.rule.key.parts.iter().map(|part| part.scalar.source());
    let message = "a client chooses this key: with every new value it starts afresh";
    let forwarded = source.into_iter().any(|text| text.contains("forwarded"));
    warnings.at(span, message).help(match forwarded {
        true => "use `ip.src`, and `client_ip.trusted_proxies` for the proxies in front",
        false => "add a second rule for the same requests by `ip.src` alone",
    });
}

fn new_each_time(case: &Case<'_>, warnings: &mut Warnings<'_>) {
    let span = key_span(case).unwrap_or(case.written.span.clone());
    warnings
        .at(
            span,
            "this key is another one with every request: nothing ever adds up",
        )
        .help("count by what stays the same, such as `ip.src`");
}

fn behind_a_proxy(case: &Case<'_>, file: &File, warnings: &mut Warnings<'_>) {
    if file.client_ip.trusted_proxies.is_empty() {
        return;
    }
    let is_peer = |name: &str| name == "ip.peer";
    let mut parts = case.rule.key.parts.iter();
    if let Some(part) = parts.find(|part| reads(part, is_peer)) {
        let mut written = case.written.key.iter();
        let span = written.find(|text| text.value == part.scalar.source());
        let span = span.map_or(case.written.span.clone(), |text| text.span.clone());
        warnings
            .at(
                span,
                "behind a trusted proxy, `ip.peer` is the proxy: all its clients share it",
            )
            .help("use `ip.src`");
    }
}

fn key_span(case: &Case<'_>) -> Option<Range<usize>> {
    let (first, last) = (case.written.key.first()?, case.written.key.last()?);
    Some(first.span.start..last.span.end)
}

fn reads(part: &KeyPart, test: impl Fn(&str) -> bool) -> bool {
    part.scalar.reads().iter().any(|id| test(name(*id)))
}

fn reads_only(part: &KeyPart, test: impl Fn(&str) -> bool) -> bool {
    part.scalar.reads().iter().all(|id| test(name(*id)))
}

fn name(id: FieldId) -> &'static str {
    fields::by_id(id).map_or("", |field| field.name)
}

fn is_address(name: &str) -> bool {
    matches!(name, "ip.src" | "ip.peer")
}

fn is_new_each_time(name: &str) -> bool {
    matches!(
        name,
        "http.request.id" | "http.request.timestamp.sec" | "http.request.timestamp.msec"
    )
}

/// The same for many clients that have nothing to do with each other.
fn is_shared(name: &str) -> bool {
    const SHARED: &[&str] = &[
        "http.host",
        "http.user_agent",
        "http.request.method",
        "http.request.version",
        "http.request.uri.path",
        "http.request.uri.path.extension",
        "http.request.route",
        "raw.http.request.uri.path",
        "ssl",
    ];
    let place = name.starts_with("ip.src.") || name.starts_with("tls.");
    place || SHARED.contains(&name)
}

/// A client writes what it likes here, at no cost.
fn is_chosen(name: &str) -> bool {
    const CHOSEN: &[&str] = &[
        "http.user_agent",
        "http.referer",
        "http.cookie",
        "http.x_forwarded_for",
        "http.request.uri",
        "http.request.full_uri",
        "http.request.uri.query",
        "http.request.body.size",
        "raw.http.request.uri",
        "raw.http.request.full_uri",
        "raw.http.request.uri.path",
        "raw.http.request.uri.query",
        "tls.sni",
        "tls.ja3",
        "tls.ja3_raw",
        "tls.client_hello_length",
    ];
    let map = ["headers", "cookies", "uri.args"];
    let of_map = map.iter().any(|map| {
        let rest = name.strip_prefix("http.request.");
        rest.is_some_and(|rest| rest.starts_with(map))
    });
    of_map || CHOSEN.contains(&name)
}

/// Whether some requests have none.
pub(super) fn can_be_missing(name: &str, only_tls: bool) -> bool {
    if name.starts_with("tls.") {
        return !only_tls || name == "tls.sni" || name == "tls.alpn";
    }
    const SOMETIMES: &[&str] = &[
        "http.user_agent",
        "http.referer",
        "http.cookie",
        "http.x_forwarded_for",
        "http.request.body.size",
        "http.request.uri.path.extension",
    ];
    let map = [
        "http.request.headers",
        "http.request.cookies",
        "http.request.uri.args",
    ];
    name.starts_with("ip.src.") || SOMETIMES.contains(&name) || map.contains(&name)
}
