//! How long a shadow answer takes from the moment it is due until it is written: whoever slept wakes
//! into cold caches, and the colder the longer it slept. It leaves so much earlier.

use std::cell::RefCell;
use std::time::{Duration, Instant};

/// What takes longer than this has another reason, such as a machine under load.
pub const MOST: Duration = Duration::from_micros(500);
/// How many answers are remembered of each class.
const KEPT: usize = 31;
/// Fewer than this tell nothing.
const FEWEST: usize = 8;
/// One in so many may have been held up by something else: it counts as the longest of the others.
const ODD: usize = 10;
/// Classes of times, each twice as long as the one before; the last has all that are longer than
/// about a minute.
const CLASSES: usize = 27;

/// From the moment a shadow answer is due until its head is written, lately, on one core.
#[derive(Debug, Default)]
pub struct Drift {
    /// All of that time.
    whole: RefCell<Lags>,
    /// What of it was left for whoever was awake.
    awake: RefCell<Lags>,
}

/// How long it took to write the last answers, by the class of the time after which they were due.
#[derive(Debug, Default)]
struct Lags([Class; CLASSES]);

/// Answers that were due after about as long.
#[derive(Debug, Default)]
struct Class {
    /// In nanoseconds.
    kept: Vec<u32>,
    /// The oldest.
    next: usize,
}

/// How long it will take, as far as can be told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Lag {
    mean: Duration,
    /// The standard deviation.
    spread: Duration,
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
        then.checked_sub(lag.mean).unwrap_or(then)
    }

    /// When an answer that was due after `head` will be written by who was awake at `woke`, and how
    /// far from that it may be.
    pub fn written(&self, woke: Instant, head: Duration) -> (Instant, Duration) {
        let lag = self.awake.borrow().near(head);
        (woke + lag.mean, lag.spread)
    }
}

// === impl Lags ===

impl Lags {
    fn learn(&mut self, head: Duration, time: Duration) {
        if let Some(class) = self.0.get_mut(class_of(head)).filter(|_| time <= MOST) {
            class.learn(time.subsec_nanos());
        }
    }

    /// What the class of `head` tells, or else the one nearest to it that tells anything.
    fn near(&self, head: Duration) -> Lag {
        let own = class_of(head);
        let telling = self.0.iter().enumerate().filter(|(_, class)| class.tells());
        let nearest = telling.min_by_key(|(at, _)| at.abs_diff(own));
        nearest.map_or_else(Lag::default, |(_, class)| Lag::of(class.kept.clone()))
    }
}

fn class_of(head: Duration) -> usize {
    let micros = u64::try_from(head.as_micros()).unwrap_or(u64::MAX);
    let bits = u64::BITS - micros.leading_zeros();
    (bits as usize).min(CLASSES - 1)
}

// === impl Class ===

impl Class {
    fn learn(&mut self, lag: u32) {
        if self.kept.len() < KEPT {
            self.kept.push(lag);
        } else if let Some(oldest) = self.kept.get_mut(self.next) {
            *oldest = lag;
            self.next = (self.next + 1) % KEPT;
        }
    }

    fn tells(&self) -> bool {
        self.kept.len() >= FEWEST
    }
}

// === impl Lag ===

impl Lag {
    fn of(mut lags: Vec<u32>) -> Self {
        lags.sort_unstable();
        let ordinary = lags.len() - lags.len() / ODD;
        let longest = lags.iter().take(ordinary).copied().max();
        let capped = |lag: &u32| f64::from(*lag).min(f64::from(longest.unwrap_or(*lag)));
        let mean_of = |of: &dyn Fn(f64) -> f64| {
            let sum: f64 = lags.iter().map(capped).map(of).sum();
            sum / lags.len().max(1) as f64
        };
        let mean = mean_of(&|lag| lag);
        let spread = mean_of(&|lag| (lag - mean).powi(2)).sqrt();
        Self {
            mean: Duration::from_nanos(mean as u64),
            spread: Duration::from_nanos(spread as u64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn micros(micros: u64) -> Duration {
        Duration::from_micros(micros)
    }

    #[test]
    fn it_tells_how_long_those_took_that_were_due_after_about_as_long() {
        let mut lags = Lags::default();
        assert_eq!(lags.near(micros(1)), Lag::default());
        for at in 0..1_000u64 {
            // Those after a long sleep take longer; a few of all take very long.
            let (head, most) = [(2_000, 20), (20_000, 60)][(at % 2) as usize];
            let lag = if at % 13 == 0 { 400 } else { most + at % 5 };
            lags.learn(micros(head + at % 7), micros(lag));
        }
        assert!(lags.0.iter().all(|class| class.kept.len() <= KEPT));
        for (head, least) in [(1_000, 20), (2_000, 20), (30_000, 60)] {
            let Lag { mean, spread } = lags.near(micros(head));
            let means = micros(least + 1)..micros(least + 4);
            assert!(means.contains(&mean), "{mean:?}");
            assert!((micros(1)..micros(2)).contains(&spread), "{spread:?}");
        }
    }

    #[test]
    fn a_shadow_answer_leaves_earlier_by_what_it_takes_to_write_it() {
        let (drift, then) = (Drift::default(), Instant::now() + micros(5_000));
        assert_eq!(drift.due(then, micros(5_000)), then);
        for more in [0, 10].repeat(FEWEST) {
            drift.learn(micros(5_000), micros(25 + more), micros(15 + more));
            drift.learn(micros(5_000), 2 * MOST, 2 * MOST);
        }
        assert_eq!(drift.due(then, micros(5_000)), then - micros(30));
        let written = drift.written(then, micros(5_000));
        assert_eq!(written, (then + micros(20), micros(5)));
    }
}
