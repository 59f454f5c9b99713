//! Latencies in buckets of equal relative width, good to about 3 %, for percentiles over a sliding window.

use std::collections::VecDeque;
use std::time::Duration;

/// The number of buckets in each doubling of the latency.
const STEPS: u32 = 16;
/// [`STEPS`] as a power of two.
const STEP_BITS: u32 = 4;
/// The shortest latency with a bucket of its own, as a power of two of microseconds: 64 µs.
const FIRST: u32 = 6;
/// The longest latency, as a power of two of microseconds: 134 s.
const END: u32 = 27;
const BUCKETS: usize = ((END - FIRST) * STEPS) as usize;

/// The number of ticks that a window covers.
const WINDOW: usize = 10;

/// The number of latencies in each bucket.
#[derive(Clone, Debug)]
pub(super) struct LatencyBuckets(Box<[u32; BUCKETS]>);

/// The latencies of the last ten ticks.
#[derive(Debug, Default)]
pub(super) struct LatencyWindow {
    ticks: VecDeque<LatencyBuckets>,
}

/// The percentiles of latencies, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LatencyPercentiles {
    /// The median.
    pub p50: f64,
    /// The 99th percentile.
    pub p99: f64,
}

// === impl LatencyBuckets ===

impl LatencyBuckets {
    /// Counts a latency.
    #[inline]
    pub(super) fn record(&mut self, latency: Duration) {
        if let Some(count) = self.0.get_mut(index(latency)) {
            *count = count.saturating_add(1);
        }
    }

    /// Adds the latencies of `other`.
    pub(super) fn add(&mut self, other: &Self) {
        for (count, more) in self.0.iter_mut().zip(&*other.0) {
            *count = count.saturating_add(*more);
        }
    }

    /// Returns the percentiles. `None` without latencies.
    fn percentiles(&self) -> Option<LatencyPercentiles> {
        let total: u64 = self.0.iter().map(|count| u64::from(*count)).sum();
        let percentile = |percent| self.nth(u64::div_ceil(total * percent, 100));
        Some(LatencyPercentiles {
            p50: percentile(50)?,
            p99: percentile(99)?,
        })
    }

    /// Returns the middle of the bucket with the `nth` latency, counted from 1. `None` without latencies.
    fn nth(&self, nth: u64) -> Option<f64> {
        let mut seen = 0;
        let counts = self.0.iter().map(|count| u64::from(*count));
        let mut reached = counts.map(|count| {
            seen += count;
            seen
        });
        reached.position(|seen| seen >= nth.max(1)).map(middle)
    }
}

impl Default for LatencyBuckets {
    fn default() -> Self {
        Self(Box::new([0; BUCKETS]))
    }
}

// === impl LatencyWindow ===

impl LatencyWindow {
    /// Adds the latencies of one tick, and removes those that have left the window.
    pub(super) fn push(&mut self, tick: LatencyBuckets) {
        self.ticks.truncate(WINDOW - 1);
        self.ticks.push_front(tick);
    }

    /// Returns the percentiles over the window. `None` without latencies.
    pub(super) fn percentiles(&self) -> Option<LatencyPercentiles> {
        let mut all = LatencyBuckets::default();
        self.ticks.iter().for_each(|tick| all.add(tick));
        all.percentiles()
    }
}

#[inline]
fn index(latency: Duration) -> usize {
    let micros = latency.as_secs().saturating_mul(1_000_000);
    let micros = micros.saturating_add(latency.subsec_micros().into());
    let micros = micros.clamp(1 << FIRST, (1 << END) - 1);
    let octave = micros.ilog2();
    let step = (micros >> (octave - STEP_BITS)) & u64::from(STEPS - 1);
    (octave - FIRST) as usize * STEPS as usize + step as usize
}

/// Returns the middle of a bucket, in milliseconds.
fn middle(index: usize) -> f64 {
    let (octave, step) = (index / STEPS as usize, index % STEPS as usize);
    let width = (1u64 << (octave as u32 + FIRST - STEP_BITS)) as f64;
    (width * (step as f64 + f64::from(STEPS) + 0.5)) / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(latencies: impl IntoIterator<Item = u64>) -> LatencyBuckets {
        let mut buckets = LatencyBuckets::default();
        let latencies = latencies.into_iter().map(Duration::from_micros);
        latencies.for_each(|latency| buckets.record(latency));
        buckets
    }

    #[test]
    fn a_bucket_is_within_a_few_percent_of_each_of_its_latencies() {
        for micros in (64..10_000).chain((10_000..134_000_000).step_by(98_765)) {
            let shown = middle(index(Duration::from_micros(micros))) * 1000.0;
            let error = (shown - micros as f64).abs() / micros as f64;
            assert!(error <= 0.032, "{micros} µs is shown as {shown}");
        }
    }

    #[test]
    fn extreme_latencies_have_the_first_and_the_last_bucket() {
        assert_eq!(index(Duration::ZERO), 0);
        assert_eq!(index(Duration::MAX), BUCKETS - 1);
    }

    #[test]
    fn percentiles_are_those_of_the_sorted_latencies() {
        assert_eq!(of([]).percentiles(), None);
        let one = of([5_000]).percentiles().unwrap();
        assert_eq!(one.p50, one.p99);
        let many = of((1..=1000).map(|n| n * 1000)).percentiles().unwrap();
        assert!((many.p50 - 500.0).abs() < 20.0, "{many:?}");
        assert!((many.p99 - 990.0).abs() < 35.0, "{many:?}");
    }

    #[test]
    fn a_latency_leaves_the_window_after_ten_ticks() {
        let mut window = LatencyWindow::default();
        window.push(of([5_000]));
        for _ in 1..WINDOW {
            window.push(of([]));
            assert!(window.percentiles().is_some());
        }
        window.push(of([]));
        assert_eq!(window.percentiles(), None);
    }
}
