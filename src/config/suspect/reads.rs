//! What a rule reads that is never there, or not what it seems.

use std::ops::Range;

use super::keys::can_be_missing;
use super::{Case, Compiled, Warnings};
use crate::config::Text;
use crate::config::file::File;
use crate::expr::{self, FieldSpec, Given, GivenValue, Leaf, Relation, Scheme};
use crate::facts::fields::{self, Fields};

/// Warns of fields that nothing fills here and of values that are easily forged or respelt.
pub(super) fn warn(case: &Case<'_>, compiled: &Compiled<'_>, warnings: &mut Warnings<'_>) {
    for text in case.texts() {
        places(text, compiled, warnings);
        tls(text, compiled.file, warnings);
        tokens(text, warnings);
    }
    for said in case.said() {
        for leaf in said.outline.leaves() {
            raw_path(leaf, said.text, warnings);
            forwarded(leaf, said.text, warnings);
            encoded(leaf, said.text, warnings);
            unequal(leaf, said.text, compiled.file, warnings);
        }
    }
}

fn places(text: &Text, compiled: &Compiled<'_>, warnings: &mut Warnings<'_>) {
    let geo = compiled.geo;
    let fields = [
        ("ip.src.asnum", geo.knows_asn(), "asn_database"),
        ("ip.src.country", geo.knows_country(), "country_database"),
        (
            "ip.src.continent",
            geo.knows_continent(),
            "country_database",
        ),
    ];
    for (field, known, key) in fields {
        if let Some((name, span)) = read_as(text, field).filter(|_| !known) {
            let message = format!("`{name}` is never known: no database says it");
            let help = format!("add `{key} = \"…\"` under `[geo]`, or `[geo.overrides]`");
            warnings.within(text, span, message).help(help);
        }
    }
}

fn tls(text: &Text, file: &File, warnings: &mut Warnings<'_>) {
    if file.listeners.iter().any(|listener| listener.tls.is_some()) {
        return;
    }
    if let Some((name, span)) = read_as(text, "ssl") {
        let message = format!("`{name}` is always false: no listener speaks TLS");
        let help = "add `[listeners.tls]`";
        warnings.within(text, span, message).help(help);
    }
    let tls = fields::all().iter().map(|field| field.name);
    let tls = tls.filter(|name| name.starts_with("tls."));
    for field in tls {
        if let Some((name, span)) = read_as(text, field) {
            let message = format!("`{name}` is never known: no listener speaks TLS");
            warnings
                .within(text, span, message)
                .help("add `[listeners.tls]`");
            return;
        }
    }
}

fn tokens(text: &Text, warnings: &mut Warnings<'_>) {
    let calls = expr::calls(&text.value).into_iter();
    for (_, span) in calls.filter(|(name, _)| &**name == "jwt_claim") {
        let message = "`jwt_claim` reads a token and does not verify it: anybody can write one";
        warnings
            .within(text, span, message)
            .help("fine where the origin refuses forged tokens; add `ip.src` to a key made of it");
    }
}

fn raw_path(leaf: &Leaf, text: &Text, warnings: &mut Warnings<'_>) {
    use Relation::{EndsWith, Eq, In, StartsWith, StrictWildcard, Wildcard};
    let compared = matches!(
        leaf.relation,
        Eq | In | StartsWith | EndsWith | Wildcard | StrictWildcard
    );
    if compared && leaf.subject.field.as_deref() == Some("raw.http.request.uri.path") {
        let message = "other spellings of the same path pass this test, such as `/%6cogin`";
        warnings
            .within(text, leaf.span.clone(), message)
            .help("use `http.request.uri.path`, which has one spelling");
    }
}

fn forwarded(leaf: &Leaf, text: &Text, warnings: &mut Warnings<'_>) {
    let entry = leaf.subject.entry.as_deref().unwrap_or_default();
    let is_header = entry.eq_ignore_ascii_case(b"x-forwarded-for");
    if is_header || leaf.subject.field.as_deref() == Some("http.x_forwarded_for") {
        let message = "a client can write anything into `X-Forwarded-For`";
        warnings
            .within(text, leaf.span.clone(), message)
            .help("use `ip.src`, and `client_ip.trusted_proxies` for the proxies in front");
    }
}

/// Arguments are decoded before they are compared.
fn encoded(leaf: &Leaf, text: &Text, warnings: &mut Warnings<'_>) {
    let compared = matches!(leaf.relation, Relation::Eq | Relation::Ne | Relation::In);
    let of_args = leaf.subject.field.as_deref() == Some("http.request.uri.args");
    if !compared || !of_args || leaf.subject.functions.iter().any(|name| &**name == "len") {
        return;
    }
    for given in &leaf.values {
        let GivenValue::Text(bytes) = &given.value else {
            continue;
        };
        if bytes.contains(&b'+') || bytes.contains(&b'%') {
            let message = "arguments are decoded: `+` has become a space and `%41` an `A`";
            warnings
                .within(text, given.span.clone(), message)
                .help("write the value as it is meant");
        }
    }
}

/// `ne` does not hold for a missing value, which surprises whoever means "all but".
fn unequal(leaf: &Leaf, text: &Text, file: &File, warnings: &mut Warnings<'_>) {
    let tls = file.listeners.iter().all(|listener| listener.tls.is_some());
    let field = leaf
        .subject
        .field
        .as_deref()
        .and_then(|name| Fields.field(name));
    let field = field.and_then(|field| fields::by_id(field.id));
    // `ne ""` asks whether there is a value at all.
    let empty = |given: &Given| given.value == GivenValue::Text(Box::default());
    let all_but = leaf.relation == Relation::Ne && !leaf.values.iter().any(empty);
    if all_but && field.is_some_and(|field| can_be_missing(field.name, tls)) {
        let message = "`ne` is false where the value is missing, in Cloudflare's engine it is true";
        let said = text.value.get(leaf.span.clone()).unwrap_or_default();
        let turned = said.replacen(" ne ", " eq ", 1).replacen(" != ", " eq ", 1);
        warnings
            .within(text, leaf.span.clone(), message)
            .help(format!("`not {turned}` holds for those without it too"));
    }
}

/// The name under which `text` reads `field`, and where, if it does.
fn read_as(text: &Text, field: &str) -> Option<(Box<str>, Range<usize>)> {
    let meant = Fields.field(field)?.id;
    let same = |spec: FieldSpec| spec.id == meant;
    let mut names = expr::reads(&text.value).into_iter();
    names.find(|(name, _)| Fields.field(name).is_some_and(same))
}
