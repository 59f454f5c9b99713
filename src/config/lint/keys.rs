//! Warnings about keys: shared keys that ban other clients, and keys that clients can change freely.

use std::ops::Range;

use super::implies::covers;
use super::{LintCode, LintedRule, Warnings};
use crate::config::Text;
use crate::config::file::{ConfigFile, RouteSettings};
use crate::decision::Action;
use crate::expr::{self, ExprOutline, FieldId, Phase, TestRelation, TestSubject};
use crate::facts::fields::{
    self, CLIENT_AGE, CLIENT_ID, CLIENT_KNOWN, CLIENT_KNOWN_USER, ClientChoice, FieldPresence,
    FieldSpread, by_id,
};
use crate::rules::{KeyPart, MissingPart};

/// Warns of a key that is shared, missing, chosen by the client, or new with every request.
pub(super) fn warn(
    case: &LintedRule<'_>,
    all: &[LintedRule<'_>],
    file: &ConfigFile,
    warnings: &mut Warnings<'_>,
) {
    if case.rule.limiter.is_none() {
        return;
    }
    let parts = &case.rule.key.parts;
    if parts.iter().any(|part| has(part, FieldSpread::PerRequest)) {
        return new_each_time(case, warnings);
    }
    let has_client = parts.iter().any(|part| has(part, FieldSpread::PerClient));
    behind_a_proxy(case, file, warnings);
    // The worst that a challenge does to an innocent client is a delay.
    let bans_many = case.bans() && !has_client && case.rule.action != Action::Challenge;
    let is_own = |id| by_id(id).spread != FieldSpread::Shared;
    let is_shared = !has_client && !parts.iter().any(|part| reads(part, is_own));
    if is_shared && hits_known_clients(case, file) {
        shared_with_known_clients(case, warnings);
    } else if bans_many && is_shared {
        shared(case, warnings);
    } else if bans_many && case.rule.key.missing == MissingPart::Group {
        grouped(case, file, warnings);
    }
    let free = |part: &KeyPart| is_free(part, case, file);
    if parts.iter().any(free) && !all.iter().any(|other| guards(other, case, file)) {
        dodged(case, warnings);
    }
}

/// Returns whether a client can choose any value for this part and is still counted.
fn is_free(part: &KeyPart, case: &LintedRule<'_>, file: &ConfigFile) -> bool {
    let wild = |host: &Text| host.value.starts_with('*');
    let any = |route: &RouteSettings| route.hosts.is_empty() || route.hosts.iter().any(wild);
    let any_host = file.routes.iter().any(any);
    let tested = |field: FieldId| {
        let parsed = case.expressions();
        let leaves = parsed.flat_map(|parsed| parsed.outline.leaves());
        let mut fields = leaves.filter_map(|leaf| fields::find(leaf.subject.field.as_deref()?));
        fields.any(|read| read == field)
    };
    let free = |field: FieldId| match by_id(field).chosen {
        ClientChoice::Fixed => false,
        ClientChoice::IfUntested => !tested(field),
        ClientChoice::IfUnrouted => any_host && !tested(field),
        ClientChoice::Freely => true,
    };
    reads(part, free) && !is_known(part, case)
}

/// Returns whether the rule counts only certain values of this part, so that invented values are not counted.
fn is_known(part: &KeyPart, case: &LintedRule<'_>) -> bool {
    let test = format!("{} eq \"\"", part.scalar.source());
    let Ok(ExprOutline::Leaf(own)) = expr::outline(&test) else {
        return false;
    };
    let counted = case
        .counts()
        .map(ExprOutline::conjuncts)
        .unwrap_or_default();
    counted.into_iter().any(|test| match test {
        ExprOutline::Leaf(leaf) => limits(&leaf.relation) && is_same(&leaf.subject, &own.subject),
        _ => false,
    })
}

fn limits(relation: &TestRelation) -> bool {
    matches!(
        relation,
        TestRelation::Eq | TestRelation::In | TestRelation::InList(_)
    )
}

/// Compares two subjects. In a key, a subject without an index means the first value.
fn is_same(one: &TestSubject, other: &TestSubject) -> bool {
    let first = |subject: &TestSubject| TestSubject {
        index: Some(subject.index.unwrap_or(0)),
        ..subject.clone()
    };
    first(one) == first(other)
}

/// Returns whether `other` counts these requests by a key that is harder for a client to change.
/// Checks every part of its key, because a key is only as hard to change as its easiest part.
fn guards(other: &LintedRule<'_>, case: &LintedRule<'_>, file: &ConfigFile) -> bool {
    let parts = &other.rule.key.parts;
    let by_client = parts.iter().any(|part| has(part, FieldSpread::PerClient))
        && !parts.iter().any(|part| is_free(part, other, file));
    let Some(narrow) = case.counts().filter(|_| by_client && other.limits()) else {
        return false;
    };
    // A rule that counts requests that the origin server refuses also counts invented values.
    let counted = other
        .counts()
        .map(ExprOutline::conjuncts)
        .unwrap_or_default();
    let mut counted = counted.into_iter().filter(|part| !of_response(part));
    counted.all(|wide| covers(wide, narrow))
        && other.stops().is_some_and(|wide| covers(wide, narrow))
}

/// Returns whether a part of an expression reads the response.
fn of_response(part: &ExprOutline) -> bool {
    let fields = part.leaves().into_iter();
    let mut fields = fields.filter_map(|leaf| fields::find(leaf.subject.field.as_deref()?));
    fields.any(|field| by_id(field).phase == Phase::Response)
}

/// Returns whether the rule bans known clients, or sends them shadow responses, for what others do.
fn hits_known_clients(case: &LintedRule<'_>, file: &ConfigFile) -> bool {
    let action = case.rule.action;
    let is_hit = action == Action::Shadow || action == Action::Block && case.bans();
    let knows = [CLIENT_KNOWN, CLIENT_KNOWN_USER, CLIENT_AGE];
    let leaves = case.stops().map(ExprOutline::leaves).unwrap_or_default();
    let mut fields = leaves
        .iter()
        .filter_map(|leaf| fields::find(leaf.subject.field.as_deref()?));
    file.known_clients.is_some() && is_hit && !fields.any(|field| knows.contains(&field))
}

fn shared_with_known_clients(case: &LintedRule<'_>, warnings: &mut Warnings<'_>) {
    let span = key_span(case).unwrap_or(case.written.span.clone());
    let message = "this rule refuses known clients for what other clients with the same key do";
    warnings
        .at(LintCode::SharedKeyKnownClients, &span, message)
        .help("use `action = \"challenge\"`, or add `and not client.known` to `mitigate`");
}

fn shared(case: &LintedRule<'_>, warnings: &mut Warnings<'_>) {
    let bans = &case.written.escalate;
    let (ban, key) = match (bans.first(), bans.last()) {
        (Some(first), Some(last)) => (first.span.start..last.span.end, "escalate"),
        _ => (case.written.duration.span.clone(), "duration"),
    };
    // A tag or a log line about all clients harms none of them.
    let is_harmless = matches!(case.rule.action, Action::Tag | Action::Log);
    let Some(span) = key_span(case) else {
        if is_harmless {
            return;
        }
        warnings
            .at(
                LintCode::SharedKey,
                &ban,
                "a ban without a key applies to all clients",
            )
            .help(format!(
                "add `key = [\"ip.src\"]`, or remove `{key}` to block only requests over the limit"
            ));
        return;
    };
    let first = match case.rule.dry_run {
        true => "",
        false => "try it with `dry_run = true`; ",
    };
    warnings
        .at(
            LintCode::SharedKey,
            &span,
            "a ban on this key applies to all clients that share it",
        )
        .related(ban, "the ban")
        .help(format!(
            "{first}if the sharing is intended, write `# lockgate: allow shared-key` above the \
             key; otherwise add `ip.src`, or remove `{key}`"
        ));
}

fn grouped(case: &LintedRule<'_>, file: &ConfigFile, warnings: &mut Warnings<'_>) {
    let tls = file.listeners.iter().all(|listener| listener.tls.is_some());
    let mut parts = case.rule.key.parts.iter();
    // A client can leave a field of the body out, so those requests must share a counter.
    let is_grouped = |field| {
        let is_filled = field == CLIENT_ID && counts_known_clients(case);
        by_id(field).phase == Phase::Request && can_be_missing(field, tls) && !is_filled
    };
    let Some(part) = parts.find(|part| reads(part, is_grouped)) else {
        return;
    };
    let source = part.scalar.source();
    let message = format!("clients without `{source}` share one counter and one ban");
    let span = part_span(case, part);
    warnings.at(LintCode::MissingKey, span, message).help(
        "add `missing = \"skip\"` to ignore them, or `ip.src` to the key to count them separately",
    );
}

/// Returns whether all clients that the rule counts are known.
fn counts_known_clients(case: &LintedRule<'_>) -> bool {
    let known = [CLIENT_KNOWN, CLIENT_KNOWN_USER].map(|field| by_id(field).name);
    let mut known = known
        .into_iter()
        .filter_map(|name| expr::outline(name).ok());
    known.any(|known| case.counts().is_some_and(|counts| covers(&known, counts)))
}

fn dodged(case: &LintedRule<'_>, warnings: &mut Warnings<'_>) {
    let span = key_span(case).unwrap_or(case.written.span.clone());
    let source = case.rule.key.parts.iter().map(|part| part.scalar.source());
    let message = "clients can choose this key: each new value starts a new counter";
    let forwarded = source.into_iter().any(|text| text.contains("forwarded"));
    warnings
        .at(LintCode::ChosenKey, &span, message)
        .help(if forwarded {
            "use `ip.src`, and list your proxies in `client_ip.trusted_proxies`"
        } else {
            "add a second rule for the same requests with `key = [\"ip.src\"]`"
        });
}

fn new_each_time(case: &LintedRule<'_>, warnings: &mut Warnings<'_>) {
    let span = key_span(case).unwrap_or(case.written.span.clone());
    warnings
        .at(
            LintCode::UniqueKey,
            &span,
            "this key differs for every request: its counters never reach the limit",
        )
        .help("use a key that stays the same, such as `ip.src`");
}

fn behind_a_proxy(case: &LintedRule<'_>, file: &ConfigFile, warnings: &mut Warnings<'_>) {
    if file.client_ip.trusted_proxies.is_empty() {
        return;
    }
    let is_peer = |field| field == fields::PEER_ADDRESS;
    let mut parts = case.rule.key.parts.iter();
    if let Some(part) = parts.find(|part| reads(part, is_peer)) {
        let span = part_span(case, part);
        warnings
            .at(
                LintCode::SharedKey,
                span,
                "`ip.peer` is the address of the trusted proxy, which all its clients share",
            )
            .help("use `ip.src`");
    }
}

/// Returns the span of a key part.
fn part_span<'a>(case: &LintedRule<'a>, part: &KeyPart) -> &'a Range<usize> {
    let mut written = case.written.key.iter();
    let span = written.find(|text| text.value == part.scalar.source());
    span.map_or(&case.written.span, |text| &text.span)
}

fn key_span(case: &LintedRule<'_>) -> Option<Range<usize>> {
    let (first, last) = (case.written.key.first()?, case.written.key.last()?);
    Some(first.span.start..last.span.end)
}

fn reads(part: &KeyPart, test: impl Fn(FieldId) -> bool) -> bool {
    part.scalar.reads().iter().any(|id| test(*id))
}

pub(super) fn has(part: &KeyPart, spread: FieldSpread) -> bool {
    reads(part, |id| by_id(id).spread == spread)
}

/// Returns whether some requests lack the field.
pub(super) fn can_be_missing(field: FieldId, only_tls: bool) -> bool {
    let field = by_id(field);
    field.phase != Phase::Response
        && match field.presence {
            FieldPresence::Always | FieldPresence::MaybeEmpty => false,
            FieldPresence::Tls => !only_tls,
            FieldPresence::Sometimes
            | FieldPresence::SometimesTls
            | FieldPresence::ClientCertificate => true,
            FieldPresence::AsnDatabase
            | FieldPresence::CountryDatabase
            | FieldPresence::ContinentDatabase => true,
        }
}
