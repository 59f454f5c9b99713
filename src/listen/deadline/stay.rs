//! Streams of HTTP/2 that outlive their answers: tunnels. They keep their connection busy, and no
//! answer of theirs is waited for.

use super::{Entry, InFlight};

/// Keeps a connection busy for a stream that outlives its answer, until it is dropped.
pub struct Stay(InFlight);

// === impl InFlight ===

impl InFlight {
    /// The same once more, for what may outlive the answer.
    pub(in crate::listen) fn stay(&self) -> Stay {
        let entry = &self.0;
        entry.in_flight.set(entry.in_flight.get().saturating_add(1));
        entry.stays.set(entry.stays.get().saturating_add(1));
        entry.room.forget();
        Stay(Self(entry.clone()))
    }
}

// === impl Entry ===

impl Entry {
    /// Whether all that is in flight are tunnels, which may be as slow as they like.
    pub(super) fn is_tunnel(&self) -> bool {
        self.stays.get() > 0 && self.stays.get() == self.in_flight.get()
    }
}

// === impl Stay ===

impl Drop for Stay {
    fn drop(&mut self) {
        let stays = &self.0.0.stays;
        stays.set(stays.get().saturating_sub(1));
    }
}
