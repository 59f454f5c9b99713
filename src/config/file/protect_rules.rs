//! `protect.rules`: overrides of the rules of a preset.

use std::ops::Range;
use std::time::Duration;

use super::rule::{self, CandidateSettings};
use crate::config::scalar::{boolean, integer};
use crate::config::section::SectionReader;
use crate::config::{Spanned, Text, schema};
use crate::decision::Action;
use crate::rules::{OnStoreFailure, StoreMode};

/// The overridden settings of one rule. `None` and an empty list keep those of the preset.
#[derive(Clone, Debug)]
pub struct RuleOverride {
    /// The name of the rule within the preset.
    pub name: Text,
    /// The span of the whole table.
    pub span: Range<usize>,
    /// The units allowed per period.
    pub limit: Option<Spanned<u32>>,
    /// The window.
    pub period: Option<Spanned<Duration>>,
    /// The duration of a ban; zero throttles.
    pub duration: Option<Spanned<Duration>>,
    /// The ban durations for the first offence, the second and so on.
    pub escalate: Vec<Spanned<Duration>>,
    /// The share of the total that the count must also exceed.
    pub ratio: Option<Spanned<f64>>,
    /// The action.
    pub action: Option<Spanned<Action>>,
    /// The name of one of `[responses]`.
    pub response: Option<Text>,
    /// Whether the rule only decides, logs and counts.
    pub dry_run: Option<Spanned<bool>>,
    /// Whether the rule is active.
    pub enabled: Option<Spanned<bool>>,
    /// The maximum deviation of a key's limit.
    pub jitter: Option<Spanned<f64>>,
    /// A second limiter that is evaluated but never enforced.
    pub candidate: Option<CandidateSettings>,
    /// What the rule does during a store outage.
    pub on_store_failure: Option<Spanned<OnStoreFailure>>,
    /// How the rule shares its counters.
    pub store_mode: Option<Spanned<StoreMode>>,
}

/// Settings of a rule that a preset fixes.
const FIXED: &[&str] = &[
    "name",
    "count",
    "mitigate",
    "total",
    "key",
    "missing",
    "algorithm",
    "burst",
    "slices",
    "queue",
    "cost",
    "headers",
    "max_delay",
    "upstream",
];

pub(super) fn overrides(s: &mut SectionReader<'_, '_>) -> Vec<RuleOverride> {
    let mut overrides = Vec::new();
    for (name, raw) in s.entries(schema::NAME) {
        overrides.extend(s.entry_table(raw, |s| one(s, name)));
    }
    overrides
}

fn one(s: &mut SectionReader<'_, '_>, name: Text) -> RuleOverride {
    let help = "paste the output of `lockgate rules --expanded` instead of the preset, and edit it";
    s.refuse(FIXED, "is fixed in a preset", help);
    s.apart("a rule", ["duration", "escalate"]);
    RuleOverride {
        name,
        span: s.span(),
        limit: s.optional("limit", integer(1..=u32::MAX)),
        period: s.optional("period", rule::period()),
        duration: s.optional("duration", rule::ban()),
        escalate: rule::escalate(s),
        ratio: s.optional("ratio", rule::ratio()),
        action: s.optional("action", rule::action()),
        response: s.optional("response", rule::response()),
        dry_run: s.optional("dry_run", boolean()),
        enabled: s.optional("enabled", boolean()),
        jitter: s.optional("jitter", rule::jitter()),
        candidate: s.table("candidate", candidate),
        on_store_failure: s.optional("on_store_failure", rule::on_store_failure()),
        store_mode: s.optional("store_mode", rule::store_mode()),
    }
}

/// Reads a candidate. Whether it suits the rule is checked when the preset is expanded.
fn candidate(s: &mut SectionReader<'_, '_>) -> CandidateSettings {
    let has_ratio = s.has("ratio");
    rule::candidate(s, (None, has_ratio))
}
