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

/// `;r=`, `;t=`, their numbers and `, `.
const LONGEST_STATE: usize = 3 + 20 + 3 + 20 + 2;

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
    let standard = || told().filter(|(names, _)| names.is_standard());
    // A rule's name is [A-Za-z0-9_-], so both values are always valid.
    if let Some(policy) = policies(standard().map(|(names, _)| names)) {
        headers.insert(POLICY, policy);
    }
    if let Some(states) = states(standard()) {
        headers.insert(RATELIMIT, passing(states));
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

/// `"name";q=5;w=60, …`; `None`: of no rule.
fn policies<'n>(told: impl Iterator<Item = &'n Names> + Clone) -> Option<HeaderValue> {
    let mut rest = told.clone();
    let first = &rest.next()?.policy;
    let length: usize = rest.clone().map(|names| names.policy.len() + 2).sum();
    if length == 0 {
        return Some(first.clone());
    }
    let mut list = Vec::with_capacity(first.len() + length);
    list.extend_from_slice(first.as_bytes());
    for names in rest {
        list.extend_from_slice(b", ");
        list.extend_from_slice(names.policy.as_bytes());
    }
    HeaderValue::from_maybe_shared(Bytes::from(list)).ok()
}

/// `"name";r=4;t=60, …`, in no more memory than it takes; `None`: of no rule.
fn states<'n>(told: impl Iterator<Item = (&'n Names, &'n Quota)> + Clone) -> Option<HeaderValue> {
    let lengths = told.clone().map(|(names, _)| names.quoted.len());
    let most: usize = lengths.map(|length| length + LONGEST_STATE).sum();
    let mut list = Vec::with_capacity(most);
    let mut digits = itoa::Buffer::new();
    for (names, quota) in told {
        if !list.is_empty() {
            list.extend_from_slice(b", ");
        }
        list.extend_from_slice(names.quoted.as_bytes());
        list.extend_from_slice(b";r=");
        list.extend_from_slice(digits.format(quota.remaining).as_bytes());
        list.extend_from_slice(b";t=");
        list.extend_from_slice(digits.format(quota.reset).as_bytes());
    }
    (!list.is_empty()).then(|| HeaderValue::from_bytes(&list).ok())?
}

/// A value that is another in nearly every answer: HTTP/2 is to keep it out of its table, where it
/// would take the place of what repeats (RFC 7541, section 6.2.3).
fn passing(mut value: HeaderValue) -> HeaderValue {
    value.set_sensitive(true);
    value
}
