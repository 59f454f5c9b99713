//! `[[rules]]`.

use std::ops::Range;
use std::time::Duration;

use http::HeaderName;
use toml::de::DeValue;

use super::rule_checks;
use super::store::{MODES, ON_FAILURE};
use crate::config::scalar::{
    self, SettingType, ValueError, between, boolean, choice, duration, duration_or_seconds, filled,
    header_name, integer, kind, number,
};
use crate::config::schema::{ExampleValue, ValueSchema};
use crate::config::section::SectionReader;
use crate::config::{ExprText, Spanned, Text};
use crate::decision::Action;
use crate::limit::Algorithm;
use crate::rules::{HeaderStyle, MissingPart, OnStoreFailure, StoreMode};

/// One of `[[rules]]`. Cloudflare's setting names are already translated.
#[derive(Clone, Debug)]
pub struct RuleSettings {
    /// The header of the section.
    pub span: Range<usize>,
    /// A unique name, `[A-Za-z0-9_-]{1,64}`, in a file without errors; empty if it was missing.
    pub name: Text,
    /// Selects the counted requests. `None` for those of `mitigate`. A file without errors has one of the two.
    pub count: Option<ExprText>,
    /// Selects the requests to mitigate. `None` for those of `count`.
    pub mitigate: Option<ExprText>,
    /// The key parts, one expression each. Empty for one counter for all requests.
    pub key: Vec<ExprText>,
    /// The units allowed per period. `None`, also written as 0, makes a deny rule.
    pub limit: Option<Spanned<u32>>,
    /// The window, 1 ms to 366 days. In a file without errors it is present exactly if `limit` is
    /// and the algorithm is not concurrency.
    pub period: Option<Spanned<Duration>>,
    /// The counting algorithm. Default sliding_window.
    pub algorithm: Spanned<Algorithm>,
    /// `token_bucket`, `gcra`: the maximum burst after an idle time. `None` for the value of `limit`.
    pub burst: Option<Spanned<u32>>,
    /// `sliding_window`: the number of sub-windows per period. Default 1.
    pub slices: Spanned<u16>,
    /// `leaky_bucket`: the maximum number of waiting requests. Default 100.
    pub queue: Spanned<u32>,
    /// The share of `total` that the count must also exceed. `None` if the limit alone decides.
    pub ratio: Option<Spanned<f64>>,
    /// Selects the requests of which the counted ones are a share. In a file without errors it is present exactly if
    /// `ratio` is.
    pub total: Option<ExprText>,
    /// The cost of a request. Default 1.
    pub cost: Spanned<CostSettings>,
    /// The maximum deviation of a key's limit from `limit`, as a fraction. Default 0.
    pub jitter: Spanned<f64>,
    /// A second limiter that is evaluated but never enforced.
    pub candidate: Option<CandidateSettings>,
    /// The action for mitigated requests. Default block.
    pub action: Spanned<Action>,
    /// The name of one of `[responses]`.
    pub response: Option<Text>,
    /// `divert`: the name of one of `[[upstreams]]`.
    pub upstream: Option<Text>,
    /// `leaky_bucket`, `delay`, `tarpit`: the maximum time that a request is held. Default 5 s.
    pub max_delay: Spanned<Duration>,
    /// The duration of a ban, up to 366 days; zero throttles instead. Default zero.
    pub duration: Spanned<Duration>,
    /// The ban durations for the first offence, the second and so on, instead of `duration`. Empty
    /// if not set.
    pub escalate: Vec<Spanned<Duration>>,
    /// Whether the rule decides, logs and counts without acting. Default false.
    pub dry_run: Spanned<bool>,
    /// Whether the rule is active. Default true.
    pub enabled: Spanned<bool>,
    /// How a missing key part is handled. Default group.
    pub missing: Spanned<MissingPart>,
    /// The style of the quota headers. Default standard; none with `ratio`.
    pub headers: Spanned<HeaderStyle>,
    /// What the rule does during a store outage. `None` for the value of `[store.redis]`.
    pub on_store_failure: Option<Spanned<OnStoreFailure>>,
    /// How the rule shares its counters. `None` for the value of `[store.redis]`.
    pub store_mode: Option<Spanned<StoreMode>>,
}

/// The cost of a request.
#[derive(Clone, Debug)]
pub enum CostSettings {
    /// A fixed number of units.
    Fixed(u32),
    /// The value of an expression.
    Expression(ExprText),
    /// The value of a response header.
    Header(HeaderName),
}

/// A candidate limiter. An absent setting has the value of the rule.
#[derive(Clone, Debug, Default)]
pub struct CandidateSettings {
    /// The span of the whole table.
    pub span: Range<usize>,
    /// The counting algorithm.
    pub algorithm: Option<Spanned<Algorithm>>,
    /// The units allowed per period.
    pub limit: Option<Spanned<u32>>,
    /// The window.
    pub period: Option<Spanned<Duration>>,
    /// The maximum burst after an idle time.
    pub burst: Option<Spanned<u32>>,
    /// The number of sub-windows per period.
    pub slices: Option<Spanned<u16>>,
    /// The maximum number of waiting requests.
    pub queue: Option<Spanned<u32>>,
    /// The share of the rule's `total`.
    pub ratio: Option<Spanned<f64>>,
}

const MILLISECOND: Duration = Duration::from_millis(1);
const LONGEST_DELAY: Duration = Duration::from_secs(3_600);
const SHORTEST_BAN: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(366 * 86_400);
const MOST_JITTER: f64 = 0.9;
/// The smallest and the largest `ratio`: it is rounded to 1/10,000.
const RATIOS: [f64; 2] = [0.0001, 0.9999];
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
    ("challenge", Action::Challenge),
];
const MISSING: &[(&str, MissingPart)] =
    &[("group", MissingPart::Group), ("skip", MissingPart::Skip)];
const HEADERS: &[(&str, HeaderStyle)] = &[
    ("standard", HeaderStyle::Standard),
    ("legacy", HeaderStyle::Legacy),
    ("both", HeaderStyle::Both),
    ("none", HeaderStyle::None),
];

/// Lockgate's names of settings, and Cloudflare's.
const ALIASES: [(&str, &str); 5] = [
    ("count", "counting_expression"),
    ("mitigate", "expression"),
    ("key", "characteristics"),
    ("limit", "requests_per_period"),
    ("duration", "mitigation_timeout"),
];

// === impl RuleSettings ===

impl RuleSettings {
    /// A rule without a name and without expressions, with all defaults. Every setting has this span.
    pub(in crate::config) fn defaults(span: Range<usize>) -> Self {
        SectionReader::read_defaults(span, values)
    }

    /// `count`, `mitigate` and `total`, those that are written.
    pub fn expressions(&self) -> impl Iterator<Item = &ExprText> {
        let both = self.count.iter().chain(&self.mitigate);
        both.chain(&self.total)
    }
}

pub(super) fn rule(s: &mut SectionReader<'_, '_>) -> RuleSettings {
    for (ours, theirs) in ALIASES {
        s.alias(ours, theirs);
    }
    let mut rule = values(s);
    if s.has("ratio") && !s.has("headers") {
        rule.headers.value = HeaderStyle::None;
    }
    let of_rule = (known_algorithm(s, &rule), s.has("ratio"));
    rule.candidate = s.table("candidate", |s| candidate(s, of_rule));
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
    let delay = between(MILLISECOND, LONGEST_DELAY, duration());
    RuleSettings {
        span: s.span(),
        name: rule_name(s),
        count: s.optional("count", filled()).map(ExprText::written),
        mitigate: s.optional("mitigate", filled()).map(ExprText::written),
        key: key(s),
        limit: s.optional("limit", integer(0..=u32::MAX)),
        period: s.optional("period", period()),
        algorithm: s.or("algorithm", algorithm(), Algorithm::SlidingWindow),
        burst: s.optional("burst", burst()),
        slices: s.or("slices", slices(), 1u16),
        queue: s.or("queue", queue(), 100u32),
        ratio: s.optional("ratio", ratio()),
        total: s.optional("total", filled()).map(ExprText::written),
        cost: cost(s),
        jitter: s.or("jitter", jitter(), 0.0),
        candidate: None,
        action: s.or("action", action(), Action::Block),
        response: s.optional("response", response()),
        upstream: s.optional("upstream", filled()),
        max_delay: s.or("max_delay", delay, Duration::from_secs(5)),
        duration: s.or("duration", ban(), Duration::ZERO),
        escalate: escalate(s),
        dry_run: s.or("dry_run", boolean(), false),
        enabled: s.or("enabled", boolean(), true),
        missing: s.or("missing", missing(), MissingPart::Group),
        headers: s.or("headers", headers(), HeaderStyle::Standard),
        on_store_failure: s.optional("on_store_failure", on_store_failure()),
        store_mode: s.optional("store_mode", store_mode()),
    }
}

/// Reads the name. Keeps an invalid one, so that references to it cause no errors.
fn rule_name(s: &mut SectionReader<'_, '_>) -> Text {
    let span = s.span();
    let Some(name) = s.required("name", scalar::rule_name(), "\"login-stuffing\"") else {
        return Spanned::new(String::new(), span);
    };
    if let Err(wrong) = scalar::check_rule_name(&name.value) {
        s.wrong(name.span.clone(), wrong);
    }
    name
}

fn key(s: &mut SectionReader<'_, '_>) -> Vec<ExprText> {
    let parts = s.array_or("key", filled(), []).into_iter();
    parts.map(ExprText::written).collect()
}

/// The name of a response.
pub(super) fn response() -> SettingType<String> {
    SettingType::new(ValueSchema::filled(), |value| {
        let help = "define the response in `[responses.NAME]` and write `response = \"NAME\"`";
        let name = filled().parse(value);
        name.map_err(|wrong| {
            if value.is_table() {
                wrong.help(help)
            } else {
                wrong
            }
        })
    })
}

/// Returns the rule's algorithm. `None` if the written one was refused.
pub(super) fn known_algorithm(s: &SectionReader<'_, '_>, rule: &RuleSettings) -> Option<Algorithm> {
    let refused = s.refused("algorithm", &rule.algorithm);
    (!refused).then_some(rule.algorithm.value)
}

pub(super) fn escalate(s: &mut SectionReader<'_, '_>) -> Vec<Spanned<Duration>> {
    let ban = between(SHORTEST_BAN, LONGEST, duration());
    let bans = s.array("escalate", ban).unwrap_or_default();
    let example = "for example `escalate = [\"10m\", \"1h\", \"1d\"]`";
    s.not_empty("escalate", "`escalate` is empty", example);
    let span = s.key_span("escalate");
    if let Some(span) = span.filter(|_| bans.len() > MOST_OFFENCES) {
        let wrong = ValueError::new(format!(
            "`escalate` has more than {MOST_OFFENCES} durations"
        ));
        s.wrong(span, wrong.help("the last duration repeats"));
    }
    bans
}

const MOST_SLICES: u16 = 3_600;
const LONGEST_QUEUE: u32 = 1_000_000;

pub(super) fn algorithm() -> SettingType<Algorithm> {
    choice(&Algorithm::NAMED, &[])
}

pub(super) fn period() -> SettingType<Duration> {
    between(MILLISECOND, LONGEST, duration_or_seconds())
}

pub(super) fn ban() -> SettingType<Duration> {
    between(Duration::ZERO, LONGEST, duration_or_seconds())
}

pub(super) fn action() -> SettingType<Action> {
    choice(ACTIONS, &[])
}

pub(super) fn missing() -> SettingType<MissingPart> {
    choice(MISSING, &[])
}

pub(super) fn headers() -> SettingType<HeaderStyle> {
    choice(HEADERS, &[])
}

pub(super) fn jitter() -> SettingType<f64> {
    number(0.0, MOST_JITTER)
}

pub(super) fn on_store_failure() -> SettingType<OnStoreFailure> {
    choice(ON_FAILURE, &[])
}

pub(super) fn store_mode() -> SettingType<StoreMode> {
    choice(MODES, &[])
}

pub(super) fn burst() -> SettingType<u32> {
    integer(1..=u32::MAX)
}

pub(super) fn slices() -> SettingType<u16> {
    integer(1..=MOST_SLICES)
}

pub(super) fn queue() -> SettingType<u32> {
    integer(0..=LONGEST_QUEUE)
}

pub(super) fn ratio() -> SettingType<f64> {
    let [least, most] = RATIOS;
    number(least, most)
}

/// Reads the cost: a number, an expression, or a table that names a response header.
fn cost(s: &mut SectionReader<'_, '_>) -> Spanned<CostSettings> {
    let default = CostSettings::Fixed(1u32);
    let mut cost = s.value_or_table("cost", number_or_expression(), default, |s| {
        let name = s.required("response_header", header_name(), "\"x-cost\"")?;
        Some(CostSettings::Header(name.value))
    });
    if let CostSettings::Expression(text) = &mut cost.value {
        *text = ExprText::written(Text::new(text.value.clone(), cost.span.clone()));
    }
    cost
}

/// Returns an expression whose span is not known yet.
fn unplaced(text: String) -> CostSettings {
    CostSettings::Expression(ExprText::written(Text::new(text, 0..0)))
}

fn number_or_expression() -> SettingType<CostSettings> {
    let (number, text) = (integer(1..=u32::MAX), filled());
    let shape = ValueSchema::Either(vec![number.shape(), text.shape()]);
    SettingType::new(shape, move |value| match value {
        DeValue::Integer(_) => number.parse(value).map(CostSettings::Fixed),
        DeValue::String(_) => text.parse(value).map(unplaced),
        other => Err(kind("an integer, an expression or a table", other)
            .help("for example `cost = 5` or `cost = { response_header = \"x-cost\" }`")),
    })
    .shown(|cost| match cost {
        CostSettings::Fixed(units) => ExampleValue::Integer(i64::from(*units)),
        CostSettings::Expression(text) => ExampleValue::Text(text.value.clone()),
        CostSettings::Header(name) => ExampleValue::Text(name.to_string()),
    })
}

/// Reads the candidate. `algorithm` is that of the rule; `None` if it is unknown. `has_ratio` is whether the rule has a
/// ratio.
pub(super) fn candidate(
    s: &mut SectionReader<'_, '_>,
    (algorithm_of_rule, has_ratio): (Option<Algorithm>, bool),
) -> CandidateSettings {
    let candidate = CandidateSettings {
        span: s.span(),
        algorithm: s.optional("algorithm", algorithm()),
        limit: s.optional("limit", integer(1..=u32::MAX)),
        period: s.optional("period", period()),
        burst: s.optional("burst", burst()),
        slices: s.optional("slices", slices()),
        queue: s.optional("queue", queue()),
        ratio: s.optional("ratio", ratio()),
    };
    let own = candidate.algorithm.as_ref().map(|a| a.value);
    let counted = if s.has("algorithm") {
        own
    } else {
        algorithm_of_rule
    };
    if let Some(algorithm) = counted {
        rule_checks::by_algorithm(s, algorithm);
    }
    rule_checks::candidate_ratio(s, &candidate, (counted, has_ratio));
    candidate
}
