//! Warnings about fields that are never present or have unexpected values.

use std::ops::Range;

use super::keys::can_be_missing;
use super::{CompiledConfig, LintCode, LintedRule, Warnings};
use crate::config::ExprText;
use crate::config::file::ConfigFile;
use crate::expr::{self, FieldId, GivenValue, TestOutline, TestRelation, WrittenValue};
use crate::facts::fields::{self, FieldPresence, by_id};

/// Warns of fields that are never set here and of values that are easy to forge or to spell differently.
pub(super) fn warn(
    case: &LintedRule<'_>,
    compiled: &CompiledConfig<'_>,
    warnings: &mut Warnings<'_>,
) {
    for text in case.texts() {
        value_reads(text, compiled, warnings);
        tls(text, compiled.file, warnings);
        client_certificates(text, compiled.file, warnings);
        tokens(text, warnings);
    }
    for parsed in case.expressions() {
        for leaf in parsed.outline.leaves() {
            raw_path(leaf, parsed.text, warnings);
            forwarded(leaf, parsed.text, warnings);
            encoded(leaf, parsed.text, warnings);
            unequal(leaf, parsed.text, compiled.file, warnings);
        }
    }
}

fn value_reads(text: &ExprText, compiled: &CompiledConfig<'_>, warnings: &mut Warnings<'_>) {
    let geo = compiled.geo;
    let fields = [
        (FieldPresence::AsnDatabase, geo.knows_asn(), "asn_database"),
        (
            FieldPresence::CountryDatabase,
            geo.knows_country(),
            "country_database",
        ),
        (
            FieldPresence::ContinentDatabase,
            geo.knows_continent(),
            "country_database",
        ),
    ];
    for (presence, known, key) in fields {
        let read = || first_read(text, |id| by_id(id).presence == presence);
        if let Some((name, span)) = (!known).then(read).flatten() {
            let message = format!("`{name}` is always missing: no database provides it");
            let help = format!("add `{key} = \"…\"` under `[geo]`, or `[geo.overrides]`");
            warnings
                .within(LintCode::UnfilledField, text, span, message)
                .help(help);
        }
    }
}

fn tls(text: &ExprText, file: &ConfigFile, warnings: &mut Warnings<'_>) {
    if file.listeners.iter().any(|listener| listener.tls.is_some()) {
        return;
    }
    let over_tls = first_read(text, |id| {
        id == fields::OVER_TLS || id == fields::CLIENT_VERIFIED
    });
    let needs_tls = |id| {
        matches!(
            by_id(id).presence,
            FieldPresence::Tls | FieldPresence::SometimesTls | FieldPresence::ClientCertificate
        )
    };
    let of_tls = first_read(text, needs_tls);
    let unfilled = [(over_tls, "always false"), (of_tls, "always missing")];
    for (read, what) in unfilled {
        if let Some((name, span)) = read {
            let message = format!("`{name}` is {what}: no listener uses TLS");
            warnings
                .within(LintCode::UnfilledField, text, span, message)
                .help("add `[listeners.tls]`");
        }
    }
}

/// Warns of fields of client certificates that no listener requests. Without TLS, [`tls`] has warned.
fn client_certificates(text: &ExprText, file: &ConfigFile, warnings: &mut Warnings<'_>) {
    let mut tls = file.listeners.iter().filter_map(|it| it.tls.as_ref());
    if tls.clone().next().is_none() || tls.any(|tls| tls.client_ca.value.is_some()) {
        return;
    }
    let verified = first_read(text, |id| id == fields::CLIENT_VERIFIED);
    let of_client = first_read(text, |id| {
        by_id(id).presence == FieldPresence::ClientCertificate
    });
    for (read, what) in [(verified, "always false"), (of_client, "always missing")] {
        if let Some((name, span)) = read {
            let message = format!("`{name}` is {what}: no listener has `client_ca`");
            warnings
                .within(LintCode::UnfilledField, text, span, message)
                .help("add `client_ca = \"clients.pem\"` under `[listeners.tls]`");
        }
    }
}

fn tokens(text: &ExprText, warnings: &mut Warnings<'_>) {
    let calls = expr::calls(&text.value).into_iter();
    for (_, span) in calls.filter(|(name, _)| &**name == "jwt_claim") {
        let message = "`jwt_claim` does not verify the token: any client can forge one";
        warnings
            .within(LintCode::UnverifiedValue, text, span, message)
            .help(
                "fine if the origin server refuses forged tokens: count its 401s by `ip.src` in a \
                 second rule, then write `# lockgate: allow unverified-value` above this setting",
            );
    }
}

fn raw_path(leaf: &TestOutline, text: &ExprText, warnings: &mut Warnings<'_>) {
    use TestRelation::{EndsWith, Eq, In, StartsWith, StrictWildcard, Wildcard};
    let compared = matches!(
        leaf.relation,
        Eq | In | StartsWith | EndsWith | Wildcard | StrictWildcard
    );
    if compared && field_of(leaf) == Some(fields::RAW_PATH) {
        let message = "other spellings of the same path bypass this test, such as `/%6cogin`";
        warnings
            .within(LintCode::RawPath, text, leaf.span.clone(), message)
            .help("use `http.request.uri.path`, which is normalized");
    }
}

fn forwarded(leaf: &TestOutline, text: &ExprText, warnings: &mut Warnings<'_>) {
    let entry = leaf.subject.entry.as_deref().unwrap_or_default();
    let is_header = entry.eq_ignore_ascii_case(b"x-forwarded-for");
    if is_header || field_of(leaf) == Some(fields::FORWARDED_FOR) {
        let message = "clients can send any value in `X-Forwarded-For`";
        warnings
            .within(LintCode::UnverifiedValue, text, leaf.span.clone(), message)
            .help("use `ip.src`, and list your proxies in `client_ip.trusted_proxies`");
    }
}

/// Warns of encoded characters in a comparison: arguments are decoded before they are compared.
fn encoded(leaf: &TestOutline, text: &ExprText, warnings: &mut Warnings<'_>) {
    let compared = matches!(
        leaf.relation,
        TestRelation::Eq | TestRelation::Ne | TestRelation::In
    );
    let of_args = field_of(leaf) == Some(fields::ARGUMENTS);
    if !compared || !of_args || leaf.subject.functions.iter().any(|name| &**name == "len") {
        return;
    }
    for given in &leaf.values {
        let GivenValue::Text(bytes) = &given.value else {
            continue;
        };
        if bytes.contains(&b'+') || bytes.contains(&b'%') {
            let message = "arguments are compared decoded: `+` is a space and `%41` is `A`";
            warnings
                .within(LintCode::ImpossibleValue, text, given.span.clone(), message)
                .help("write the decoded value");
        }
    }
}

/// Warns of `ne`, which does not match a missing value, although users often mean "all except".
fn unequal(leaf: &TestOutline, text: &ExprText, file: &ConfigFile, warnings: &mut Warnings<'_>) {
    let tls = file.listeners.iter().all(|listener| listener.tls.is_some());
    // `ne ""` tests whether there is a value at all.
    let empty = |given: &WrittenValue| given.value == GivenValue::Text(Box::default());
    let all_but = leaf.relation == TestRelation::Ne && !leaf.values.iter().any(empty);
    if all_but && field_of(leaf).is_some_and(|field| can_be_missing(field, tls)) {
        let message = "`ne` is false if the value is missing; on Cloudflare it is true";
        let written = text.value.get(leaf.span.clone()).unwrap_or_default();
        let turned = written
            .replacen(" ne ", " eq ", 1)
            .replacen(" != ", " eq ", 1);
        warnings
            .within(LintCode::MissingValue, text, leaf.span.clone(), message)
            .help(format!(
                "`not {turned}` also matches requests without the value"
            ));
    }
}

/// Returns the first field in `text` that passes `test`: its name as written, and its span.
fn first_read(text: &ExprText, test: impl Fn(FieldId) -> bool) -> Option<(Box<str>, Range<usize>)> {
    let mut names = expr::reads(&text.value).into_iter();
    names.find(|(name, _)| fields::find(name).is_some_and(&test))
}

fn field_of(leaf: &TestOutline) -> Option<FieldId> {
    fields::find(leaf.subject.field.as_deref()?)
}
