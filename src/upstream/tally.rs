//! What became of the requests to a server, as numbers. Knows nothing of metrics.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts of one configured server, which go on while the addresses behind its name change.
#[derive(Debug, Default)]
pub struct Tally {
    ok: AtomicU64,
    connect_error: AtomicU64,
    error: AtomicU64,
    timeout: AtomicU64,
    retried: AtomicU64,
}

/// How one attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Result {
    /// A response came.
    Ok,
    /// No connection could be made.
    ConnectError,
    /// The connection broke, or what came was no response.
    Error,
    /// The server took too long.
    Timeout,
}

/// A server's numbers at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Requests on their way.
    pub in_flight: usize,
    /// Addresses that take requests, with nothing known against them.
    pub healthy: usize,
    /// A response came.
    pub ok: u64,
    /// No connection could be made.
    pub connect_error: u64,
    /// The connection broke, or what came was no response.
    pub error: u64,
    /// The server took too long.
    pub timeout: u64,
    /// Requests that were sent once more after this server failed them.
    pub retried: u64,
}

// === impl Tally ===

impl Tally {
    pub(super) fn count(&self, result: Result) {
        let count = match result {
            Result::Ok => &self.ok,
            Result::ConnectError => &self.connect_error,
            Result::Error => &self.error,
            Result::Timeout => &self.timeout,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn retried(&self) {
        self.retried.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn figures(&self) -> Figures {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Figures {
            ok: read(&self.ok),
            connect_error: read(&self.connect_error),
            error: read(&self.error),
            timeout: read(&self.timeout),
            retried: read(&self.retried),
            ..Figures::default()
        }
    }
}
