//! What the requests of a connection share: what its listener counts, and how its answers end.

use crate::listen::{Fate, Fates, Watch};
use crate::observe::{Cut, ListenerMetrics};
use crate::snapshot::Listener;

/// The way in that a request took.
pub struct Entrance {
    /// What its listener counts.
    pub metrics: ListenerMetrics,
    fates: Fates,
}

// === impl Entrance ===

impl Entrance {
    /// The way through `listener` of the connection that is watched.
    pub fn new(listener: &Listener, watch: &Watch) -> Self {
        Self {
            metrics: listener.metrics.clone(),
            fates: watch.fates(),
        }
    }

    /// How the answer ends whose body is being dropped.
    pub fn fate(&self) -> Fate {
        self.fates.take()
    }
}

/// Why the body of an answer is dropped before its end. `over`: the gateway's time is.
pub fn why_dropped(fate: Fate, over: bool) -> Cut {
    match (over, fate.slow) {
        _ if std::thread::panicking() => Cut::Panic,
        (true, _) => Cut::Drain,
        (_, true) => Cut::Slow,
        _ => Cut::Client,
    }
}
