//! Metric types that the library lacks: a counter with its full name, a histogram without a lock, and
//! families with removable series.

use std::collections::BTreeMap;
use std::fmt::{self, Debug};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use prometheus_client::encoding::{EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::{MetricType, TypedMetric};

/// The upper bounds of the buckets in microseconds, inclusive. The last bucket has no bound.
pub const HISTOGRAM_BOUNDS: [u64; 16] = [
    100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000,
    1_000_000, 2_500_000, 5_000_000, 10_000_000,
];

/// A number that only increases. Clones share it.
///
/// The library's counter writes OpenMetrics, where `# TYPE` names a counter without `_total`. Prometheus
/// text requires the full name in `# TYPE` and in the sample.
#[derive(Clone, Debug, Default)]
pub struct MetricCounter(Arc<AtomicU64>);

/// A number that can fall, although its name ends in `_count` or `_total`. Clones share it.
///
/// Prometheus reserves these endings for histograms and counters, except in metrics without a type.
#[derive(Clone, Debug, Default)]
pub struct UntypedGauge(Gauge);

/// A time that only increases. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct SecondsCounter(Arc<AtomicU64>);

/// A histogram of durations. Clones share it. The library's histogram locks a mutex for each observation.
#[derive(Clone, Debug, Default)]
pub struct Histogram(Arc<Buckets>);

#[derive(Debug, Default)]
struct Buckets {
    counts: [AtomicU64; HISTOGRAM_BOUNDS.len() + 1],
    nanos: AtomicU64,
}

/// Label names and values. The first labels identify the owner of a series.
pub(super) type Labels = Vec<(&'static str, String)>;

/// The series of one metric by their labels. Clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct MetricFamily<M>(Arc<Mutex<BTreeMap<Labels, M>>>);

// === impl MetricCounter ===

impl MetricCounter {
    /// Adds one.
    pub fn inc(&self) {
        self.add(1);
    }

    /// Adds `n`.
    pub fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    /// Sets the total from a counter elsewhere.
    pub fn set(&self, total: u64) {
        self.0.store(total, Ordering::Relaxed);
    }

    /// Returns the current value.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl TypedMetric for MetricCounter {
    const TYPE: MetricType = MetricType::Counter;
}

impl EncodeMetric for MetricCounter {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        // The sample line of a gauge equals that of a counter, without the added suffix.
        encoder.encode_gauge(&self.get())
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
}

// === impl SecondsCounter ===

impl SecondsCounter {
    /// Sets the total from a clock elsewhere, in whole milliseconds.
    pub fn set(&self, total: Duration) {
        let millis = u64::try_from(total.as_millis()).unwrap_or(u64::MAX);
        self.0.store(millis, Ordering::Relaxed);
    }
}

impl TypedMetric for SecondsCounter {
    const TYPE: MetricType = MetricType::Counter;
}

impl EncodeMetric for SecondsCounter {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        encoder.encode_gauge(&(self.0.load(Ordering::Relaxed) as f64 / 1e3))
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
}

// === impl UntypedGauge ===

impl UntypedGauge {
    /// Sets the value.
    pub fn set(&self, value: i64) {
        self.0.set(value);
    }
}

impl TypedMetric for UntypedGauge {
    const TYPE: MetricType = MetricType::Unknown;
}

impl EncodeMetric for UntypedGauge {
    fn encode(&self, encoder: MetricEncoder<'_>) -> fmt::Result {
        self.0.encode(encoder)
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
}

// === impl Histogram ===

impl Histogram {
    /// Records one duration.
    pub fn observe(&self, duration: Duration) {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        let at = HISTOGRAM_BOUNDS.partition_point(|bound| bound * 1000 < nanos);
        if let Some(count) = self.0.counts.get(at) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        self.0.nanos.fetch_add(nanos, Ordering::Relaxed);
    }

    /// Sets the counts of all buckets and the sum from a histogram elsewhere.
    pub fn set(&self, counts: &[u64], sum: Duration) {
        for (own, count) in self.0.counts.iter().zip(counts) {
            own.store(*count, Ordering::Relaxed);
        }
        let nanos = u64::try_from(sum.as_nanos()).unwrap_or(u64::MAX);
        self.0.nanos.store(nanos, Ordering::Relaxed);
    }

    /// Returns the upper bounds in seconds, each with the count of its bucket.
    fn buckets(&self) -> Vec<(f64, u64)> {
        let bounds = HISTOGRAM_BOUNDS.iter().map(|micros| *micros as f64 / 1e6);
        let counts = self.0.counts.iter().map(|n| n.load(Ordering::Relaxed));
        bounds.chain([f64::INFINITY]).zip(counts).collect()
    }
}

impl TypedMetric for Histogram {
    const TYPE: MetricType = MetricType::Histogram;
}

impl EncodeMetric for Histogram {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        let sum = self.0.nanos.load(Ordering::Relaxed) as f64 / 1e9;
        let buckets = self.buckets();
        // Summed from the buckets, so that the count and `+Inf` agree under load.
        let count = buckets.iter().map(|(_, n)| n).sum();
        encoder.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
}

// === impl MetricFamily ===

impl<M: Clone + Default> MetricFamily<M> {
    /// Returns the series with these labels. Creates it if it does not exist.
    pub(super) fn series(&self, labels: &[(&'static str, &str)]) -> M {
        let labels = labels.iter().map(|(name, value)| (*name, (*value).into()));
        self.0.lock().entry(labels.collect()).or_default().clone()
    }

    /// Removes the series of all owners except `owners`. An owner is the values of the first labels.
    pub(super) fn keep<const N: usize>(&self, owners: &[[&str; N]]) {
        let owns = |owner: &[&str; N], labels: &Labels| {
            let values = labels.iter().map(|(_, value)| value);
            owner.iter().zip(values).all(|(own, value)| own == value)
        };
        let mut all = self.0.lock();
        all.retain(|labels, _| owners.iter().any(|owner| owns(owner, labels)));
    }
}

impl<M: TypedMetric> TypedMetric for MetricFamily<M> {
    const TYPE: MetricType = M::TYPE;
}

impl<M: EncodeMetric + TypedMetric> EncodeMetric for MetricFamily<M> {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        for (labels, metric) in self.0.lock().iter() {
            metric.encode(encoder.encode_family(labels)?)?;
        }
        Ok(())
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_upper_bound_belongs_to_its_bucket() {
        let histogram = Histogram::default();
        for nanos in [0, 500_000, 500_001, 10_000_000_000, 10_000_000_001] {
            histogram.observe(Duration::from_nanos(nanos));
        }
        histogram.observe(Duration::MAX);
        let seen: Vec<u64> = histogram.buckets().iter().map(|(_, n)| *n).collect();
        assert_eq!(seen, [1, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2]);
    }
}
