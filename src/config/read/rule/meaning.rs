//! Which keys of a rule mean something beside which others. A key that would have no effect is an
//! error that says so.

use std::ops::Range;

use super::counting::ALGORITHMS;
use super::{Names, known_algorithm};
use crate::config::file::Rule;
use crate::config::section::Section;
use crate::config::suggest::either;
use crate::decision::Action;
use crate::limit::Algorithm::{self, Concurrency, Gcra, LeakyBucket, SlidingWindow, TokenBucket};

/// Keys that only some algorithms know.
const OF_ALGORITHMS: &[(&str, &[Algorithm])] = &[
    ("burst", &[TokenBucket, Gcra]),
    ("slices", &[SlidingWindow]),
    ("queue", &[LeakyBucket]),
];

/// Checks a rule as a whole.
pub(super) fn check(s: &mut Section<'_, '_>, names: &Names, rule: &Rule) {
    let zero = rule.limit.as_ref().is_some_and(|limit| limit.value == 0);
    match s.key_span(names.limit).filter(|_| !zero) {
        Some(limit) => quota(s, limit, rule),
        None if s.is_misnamed("limit") => {}
        None => plain(s, names),
    }
    // An action that was refused may be one that knows the key.
    if !s.has("action") || rule.action.span != s.span() {
        by_action(s, rule);
    }
    response(s, rule);
}

/// Refuses the keys that mean nothing to `algorithm`.
pub(super) fn by_algorithm(s: &mut Section<'_, '_>, algorithm: Algorithm) {
    for (key, known) in OF_ALGORITHMS {
        if !known.contains(&algorithm) {
            let known: Vec<&str> = known.iter().map(|a| name(*a)).collect();
            no_meaning(s, key, name(algorithm), &known);
        }
    }
    let period = s.key_span("period");
    if let Some(span) = period.filter(|_| algorithm == Concurrency) {
        s.out
            .error(
                span,
                "`concurrency` has no period: it counts what is in flight",
            )
            .help("remove `period`");
    }
}

/// A limit has a period, but for what is in flight.
fn quota(s: &mut Section<'_, '_>, limit: Range<usize>, rule: &Rule) {
    // An algorithm that was refused may be one that needs no period.
    let Some(algorithm) = known_algorithm(s, rule) else {
        return;
    };
    by_algorithm(s, algorithm);
    if !s.has("period") && !s.is_misnamed("period") && algorithm != Concurrency {
        s.out
            .lacks(limit, "a limit with no period")
            .help("add `period = \"1m\"`");
    }
    if algorithm == Concurrency && rule.action.value == Action::Delay {
        let message = "`delay` waits for its turn, which `concurrency` does not know";
        s.out
            .error(rule.action.span.clone(), message)
            .help("use `block`, or `algorithm = \"leaky_bucket\"` to let requests wait");
    }
}

/// Without a limit there is nothing to count, for anybody, for any time.
fn plain(s: &mut Section<'_, '_>, names: &Names) {
    let both = s.has(names.count) && s.has(names.mitigate);
    let counting = [names.count].into_iter().filter(|_| both);
    let rest = [
        "period",
        names.key,
        names.duration,
        "escalate",
        "algorithm",
        "burst",
        "slices",
        "queue",
        "cost",
        "jitter",
        "candidate",
        "missing",
        "headers",
    ];
    for key in rest.into_iter().chain(counting) {
        if let Some(span) = s.key_span(key) {
            s.out
                .lacks(span, format!("{} with no limit", one(key)))
                .help(format!("add `limit = 10`, or remove `{key}`"));
        }
    }
}

fn by_action(s: &mut Section<'_, '_>, rule: &Rule) {
    let action = rule.action.value;
    let held = matches!(action, Action::Delay | Action::Tarpit);
    if !held && !waits(s, rule) {
        let known = ["delay", "tarpit", "leaky_bucket"];
        no_meaning(s, "max_delay", action.name(), &known);
    }
    if action != Action::Divert {
        no_meaning(s, "upstream", action.name(), &["divert"]);
    } else if !s.has("upstream") && !s.is_misnamed("upstream") {
        s.out
            .lacks(rule.action.span.clone(), "`divert` needs an upstream")
            .help("add `upstream = \"honeypot\"`");
    }
}

/// Whether requests may wait in a queue, or would with an algorithm that was refused.
fn waits(s: &Section<'_, '_>, rule: &Rule) -> bool {
    let candidate = rule.candidate.as_ref().and_then(|c| c.algorithm.as_ref());
    let candidate = candidate.is_some_and(|a| a.value == LeakyBucket);
    candidate || known_algorithm(s, rule).is_none_or(|a| a == LeakyBucket)
}

fn response(s: &mut Section<'_, '_>, rule: &Rule) {
    let answers = matches!(
        rule.action.value,
        Action::Block | Action::Shadow | Action::Tarpit
    );
    if let (false, Some(response)) = (answers, &rule.response) {
        let action = rule.action.value.name();
        s.out
            .warning(
                response.span.clone(),
                format!("`action = \"{action}\"` never sends this response"),
            )
            .related(rule.action.span.clone(), "the action")
            .help("it is for `block`, `shadow` and `tarpit`");
    }
}

fn no_meaning(s: &mut Section<'_, '_>, key: &str, here: &str, known: &[&str]) {
    if let Some(span) = s.key_span(key) {
        s.out
            .lacks(span, format!("`{key}` has no meaning for `{here}`"))
            .help(format!("it is for {}; remove it", either(known)));
    }
}

fn one(key: &str) -> String {
    let article = if key.starts_with(['a', 'e']) {
        "an"
    } else {
        "a"
    };
    format!("{article} `{key}`")
}

fn name(algorithm: Algorithm) -> &'static str {
    let mut names = ALGORITHMS.iter();
    let row = names.find(|(_, known)| *known == algorithm);
    row.map_or("", |(name, _)| name)
}
