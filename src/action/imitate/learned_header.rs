//! One header of a response: the values that may be repeated, or how a fresh one is made. Secrets
//! are neither kept nor repeated.

use std::time::Duration;

use http::header::{self, DATE};
use http::{HeaderName, HeaderValue};

use super::learned_responses::SeenClients;
use super::pattern::ValuePattern;
use super::{Dice, HeadSent, SendSchedule};
use crate::action::RequestInfo;
use crate::clock::{HttpDate, Timestamp};

/// A value is repeated only if it was the same in this many responses.
pub(super) const ENOUGH: u32 = 50;
/// Values that are kept because they may be repeated.
const VALUES: usize = 3;
/// The longest value that is kept.
const LONGEST: usize = 2048;
/// After this many responses, what was seen counts half.
const HALF_LIFE: u32 = 1024;
/// A date that stays the same for longer than this does not follow the time.
const LASTING: Duration = Duration::from_secs(10);
/// A value has changed if it was missing in this many responses that were expected to have it.
const MISSED: f64 = 14.0;
/// Parts of the names of secrets.
const SECRET_PARTS: &str = "token session auth csrf xsrf secret cookie credential passw jwt signature \
     nonce otp bearer saml apikey";
/// Words in the names of secrets.
const SECRET_WORDS: &str = "key sid sess sig pin";
/// Names whose long values are public: hashes of what every client gets.
const PUBLIC: &str = "etag content-security-policy content-security-policy-report-only \
     permissions-policy link nel report-to reporting-endpoints accept-ch x-version x-revision \
     x-commit x-build x-release";
/// A run of letters and digits of this length may be a secret.
const TOKEN_LENGTH: usize = 20;

/// One header of a response.
#[derive(Debug)]
pub(super) struct LearnedHeader {
    pub(super) name: HeaderName,
    /// The value is never looked at.
    private: bool,
    values: Vec<RepeatedValue>,
    pattern: ValuePattern,
    /// The last value was a date.
    is_date: bool,
    /// Every value so far was the id of the request.
    echoes_id: bool,
    /// Every value so far was that of the request's header of the same meaning.
    echoes_header: bool,
    /// Responses, of which older ones count less.
    seen: u32,
    /// Responses with a value that was not kept, of which older ones count less.
    changes: u32,
    /// The number of the last response.
    at: u32,
}

/// A value that may be repeated.
#[derive(Debug)]
struct RepeatedValue {
    value: HeaderValue,
    /// Responses that had it, of which older ones count less.
    count: u32,
    clients: SeenClients,
    /// It was seen often enough to be repeated.
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

    /// Learns a value; `room` is how many bytes may still be kept. Returns whether it is a surprise.
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

    /// A value for a response. `None` if none may be repeated and none can be made.
    pub(super) fn value(
        &self,
        asked: &RequestInfo<'_>,
        when: SendSchedule,
        dice: &mut Dice,
    ) -> Option<HeaderValue> {
        if self.private {
            return None;
        }
        // A constant is no echo, even if every request had the same value.
        if let Some(steady) = self.steady() {
            return Some(steady.clone());
        }
        let own = asked.headers.get(echoed(&self.name));
        if let Some(own) = own.filter(|_| self.echoes_header) {
            return Some(own.clone());
        }
        if self.echoes_id {
            return HeaderValue::try_from(asked.id).ok();
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

    /// The value, if there is only one.
    pub(super) fn steady(&self) -> Option<&HeaderValue> {
        let most = self.proven().max_by_key(|value| value.count)?;
        (f64::from(most.count) >= 0.98 * f64::from(self.seen)).then_some(&most.value)
    }

    /// Bytes of the values that are kept.
    pub(super) fn value_bytes(&self) -> usize {
        self.values.iter().map(|value| value.value.len()).sum()
    }

    fn proven(&self) -> impl Iterator<Item = &RepeatedValue> {
        self.values.iter().filter(|value| value.proven)
    }

    /// A value that varies is made; one that seldom changes is not, as it would be made too often.
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

    /// Keeps a value, instead of the rarest one if there are too many.
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
        // A copy: the value shares the memory of its whole head.
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
    /// Whether it should have been seen again long ago.
    fn has_changed(&self, at: u32, seen: u32) -> bool {
        let expected = f64::from(self.count) / f64::from(seen.max(1));
        self.proven && f64::from(at.wrapping_sub(self.last)) * expected > MISSED
    }
}

/// The request header that this response header may repeat.
fn echoed(name: &HeaderName) -> &HeaderName {
    match *name {
        header::ACCESS_CONTROL_ALLOW_ORIGIN => &header::ORIGIN,
        _ => name,
    }
}

/// Whether the value of a header is never looked at.
fn is_private(name: &HeaderName) -> bool {
    use header::{CONTENT_LOCATION, LOCATION, REFRESH, SET_COOKIE};
    let text = name.as_str();
    let mut words = text.split(|c: char| !c.is_ascii_alphanumeric());
    matches!(*name, SET_COOKIE | LOCATION | CONTENT_LOCATION | REFRESH)
        || SECRET_PARTS.split(' ').any(|part| text.contains(part))
        || words.any(|word| SECRET_WORDS.split(' ').any(|secret| secret == word))
}

/// Whether a value may be a token, so that it is neither kept nor repeated.
fn is_like_a_token(name: &HeaderName, value: &[u8]) -> bool {
    let mut runs = value.split(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_');
    let is_public = || PUBLIC.split(' ').any(|public| name == public);
    is_jwt(value) || (runs.any(is_mixed) && !is_public())
}

/// `eyJ…` is `{"` in base64: the head of a JSON Web Token (RFC 7519).
fn is_jwt(value: &[u8]) -> bool {
    value.windows(3).any(|w| w == b"eyJ") && value.iter().filter(|b| **b == b'.').count() >= 2
}

/// Words are letters, almost all in one case. A long run of anything else may be a secret.
fn is_mixed(run: &[u8]) -> bool {
    let count = |is: fn(&u8) -> bool| run.iter().filter(|byte| is(byte)).count();
    let (upper, lower) = (count(u8::is_ascii_uppercase), count(u8::is_ascii_lowercase));
    run.len() >= TOKEN_LENGTH && (count(u8::is_ascii_digit) >= 2 || upper.min(lower) >= 4)
}
