//! What the values of a rule say about each other, and about the response that it names.

use std::time::Duration;

use crate::config::file::{Cost, File, Rule};
use crate::config::{Diagnostics, limiter};
use crate::decision::Action;
use crate::limit::{Algorithm, Limiter};

const SHORTEST_SLICE: Duration = Duration::from_millis(1);

/// Checks the limits of a rule.
pub(super) fn check(rule: &Rule, out: &mut Diagnostics) {
    if let Some(own) = limiter::of(rule) {
        sub_windows(rule, &own, false, out);
        constant_cost(rule, &own, false, out);
        tried_period(rule, out);
    }
    if let Some(tried) = limiter::of_candidate(rule) {
        sub_windows(rule, &tried, true, out);
        constant_cost(rule, &tried, true, out);
    }
}

/// Warns of answers that imitate where nothing is imitated.
pub(super) fn warn_of_answers(file: &File, out: &mut Diagnostics) {
    for rule in &file.rules {
        let Some(name) = rule.response.as_ref() else {
            continue;
        };
        let named = |r: &&crate::config::file::Response| r.name.value == name.value;
        let response = file.responses.iter().find(named);
        let response = response.filter(|response| response.imitate.value);
        let answers = matches!(rule.action.value, Action::Block | Action::Tarpit);
        if let (true, Some(response)) = (answers, response) {
            let message = format!("`{}` imitates nothing", rule.action.value.name());
            out.warning(name.span.clone(), message)
                .related(response.imitate.span.clone(), "only `shadow` does")
                .help("give it a response of its own, without `imitate`");
        }
    }
}

fn sub_windows(rule: &Rule, limiter: &Limiter, tried: bool, out: &mut Diagnostics) {
    let of_candidate = rule.candidate.as_ref().and_then(|c| c.slices.as_ref());
    let written = of_candidate.filter(|_| tried).unwrap_or(&rule.slices);
    let slices = u32::from(limiter.slices);
    if slices > 1 && limiter.period < SHORTEST_SLICE * slices {
        out.error(written.span.clone(), "a sub-window is shorter than 1 ms")
            .help("use fewer `slices`, or a longer `period`");
    }
}

fn constant_cost(rule: &Rule, limiter: &Limiter, tried: bool, out: &mut Diagnostics) {
    let Cost::Fixed(cost) = rule.cost.value else {
        return;
    };
    let most = limiter::most(limiter);
    if u64::from(cost) <= most {
        return;
    }
    let key = match limiter.algorithm {
        Algorithm::TokenBucket | Algorithm::Gcra => "burst",
        Algorithm::LeakyBucket => "queue",
        _ => "limit",
    };
    let whom = if tried { " by the candidate" } else { "" };
    out.error(
        rule.cost.span.clone(),
        format!("a cost of {cost} can never be admitted{whom}: {most} is the most"),
    )
    .help(format!("use a smaller `cost`, or a larger `{key}`"));
}

/// A rule that counts what is in flight has no period to lend.
fn tried_period(rule: &Rule, out: &mut Diagnostics) {
    let Some(candidate) = &rule.candidate else {
        return;
    };
    if limiter::of_candidate(rule).is_none() {
        out.lacks(candidate.span.clone(), "a candidate with no period")
            .help("add `period = \"1m\"` to it");
    }
}
