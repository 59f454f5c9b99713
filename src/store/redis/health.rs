//! The state of the connection to the shared store, for metrics, log and admin API. All cores write it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::clock::Timestamp;
use crate::store::StoreError;

/// The upper bounds of the round-trip histogram, in microseconds. One more bucket has no bound.
pub const ROUND_TRIP_BOUNDS: [u64; 16] = [
    100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000,
    1_000_000, 2_500_000, 5_000_000, 10_000_000,
];

/// How long after a failed call the state is [`StoreState::Degraded`].
const DEGRADED_FOR: Duration = Duration::from_secs(10);

/// The state of the shared store, as this gateway sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreState {
    /// Every call of the last ten seconds succeeded.
    Ok,
    /// A call of the last ten seconds failed and its request used the fallback, or a server of a Cluster has failed.
    Degraded,
    /// A circuit breaker is open: requests use the fallback.
    Down,
}

/// Counts of calls and failures.
#[derive(Debug, Default)]
pub struct StoreHealth {
    errors: [AtomicU64; StoreError::ALL.len()],
    round_trips: [AtomicU64; ROUND_TRIP_BOUNDS.len() + 1],
    round_trip_micros: AtomicU64,
    last_failure: AtomicU64,
    /// The number of the last error, plus one. 0 without an error.
    last_error: AtomicUsize,
    open_breakers: AtomicUsize,
    /// The servers of a Cluster that have failed, each with the number of cores for which it has. Locked only when a
    /// server fails or recovers, and to show the state.
    failed_nodes: Mutex<BTreeMap<String, usize>>,
    /// Whether the current outage was logged.
    is_reported: AtomicBool,
    /// Whether it was logged that the server refuses the gateway.
    is_refusal_reported: AtomicBool,
    /// Whether a core has ever connected.
    has_connected: AtomicBool,
}

impl StoreHealth {
    /// Counts a call that failed at `now`.
    pub(super) fn count_error(&self, error: StoreError, now: Timestamp) {
        if let Some(count) = self.errors.get(error as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        self.last_failure.store(now.as_nanos(), Ordering::Relaxed);
        self.last_error.store(error as usize + 1, Ordering::Relaxed);
    }

    /// Counts a call that succeeded.
    pub(super) fn count_round_trip(&self, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let bucket = ROUND_TRIP_BOUNDS.partition_point(|bound| *bound < micros);
        if let Some(count) = self.round_trips.get(bucket) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        self.round_trip_micros.fetch_add(micros, Ordering::Relaxed);
    }

    /// Counts a circuit breaker that opens.
    pub(super) fn open_breaker(&self) {
        self.open_breakers.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a circuit breaker that closes. Returns whether that is worth a log line: no breaker is open any more,
    /// and that is the start of the process or the end of an outage that was reported.
    pub(super) fn close_breaker(&self) -> bool {
        if self.open_breakers.fetch_sub(1, Ordering::Relaxed) != 1 {
            return false;
        }
        let is_start = !self.has_connected.swap(true, Ordering::Relaxed);
        let was_reported = self.is_reported.swap(false, Ordering::Relaxed);
        let was_refused = self.is_refusal_reported.swap(false, Ordering::Relaxed);
        is_start || was_reported || was_refused
    }

    /// Returns whether the current outage has not been reported before.
    pub(super) fn is_new_outage(&self) -> bool {
        !self.is_reported.swap(true, Ordering::Relaxed)
    }

    /// Returns whether it has not been reported before that the server refuses the gateway.
    pub(super) fn is_new_refusal(&self) -> bool {
        !self.is_refusal_reported.swap(true, Ordering::Relaxed)
    }

    /// Counts a server of a Cluster that has failed for a core. Returns whether it is the first core.
    pub(super) fn fail_node(&self, server: &str) -> bool {
        let mut failed = self.failed_nodes();
        let cores = failed.entry(server.to_owned()).or_default();
        *cores += 1;
        *cores == 1
    }

    /// Counts a server of a Cluster that a core uses again. Returns whether it is the last core.
    pub(super) fn recover_node(&self, server: &str) -> bool {
        let mut failed = self.failed_nodes();
        let Some(cores) = failed.get_mut(server) else {
            return false;
        };
        *cores -= 1;
        *cores == 0 && failed.remove(server).is_some()
    }

    fn failed_nodes(&self) -> MutexGuard<'_, BTreeMap<String, usize>> {
        let failed = self.failed_nodes.lock();
        failed.unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a server of a Cluster has failed.
    pub fn has_failed_node(&self) -> bool {
        !self.failed_nodes().is_empty()
    }

    /// Whether a circuit breaker is open.
    pub fn is_down(&self) -> bool {
        self.open_breakers.load(Ordering::Relaxed) > 0
    }

    /// The state at `now`.
    pub fn state(&self, now: Timestamp) -> StoreState {
        let last = self.last_failure.load(Ordering::Relaxed);
        if self.is_down() {
            StoreState::Down
        } else if self.has_failed_node()
            || last > 0 && now.since(Timestamp::from_nanos(last)) < DEGRADED_FOR
        {
            StoreState::Degraded
        } else {
            StoreState::Ok
        }
    }

    /// The newest error. `None` if no call has failed.
    pub fn last_error(&self) -> Option<StoreError> {
        let number = self.last_error.load(Ordering::Relaxed).checked_sub(1)?;
        StoreError::ALL.get(number).copied()
    }

    /// The failed calls since the start, by kind.
    pub fn errors(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let counts = self
            .errors
            .iter()
            .map(|count| count.load(Ordering::Relaxed));
        StoreError::ALL.iter().map(|error| error.kind()).zip(counts)
    }

    /// The successful calls since the start, per bucket of the histogram, and the sum of their times.
    pub fn round_trips(&self) -> (Vec<u64>, Duration) {
        let counts = self.round_trips.iter();
        let counts = counts.map(|count| count.load(Ordering::Relaxed)).collect();
        let sum = Duration::from_micros(self.round_trip_micros.load(Ordering::Relaxed));
        (counts, sum)
    }
}
