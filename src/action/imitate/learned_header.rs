//! One header of the imitated responses: its repeatable values, or the pattern for new ones. Secrets are neither
//! kept nor repeated.

use std::time::Duration;

use http::header::{self, DATE};
use http::{HeaderName, HeaderValue};

use super::learned_responses::SeenClients;
use super::pattern::ValuePattern;
use super::{Dice, HeadSent, SendSchedule};
use crate::action::RequestInfo;
use crate::clock::{HttpDate, Timestamp};

/// A value is repeated only if at least this many responses had it.
pub(super) const ENOUGH: u32 = 50;
/// The maximum number of values kept for repetition.
const VALUES: usize = 3;
/// The maximum length of a kept value, in bytes.
const LONGEST: usize = 2048;
/// After this many responses, the counts are halved.
const HALF_LIFE: u32 = 1024;
/// A date that stays unchanged for longer than this does not follow the time.
const LASTING: Duration = Duration::from_secs(10);
/// A value is outdated if it was missing in this many responses that were expected to have it.
const MISSED: f64 = 14.0;
/// Parts of header names that indicate a secret.
const SECRET_PARTS: &str = "token session auth csrf xsrf secret cookie credential passw jwt signature \
     nonce otp bearer saml apikey";
/// Words in header names that indicate a secret.
const SECRET_WORDS: &str = "key sid sess sig pin";
/// Headers with long public values: hashes that every client receives.
const PUBLIC: &str = "etag content-security-policy content-security-policy-report-only \
     permissions-policy link nel report-to reporting-endpoints accept-ch x-version x-revision \
     x-commit x-build x-release";
/// A run of letters and digits of at least this length may be a secret.
const TOKEN_LENGTH: usize = 20;

/// What is learned about one header.
#[derive(Debug)]
pub(super) struct LearnedHeader {
    pub(super) name: HeaderName,
    /// Whether the value is never read.
    private: bool,
    values: Vec<RepeatedValue>,
    pattern: ValuePattern,
    /// Whether the last value was a date.
    is_date: bool,
    /// Whether every value so far was the request's id.
    echoes_id: bool,
    /// Whether every value so far was that of the corresponding request header.
    echoes_header: bool,
    /// The number of responses, halved regularly.
    seen: u32,
    /// The number of responses with a value that was not kept, halved regularly.
    changes: u32,
    /// The number of the last response.
    at: u32,
}

/// A value that may be repeated.
#[derive(Debug)]
struct RepeatedValue {
    value: HeaderValue,
    /// The number of responses that had it, halved regularly.
    count: u32,
    clients: SeenClients,
    /// Whether it was seen often enough to be repeated.
    proven: bool,
    first: Timestamp,
    /// The number of the last response that had it.
    last: u32,
}

// === impl LearnedHeader ===

impl LearnedHeader {
    pub(super) fn new(name: &HeaderName) -> Self {
        Self {
            private: is_private(name),
            name: name.clone(),
            values: Vec::new(),
            pattern: ValuePattern::default(),
            is_date: false,
            echoes_id: true,
            echoes_header: true,
            seen: 0,
            changes: 0,
            at: 0,
        }
    }

    /// Learns a value; `room` is the free capacity for values in bytes. Returns whether the value is unexpected.
    pub(super) fn learn(&mut self, value: &HeaderValue, sent: &HeadSent, room: usize) -> bool {
        if self.private {
            return false;
        }
        self.age();
        let own = sent.request_headers.get(echoed(&self.name));
        self.echoes_header &= own == Some(value);
        self.echoes_id &= value.as_bytes() == sent.request_id.as_bytes();
        let secret = is_like_a_token(&self.name, value.as_bytes());
        let was_steady = self.steady().is_some();
        self.is_date = HttpDate::parse(value.as_bytes()).is_some();
        let known = self.repeat(value, sent);
        if !known {
            self.changes = self.changes.saturating_add(1);
            if !secret && value.len() <= LONGEST.min(room) {
                self.keep(value, sent);
            }
        }
        self.pattern.learn(value.as_bytes(), secret, sent.when);
        self.pattern.clients.add(sent.client);
        let (at, seen, before) = (self.at, self.seen, self.values.len());
        self.values.retain(|value| !value.has_changed(at, seen));
        (was_steady && !known) || self.values.len() < before
    }

    /// Returns a value for a response. `None` if none may be repeated and none can be generated.
    pub(super) fn value(
        &self,
        request: &RequestInfo<'_>,
        when: SendSchedule,
        dice: &mut Dice,
    ) -> Option<HeaderValue> {
        if self.private {
            return None;
        }
        // A constant is no echo, even if every request had this value.
        if let Some(steady) = self.steady() {
            return Some(steady.clone());
        }
        let own = request.headers.get(echoed(&self.name));
        if let Some(own) = own.filter(|_| self.echoes_header) {
            return Some(own.clone());
        }
        if self.echoes_id {
            return HeaderValue::try_from(request.id).ok();
        }
        let proven: u32 = self.proven().map(|value| value.count).sum();
        let mostly = f64::from(proven) >= 0.9 * f64::from(self.seen);
        if !mostly && let Some(fresh) = self.fresh(when, dice) {
            return Some(fresh);
        }
        let mut at = dice.below(proven as usize) as u32;
        let drawn = self.proven().find(|value| {
            let found = at < value.count;
            at = at.saturating_sub(value.count);
            found
        });
        drawn.map(|value| value.value.clone())
    }

    /// Returns the constant value. `None` if the header has several.
    pub(super) fn steady(&self) -> Option<&HeaderValue> {
        let most = self.proven().max_by_key(|value| value.count)?;
        (f64::from(most.count) >= 0.98 * f64::from(self.seen)).then_some(&most.value)
    }

    /// Returns the size of the kept values, in bytes.
    pub(super) fn value_bytes(&self) -> usize {
        self.values.iter().map(|value| value.value.len()).sum()
    }

    fn proven(&self) -> impl Iterator<Item = &RepeatedValue> {
        self.values.iter().filter(|value| value.proven)
    }

    /// Generates a value. `None` if values change rarely: a generated one would change too often.
    fn fresh(&self, when: SendSchedule, dice: &mut Dice) -> Option<HeaderValue> {
        let pattern = &self.pattern;
        let known = pattern.seen >= ENOUGH && pattern.clients.are_enough();
        let varies = u64::from(self.changes) * 5 >= u64::from(self.seen);
        if !known || !(varies || self.is_date) {
            return None;
        }
        HeaderValue::try_from(pattern.make(when, dice)?).ok()
    }

    fn age(&mut self) {
        self.at = self.at.wrapping_add(1);
        self.seen += 1;
        if self.seen >= HALF_LIFE {
            self.seen /= 2;
            self.changes /= 2;
            for value in &mut self.values {
                value.count /= 2;
            }
        }
    }

    /// Counts a value that is kept. Returns `false` if it is not.
    fn repeat(&mut self, value: &HeaderValue, sent: &HeadSent) -> bool {
        let is_date = self.is_date;
        let Some(known) = self.values.iter_mut().find(|known| known.value == value) else {
            return false;
        };
        known.last = self.at;
        known.count += 1;
        known.clients.add(sent.client);
        known.proven |= known.count >= ENOUGH
            && known.clients.are_enough()
            && (!is_date || sent.when.now.since(known.first) >= LASTING);
        true
    }

    /// Keeps a value; replaces the rarest one if there are too many.
    fn keep(&mut self, value: &HeaderValue, sent: &HeadSent) {
        if self.name == DATE {
            return;
        }
        if self.values.len() >= VALUES {
            let least = self.values.iter_mut().min_by_key(|value| value.count);
            let Some(least) = least.filter(|value| !value.proven) else {
                return;
            };
            least.count = least.count.saturating_sub(1);
            if least.count > 0 {
                return;
            }
            self.values.retain(|value| value.count > 0);
        }
        let mut clients = SeenClients::default();
        clients.add(sent.client);
        // Copy the value, because it shares the memory of its whole head.
        let copy = HeaderValue::from_bytes(value.as_bytes());
        self.values.extend(copy.ok().map(|value| RepeatedValue {
            value,
            count: 1,
            clients,
            proven: false,
            first: sent.when.now,
            last: self.at,
        }));
    }
}

// === impl RepeatedValue ===

impl RepeatedValue {
    /// Returns whether the value has been missing for too long.
    fn has_changed(&self, at: u32, seen: u32) -> bool {
        let expected = f64::from(self.count) / f64::from(seen.max(1));
        self.proven && f64::from(at.wrapping_sub(self.last)) * expected > MISSED
    }
}

/// Returns the request header that this response header may echo.
fn echoed(name: &HeaderName) -> &HeaderName {
    match *name {
        header::ACCESS_CONTROL_ALLOW_ORIGIN => &header::ORIGIN,
        _ => name,
    }
}

/// Returns whether the value of a header is never read.
fn is_private(name: &HeaderName) -> bool {
    use header::{CONTENT_LOCATION, LOCATION, REFRESH, SET_COOKIE};
    let text = name.as_str();
    let mut words = text.split(|c: char| !c.is_ascii_alphanumeric());
    matches!(*name, SET_COOKIE | LOCATION | CONTENT_LOCATION | REFRESH)
        || SECRET_PARTS.split(' ').any(|part| text.contains(part))
        || words.any(|word| SECRET_WORDS.split(' ').any(|secret| secret == word))
}

/// Returns whether a value may be a token, which is neither kept nor repeated.
fn is_like_a_token(name: &HeaderName, value: &[u8]) -> bool {
    let mut runs = value.split(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_');
    let is_public = || PUBLIC.split(' ').any(|public| name == public);
    is_jwt(value) || (runs.any(is_mixed) && !is_public())
}

/// Detects a JSON Web Token (RFC 7519): `eyJ…` is `{"` in base64.
fn is_jwt(value: &[u8]) -> bool {
    value.windows(3).any(|w| w == b"eyJ") && value.iter().filter(|b| **b == b'.').count() >= 2
}

/// Returns whether a long run may be a secret: words are letters, almost all in one case.
fn is_mixed(run: &[u8]) -> bool {
    let count = |is: fn(&u8) -> bool| run.iter().filter(|byte| is(byte)).count();
    let (upper, lower) = (count(u8::is_ascii_uppercase), count(u8::is_ascii_lowercase));
    run.len() >= TOKEN_LENGTH && (count(u8::is_ascii_digit) >= 2 || upper.min(lower) >= 4)
}
