//! How many connections there is room for.

use crate::listen::{self, Gate};
use crate::observe::Field::Number;
use crate::observe::Log;

/// A gate for `max_connections`, or as many as the process has file descriptors for.
pub fn gate(max_connections: usize, log: &Log) -> Gate {
    let descriptors = listen::raise_descriptors();
    let most = listen::connections_for(descriptors);
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
