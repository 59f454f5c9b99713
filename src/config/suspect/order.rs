//! Rules that an earlier one leaves nothing for.

use super::logic::{always, covers};
use super::{Case, Warnings};

/// Warns of a rule behind a terminal one that matches whatever it would stop.
pub(super) fn warn(case: &Case<'_>, earlier: &[Case<'_>], warnings: &mut Warnings<'_>) {
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
