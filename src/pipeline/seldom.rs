//! How often the log says that an upstream failed: requests that all fail would fill it. It counts
//! what is left out, and writes nothing itself.

use std::cell::RefCell;
use std::time::Duration;

use crate::clock::Timestamp;

/// The time between two lines that say the same.
const PAUSE: Duration = Duration::from_secs(1);
/// More upstreams and reasons than these within a pause are left out.
const MOST: usize = 64;

/// What one core has said lately.
#[derive(Debug, Default)]
pub struct Seldom(RefCell<Vec<Said>>);

/// One upstream, failing for one reason.
#[derive(Debug)]
struct Said {
    upstream: String,
    reason: &'static str,
    at: Timestamp,
    /// How often it was left out since.
    more: u64,
}

// === impl Seldom ===

impl Seldom {
    /// Whether it is said now that `upstream` failed for `reason`, with how often it was left out
    /// since the last time.
    pub fn say(&self, upstream: &str, reason: &'static str, now: Timestamp) -> Option<u64> {
        let mut all = self.0.borrow_mut();
        if let Some(said) = all.iter_mut().find(|said| said.is(upstream, reason)) {
            return said.again(now);
        }
        if all.len() >= MOST {
            all.retain(|said| !said.is_over(now));
        }
        if all.len() >= MOST {
            return None;
        }
        all.push(Said {
            upstream: upstream.to_owned(),
            reason,
            at: now,
            more: 0,
        });
        Some(0)
    }
}

// === impl Said ===

impl Said {
    fn is(&self, upstream: &str, reason: &str) -> bool {
        self.reason == reason && self.upstream == upstream
    }

    /// A clock that was set back ends the pause too.
    fn is_over(&self, now: Timestamp) -> bool {
        now < self.at || now.since(self.at) >= PAUSE
    }

    fn again(&mut self, now: Timestamp) -> Option<u64> {
        if !self.is_over(now) {
            self.more += 1;
            return None;
        }
        self.at = now;
        Some(std::mem::take(&mut self.more))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ManualClock;

    #[test]
    fn a_line_a_second_says_how_many_were_left_out() {
        let clock = ManualClock::at(Timestamp::from_secs(100));
        let seldom = Seldom::default();
        let say = |upstream, reason| seldom.say(upstream, reason, clock.now());
        assert_eq!(say("a", "closed"), Some(0));
        for _ in 0..97_100 {
            assert_eq!(say("a", "closed"), None);
        }
        assert_eq!(say("a", "no_server"), Some(0));
        assert_eq!(say("b", "closed"), Some(0));
        clock.set(Timestamp::from_millis(100_999));
        assert_eq!(say("a", "closed"), None);
        clock.set(Timestamp::from_secs(101));
        assert_eq!(say("a", "closed"), Some(97_101));
        assert_eq!(say("a", "closed"), None);
        assert_eq!(say("b", "closed"), Some(0));
    }

    #[test]
    fn a_clock_that_was_set_back_does_not_silence_it() {
        let clock = ManualClock::at(Timestamp::from_secs(100));
        let seldom = Seldom::default();
        assert_eq!(seldom.say("a", "closed", clock.now()), Some(0));
        clock.set(Timestamp::from_secs(50));
        assert_eq!(seldom.say("a", "closed", clock.now()), Some(0));
        assert_eq!(seldom.say("a", "closed", clock.now()), None);
    }

    #[test]
    fn what_it_keeps_is_bounded_and_old_things_make_room() {
        let clock = ManualClock::at(Timestamp::from_secs(100));
        let seldom = Seldom::default();
        let many = || (0..MOST * 2).map(|n| format!("upstream {n}"));
        let said = |name: &String| seldom.say(name, "closed", clock.now()).is_some();
        assert_eq!(many().filter(said).count(), MOST);
        assert_eq!(seldom.0.borrow().len(), MOST);
        clock.set(Timestamp::from_secs(101));
        assert!(said(&"another".to_owned()));
        assert_eq!(seldom.0.borrow().len(), 1);
    }
}
