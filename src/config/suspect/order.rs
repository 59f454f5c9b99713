//! Rules that an earlier one leaves nothing for, or less than they need.

use super::logic::{always, covers};
use super::{Case, Warnings};
use crate::config::file::CountHeaders;
use crate::decision::Action;

/// Warns of a rule whose place among the others cannot be meant.
pub(super) fn warn(case: &Case<'_>, earlier: &[Case<'_>], warnings: &mut Warnings<'_>) {
    never_reached(case, earlier, warnings);
    stops_everything(case, earlier, warnings);
    gives_a_pretence_away(case, earlier, warnings);
}

/// A rule behind a terminal one that matches whatever it would stop.
fn never_reached(case: &Case<'_>, earlier: &[Case<'_>], warnings: &mut Warnings<'_>) {
    let Some(stops) = case.stops() else {
        return;
    };
    let ends = |other: &&Case<'_>| {
        other.rule.limiter.is_none() && other.rule.action.is_terminal() && !other.rule.dry_run
    };
    let mut before = earlier.iter().filter(ends);
    let hides = |other: &&Case<'_>| other.stops().is_some_and(|wide| covers(wide, stops));
    let Some(other) = before.find(hides) else {
        return;
    };
    let name = &other.written.name;
    let message = match other.stops().is_some_and(always) {
        true => format!(
            "this rule never acts: rule `{}` before it matches every request",
            name.value
        ),
        false => format!(
            "this rule never acts: rule `{}` before it matches all that this one would stop",
            name.value
        ),
    };
    warnings
        .at(case.written.name.span.clone(), message)
        .related(name.span.clone(), "this rule ends the pass")
        .help(format!("put it before `{}`, or remove it", name.value));
}

/// A rule that denies all, where none before it allows anything.
fn stops_everything(case: &Case<'_>, earlier: &[Case<'_>], warnings: &mut Warnings<'_>) {
    let rule = case.rule;
    // Who writes an answer for it means it.
    let meant = case.written.response.is_some();
    let denies = !meant && rule.limiter.is_none() && rule.action.is_terminal() && !rule.dry_run;
    let allows = |case: &Case<'_>| case.rule.action == Action::Allow;
    let exempt = allows(case) || earlier.iter().any(allows);
    if denies && !exempt && case.stops().is_some_and(always) {
        warnings
            .at(
                case.written.name.span.clone(),
                "this rule has no limit and acts on every request",
            )
            .help("add `limit` and `period`, or an `allow` rule before it");
    }
}

/// A quota that stands still tells a client that its requests are not counted any more.
fn gives_a_pretence_away(case: &Case<'_>, earlier: &[Case<'_>], warnings: &mut Warnings<'_>) {
    let rule = case.rule;
    let tells = case.written.headers.value != CountHeaders::None;
    if !tells || rule.action != Action::Block || rule.limiter.is_none() || rule.dry_run {
        return;
    }
    let Some(counts) = case.counts() else {
        return;
    };
    let mut pretences = earlier
        .iter()
        .filter(|other| other.rule.action.pretends() && !other.rule.dry_run);
    let hidden = |other: &&Case<'_>| other.stops().is_some_and(|narrow| covers(counts, narrow));
    let Some(other) = pretences.find(hidden) else {
        return;
    };
    let name = &other.written.name;
    let message = format!(
        "its quota stands still for those whom rule `{}` deceives, and tells them so",
        name.value
    );
    warnings
        .at(case.written.name.span.clone(), message)
        .related(
            name.span.clone(),
            "what this one acts on is not counted behind it",
        )
        .help(format!(
            "put it before `{}`, or use `headers = \"none\"`",
            name.value
        ));
}
