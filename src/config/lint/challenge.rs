//! Warnings about challenges that clients cannot solve, or that one solution passes without a limit.

use super::{LintCode, LintedRule, Warnings};
use crate::config::file::ConfigFile;
use crate::expr::{ExprOutline, GivenValue, TestOutline};
use crate::facts::fields::{self, CLIENT_CLEARANCE, REQUEST_PATH};

/// Warns of a rule that challenges.
pub(super) fn warn(
    rule: &LintedRule<'_>,
    all: &[LintedRule<'_>],
    file: &ConfigFile,
    warnings: &mut Warnings<'_>,
) {
    if !rule.rule.challenges() {
        return;
    }
    if !counts_clearances(rule) && !all.iter().any(|other| limits_clearances_of(other, rule)) {
        unlimited(rule, warnings);
    }
    challenges_api(rule, warnings);
    is_on_plain_listener(rule, file, warnings);
}

fn unlimited(rule: &LintedRule<'_>, warnings: &mut Warnings<'_>) {
    let message = "one solution passes this rule for as long as the clearance is valid, for any number of bots";
    let help = "add a rule for the same path with `key = [\"client.clearance\"]`, `missing = \"skip\"` and \
                `action = \"challenge\"`";
    let span = &rule.written.action.span;
    warnings
        .at(LintCode::ChallengeNoClearanceLimit, span, message)
        .help(help);
}

/// Warns of a path of an API, whose clients get a problem document instead of a page.
fn challenges_api(rule: &LintedRule<'_>, warnings: &mut Warnings<'_>) {
    let Some(parsed) = rule.mitigate.as_ref().or(rule.count.as_ref()) else {
        return;
    };
    let leaves = path_tests(&parsed.outline);
    let is_api = |path: &&[u8]| path.starts_with(b"/api/") || *path == b"/api";
    let Some(leaf) = leaves
        .into_iter()
        .find(|leaf| paths(leaf).any(|path| is_api(&path)))
    else {
        return;
    };
    let message = "clients of an API see no page: only apps that call `solve()` get through";
    warnings
        .within(LintCode::ChallengeApi, parsed.text, leaf.span.clone(), message)
        .help("solve challenges in the app (see docs/challenge.md), or use another action for this path");
}

fn is_on_plain_listener(rule: &LintedRule<'_>, file: &ConfigFile, warnings: &mut Warnings<'_>) {
    let mut listeners = file.listeners.iter();
    let Some(plain) = listeners.find(|listener| listener.tls.is_none()) else {
        return;
    };
    // A trusted proxy says whether its client has TLS.
    if !file.client_ip.trusted_proxies.is_empty() {
        return;
    }
    let message = "this rule acts as `block` for requests to a listener without TLS";
    warnings
        .at(
            LintCode::ChallengePlainListener,
            &rule.written.action.span,
            message,
        )
        .related(plain.span.clone(), "the listener")
        .help("browsers solve challenges only on secure connections: serve this listener with TLS");
}

/// Whether `other` limits what one clearance can do on a path of `rule`.
fn limits_clearances_of(other: &LintedRule<'_>, rule: &LintedRule<'_>) -> bool {
    let (Some(own), Some(others)) = (rule.stops(), other.stops()) else {
        return false;
    };
    let (own, others) = (path_tests(own), path_tests(others));
    let is_tested = |path: &[u8]| {
        others
            .iter()
            .any(|leaf| paths(leaf).any(|other| other == path))
    };
    let shares_path = own.iter().any(|leaf| paths(leaf).any(is_tested));
    // While both are dry runs, neither takes effect.
    let is_enforced = !other.rule.dry_run || rule.rule.dry_run;
    is_enforced && counts_clearances(other) && (shares_path || own.is_empty() || others.is_empty())
}

fn counts_clearances(rule: &LintedRule<'_>) -> bool {
    let mut parts = rule.rule.key.parts.iter();
    parts.any(|part| part.scalar.reads().contains(&CLIENT_CLEARANCE))
}

/// The tests of the path.
fn path_tests(outline: &ExprOutline) -> Vec<&TestOutline> {
    let mut leaves = outline.leaves();
    leaves.retain(|leaf| {
        let field = leaf.subject.field.as_deref();
        field.and_then(fields::find) == Some(REQUEST_PATH)
    });
    leaves
}

fn paths(leaf: &TestOutline) -> impl Iterator<Item = &[u8]> {
    leaf.values.iter().filter_map(|value| match &value.value {
        GivenValue::Text(path) => Some(&**path),
        _ => None,
    })
}
