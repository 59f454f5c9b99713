//! How long a shadow answer takes from the moment it is due until it is written: whoever slept wakes
//! into cold caches, and the colder the longer it slept. It leaves so much earlier.

use std::cell::RefCell;
use std::time::{Duration, Instant};

/// What takes longer than this has another reason, such as a machine under load.
pub const MOST: Duration = Duration::from_micros(500);
/// How many answers are remembered.
const KEPT: usize = 128;
/// How many of them, those that took about as long, tell of the next.
const NEAR: usize = 31;
/// Fewer than this tell nothing.
const FEWEST: usize = 8;

/// From the moment a shadow answer is due until its head is written, lately, on one core.
#[derive(Debug, Default)]
pub struct Drift {
    /// All of that time.
    whole: RefCell<Lags>,
    /// What of it was left for whoever was awake.
    awake: RefCell<Lags>,
}

/// How long it took to write the last answers.
#[derive(Debug, Default)]
struct Lags {
    /// Each with the time after which it was due; both in nanoseconds.
    kept: Vec<(u64, u32)>,
    /// The oldest.
    next: usize,
}

// === impl Drift ===

impl Drift {
    /// A shadow answer that was to be written after `head` was written so long after it was due,
    /// and so long after whoever waited for that was awake.
    pub fn learn(&self, head: Duration, whole: Duration, awake: Duration) {
        self.whole.borrow_mut().learn(head, whole);
        self.awake.borrow_mut().learn(head, awake);
    }

    /// When a shadow answer must be due, so that it is written then, after `head`.
    pub fn due(&self, then: Instant, head: Duration) -> Instant {
        let lag = self.whole.borrow().near(head);
        then.checked_sub(lag.unwrap_or_default()).unwrap_or(then)
    }

    /// When an answer that was due after `head` will be written by who was awake at `woke`.
    pub fn written(&self, woke: Instant, head: Duration) -> Instant {
        let lag = self.awake.borrow().near(head);
        woke + lag.unwrap_or_default()
    }
}

// === impl Lags ===

impl Lags {
    fn learn(&mut self, head: Duration, time: Duration) {
        if time > MOST {
            return;
        }
        let lag = (nanos(head), time.subsec_nanos());
        if self.kept.len() < KEPT {
            self.kept.push(lag);
        } else if let Some(oldest) = self.kept.get_mut(self.next) {
            *oldest = lag;
            self.next = (self.next + 1) % KEPT;
        }
    }

    /// The middle of those that were due after about as long: a few that are much longer do not
    /// count for more, as they would in a mean.
    fn near(&self, head: Duration) -> Option<Duration> {
        if self.kept.len() < FEWEST {
            return None;
        }
        let (head, mut near) = (nanos(head), self.kept.clone());
        near.sort_unstable_by_key(|(other, _)| other.abs_diff(head));
        near.truncate(NEAR);
        near.sort_unstable_by_key(|(_, lag)| *lag);
        let (_, lag) = near.get(near.len() / 2)?;
        Some(Duration::from_nanos(u64::from(*lag)))
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn micros(micros: u64) -> Duration {
        Duration::from_micros(micros)
    }

    #[test]
    fn it_finds_the_middle_of_those_that_took_about_as_long() {
        let mut lags = Lags::default();
        assert_eq!(lags.near(micros(1)), None);
        for at in 0..1_000u64 {
            // A few take very long; those after a long sleep always take longer.
            let (head, most) = [(2_000, 20), (20_000, 60)][(at % 2) as usize];
            let lag = if at % 5 == 4 { 400 } else { most + at % 5 };
            lags.learn(micros(head + at % 7), micros(lag));
        }
        assert_eq!(lags.kept.len(), KEPT);
        for (head, least) in [(1_000, 20), (2_000, 20), (30_000, 60)] {
            let found = lags.near(micros(head)).unwrap();
            assert!(
                (micros(least)..micros(least + 5)).contains(&found),
                "{found:?}"
            );
        }
    }

    #[test]
    fn a_shadow_answer_leaves_earlier_by_what_it_takes_to_write_it() {
        let (drift, then) = (Drift::default(), Instant::now() + micros(5_000));
        assert_eq!(drift.due(then, micros(5_000)), then);
        for _ in 0..FEWEST {
            drift.learn(micros(5_000), micros(30), micros(20));
            drift.learn(micros(5_000), 2 * MOST, 2 * MOST);
        }
        assert_eq!(drift.due(then, micros(5_000)), then - micros(30));
        assert_eq!(drift.written(then, micros(5_000)), then + micros(20));
    }
}
