//! The audit lines: one for each change through the admin port.

use std::net::SocketAddr;

use tracing::info;

/// Logs a change. The log escapes text of clients.
pub(super) fn log_change(peer: SocketAddr, change: &str) {
    info!(client = %peer, change, "admin change");
}
