//! How many connections there is room for.

use crate::listen::{self, Gate};
use crate::observe::Log;

/// A gate for `max_connections`, or as many as the process has file descriptors for.
pub fn gate(max_connections: usize, log: &Log) -> Gate {
    let descriptors = listen::raise_descriptors();
    let most = listen::connections_for(descriptors);
    if max_connections > most {
        log.warn(
            "too few file descriptors for server.max_connections",
            &[
                ("max_connections", &max_connections),
                ("connections", &most),
                ("descriptors", &descriptors),
            ],
        );
    }
    Gate::new(max_connections).capped(most)
}
