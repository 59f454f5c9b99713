//! Warnings about rules that never act, mitigate too much or too little, or reveal a shadow response.

use http::header::RETRY_AFTER;

use super::implies::{always, covers};
use super::{LintCode, LintedRule, Warnings};
use crate::config::file::ConfigFile;
use crate::decision::Action;
use crate::expr::{ExprOutline, GivenValue, TestRelation, WrittenValue};
use crate::facts::fields;
use crate::rules::HeaderStyle;

/// Warns of a rule with an action or position that is probably a mistake.
pub(super) fn warn(
    rule: &LintedRule<'_>,
    earlier: &[LintedRule<'_>],
    file: &ConfigFile,
    warnings: &mut Warnings<'_>,
) {
    unreachable(rule, earlier, warnings);
    denies_everything(rule, earlier, warnings);
    admits_excess(rule, warnings);
    revealing_quota(rule, earlier, warnings);
    // The rules of presets are fixed.
    if file.preset_of(rule.written).is_none() {
        revealing_limit(rule, warnings);
    }
    revealing_response(rule, file, warnings);
}

/// Warns of an `allow` rule after all other rules: there is nothing that it lets requests skip. One with a limit has
/// a warning of its own.
pub(super) fn warn_of_last(rule: &LintedRule<'_>, warnings: &mut Warnings<'_>) {
    if rule.rule.action == Action::Allow && rule.rule.limiter.is_none() {
        let message = "this `allow` rule has no effect: no rule follows it";
        warnings
            .at(LintCode::Unused, &rule.written.name.span, message)
            .help("move it before the rules that its requests must skip, or remove it");
    }
}

/// Warns of a rule after a terminal rule that matches every request that this rule would mitigate.
fn unreachable(rule: &LintedRule<'_>, earlier: &[LintedRule<'_>], warnings: &mut Warnings<'_>) {
    let Some(stops) = rule.stops() else {
        return;
    };
    let ends = |other: &&LintedRule<'_>| {
        // A challenge lets requests with a clearance pass.
        let ends = other.rule.action.is_terminal() && other.rule.action != Action::Challenge;
        other.rule.limiter.is_none() && ends && !other.rule.dry_run
    };
    let mut before = earlier.iter().filter(ends);
    let hides = |other: &&LintedRule<'_>| other.stops().is_some_and(|wide| covers(wide, stops));
    let Some(other) = before.find(hides) else {
        return;
    };
    let name = &other.written.name;
    let what = if other.stops().is_some_and(always) {
        "every request"
    } else {
        "all its requests"
    };
    let message = format!(
        "this rule never takes effect: the earlier rule `{}` matches {what}",
        name.value
    );
    warnings
        .at(LintCode::UnreachableRule, &rule.written.name.span, message)
        .related(name.span.clone(), "this rule ends rule evaluation")
        .help(format!(
            "move this rule before `{}`, or remove it",
            name.value
        ));
}

/// Warns of a rule that denies all requests, if no earlier rule allows any.
fn denies_everything(
    linted: &LintedRule<'_>,
    earlier: &[LintedRule<'_>],
    warnings: &mut Warnings<'_>,
) {
    let rule = linted.rule;
    // A rule with its own response, such as a maintenance page, is intended, and a challenge can be solved.
    let meant = linted.written.response.is_some() || rule.action == Action::Challenge;
    let denies = !meant && rule.limiter.is_none() && rule.action.is_terminal() && !rule.dry_run;
    let allows = |other: &LintedRule<'_>| other.rule.action == Action::Allow;
    let exempt = allows(linted) || earlier.iter().any(allows);
    if denies && !exempt && linted.stops().is_some_and(always) {
        warnings
            .at(
                LintCode::DeniesEverything,
                &linted.written.name.span,
                "this rule has no limit and mitigates every request",
            )
            .help("add `limit` and `period`, or an `allow` rule before it");
    }
}

/// Warns of a limit with an action that admits all requests above it.
fn admits_excess(rule: &LintedRule<'_>, warnings: &mut Warnings<'_>) {
    let action = &rule.written.action;
    let limiter = rule.rule.limiter;
    let queue = limiter.is_some_and(|limiter| limiter.algorithm.has_queue());
    match (rule.rule.action, &rule.written.limit) {
        (Action::Allow, Some(limit)) => {
            let message = "`allow` with a limit exempts the requests over the limit";
            warnings
                .at(LintCode::AdmitsExcess, &action.span, message)
                .related(limit.span.clone(), "the limit")
                .help("remove the limit, or use another action");
        }
        (Action::Delay, _) if queue => {
            let message = "`delay` forwards the requests for which the queue is full";
            warnings
                .at(LintCode::AdmitsExcess, &action.span, message)
                .help("use `block`, or `delay` with another algorithm");
        }
        _ => {}
    }
}

/// Warns of quota headers that stop changing, which reveals that requests are no longer counted.
fn revealing_quota(
    linted: &LintedRule<'_>,
    earlier: &[LintedRule<'_>],
    warnings: &mut Warnings<'_>,
) {
    let shows = linted.written.headers.value != HeaderStyle::None;
    if !shows || linted.rule.action != Action::Block || !linted.limits() {
        return;
    }
    let Some(counts) = linted.counts() else {
        return;
    };
    let mut shadows = earlier
        .iter()
        .filter(|other| other.rule.action.poses_as_origin() && !other.rule.dry_run);
    let hidden =
        |other: &&LintedRule<'_>| other.stops().is_some_and(|narrow| covers(counts, narrow));
    let Some(other) = shadows.find(hidden) else {
        return;
    };
    let name = &other.written.name;
    let message = format!(
        "the quota headers of this rule reveal the shadow responses of rule `{}`",
        name.value
    );
    warnings
        .at(LintCode::RevealedShadow, &linted.written.name.span, message)
        .related(
            name.span.clone(),
            "later rules do not count requests that this rule mitigates",
        )
        .help(format!(
            "move this rule before `{}`, or use `headers = \"none\"`",
            name.value
        ));
}

/// Warns of quota headers on failed logins: an attacker sees how many guesses remain.
fn revealing_limit(rule: &LintedRule<'_>, warnings: &mut Warnings<'_>) {
    let headers = &rule.written.headers;
    let shows = headers.value != HeaderStyle::None && rule.rule.action == Action::Block;
    if !shows || !rule.limits() || !rule.counts().is_some_and(has_failed_login) {
        return;
    }
    let message = "the quota headers of each failed login tell an attacker the limit and how many guesses remain";
    warnings
        .at(LintCode::RevealedLimit, &rule.written.name.span, message)
        .help("add `headers = \"none\"`");
}

/// Returns whether an expression holds only for some status codes, and 401 is one of them.
fn has_failed_login(outline: &ExprOutline) -> bool {
    outline.conjuncts().into_iter().any(|part| {
        let ExprOutline::Leaf(leaf) = part else {
            return false;
        };
        let field = leaf.subject.field.as_deref().and_then(fields::find);
        let selects = matches!(leaf.relation, TestRelation::Eq | TestRelation::In);
        let is_401 = |value: &WrittenValue| value.value == GivenValue::Ints(401, 401);
        field == Some(fields::RESPONSE_CODE) && selects && leaf.values.iter().any(is_401)
    })
}

/// Warns of a shadow response that mentions a limit.
fn revealing_response(rule: &LintedRule<'_>, file: &ConfigFile, warnings: &mut Warnings<'_>) {
    let name = (rule.written.response.as_ref()).filter(|_| rule.rule.action == Action::Shadow);
    let mut responses = file.responses.iter();
    let named = name.and_then(|name| responses.find(|one| one.name.value == name.value));
    let Some(response) = named else {
        return;
    };
    let status = response.status.as_ref().filter(|s| s.value == 429);
    let status = status.map(|status| ("status 429".to_owned(), &status.span));
    let headers = response.headers.iter().map(|header| &header.name);
    let headers = headers.filter(|name| {
        let name = name.value.as_str();
        let quota = ["ratelimit", "x-ratelimit", "x-rate-limit"];
        name == RETRY_AFTER || quota.iter().any(|start| name.starts_with(start))
    });
    let headers = headers.map(|name| (format!("`{}`", name.value), &name.span));
    for (what, span) in status.into_iter().chain(headers) {
        let message = format!("{what} reveals a limit in a shadow response");
        warnings
            .at(LintCode::RevealedShadow, span, message)
            .related(rule.written.action.span.clone(), "the action")
            .help("remove it, unless the origin server sends it with every response");
    }
}
