//! Estimates the server's clock, so that a call can carry a deadline in the server's time.

use std::time::Duration;

use crate::clock::Timestamp;

/// The estimated difference between the server's clock and ours.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ServerClock {
    /// Microseconds by which the server's clock is ahead. `None` before the first reply.
    offset: Option<i64>,
    /// Whether replies come from several servers. The estimate is then that of the clock that is furthest ahead:
    /// a deadline may be too late, but never too early.
    many_servers: bool,
}

impl ServerClock {
    /// A clock of which nothing is known.
    pub(super) fn new(many_servers: bool) -> Self {
        Self {
            offset: None,
            many_servers,
        }
    }

    /// Corrects the estimate: the server's clock showed `server` at some time between `sent` and `received`.
    pub(super) fn observe(&mut self, sent: Timestamp, received: Timestamp, server: Timestamp) {
        let lowest = difference(server, received);
        let highest = difference(server, sent).max(lowest);
        self.offset = Some(match self.offset {
            None => highest,
            Some(offset) if self.many_servers => offset.max(lowest),
            Some(offset) => offset.clamp(lowest, highest),
        });
    }

    /// The server's time `timeout` after `now`, in microseconds. 0, no deadline, if the clock is unknown.
    pub(super) fn deadline(&self, now: Timestamp, timeout: Duration) -> u64 {
        let Some(offset) = self.offset else { return 0 };
        let deadline = now.plus(timeout).as_micros();
        deadline.saturating_add_signed(offset)
    }
}

/// Microseconds from `ours` to `server`.
fn difference(server: Timestamp, ours: Timestamp) -> i64 {
    let (server, ours) = (server.as_micros() as i64, ours.as_micros() as i64);
    server.saturating_sub(ours)
}
