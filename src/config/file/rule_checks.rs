//! Constraints between the settings of a rule. A setting that would have no effect is an error.

use std::ops::Range;
use std::time::Duration;

use super::rule::known_algorithm;
use super::{CandidateSettings, CostSettings, RuleSettings};
use crate::config::section::SectionReader;
use crate::config::suggest::either;
use crate::config::{Diagnostics, Spanned, limiter};
use crate::decision::Action;
use crate::limit::{Algorithm, CapacityKind, Limiter};
use crate::rules::{HeaderStyle, StoreMode};

/// Returns whether an algorithm has a setting.
type HasSetting = fn(Algorithm) -> bool;

/// Settings that only some algorithms have.
const OF_ALGORITHMS: &[(&str, HasSetting)] = &[
    ("burst", Algorithm::has_burst),
    ("slices", |algorithm| algorithm.row().has_slices),
    ("queue", Algorithm::has_queue),
];

/// Checks a rule as a whole.
pub(super) fn check(s: &mut SectionReader<'_, '_>, rule: &RuleSettings) {
    let zero = rule.limit.as_ref().is_some_and(|limit| limit.value == 0);
    match s.key_span("limit").filter(|_| !zero) {
        Some(limit) => quota(s, limit, rule),
        None if s.is_misspelt("limit") => {}
        None => plain(s, zero),
    }
    // An action that was refused may be one that uses the setting.
    if !s.has("action") || rule.action.span != s.span() {
        by_action(s, rule);
    }
}

/// Refuses the settings that do not apply to `algorithm`.
pub(super) fn by_algorithm(s: &mut SectionReader<'_, '_>, algorithm: Algorithm) {
    for (key, has) in OF_ALGORITHMS {
        if !has(algorithm) {
            let known = Algorithm::ALL.into_iter().filter(|other| has(*other));
            let known: Vec<&str> = known.map(|other| other.row().name).collect();
            no_meaning(s, key, algorithm.row().name, &known);
        }
    }
    let period = s.key_span("period");
    if let Some(span) = period.filter(|_| algorithm.holds_leases()) {
        s.out
            .error(
                span,
                "`concurrency` has no period: it counts requests in flight",
            )
            .help("remove `period`");
    }
}

/// Requires a period for a limit, except with the concurrency algorithm.
fn quota(s: &mut SectionReader<'_, '_>, limit: Range<usize>, rule: &RuleSettings) {
    // An algorithm that was refused may be one that needs no period.
    let Some(algorithm) = known_algorithm(s, rule) else {
        return;
    };
    by_algorithm(s, algorithm);
    by_store_mode(s, algorithm, rule);
    share(s, algorithm, rule);
    if !s.has("period") && !s.is_misspelt("period") && !algorithm.holds_leases() {
        s.out
            .lacks(limit, "a limit requires `period`")
            .help("add `period = \"1m\"`");
    }
    if algorithm.holds_leases() && rule.action.value == Action::Delay {
        let message = "`delay` cannot be combined with `concurrency`, which has no queue";
        s.out
            .error(rule.action.span.clone(), message)
            .help("use `block`, or `algorithm = \"leaky_bucket\"` to queue requests");
    }
}

/// Requires the parts of a ratio, and windows that can have a total.
fn share(s: &mut SectionReader<'_, '_>, algorithm: Algorithm, rule: &RuleSettings) {
    let (ratio, total) = (s.key_span("ratio"), s.key_span("total"));
    let Some(ratio) = ratio else {
        if let Some(total) = total.filter(|_| !s.is_misspelt("ratio")) {
            s.out
                .lacks(total, "`total` requires `ratio`")
                .help("add `ratio = 0.4`, or remove `total`");
        }
        return;
    };
    if total.is_none() && !s.is_misspelt("total") {
        s.out
            .lacks(ratio.clone(), "`ratio` requires `total`")
            .help("add `total = '…'` to select the requests of which `count` is a share");
    }
    windows(s, ratio, algorithm, Some(&rule.slices));
    let headers = &rule.headers;
    if s.has("headers") && headers.value != HeaderStyle::None && headers.span != s.span() {
        s.out
            .error(
                headers.span.clone(),
                "`headers` does not apply to a rule with `ratio`: no header can tell when it acts",
            )
            .help("remove it, or write `headers = \"none\"`");
    }
}

/// Checks the ratio of a candidate, its own or the rule's. `algorithm` is `None` if it is unknown.
pub(super) fn candidate_ratio(
    s: &mut SectionReader<'_, '_>,
    candidate: &CandidateSettings,
    (algorithm, rule_has_ratio): (Option<Algorithm>, bool),
) {
    let own = s.key_span("ratio");
    if let Some(span) = own.clone().filter(|_| !rule_has_ratio) {
        s.out
            .lacks(
                span,
                "the candidate's `ratio` requires `ratio` and `total` in the rule",
            )
            .help("add them to the rule, or remove `ratio` from `candidate`");
    } else if let Some(algorithm) = algorithm.filter(|_| rule_has_ratio) {
        // A candidate without a ratio of its own has that of the rule.
        let written = ["algorithm", "slices"]
            .iter()
            .find_map(|key| s.key_span(key));
        if let Some(span) = own.or(written) {
            windows(s, span, algorithm, candidate.slices.as_ref());
        }
    }
}

/// Refuses a ratio with an algorithm that has no windows, or with sub-windows.
fn windows(
    s: &mut SectionReader<'_, '_>,
    ratio: Range<usize>,
    algorithm: Algorithm,
    slices: Option<&Spanned<u16>>,
) {
    if !algorithm.has_ratio() {
        let known = Algorithm::ALL.into_iter().filter(|a| a.has_ratio());
        let known: Vec<&str> = known.map(|other| other.row().name).collect();
        let name = algorithm.row().name;
        s.out
            .error(ratio, format!("`{name}` cannot have a ratio"))
            .help(format!("use {}", either(&known)));
        return;
    }
    if let Some(slices) = slices.filter(|slices| slices.value > 1) {
        s.out
            .error(
                slices.span.clone(),
                "a rule with `ratio` cannot have sub-windows",
            )
            .help("remove `slices`");
    }
}

/// Refuses async mode for an algorithm that cannot be counted in that mode.
fn by_store_mode(s: &mut SectionReader<'_, '_>, algorithm: Algorithm, rule: &RuleSettings) {
    let is_async = |mode: &&Spanned<StoreMode>| mode.value == StoreMode::Async;
    let Some(mode) = rule.store_mode.as_ref().filter(is_async) else {
        return;
    };
    let Some(obstacle) = algorithm.async_obstacle(rule.slices.value) else {
        return;
    };
    let name = algorithm.row().name;
    let others = Algorithm::ALL
        .into_iter()
        .filter(|a| a.async_obstacle(1).is_none());
    let others: Vec<&str> = others.map(|other| other.row().name).collect();
    let other = if others.contains(&name) {
        "fewer `slices`".to_owned()
    } else {
        either(&others)
    };
    let message = format!("`{name}` cannot be counted in async mode: {obstacle}");
    let help = format!("write `store_mode = \"exact\"`, or use {other}");
    s.out.error(mode.span.clone(), message).help(help);
}

/// Refuses settings that have no effect in a deny rule. `is_zero` is whether the rule has `limit = 0`.
fn plain(s: &mut SectionReader<'_, '_>, is_zero: bool) {
    let both = s.has("count") && s.has("mitigate");
    let counting = ["count"].into_iter().filter(|_| both);
    let rest = [
        "period",
        "key",
        "duration",
        "escalate",
        "algorithm",
        "burst",
        "slices",
        "queue",
        "ratio",
        "total",
        "cost",
        "jitter",
        "candidate",
        "missing",
        "headers",
    ];
    for key in rest.into_iter().chain(counting) {
        if let Some(span) = s.key_span(key) {
            let key = s.written(key);
            if is_zero {
                let message = format!(
                    "`{key}` does not apply: `limit = 0` denies every request, so nothing is counted"
                );
                let help = format!("remove `{key}` to deny, or write a limit of at least 1");
                s.out.lacks(span, message).help(help);
            } else {
                s.out
                    .lacks(span, format!("`{key}` requires a limit"))
                    .help(format!("add `limit = 10`, or remove `{key}`"));
            }
        }
    }
}

fn by_action(s: &mut SectionReader<'_, '_>, rule: &RuleSettings) {
    let action = rule.action.value;
    let held = matches!(action, Action::Delay | Action::Tarpit);
    if !held && !waits(s, rule) {
        let known = ["delay", "tarpit", "leaky_bucket"];
        no_meaning(s, "max_delay", action.name(), &known);
    }
    if let Some(span) = s
        .key_span("response")
        .filter(|_| action == Action::Challenge)
    {
        let message =
            "`response` does not apply to `challenge`, which sends its own page or document";
        s.out.lacks(span, message).help("remove `response`");
    }
    if action != Action::Divert {
        no_meaning(s, "upstream", action.name(), &["divert"]);
    } else if !s.has("upstream") && !s.is_misspelt("upstream") {
        s.out
            .lacks(rule.action.span.clone(), "`divert` requires `upstream`")
            .help("add `upstream = \"honeypot\"`");
    }
}

/// Returns whether the rule may queue requests. True if its algorithm was refused.
fn waits(s: &SectionReader<'_, '_>, rule: &RuleSettings) -> bool {
    let candidate = rule.candidate.as_ref().and_then(|c| c.algorithm.as_ref());
    let candidate = candidate.is_some_and(|a| a.value.has_queue());
    candidate || known_algorithm(s, rule).is_none_or(Algorithm::has_queue)
}

fn no_meaning(s: &mut SectionReader<'_, '_>, key: &str, here: &str, known: &[&str]) {
    if let Some(span) = s.key_span(key) {
        s.out
            .lacks(span, format!("`{key}` does not apply to `{here}`"))
            .help(format!("remove it: it applies only to {}", either(known)));
    }
}

const SHORTEST_SLICE: Duration = Duration::from_millis(1);

/// Checks the limits of a rule.
pub(in crate::config) fn check_numbers(rule: &RuleSettings, out: &mut Diagnostics) {
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

fn sub_windows(rule: &RuleSettings, limiter: &Limiter, tried: bool, out: &mut Diagnostics) {
    let of_candidate = rule.candidate.as_ref().and_then(|c| c.slices.as_ref());
    let written = of_candidate.filter(|_| tried).unwrap_or(&rule.slices);
    let slices = u32::from(limiter.slices);
    if slices > 1 && limiter.period < SHORTEST_SLICE * slices {
        out.error(written.span.clone(), "a sub-window is shorter than 1 ms")
            .help("use fewer `slices`, or a longer `period`");
    }
}

fn constant_cost(rule: &RuleSettings, limiter: &Limiter, tried: bool, out: &mut Diagnostics) {
    let CostSettings::Fixed(cost) = rule.cost.value else {
        return;
    };
    let most = limiter.capacity();
    // A large cost may still be a small share.
    if u64::from(cost) <= most || limiter.ratio.is_some() {
        return;
    }
    let key = match limiter.algorithm.row().capacity {
        CapacityKind::Limit => "limit",
        CapacityKind::Burst => "burst",
        CapacityKind::Queue => "queue",
    };
    let owner = if tried { "the candidate" } else { "the rule" };
    out.error(
        rule.cost.span.clone(),
        format!("{owner} never admits a cost of {cost}: its maximum is {most}"),
    )
    .help(format!("use a smaller `cost`, or a larger `{key}`"));
}

/// Requires a period for a candidate if the rule counts requests in flight and so has no period.
fn tried_period(rule: &RuleSettings, out: &mut Diagnostics) {
    let Some(candidate) = &rule.candidate else {
        return;
    };
    if limiter::of_candidate(rule).is_none() {
        out.lacks(candidate.span.clone(), "the candidate requires `period`")
            .help("add `period = \"1m\"` to `candidate`");
    }
}
