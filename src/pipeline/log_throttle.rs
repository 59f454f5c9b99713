//! How often the log reports that an upstream failed, so that requests that all fail do not fill it. It counts the
//! lines that are left out, and writes none itself.

use std::cell::RefCell;
use std::time::Duration;

use crate::clock::Timestamp;

/// The time between two lines that say the same.
const PAUSE: Duration = Duration::from_secs(1);
/// So many upstreams and reasons are remembered. A new one beyond them is said all the same, and
/// takes the place of the one that was said the longest ago.
const MOST: usize = 64;
/// So many lines may come of that within a pause: what is forgotten is new again.
const SURPLUS: u64 = 64;

/// What one core has said lately.
#[derive(Debug, Default)]
pub struct LogThrottle(RefCell<Memory>);

#[derive(Debug, Default)]
struct Memory {
    said: Vec<Said>,
    surplus: Surplus,
}

/// What was said beyond what can be remembered, in one pause.
#[derive(Debug, Default)]
struct Surplus {
    since: Timestamp,
    lines: u64,
    /// How often something was left out that nobody remembers.
    more: u64,
}

/// One upstream, failing for one reason.
#[derive(Debug)]
struct Said {
    upstream: String,
    reason: &'static str,
    at: Timestamp,
    /// How often it was left out since.
    more: u64,
}

// === impl LogThrottle ===

impl LogThrottle {
    /// Whether it is said now that `upstream` failed for `reason`, with how often it was left out
    /// since the last time.
    pub fn say(&self, upstream: &str, reason: &'static str, now: Timestamp) -> Option<u64> {
        let Memory { said: all, surplus } = &mut *self.0.borrow_mut();
        if let Some(said) = all.iter_mut().find(|said| said.is(upstream, reason)) {
            return said.again(now);
        }
        let mut more = 0;
        if all.len() >= MOST {
            more = surplus.say(now)?;
            // What was left out of it is told with the line that takes its place.
            more += oldest(all, now).map_or(0, |at| all.swap_remove(at).more);
        }
        all.push(Said {
            upstream: upstream.to_owned(),
            reason,
            at: now,
            more: 0,
        });
        Some(more)
    }
}

/// The one that was said the longest ago; one whose time a clock that was set back has made the
/// future before all others.
fn oldest(all: &[Said], now: Timestamp) -> Option<usize> {
    let ages = all.iter().enumerate().map(|(place, said)| {
        let future = now < said.at;
        (future, now.since(said.at), place)
    });
    ages.max().map(|(.., place)| place)
}

// === impl Surplus ===

impl Surplus {
    /// Whether one more line may be written, with how many were not since the last.
    fn say(&mut self, now: Timestamp) -> Option<u64> {
        if is_over(self.since, now) {
            (self.since, self.lines) = (now, 0);
        }
        if self.lines >= SURPLUS {
            self.more += 1;
            return None;
        }
        self.lines += 1;
        Some(std::mem::take(&mut self.more))
    }
}

// === impl Said ===

impl Said {
    fn is(&self, upstream: &str, reason: &str) -> bool {
        self.reason == reason && self.upstream == upstream
    }

    fn again(&mut self, now: Timestamp) -> Option<u64> {
        if !is_over(self.at, now) {
            self.more += 1;
            return None;
        }
        self.at = now;
        Some(std::mem::take(&mut self.more))
    }
}

/// Whether a pause that began then is over. A clock that was set back ends it too.
fn is_over(since: Timestamp, now: Timestamp) -> bool {
    now < since || now.since(since) >= PAUSE
}

#[cfg(test)]
mod tests;
