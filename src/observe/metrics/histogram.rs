//! A histogram of durations without a lock: the library's takes a mutex for each observation.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use prometheus_client::encoding::{EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::{MetricType, TypedMetric};

/// Upper bounds in microseconds, each included; one more bucket has no bound.
const BOUNDS: [u64; 14] = [
    500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000,
    2_500_000, 5_000_000, 10_000_000,
];

/// How often which durations were seen. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Histogram(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    buckets: [AtomicU64; BOUNDS.len() + 1],
    nanos: AtomicU64,
}

// === impl Histogram ===

impl Histogram {
    /// Records one duration.
    pub fn observe(&self, duration: Duration) {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        let at = BOUNDS.partition_point(|bound| bound * 1000 < nanos);
        if let Some(bucket) = self.0.buckets.get(at) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
        self.0.nanos.fetch_add(nanos, Ordering::Relaxed);
    }

    /// Upper bounds in seconds, each with what fell into its own bucket.
    fn buckets(&self) -> Vec<(f64, u64)> {
        let bounds = BOUNDS.iter().map(|micros| *micros as f64 / 1e6);
        bounds
            .chain([f64::INFINITY])
            .zip(self.0.buckets.iter().map(|b| b.load(Ordering::Relaxed)))
            .collect()
    }
}

impl TypedMetric for Histogram {
    const TYPE: MetricType = MetricType::Histogram;
}

impl EncodeMetric for Histogram {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        let sum = self.0.nanos.load(Ordering::Relaxed) as f64 / 1e9;
        let buckets = self.buckets();
        // From the buckets themselves, so that count and `+Inf` agree under load.
        let count = buckets.iter().map(|(_, n)| n).sum();
        encoder.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_belongs_to_its_bucket() {
        let histogram = Histogram::default();
        for nanos in [0, 500_000, 500_001, 10_000_000_000, 10_000_000_001] {
            histogram.observe(Duration::from_nanos(nanos));
        }
        histogram.observe(Duration::MAX);
        let seen: Vec<u64> = histogram.buckets().iter().map(|(_, n)| *n).collect();
        assert_eq!(seen, [2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2]);
    }
}
