//! Rate-limit headers: what a client is told about its quotas.
//!
//! `RateLimit-Policy` and `RateLimit` are Structured Fields lists
//! (draft-ietf-httpapi-ratelimit-headers), one member a rule, in rule order.

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::decision::{Quota, RuleIndex};
use crate::limit::{Algorithm, Limiter};
use crate::rules::{HeaderStyle, RuleSet};

const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const RATELIMIT: HeaderName = HeaderName::from_static("ratelimit");
const LEGACY_LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const LEGACY_REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const LEGACY_RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");

/// The parts of the headers that do not change, made once a configuration.
pub struct QuotaNames(Vec<Option<Names>>);

struct Names {
    /// `"name"`
    quoted: String,
    /// `"name";q=5;w=60`; `concurrency`: without `w`
    policy: String,
    limit: u64,
    style: HeaderStyle,
}

// === impl QuotaNames ===

impl QuotaNames {
    /// The names of `rules`.
    pub fn of(rules: &RuleSet) -> Self {
        let names = rules.iter().map(|(_, rule)| {
            let limiter = rule.limiter.filter(|_| rule.tells())?;
            Some(Names::new(&rule.name, &limiter, rule.headers))
        });
        Self(names.collect())
    }

    fn get(&self, rule: RuleIndex) -> Option<&Names> {
        self.0.get(usize::from(rule.0))?.as_ref()
    }
}

// === impl Names ===

impl Names {
    fn new(name: &str, limiter: &Limiter, style: HeaderStyle) -> Self {
        // Who counts what is in flight has no window.
        let window = match limiter.algorithm {
            Algorithm::Concurrency => String::new(),
            _ => format!(";w={}", limiter.period.as_millis().div_ceil(1000)),
        };
        Self {
            quoted: format!("\"{name}\""),
            policy: format!("\"{name}\";q={}{window}", limiter.limit),
            limit: limiter.limit,
            style,
        }
    }

    fn is_standard(&self) -> bool {
        matches!(self.style, HeaderStyle::Standard | HeaderStyle::Both)
    }

    fn is_legacy(&self) -> bool {
        matches!(self.style, HeaderStyle::Legacy | HeaderStyle::Both)
    }
}

/// Writes the headers for `quotas`, in place of any the origin sent.
pub fn tell_quotas(names: &QuotaNames, quotas: &[Quota], headers: &mut HeaderMap) {
    let told = || {
        quotas
            .iter()
            .filter_map(|quota| Some((names.get(quota.rule)?, quota)))
    };
    let mut policy = String::with_capacity(64 * quotas.len());
    let mut state = String::with_capacity(64 * quotas.len());
    for (names, quota) in told().filter(|(names, _)| names.is_standard()) {
        if !policy.is_empty() {
            policy.push_str(", ");
            state.push_str(", ");
        }
        policy.push_str(&names.policy);
        push_state(&mut state, &names.quoted, quota);
    }
    insert(headers, POLICY, policy);
    insert(headers, RATELIMIT, state);
    let nearest = told()
        .filter(|(names, _)| names.is_legacy())
        .min_by_key(|(_, quota)| quota.remaining);
    if let Some((names, quota)) = nearest {
        headers.insert(LEGACY_LIMIT, HeaderValue::from(names.limit));
        headers.insert(LEGACY_REMAINING, HeaderValue::from(quota.remaining));
        headers.insert(LEGACY_RESET, HeaderValue::from(quota.reset));
    }
}

fn push_state(state: &mut String, quoted: &str, quota: &Quota) {
    let mut digits = itoa::Buffer::new();
    state.push_str(quoted);
    state.push_str(";r=");
    state.push_str(digits.format(quota.remaining));
    state.push_str(";t=");
    state.push_str(digits.format(quota.reset));
}

fn insert(headers: &mut HeaderMap, name: HeaderName, value: String) {
    if value.is_empty() {
        return;
    }
    // A rule's name is [A-Za-z0-9_-], so the value is always valid.
    if let Ok(value) = HeaderValue::from_maybe_shared(bytes::Bytes::from(value)) {
        headers.insert(name, value);
    }
}
