//! One source under one algorithm, beside the exact log of the same requests.

use std::collections::VecDeque;
use std::ops::AddAssign;
use std::time::Duration;

use lockgate::clock::Timestamp;
use lockgate::limit::{Algorithm, Counter, CounterReading, Limiter, sliding_window};

use crate::trace::{LIMIT, PERIOD};

/// What happens to a request that does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// It is refused and costs nothing: the truth is the log of what was admitted.
    Throttle,
    /// It is counted like every other: the truth is the log of what came.
    Count,
}

/// What was found.
#[derive(Clone, Copy, Debug, Default)]
pub struct Score {
    pub sources: u64,
    pub requests: u64,
    pub wrongly_admitted: u64,
    pub wrongly_refused: u64,
    /// Those of both where the truth was more than a tenth away from the limit.
    pub far_off: u64,
    /// Sources that were refused something though they never came to more than the limit.
    pub limited_below: u64,
    /// Sources that came to more than the limit and were never refused anything.
    pub spared_above: u64,
    /// The sum of the errors of the rate, each as a share of the true rate.
    error: f64,
    errors: u64,
}

/// The moments of the last period.
#[derive(Default)]
struct Exact(VecDeque<u64>);

/// The limiters that are compared, by name.
pub fn limiters() -> Vec<(&'static str, Limiter)> {
    let plain = |algorithm| Limiter::new(algorithm, LIMIT, Duration::from_nanos(PERIOD));
    let slices = Limiter {
        slices: 60,
        ..plain(Algorithm::SlidingWindow)
    };
    let queue = Limiter {
        queue: LIMIT as u32 - 1,
        ..plain(Algorithm::LeakyBucket)
    };
    vec![
        ("sliding_window", plain(Algorithm::SlidingWindow)),
        ("slices=60", slices),
        ("sliding_log", plain(Algorithm::SlidingLog)),
        ("fixed_window", plain(Algorithm::FixedWindow)),
        ("token_bucket", plain(Algorithm::TokenBucket)),
        ("gcra", plain(Algorithm::Gcra)),
        ("leaky_bucket", queue),
    ]
}

/// Runs the requests of one source.
pub fn measure(limiter: &Limiter, mode: Mode, moments: &[u64]) -> Score {
    let mut score = Score {
        sources: 1,
        requests: moments.len() as u64,
        ..Score::default()
    };
    let (mut key, mut exact) = (Counter::new(limiter.shape(), limiter), Exact::default());
    let mut refused = false;
    for moment in moments {
        let now = Timestamp::from_nanos(*moment);
        let truth = exact.count(*moment);
        let fits = run(&mut key, limiter, mode, now).fits;
        score.judge(fits, truth);
        refused |= !fits;
        if fits || mode == Mode::Count {
            exact.0.push_back(*moment);
        }
        score.compare(rate(&mut key, limiter, now), exact.0.len() as f64);
    }
    let above = ever_above(moments);
    score.limited_below = u64::from(refused && !above);
    score.spared_above = u64::from(above && !refused);
    score
}

/// Whether more than the limit ever came within a period.
fn ever_above(moments: &[u64]) -> bool {
    let mut exact = Exact::default();
    moments.iter().any(|moment| {
        let before = exact.count(*moment);
        exact.0.push_back(*moment);
        before >= LIMIT
    })
}

// === impl Score ===

impl Score {
    /// The mean error of the rate, as a share of the true rate.
    pub fn mean_error(&self) -> f64 {
        self.error / self.errors as f64
    }

    /// A request that came after `truth` others of the last period.
    fn judge(&mut self, fits: bool, truth: u64) {
        let wrong = fits != (truth < LIMIT);
        self.wrongly_admitted += u64::from(wrong && fits);
        self.wrongly_refused += u64::from(wrong && !fits);
        self.far_off += u64::from(wrong && truth.abs_diff(LIMIT) > LIMIT / 10);
    }

    /// Past the limit a rate is not known any better than that.
    fn compare(&mut self, rate: f64, truth: f64) {
        if truth > 0.0 && truth <= LIMIT as f64 {
            self.error += (rate - truth).abs() / truth;
            self.errors += 1;
        }
    }
}

impl AddAssign for Score {
    fn add_assign(&mut self, other: Self) {
        self.sources += other.sources;
        self.requests += other.requests;
        self.wrongly_admitted += other.wrongly_admitted;
        self.wrongly_refused += other.wrongly_refused;
        self.far_off += other.far_off;
        self.limited_below += other.limited_below;
        self.spared_above += other.spared_above;
        self.error += other.error;
        self.errors += other.errors;
    }
}

/// Counts one request.
fn run(counter: &mut Counter, limiter: &Limiter, mode: Mode, now: Timestamp) -> CounterReading {
    match mode {
        Mode::Throttle => counter.admit(limiter, now, 1, 0),
        Mode::Count => counter.charge(limiter, now, 1, 0),
    }
}

/// What the algorithm takes for the number of requests in the last period; where it says only
/// how much is left, what is used of its capacity.
fn rate(counter: &mut Counter, limiter: &Limiter, now: Timestamp) -> f64 {
    match counter {
        Counter::Words(state) if limiter.algorithm == Algorithm::SlidingWindow => {
            sliding_window::estimate(limiter, state, now).as_f64()
        }
        Counter::Slices(slices) => slices.estimate(limiter, now).as_f64(),
        _ => (limiter.capacity() - counter.peek(limiter, now, 0).remaining) as f64,
    }
}

// === impl Exact ===

impl Exact {
    /// How many lie in the period that ends at `now`.
    fn count(&mut self, now: u64) -> u64 {
        while self.0.front().is_some_and(|first| now - first >= PERIOD) {
            self.0.pop_front();
        }
        self.0.len() as u64
    }
}
