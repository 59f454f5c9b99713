//! Limits how often the log reports that an upstream failed: one line per second for each upstream and reason,
//! with the number of suppressed lines.

use std::cell::RefCell;
use std::time::Duration;

use crate::clock::Timestamp;

/// The time between two lines about one upstream and one reason.
const PAUSE: Duration = Duration::from_secs(1);

/// The maximum number of upstream and reason pairs. A new pair replaces the one that was logged the longest ago.
const MAX_ENTRIES: usize = 256;

/// The failures that one core has logged recently.
#[derive(Debug, Default)]
pub struct LogThrottle(RefCell<Vec<LoggedFailure>>);

/// One upstream, failing for one reason.
#[derive(Debug)]
struct LoggedFailure {
    upstream: String,
    reason: &'static str,
    /// When it was last logged.
    at: Timestamp,
    /// The number of suppressed lines since.
    suppressed: u64,
}

// === impl LogThrottle ===

impl LogThrottle {
    /// Admits a line about `upstream` failing for `reason` and returns the number of such lines suppressed
    /// before. `None` if this line is suppressed too.
    pub fn admit(&self, upstream: &str, reason: &'static str, now: Timestamp) -> Option<u64> {
        let mut logged = self.0.borrow_mut();
        let known =
            |entry: &&mut LoggedFailure| entry.reason == reason && entry.upstream == upstream;
        if let Some(entry) = logged.iter_mut().find(known) {
            return entry.admit(now);
        }
        if logged.len() >= MAX_ENTRIES {
            let oldest = logged.iter().enumerate().min_by_key(|(_, entry)| entry.at);
            if let Some((index, _)) = oldest {
                logged.swap_remove(index);
            }
        }
        logged.push(LoggedFailure {
            upstream: upstream.to_owned(),
            reason,
            at: now,
            suppressed: 0,
        });
        Some(0)
    }
}

// === impl LoggedFailure ===

impl LoggedFailure {
    fn admit(&mut self, now: Timestamp) -> Option<u64> {
        // A clock that was set back does not suppress lines.
        let is_due = now < self.at || now.since(self.at) >= PAUSE;
        if !is_due {
            self.suppressed += 1;
            return None;
        }
        self.at = now;
        Some(std::mem::take(&mut self.suppressed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_a_second_counts_the_suppressed_ones() {
        let throttle = LogThrottle::default();
        let admit = |upstream, reason, millis| {
            throttle.admit(upstream, reason, Timestamp::from_millis(millis))
        };
        assert_eq!(admit("a", "closed", 100_000), Some(0));
        for _ in 0..97_100 {
            assert_eq!(admit("a", "closed", 100_000), None);
        }
        assert_eq!(admit("a", "no_server", 100_000), Some(0));
        assert_eq!(admit("b", "closed", 100_000), Some(0));
        assert_eq!(admit("a", "closed", 100_999), None);
        assert_eq!(admit("a", "closed", 101_000), Some(97_101));
        assert_eq!(admit("a", "closed", 101_000), None);
        assert_eq!(admit("b", "closed", 101_000), Some(0));
    }

    #[test]
    fn a_clock_set_back_does_not_silence_the_log() {
        let throttle = LogThrottle::default();
        let admit = |secs| throttle.admit("a", "closed", Timestamp::from_secs(secs));
        assert_eq!([admit(100), admit(50), admit(50)], [Some(0), Some(0), None]);
    }

    #[test]
    fn a_new_failure_replaces_the_least_recently_logged_one() {
        let throttle = LogThrottle::default();
        let admit =
            |name: &str, millis| throttle.admit(name, "closed", Timestamp::from_millis(millis));
        for (n, millis) in (0..MAX_ENTRIES).zip(100_000..) {
            assert_eq!(admit(&format!("upstream {n}"), millis), Some(0));
        }
        assert_eq!(admit("one more", 100_500), Some(0));
        assert_eq!(throttle.0.borrow().len(), MAX_ENTRIES);
        assert_eq!(admit("upstream 1", 100_500), None);
        assert_eq!(admit("upstream 0", 100_500), Some(0), "it was replaced");
    }
}
