//! One field of an answer: the values that may be repeated, or how a fresh one is made.

use std::time::Duration;

use http::header::DATE;
use http::{HeaderName, HeaderValue};

use super::clients::Clients;
use super::dice::Dice;
use super::pattern::Pattern;
use super::private::{is_like_a_token, is_private};
use super::{Seen, When};
use crate::action::Asked;
use crate::clock::{HttpDate, Timestamp};

/// A value is repeated only if it was the same in this many answers.
pub(super) const ENOUGH: u32 = 50;
/// Values that may turn out to be repeated.
const VALUES: usize = 3;
/// The longest value that is kept.
const LONGEST: usize = 2048;
/// After so many answers, what was seen counts half.
const HALF_LIFE: u32 = 1024;
/// A date that is the same for longer than this does not go with the time.
const LASTING: Duration = Duration::from_secs(10);
/// A value that misses the answers in which it was expected this many times has changed.
const MISSED: f64 = 14.0;

/// One field of an answer.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: HeaderName,
    private: bool,
    values: Vec<Value>,
    /// Once it has changed.
    pattern: Option<Box<Pattern>>,
    /// Its values tell the time.
    timely: bool,
    /// It was what the request's own field of the same meaning said, or the request's id.
    echo: Echo,
    /// Answers, of which older ones count less.
    seen: u32,
    /// Answers in which it was not what it was before.
    changes: u32,
    /// Answers at all.
    at: u32,
}

/// A value that may turn out to be repeated.
#[derive(Debug)]
struct Value {
    value: HeaderValue,
    /// Answers that had it, of which older ones count less.
    count: u32,
    clients: Clients,
    /// It may be repeated.
    proven: bool,
    /// When it was first seen.
    first: Timestamp,
    /// The last answer that had it.
    last: u32,
}

/// What every value so far was, of the request.
#[derive(Clone, Copy, Debug)]
struct Echo {
    id: bool,
    own: bool,
}

// === impl Field ===

impl Field {
    pub(super) fn new(name: &HeaderName) -> Self {
        Self {
            private: is_private(name),
            name: name.clone(),
            values: Vec::new(),
            pattern: None,
            timely: false,
            echo: Echo {
                id: true,
                own: true,
            },
            seen: 0,
            changes: 0,
            at: 0,
        }
    }

    /// Takes in a value; `room` is how many bytes may still be kept. `true`: it is a surprise.
    pub(super) fn learn(&mut self, value: &HeaderValue, seen: &Seen<'_>, room: usize) -> bool {
        if self.private {
            return false;
        }
        self.age();
        self.echo.learn(&self.name, value, seen.asked);
        let secret = is_like_a_token(&self.name, value.as_bytes());
        let was_steady = self.steady().is_some();
        self.timely = HttpDate::parse(value.as_bytes()).is_some();
        let known = self.repeat(value, seen);
        if !known {
            self.changes = self.changes.saturating_add(1);
            if !secret && value.len() <= LONGEST.min(room) {
                self.keep(value, seen);
            }
        }
        // A pattern begins with the second value: most fields never need one.
        if self.changes > 1 || self.timely || secret {
            let mut pattern = self
                .pattern
                .take()
                .unwrap_or_else(|| self.begin(value, seen));
            pattern.learn(value.as_bytes(), secret, seen.when);
            pattern.clients.add(seen.client);
            self.pattern = Some(pattern);
        }
        let at = self.at;
        let (seen_so_far, before) = (f64::from(self.seen), self.values.len());
        self.values
            .retain(|value| !value.has_changed(at, seen_so_far));
        (was_steady && !known) || self.values.len() < before
    }

    /// A value for an answer; `None`: nothing may be repeated, and nobody knows how to make one.
    pub(super) fn value(
        &self,
        asked: &Asked<'_>,
        when: When,
        dice: &mut Dice,
    ) -> Option<HeaderValue> {
        if self.private {
            return None;
        }
        // What never changed is no echo, even if every request said the same.
        if let Some(steady) = self.steady() {
            return Some(steady.clone());
        }
        if let Some(echo) = self.echo.value(&self.name, asked) {
            return Some(echo);
        }
        let proven: u32 = self.proven().map(|value| value.count).sum();
        let mostly = f64::from(proven) >= 0.9 * f64::from(self.seen);
        if !mostly && let Some(fresh) = self.fresh(when, dice) {
            return Some(fresh);
        }
        let mut at = dice.below(proven as usize) as u32;
        let mut values = self.proven();
        let drawn = values.find(|value| {
            let found = at < value.count;
            at = at.saturating_sub(value.count);
            found
        });
        drawn.map(|value| value.value.clone())
    }

    /// The value, if there is but one.
    pub(super) fn steady(&self) -> Option<&HeaderValue> {
        let most = self.proven().max_by_key(|value| value.count)?;
        (f64::from(most.count) >= 0.98 * f64::from(self.seen)).then_some(&most.value)
    }

    /// What is kept of values.
    pub(super) fn kept(&self) -> usize {
        self.values.iter().map(|value| value.value.len()).sum()
    }

    /// What it takes of memory.
    pub(super) fn bytes(&self) -> usize {
        let values = self.values.iter().map(Value::bytes).sum::<usize>();
        let pattern = self.pattern.as_ref().map_or(0, |pattern| pattern.bytes());
        size_of::<Self>() + values + pattern
    }

    fn proven(&self) -> impl Iterator<Item = &Value> {
        self.values.iter().filter(|value| value.proven)
    }

    /// What varies is made afresh; what seldom changes is not, for it would be made too often.
    fn fresh(&self, when: When, dice: &mut Dice) -> Option<HeaderValue> {
        let pattern = self.pattern.as_ref()?;
        let known = pattern.seen >= ENOUGH && pattern.clients.are_enough();
        let varies = u64::from(self.changes) * 5 >= u64::from(self.seen);
        if !known || !(varies || self.timely) {
            return None;
        }
        HeaderValue::try_from(pattern.make(when, dice)?).ok()
    }

    /// A pattern that knows the value which was the only one before `value` came.
    fn begin(&self, value: &HeaderValue, seen: &Seen<'_>) -> Box<Pattern> {
        let mut pattern = Box::<Pattern>::default();
        if let Some(first) = self.values.iter().find(|known| known.value != value) {
            pattern.learn(first.value.as_bytes(), false, seen.when);
            pattern.seen = first.count;
            pattern.clients = first.clients.clone();
        }
        pattern
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

    /// Counts a value that is known; `false`: it is not.
    fn repeat(&mut self, value: &HeaderValue, seen: &Seen<'_>) -> bool {
        let lasting = match self.timely {
            true => LASTING,
            false => Duration::ZERO,
        };
        let Some(known) = self.values.iter_mut().find(|known| known.value == value) else {
            return false;
        };
        known.last = self.at;
        known.count += 1;
        known.clients.add(seen.client);
        known.proven |= known.count >= ENOUGH
            && known.clients.are_enough()
            && seen.when.now.since(known.first) >= lasting;
        true
    }

    /// Keeps a value, in the place of the least known one if there is no other.
    fn keep(&mut self, value: &HeaderValue, seen: &Seen<'_>) {
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
        self.values.extend(Value::new(value, seen, self.at));
    }
}

// === impl Value ===

impl Value {
    fn new(value: &HeaderValue, seen: &Seen<'_>, at: u32) -> Option<Self> {
        let mut clients = Clients::default();
        clients.add(seen.client);
        Some(Self {
            // A copy: the value that came shares the memory of its whole head.
            value: HeaderValue::from_bytes(value.as_bytes()).ok()?,
            count: 1,
            clients,
            proven: false,
            first: seen.when.now,
            last: at,
        })
    }

    /// Whether it should have come again long ago.
    fn has_changed(&self, at: u32, seen: f64) -> bool {
        let expected = f64::from(self.count) / seen.max(1.0);
        self.proven && f64::from(at.wrapping_sub(self.last)) * expected > MISSED
    }

    fn bytes(&self) -> usize {
        let clients = match &self.clients {
            Clients::Few(known) => known.capacity() * size_of::<u32>(),
            Clients::Enough => 0,
        };
        size_of::<Self>() + self.value.len() + clients
    }
}

// === impl Echo ===

impl Echo {
    fn learn(&mut self, name: &HeaderName, value: &HeaderValue, asked: &Asked<'_>) {
        self.id &= value.as_bytes() == asked.id.as_bytes();
        self.own &= asked.headers.get(source(name)) == Some(value);
    }

    fn value(self, name: &HeaderName, asked: &Asked<'_>) -> Option<HeaderValue> {
        let own = asked.headers.get(source(name)).filter(|_| self.own);
        own.cloned().or_else(|| {
            let id = HeaderValue::try_from(asked.id).ok();
            id.filter(|_| self.id)
        })
    }
}

/// The field of a request that this field of an answer may repeat.
fn source(name: &HeaderName) -> HeaderName {
    match *name {
        http::header::ACCESS_CONTROL_ALLOW_ORIGIN => http::header::ORIGIN,
        _ => name.clone(),
    }
}
