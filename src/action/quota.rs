//! Rate-limit headers: what a client is told about its quotas.
//!
//! `RateLimit-Policy` and `RateLimit` are Structured Fields lists
//! (draft-ietf-httpapi-ratelimit-headers), one member a rule, in rule order.

use bytes::Bytes;
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
    policy: HeaderValue,
    limit: u64,
    style: HeaderStyle,
}

// === impl QuotaNames ===

impl QuotaNames {
    /// The names of `rules`.
    pub fn of(rules: &RuleSet) -> Self {
        let names = rules.iter().map(|(_, rule)| {
            let limiter = rule.limiter.filter(|_| rule.tells())?;
            Names::new(&rule.name, &limiter, rule.headers)
        });
        Self(names.collect())
    }

    fn get(&self, rule: RuleIndex) -> Option<&Names> {
        self.0.get(usize::from(rule.0))?.as_ref()
    }
}

// === impl Names ===

impl Names {
    /// `None`: the name cannot stand in a header. A rule's is `[A-Za-z0-9_-]`, so it always can.
    fn new(name: &str, limiter: &Limiter, style: HeaderStyle) -> Option<Self> {
        // Who counts what is in flight has no window.
        let window = match limiter.algorithm {
            Algorithm::Concurrency => String::new(),
            _ => format!(";w={}", limiter.period.as_millis().div_ceil(1000)),
        };
        let policy = format!("\"{name}\";q={}{window}", limiter.limit);
        Some(Self {
            quoted: format!("\"{name}\""),
            policy: HeaderValue::try_from(policy).ok()?,
            limit: limiter.limit,
            style,
        })
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
    let mut standard = told().filter(|(names, _)| names.is_standard());
    if let Some((names, quota)) = standard.next() {
        let first = (names.policy.clone(), state(names, quota));
        let (policy, state) = standard.fold(first, join);
        headers.insert(POLICY, policy);
        insert_state(headers, state);
    }
    let nearest = told()
        .filter(|(names, _)| names.is_legacy())
        .min_by_key(|(_, quota)| quota.remaining);
    if let Some((names, quota)) = nearest {
        headers.insert(LEGACY_LIMIT, HeaderValue::from(names.limit));
        headers.insert(LEGACY_REMAINING, passing(quota.remaining.into()));
        headers.insert(LEGACY_RESET, passing(quota.reset.into()));
    }
}

/// Adds one more member to both lists.
fn join(
    (policy, told): (HeaderValue, String),
    (names, quota): (&Names, &Quota),
) -> (HeaderValue, String) {
    let both = [policy.as_bytes(), b", ", names.policy.as_bytes()].concat();
    let policy = HeaderValue::from_maybe_shared(Bytes::from(both)).unwrap_or(policy);
    (policy, told + ", " + &state(names, quota))
}

/// `"name";r=4;t=60`, in no more memory than it takes.
fn state(names: &Names, quota: &Quota) -> String {
    let (mut remaining, mut reset) = (itoa::Buffer::new(), itoa::Buffer::new());
    let (remaining, reset) = (remaining.format(quota.remaining), reset.format(quota.reset));
    let length = names.quoted.len() + remaining.len() + reset.len() + 6;
    let mut state = String::with_capacity(length);
    for part in [&names.quoted, ";r=", remaining, ";t=", reset] {
        state.push_str(part);
    }
    state
}

fn insert_state(headers: &mut HeaderMap, state: String) {
    // A rule's name is [A-Za-z0-9_-], so the value is always valid.
    if let Ok(value) = HeaderValue::from_maybe_shared(Bytes::from(state)) {
        headers.insert(RATELIMIT, passing(value));
    }
}

/// A value that is another in nearly every answer: HTTP/2 is to keep it out of its table, where it
/// would take the place of what repeats (RFC 7541, section 6.2.3).
fn passing(mut value: HeaderValue) -> HeaderValue {
    value.set_sensitive(true);
    value
}
