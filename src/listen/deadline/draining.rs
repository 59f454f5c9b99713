//! Connections once the drain has started, of all or of their listener: how long each may take to
//! come to its end. A request that is on its way is answered.

use std::time::Duration;

use tokio::time::Instant;

use super::{Deadlines, Entry, InFlight, Phase};
use crate::listen::Protocol;

/// How old a handshake may get once the drain has started: a client that connected ahead of need
/// and says nothing must not hold it up.
pub(super) const LAST_HANDSHAKE: Duration = Duration::from_secs(1);

/// How long an HTTP/1 client may still ask once the drain has started: a request that is on its
/// way is answered, and the answer says that it was the last.
pub(super) const LAST_REQUEST: Duration = Duration::from_secs(1);

// === impl Deadlines ===

impl Deadlines {
    /// Has every connection look whether the drain has started, of all or of its listener.
    pub fn tell(&self) {
        self.now.set(Instant::now());
        self.each(Entry::hear);
    }
}

// === impl Entry ===

impl Entry {
    pub(super) fn is_draining(&self) -> bool {
        self.core.draining.get() || self.signal.is_leaving()
    }

    /// Whether the client may have sent a request that hyper would not see if it were told to
    /// finish. HTTP/2 needs no such care: GOAWAY says which requests are heard.
    pub(super) fn may_ask(&self) -> bool {
        use Phase::{Fresh, Head, Idle};
        matches!(
            self.phase.get(),
            Fresh(Protocol::Http1) | Idle(Protocol::Http1) | Head
        )
    }

    /// The time for a last request begins with the drain.
    fn hear(&self) {
        if self.is_draining() && !self.told.replace(true) {
            if matches!(self.phase.get(), Phase::Fresh(_) | Phase::Idle(_)) {
                self.since.set(self.core.now.get());
            }
            self.wake();
        }
    }
}

// === impl InFlight ===

impl InFlight {
    /// Whether the connection ends with this request.
    pub(in crate::listen) fn is_last(&self) -> bool {
        self.0.is_draining()
    }
}
