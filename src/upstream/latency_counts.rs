//! The latencies of a server's responses, by class of the status code.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::StatusCode;

/// The upper bounds of the buckets in microseconds, inclusive. The last bucket has no bound.
pub const LATENCY_BOUNDS: [u64; 16] = [
    100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000,
    1_000_000, 2_500_000, 5_000_000, 10_000_000,
];

const BUCKETS: usize = LATENCY_BOUNDS.len() + 1;

/// The number of classes of status codes.
const CLASSES: usize = 5;

/// The latencies of one configured server, for all cores.
#[derive(Debug, Default)]
pub(super) struct LatencyCounts([ClassCounts; CLASSES]);

#[derive(Debug, Default)]
struct ClassCounts {
    buckets: [AtomicU64; BUCKETS],
    nanos: AtomicU64,
}

/// The latencies of the responses with one class of status codes, at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LatencyFigures {
    /// The number of responses in each bucket of [`LATENCY_BOUNDS`].
    pub buckets: [u64; BUCKETS],
    /// The sum of the latencies.
    pub sum: Duration,
}

// === impl LatencyCounts ===

impl LatencyCounts {
    /// Counts a response. A status outside 100 to 599 counts as 5xx (RFC 9110, section 15).
    pub(super) fn add(&self, status: StatusCode, latency: Duration) {
        let class = usize::from(status.as_u16() / 100).clamp(1, CLASSES) - 1;
        let nanos = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        let bucket = LATENCY_BOUNDS.partition_point(|bound| bound * 1_000 < nanos);
        let Some(counts) = self.0.get(class) else {
            return;
        };
        if let Some(count) = counts.buckets.get(bucket) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        counts.nanos.fetch_add(nanos, Ordering::Relaxed);
    }

    /// Returns the counts of each class, `1xx` first.
    pub(super) fn figures(&self) -> [LatencyFigures; CLASSES] {
        self.0.each_ref().map(|counts| {
            let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
            LatencyFigures {
                buckets: counts.buckets.each_ref().map(read),
                sum: Duration::from_nanos(read(&counts.nanos)),
            }
        })
    }
}

/// Returns the latency that 99 % of the responses in these buckets do not exceed, if latencies are evenly distributed
/// within a bucket. `None` without responses.
pub fn p99(buckets: &[u64]) -> Option<Duration> {
    let total: u64 = buckets.iter().sum();
    let rank = (total * 99).div_ceil(100);
    let mut below = 0;
    for (bucket, count) in buckets.iter().enumerate() {
        if *count > 0 && below + count >= rank {
            let bound = |bucket: Option<usize>| LATENCY_BOUNDS.get(bucket?).copied();
            let start = bound(bucket.checked_sub(1)).unwrap_or(0);
            let end = bound(Some(bucket)).unwrap_or(start);
            let within = (end - start) * (rank - below) / count;
            return Some(Duration::from_micros(start + within));
        }
        below += count;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_counts_in_its_class_and_its_bucket() {
        let counts = LatencyCounts::default();
        for (status, micros) in [(200, 100), (204, 101), (404, 7_000_000), (599, 60_000_000)] {
            let status = StatusCode::from_u16(status).unwrap();
            counts.add(status, Duration::from_micros(micros));
        }
        counts.add(StatusCode::from_u16(999).unwrap(), Duration::ZERO);
        let [none, success, redirect, client, server] = counts.figures();
        assert_eq!([none, redirect], [LatencyFigures::default(); 2]);
        assert_eq!(success.buckets[..3], [1, 1, 0]);
        assert_eq!(success.sum, Duration::from_micros(201));
        assert_eq!(client.buckets[15], 1);
        assert_eq!((server.buckets[0], server.buckets[16]), (1, 1));
    }

    #[test]
    fn the_99th_percentile_is_in_the_bucket_of_its_rank() {
        let buckets = |counts: &[(usize, u64)]| {
            let mut buckets = [0; BUCKETS];
            counts.iter().for_each(|(at, count)| buckets[*at] = *count);
            p99(&buckets).map(|latency| latency.as_micros())
        };
        assert_eq!(buckets(&[]), None);
        assert_eq!(buckets(&[(0, 1)]), Some(100));
        assert_eq!(buckets(&[(3, 99), (9, 1)]), Some(1_000));
        assert_eq!(buckets(&[(3, 98), (9, 2)]), Some(75_000));
        assert_eq!(buckets(&[(16, 5)]), Some(10_000_000));
    }
}
