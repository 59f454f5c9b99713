//! `[[rules]]`.

use std::ops::Range;
use std::time::Duration;

use http::HeaderName;
use toml::de::DeValue;

use super::{name, rule_checks};
use crate::config::scalar::{
    SettingType, ValueError, between, boolean, choice, duration, duration_or_seconds, filled,
    header_name, integer, kind, number,
};
use crate::config::schema::{ExampleValue, ValueSchema};
use crate::config::section::SectionReader;
use crate::config::{Spanned, Text};
use crate::decision::Action;
use crate::limit::Algorithm;
use crate::rules::{HeaderStyle, MissingPart};

/// One of `[[rules]]`. Cloudflare's names of the keys have become ours.
#[derive(Clone, Debug)]
pub struct RuleSettings {
    /// The header of the section.
    pub span: Range<usize>,
    /// Unique, `[A-Za-z0-9_-]{1,64}`, in a file without errors; empty where it was missing.
    pub name: Text,
    /// What is counted; `None`: as `mitigate`. One of the two is there in a file without errors.
    pub count: Option<Text>,
    /// What is stopped; `None`: as `count`.
    pub mitigate: Option<Text>,
    /// What tells clients apart, an expression a part; empty: one counter for all.
    pub key: Vec<Text>,
    /// Requests that are allowed in a period; `None`, also written 0: the action on every request
    /// that matches.
    pub limit: Option<Spanned<u32>>,
    /// The window, 1 ms to 366 days; in a file without errors there exactly if `limit` is and the
    /// algorithm is not concurrency.
    pub period: Option<Spanned<Duration>>,
    /// How requests are counted. Default sliding_window.
    pub algorithm: Spanned<Algorithm>,
    /// `token_bucket`, `gcra`: how many may come back to back from idle; `None`: the limit.
    pub burst: Option<Spanned<u32>>,
    /// `sliding_window`: sub-windows of a period. Default 1.
    pub slices: Spanned<u16>,
    /// `leaky_bucket`: how many may wait. Default 100.
    pub queue: Spanned<u32>,
    /// What a request costs. Default 1.
    pub cost: Spanned<CostSettings>,
    /// How far each key's limit may be from `limit`, as a part of it. Default 0.
    pub jitter: Spanned<f64>,
    /// Another limit, tried beside this one.
    pub candidate: Option<CandidateSettings>,
    /// What is done with what is stopped. Default block.
    pub action: Spanned<Action>,
    /// One of `[responses]`.
    pub response: Option<Text>,
    /// `divert`: one of `[[upstreams]]`.
    pub upstream: Option<Text>,
    /// `leaky_bucket`, `delay`, `tarpit`: how long a request is held at the most. Default 5 s.
    pub max_delay: Spanned<Duration>,
    /// How long passing the limit bans a key, up to 366 days; zero is a throttle. Default zero.
    pub duration: Spanned<Duration>,
    /// The ban of the first offence, of the second and so on, instead of `duration`; empty: none
    /// was given.
    pub escalate: Vec<Spanned<Duration>>,
    /// Decide, log and count, but do not act. Default false.
    pub dry_run: Spanned<bool>,
    /// Whether the rule is there at all. Default true.
    pub enabled: Spanned<bool>,
    /// What a missing part of the key means. Default group.
    pub missing: Spanned<MissingPart>,
    /// What a client is told. Default standard.
    pub headers: Spanned<HeaderStyle>,
}

/// What a request costs.
#[derive(Clone, Debug)]
pub enum CostSettings {
    /// Always so much.
    Fixed(u32),
    /// What an expression says.
    Expression(String),
    /// What a header of the response says.
    Header(HeaderName),
}

/// A limit that is tried beside a rule's own. What is absent is as in the rule.
#[derive(Clone, Debug, Default)]
pub struct CandidateSettings {
    /// The whole table.
    pub span: Range<usize>,
    /// How requests are counted.
    pub algorithm: Option<Spanned<Algorithm>>,
    /// Requests that are allowed.
    pub limit: Option<Spanned<u32>>,
    /// The window.
    pub period: Option<Spanned<Duration>>,
    /// How many may come back to back from idle.
    pub burst: Option<Spanned<u32>>,
    /// Sub-windows of a period.
    pub slices: Option<Spanned<u16>>,
    /// How many may wait.
    pub queue: Option<Spanned<u32>>,
}

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
const MISSING: &[(&str, MissingPart)] =
    &[("group", MissingPart::Group), ("skip", MissingPart::Skip)];
const HEADERS: &[(&str, HeaderStyle)] = &[
    ("standard", HeaderStyle::Standard),
    ("legacy", HeaderStyle::Legacy),
    ("both", HeaderStyle::Both),
    ("none", HeaderStyle::None),
];

/// Our names of keys, and Cloudflare's.
const ALIASES: [(&str, &str); 5] = [
    ("count", "counting_expression"),
    ("mitigate", "expression"),
    ("key", "characteristics"),
    ("limit", "requests_per_period"),
    ("duration", "mitigation_timeout"),
];

pub(super) fn rule(s: &mut SectionReader<'_, '_>) -> RuleSettings {
    s.later(&["on_store_failure"]);
    for (ours, theirs) in ALIASES {
        s.alias(ours, theirs);
    }
    let mut rule = values(s);
    let algorithm = known_algorithm(s, &rule);
    rule.candidate = s.table("candidate", |s| candidate(s, algorithm));
    let example = "mitigate = 'http.request.uri.path eq \"/login\"'";
    s.at_least_one("a rule", &["count", "mitigate"], example);
    s.apart("a rule", ["duration", "escalate"]);
    rule_checks::check(s, &rule);
    RuleSettings {
        limit: rule.limit.filter(|limit| limit.value > 0),
        ..rule
    }
}

fn values(s: &mut SectionReader<'_, '_>) -> RuleSettings {
    let ban = between(Duration::ZERO, LONGEST, duration_or_seconds());
    let delay = between(MILLISECOND, LONGEST_DELAY, duration());
    RuleSettings {
        span: s.span(),
        name: name(s, "\"login-stuffing\""),
        count: s.optional("count", filled()),
        mitigate: s.optional("mitigate", filled()),
        key: s.array_or("key", filled(), []),
        limit: s.optional("limit", integer(0..=u32::MAX)),
        period: s.optional("period", period()),
        algorithm: s.or("algorithm", algorithm(), Algorithm::SlidingWindow),
        burst: s.optional("burst", burst()),
        slices: s.or("slices", slices(), 1u16),
        queue: s.or("queue", queue(), 100u32),
        cost: cost(s),
        jitter: s.or("jitter", number(0.0, MOST_JITTER), 0.0),
        candidate: None,
        action: s.or("action", choice(ACTIONS, &[]), Action::Block),
        response: s.optional("response", response()),
        upstream: s.optional("upstream", filled()),
        max_delay: s.or("max_delay", delay, Duration::from_secs(5)),
        duration: s.or("duration", ban, Duration::ZERO),
        escalate: escalate(s),
        dry_run: s.or("dry_run", boolean(), false),
        enabled: s.or("enabled", boolean(), true),
        missing: s.or("missing", choice(MISSING, &[]), MissingPart::Group),
        headers: s.or("headers", choice(HEADERS, &[]), HeaderStyle::Standard),
    }
}

/// The name of an answer.
fn response() -> SettingType<String> {
    SettingType::new(ValueSchema::filled(), |value| {
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
pub(super) fn known_algorithm(s: &SectionReader<'_, '_>, rule: &RuleSettings) -> Option<Algorithm> {
    let refused = s.refused("algorithm", &rule.algorithm);
    (!refused).then_some(rule.algorithm.value)
}

fn escalate(s: &mut SectionReader<'_, '_>) -> Vec<Spanned<Duration>> {
    let ban = between(SHORTEST_BAN, LONGEST, duration());
    let bans = s.array("escalate", ban).unwrap_or_default();
    let example = "for example `escalate = [\"10m\", \"1h\", \"1d\"]`";
    s.not_empty("escalate", "`escalate` is empty", example);
    let span = s.key_span("escalate");
    if let Some(span) = span.filter(|_| bans.len() > MOST_OFFENCES) {
        let wrong = ValueError::new(format!("`escalate` has more than {MOST_OFFENCES} bans"));
        s.wrong(span, wrong.help("the last one repeats"));
    }
    bans
}

const MOST_SLICES: u16 = 3_600;
const LONGEST_QUEUE: u32 = 1_000_000;

pub(super) fn algorithm() -> SettingType<Algorithm> {
    choice(&Algorithm::NAMED, &[])
}

fn period() -> SettingType<Duration> {
    between(MILLISECOND, LONGEST, duration_or_seconds())
}

fn burst() -> SettingType<u32> {
    integer(1..=u32::MAX)
}

fn slices() -> SettingType<u16> {
    integer(1..=MOST_SLICES)
}

fn queue() -> SettingType<u32> {
    integer(0..=LONGEST_QUEUE)
}

/// A number, an expression, or a table that names a header of the response.
fn cost(s: &mut SectionReader<'_, '_>) -> Spanned<CostSettings> {
    let default = CostSettings::Fixed(1u32);
    s.value_or_table("cost", number_or_expression(), default, |s| {
        let name = s.required("response_header", header_name(), "\"x-cost\"")?;
        Some(CostSettings::Header(name.value))
    })
}

fn number_or_expression() -> SettingType<CostSettings> {
    let (number, text) = (integer(1..=u32::MAX), filled());
    let shape = ValueSchema::Either(vec![number.shape(), text.shape()]);
    SettingType::new(shape, move |value| match value {
        DeValue::Integer(_) => number.parse(value).map(CostSettings::Fixed),
        DeValue::String(_) => text.parse(value).map(CostSettings::Expression),
        other => Err(kind("an integer, an expression or a table", other)
            .help("for example `cost = 5` or `cost = { response_header = \"x-cost\" }`")),
    })
    .shown(|cost| match cost {
        CostSettings::Fixed(units) => ExampleValue::Integer(i64::from(*units)),
        CostSettings::Expression(text) => ExampleValue::Text(text.clone()),
        CostSettings::Header(name) => ExampleValue::Text(name.to_string()),
    })
}

/// `of_rule`: how the rule counts; `None` if that is not known.
fn candidate(s: &mut SectionReader<'_, '_>, of_rule: Option<Algorithm>) -> CandidateSettings {
    let candidate = CandidateSettings {
        span: s.span(),
        algorithm: s.optional("algorithm", algorithm()),
        limit: s.optional("limit", integer(1..=u32::MAX)),
        period: s.optional("period", period()),
        burst: s.optional("burst", burst()),
        slices: s.optional("slices", slices()),
        queue: s.optional("queue", queue()),
    };
    let own = candidate.algorithm.as_ref().map(|a| a.value);
    let counted = if s.has("algorithm") { own } else { of_rule };
    if let Some(algorithm) = counted {
        rule_checks::by_algorithm(s, algorithm);
    }
    candidate
}
