//! How many connections there is room for.

use crate::listen::{self, Gate};
use crate::observe::Field::Number;
use crate::observe::Log;
use crate::snapshot::Snapshot;

/// A gate for `max_connections`, or as many as the process has file descriptors for beside those
/// of so many workers.
pub fn gate(snapshot: &Snapshot, workers: usize, log: &Log) -> Gate {
    let max_connections = snapshot.max_connections;
    let descriptors = listen::raise_descriptors();
    let most = listen::connections_for(descriptors, workers, snapshot.listeners.len());
    if max_connections > most {
        log.warn(
            "too few file descriptors for server.max_connections",
            &[
                Number("max_connections", max_connections as u64),
                Number("connections", most as u64),
                Number("descriptors", descriptors),
            ],
        );
    }
    Gate::new(max_connections).capped(most)
}
