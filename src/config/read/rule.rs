//! Reads `[[rules]]`.

mod candidate;
mod counting;
mod meaning;

use std::time::Duration;

use super::name;
use crate::config::Spanned;
use crate::config::defaults;
use crate::config::file::{CountHeaders, Missing, Rule};
use crate::config::scalar::{
    Scalar, Wrong, between, boolean, choice, duration, duration_or_seconds, filled, integer, number,
};
use crate::config::schema::Shape;
use crate::config::section::Section;
use crate::decision::Action;
use crate::limit::Algorithm;
use counting::{algorithm, burst, cost, period, queue, slices};

const MILLISECOND: Duration = Duration::from_millis(1);
const LONGEST_DELAY: Duration = Duration::from_secs(3_600);
const SHORTEST_BAN: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(366 * 86_400);
const MOST_JITTER: f64 = 0.9;
const MOST_OFFENCES: usize = 16;

const ACTIONS: &[(&str, Action)] = &[
    ("block", Action::Block),
    ("shadow", Action::Shadow),
    ("divert", Action::Divert),
    ("delay", Action::Delay),
    ("tarpit", Action::Tarpit),
    ("close", Action::Close),
    ("tag", Action::Tag),
    ("log", Action::Log),
    ("allow", Action::Allow),
];
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
    s.later(&["on_store_failure"]);
    let names = Names::of(s);
    let mut rule = values(s, &names);
    let algorithm = known_algorithm(s, &rule);
    rule.candidate = s.table("candidate", |s| candidate::candidate(s, algorithm));
    let example = "mitigate = 'http.request.uri.path eq \"/login\"'";
    s.at_least_one("a rule", &["count", "mitigate"], example);
    s.apart("a rule", ["duration", "escalate"], names.duration);
    meaning::check(s, &names, &rule);
    Rule {
        limit: rule.limit.filter(|limit| limit.value > 0),
        ..rule
    }
}

fn values(s: &mut Section<'_, '_>, names: &Names) -> Rule {
    let ban = between(Duration::ZERO, LONGEST, duration_or_seconds());
    let delay = between(MILLISECOND, LONGEST_DELAY, duration());
    Rule {
        span: s.span(),
        name: name(s, "\"login-stuffing\""),
        count: s.optional(names.count, filled()),
        mitigate: s.optional(names.mitigate, filled()),
        key: s.array_or(names.key, filled(), []),
        limit: s.optional(names.limit, integer(0..=u32::MAX)),
        period: s.optional("period", period()),
        algorithm: s.or("algorithm", algorithm(), defaults::ALGORITHM),
        burst: s.optional("burst", burst()),
        slices: s.or("slices", slices(), defaults::SLICES),
        queue: s.or("queue", queue(), defaults::QUEUE),
        cost: cost(s),
        jitter: s.or("jitter", number(0.0, MOST_JITTER), defaults::JITTER),
        candidate: None,
        action: s.or("action", choice(ACTIONS, &[]), defaults::ACTION),
        response: s.optional("response", response()),
        upstream: s.optional("upstream", filled()),
        max_delay: s.or("max_delay", delay, defaults::MAX_DELAY),
        duration: s.or(names.duration, ban, defaults::DURATION),
        escalate: escalate(s),
        dry_run: s.or("dry_run", boolean(), defaults::DRY_RUN),
        enabled: s.or("enabled", boolean(), defaults::ENABLED),
        missing: s.or("missing", choice(MISSING, &[]), defaults::MISSING),
        headers: s.or("headers", choice(HEADERS, &[]), defaults::COUNT_HEADERS),
    }
}

/// The name of an answer.
fn response() -> Scalar<String> {
    Scalar::new(Shape::filled(), |value| {
        let help =
            "the answer stands in `[responses.NAME]`, and the rule names it: `response = \"NAME\"`";
        let name = filled().parse(value);
        name.map_err(|wrong| match value.is_table() {
            true => wrong.help(help),
            false => wrong,
        })
    })
}

/// How the rule counts; `None` if what is written was refused.
fn known_algorithm(s: &Section<'_, '_>, rule: &Rule) -> Option<Algorithm> {
    let refused = s.refused("algorithm", &rule.algorithm);
    (!refused).then_some(rule.algorithm.value)
}

fn escalate(s: &mut Section<'_, '_>) -> Vec<Spanned<Duration>> {
    let ban = between(SHORTEST_BAN, LONGEST, duration());
    let bans = s.array("escalate", ban).unwrap_or_default();
    let empty = s.is_empty("escalate");
    let Some(span) = s.key_span("escalate") else {
        return bans;
    };
    let example = "for example `escalate = [\"10m\", \"1h\", \"1d\"]`";
    if empty {
        s.wrong(span, Wrong::new("`escalate` is empty").help(example));
    } else if bans.len() > MOST_OFFENCES {
        let wrong = Wrong::new(format!("`escalate` has more than {MOST_OFFENCES} bans"));
        s.wrong(span, wrong.help("the last one repeats"));
    }
    bans
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
