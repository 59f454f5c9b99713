//! Reads `[[rules]]`.

use std::time::Duration;

use toml::de::DeValue;

use super::name;
use crate::config::defaults;
use crate::config::file::{CountHeaders, Missing, Rule};
use crate::config::scalar::{
    Scalar, Wrong, between, boolean, choice, duration_or_seconds, filled, integer,
};
use crate::config::schema::{Shape, Value};
use crate::config::section::Section;
use crate::decision::Action;
use crate::limit::Algorithm;

const SHORTEST_PERIOD: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_secs(366 * 86_400);

const ALGORITHMS: &[(&str, Algorithm)] = &[("sliding_window", Algorithm::SlidingWindow)];
const LATER_ALGORITHMS: &[&str] = &[
    "fixed_window",
    "sliding_log",
    "token_bucket",
    "leaky_bucket",
    "gcra",
    "concurrency",
];
const ACTIONS: &[(&str, Action)] = &[
    ("block", Action::Block),
    ("shadow", Action::Shadow),
    ("log", Action::Log),
    ("allow", Action::Allow),
];
const LATER_ACTIONS: &[&str] = &["divert", "delay", "tarpit", "close", "tag"];
const MISSING: &[(&str, Missing)] = &[("group", Missing::Group), ("skip", Missing::Skip)];
const HEADERS: &[(&str, CountHeaders)] = &[
    ("standard", CountHeaders::Standard),
    ("legacy", CountHeaders::Legacy),
    ("both", CountHeaders::Both),
    ("none", CountHeaders::None),
];

/// Which of its two names each key has in this rule.
struct Names {
    count: &'static str,
    mitigate: &'static str,
    key: &'static str,
    limit: &'static str,
    duration: &'static str,
}

pub(super) fn rule(s: &mut Section<'_, '_>) -> Rule {
    refuse_later(s);
    let names = Names::of(s);
    let rule = values(s, &names);
    let example = "mitigate = 'http.request.uri.path eq \"/login\"'";
    s.at_least_one("a rule", &["count", "mitigate"], example);
    quota(s, &names, &rule);
    response(s, &rule);
    Rule {
        limit: rule.limit.filter(|limit| limit.value > 0),
        ..rule
    }
}

fn values(s: &mut Section<'_, '_>, names: &Names) -> Rule {
    let period = between(SHORTEST_PERIOD, LONGEST, duration_or_seconds());
    let ban = between(Duration::ZERO, LONGEST, duration_or_seconds());
    Rule {
        span: s.span(),
        name: name(s, "\"login-stuffing\""),
        count: s.optional(names.count, filled()),
        mitigate: s.optional(names.mitigate, filled()),
        key: s.array_or(names.key, filled(), []),
        limit: s.optional(names.limit, integer(0..=u32::MAX)),
        period: s.optional("period", period),
        algorithm: s.or(
            "algorithm",
            choice(ALGORITHMS, LATER_ALGORITHMS),
            defaults::ALGORITHM,
        ),
        action: s.or("action", choice(ACTIONS, LATER_ACTIONS), defaults::ACTION),
        response: s.optional("response", filled()),
        duration: s.or(names.duration, ban, defaults::DURATION),
        dry_run: s.or("dry_run", boolean(), defaults::DRY_RUN),
        enabled: s.or("enabled", boolean(), defaults::ENABLED),
        missing: s.or("missing", choice(MISSING, &[]), defaults::MISSING),
        headers: s.or("headers", choice(HEADERS, &[]), defaults::COUNT_HEADERS),
    }
}

fn refuse_later(s: &mut Section<'_, '_>) {
    s.later(&[
        "escalate",
        "cost",
        "burst",
        "queue",
        "jitter",
        "max_delay",
        "on_store_failure",
        "candidate",
        "upstream",
    ]);
    s.or("slices", slices(), ());
}

fn slices() -> Scalar<()> {
    let only = Shape::Integer { low: 1, high: 1 };
    let parse = |value: &DeValue<'_>| match integer(1..=3_600_u32).parse(value)? {
        1 => Ok(()),
        _ => Err(Wrong::later("`slices` other than 1").help("write `slices = 1` or remove it")),
    };
    Scalar::new(only, parse).shown(|()| Value::Integer(1))
}

/// A limit has a period; without one there is nothing to count, for anybody, for any time.
fn quota(s: &mut Section<'_, '_>, names: &Names, rule: &Rule) {
    let zero = rule.limit.as_ref().is_some_and(|limit| limit.value == 0);
    let Some(limit) = s.key_span(names.limit).filter(|_| !zero) else {
        return plain(s, names);
    };
    // An algorithm that was refused may be one that needs no period.
    let refused = s.has("algorithm") && rule.algorithm.span == s.span();
    if !s.has("period") && !refused {
        s.out
            .error(limit, "a limit with no period")
            .help("add `period = \"1m\"`");
    }
}

fn plain(s: &mut Section<'_, '_>, names: &Names) {
    let both = s.has(names.count) && s.has(names.mitigate);
    let counting = [names.count].into_iter().filter(|_| both);
    let rest = [
        "period",
        names.key,
        names.duration,
        "algorithm",
        "missing",
        "headers",
    ];
    for key in rest.into_iter().chain(counting) {
        if let Some(span) = s.key_span(key) {
            s.out
                .error(span, format!("a `{key}` with no limit"))
                .help(format!("add `limit = 10`, or remove `{key}`"));
        }
    }
}

fn response(s: &mut Section<'_, '_>, rule: &Rule) {
    let forwards = matches!(rule.action.value, Action::Log | Action::Allow);
    if let (true, Some(response)) = (forwards, &rule.response) {
        let action = rule.action.value.name();
        s.out
            .warning(
                response.span.clone(),
                format!("`action = \"{action}\"` forwards: this response is never sent"),
            )
            .related(rule.action.span.clone(), "the action");
    }
}

// === impl Names ===

impl Names {
    fn of(s: &mut Section<'_, '_>) -> Self {
        Self {
            count: s.alias("count", "counting_expression"),
            mitigate: s.alias("mitigate", "expression"),
            key: s.alias("key", "characteristics"),
            limit: s.alias("limit", "requests_per_period"),
            duration: s.alias("duration", "mitigation_timeout"),
        }
    }
}
