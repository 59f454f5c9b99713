//! The quota headers.
//!
//! `RateLimit-Policy` and `RateLimit` are Structured Fields lists (draft-ietf-httpapi-ratelimit-headers) with
//! one member per rule, in rule order.

use std::mem::take;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::decision::{QuotaStatus, RuleIndex};
use crate::limit::Limiter;
use crate::rules::key_buffer::KeyBuffer;
use crate::rules::{HeaderStyle, RuleSet};

const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const RATELIMIT: HeaderName = HeaderName::from_static("ratelimit");
const LEGACY_LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const LEGACY_REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const LEGACY_RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");

/// The constant parts of the headers, built once per configuration.
pub struct QuotaNames(Vec<Option<QuotaHeaderName>>);

struct QuotaHeaderName {
    /// `"name"`
    quoted: String,
    /// `"name";q=5;w=60`; without `w` for `concurrency`.
    policy: HeaderValue,
    limit: u64,
    style: HeaderStyle,
}

/// The values of the standard headers while they are built.
#[derive(Default)]
struct QuotaHeaderValues<'n> {
    first: Option<&'n HeaderValue>,
    /// `"name";q=5;w=60, …`; empty while there is only the first.
    policies: Vec<u8>,
    /// `"name";r=4;t=60, …`
    states: KeyBuffer,
}

// === impl QuotaNames ===

impl QuotaNames {
    /// Builds the parts for `rules`.
    pub fn of(rules: &RuleSet) -> Self {
        let names = rules.iter().map(|(_, rule)| {
            let limiter = rule.limiter.filter(|_| rule.sends_quota_headers())?;
            QuotaHeaderName::new(&rule.name, &limiter, rule.headers)
        });
        Self(names.collect())
    }

    fn get(&self, rule: RuleIndex) -> Option<&QuotaHeaderName> {
        self.0.get(usize::from(rule.0))?.as_ref()
    }
}

// === impl QuotaHeaderName ===

impl QuotaHeaderName {
    /// Returns `None` if the name is no valid header value. A rule's name is `[A-Za-z0-9_-]`, so it always is.
    fn new(name: &str, limiter: &Limiter, style: HeaderStyle) -> Option<Self> {
        // A `concurrency` limit has no window.
        let window = if limiter.algorithm.holds_leases() {
            String::new()
        } else {
            format!(";w={}", limiter.period.as_millis().div_ceil(1000))
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

/// Writes the headers for `quotas` and replaces those of the origin server.
pub fn add_quota_headers(names: &QuotaNames, quotas: &[QuotaStatus], headers: &mut HeaderMap) {
    let mut standard = QuotaHeaderValues::default();
    let mut nearest: Option<(&QuotaHeaderName, &QuotaStatus)> = None;
    for quota in quotas {
        let Some(names) = names.get(quota.rule) else {
            continue;
        };
        if names.is_standard() {
            standard.add(names, quota);
        }
        let is_nearer = |(_, other): (_, &QuotaStatus)| quota.remaining < other.remaining;
        if names.is_legacy() && nearest.is_none_or(is_nearer) {
            nearest = Some((names, quota));
        }
    }
    standard.add_quota(headers);
    if let Some((names, quota)) = nearest {
        headers.insert(LEGACY_LIMIT, HeaderValue::from(names.limit));
        headers.insert(LEGACY_REMAINING, passing(quota.remaining.into()));
        headers.insert(LEGACY_RESET, passing(quota.reset.into()));
    }
}

// === impl QuotaHeaderValues ===

impl<'n> QuotaHeaderValues<'n> {
    fn add(&mut self, names: &'n QuotaHeaderName, quota: &QuotaStatus) {
        match self.first {
            None => self.first = Some(&names.policy),
            Some(first) => self.add_policy(first, &names.policy),
        }
        if !self.states.is_empty() {
            self.states.extend_from_slice(b", ");
        }
        let mut digits = itoa::Buffer::new();
        self.states.extend_from_slice(names.quoted.as_bytes());
        self.states.extend_from_slice(b";r=");
        let remaining = digits.format(quota.remaining);
        self.states.extend_from_slice(remaining.as_bytes());
        self.states.extend_from_slice(b";t=");
        let reset = digits.format(quota.reset);
        self.states.extend_from_slice(reset.as_bytes());
    }

    #[inline(never)]
    fn add_policy(&mut self, first: &HeaderValue, policy: &HeaderValue) {
        if self.policies.is_empty() {
            self.policies.extend_from_slice(first.as_bytes());
        }
        self.policies.extend_from_slice(b", ");
        self.policies.extend_from_slice(policy.as_bytes());
    }

    /// A rule's name is `[A-Za-z0-9_-]`, so both values are always valid.
    fn add_quota(&mut self, headers: &mut HeaderMap) {
        let Some(first) = self.first else {
            return;
        };
        let policy = if self.policies.is_empty() {
            Ok(first.clone())
        } else {
            HeaderValue::from_maybe_shared(Bytes::from(take(&mut self.policies)))
        };
        if let Ok(policy) = policy {
            headers.insert(POLICY, policy);
        }
        if let Ok(states) = HeaderValue::from_bytes(&self.states) {
            headers.insert(RATELIMIT, passing(states));
        }
    }
}

/// Marks a value that differs in nearly every response: HTTP/2 must not add it to its dynamic table, where it
/// would evict values that repeat (RFC 7541, section 6.2.3).
fn passing(mut value: HeaderValue) -> HeaderValue {
    value.set_sensitive(true);
    value
}
