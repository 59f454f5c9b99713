//! What makes a connection late, and when: all that is decided at a sweep.

use std::time::Duration;

use tokio::time::Instant;

use super::draining::{LAST_HANDSHAKE, LAST_REQUEST};
use super::{Entry, LINGER, Phase, TICK, Watch};
use crate::listen::pace::Demand;
use crate::listen::transfer::Way;
use crate::listen::{Protocol, Slow};

// === impl Watch ===

impl Watch {
    /// Takes note of the bytes of a body that came and cannot be read yet.
    pub(in crate::listen) fn has_unread(&self, bytes: usize) {
        self.entry.unread.set(bytes as u64);
    }
}

// === impl Entry ===

impl Entry {
    /// What its client owes.
    pub(in crate::listen) fn demand(&self, way: Way) -> Demand {
        Demand {
            silence: match way {
                Way::In => self.limits.request_body_timeout,
                Way::Out => self.limits.response_write_timeout,
            },
            rate: self.limits.min_rate,
            window: self.limits.rate_window,
        }
    }

    /// Whether its socket takes no more until the client reads.
    pub(in crate::listen) fn is_blocked(&self) -> bool {
        self.signal.is_blocked()
    }

    /// Counts a request's body that cannot be read.
    pub(in crate::listen) fn malformed_body(&self) {
        let bodies = &self.core.malformed_bodies;
        bodies.set(bodies.get() + 1);
    }

    /// Bytes of a request's body that came and cannot be read yet.
    pub(in crate::listen) fn unread(&self) -> u64 {
        self.unread.get()
    }

    pub(super) fn sweep(&self, now: Instant, elapsed: Duration) {
        let late = self.reads_late(now, elapsed);
        if late.is_some() {
            self.signal.give_up();
        }
        let late = late.or_else(|| self.is_late(now));
        if late.is_some() {
            self.expired.set(late);
            self.wake();
        }
    }

    /// Whether the client does not take what it asked for.
    fn reads_late(&self, now: Instant, elapsed: Duration) -> Option<Slow> {
        let (written, blocked) = (self.signal.written(), self.signal.is_blocked());
        // The rest of an answer that a slow client still takes is no idleness.
        if blocked && matches!(self.phase.get(), Phase::Idle(_)) {
            self.since.set(now);
        }
        let demand = self.demand(Way::Out);
        let blocked = blocked && !self.is_tunnel();
        let slow = self.writing.is_slow(elapsed, written, blocked, &demand);
        slow.then_some(Slow::Reading)
    }

    /// Whether what the connection is in has lasted too long.
    fn is_late(&self, now: Instant) -> Option<Slow> {
        self.listen(now);
        if self.is_owed() {
            return Some(Slow::Head);
        }
        let header_timeout = self.limits.header_timeout;
        let (limit, slow) = match self.phase.get() {
            Phase::Busy(_) => return None,
            Phase::Fresh(_) if self.is_draining() => (LAST_REQUEST, Slow::Closing),
            Phase::Idle(_) if self.is_draining() => (LAST_REQUEST, Slow::Idle),
            Phase::Idle(_) => (self.limits.idle_timeout, Slow::Idle),
            Phase::Linger => (LINGER.min(header_timeout), Slow::Closing),
            Phase::Closing => (header_timeout, Slow::Closing),
            Phase::Handshake if self.is_draining() => {
                (LAST_HANDSHAKE.min(header_timeout), Slow::Handshake)
            }
            Phase::Handshake => (header_timeout, Slow::Handshake),
            Phase::Fresh(_) | Phase::Head => (header_timeout, Slow::Head),
        };
        // `since` may be a tick older than the event it stands for.
        (now.duration_since(self.since.get()) > limit + TICK).then_some(slow)
    }

    /// Takes note of what the client sent since the last sweep.
    fn listen(&self, now: Instant) {
        let next = match self.phase.get() {
            Phase::Fresh(Protocol::Http1) | Phase::Idle(Protocol::Http1) => Phase::Head,
            Phase::Fresh(Protocol::Http2) => Phase::Idle(Protocol::Http2),
            _ => return,
        };
        if self.signal.take_heard() {
            self.phase.set(next);
            self.since.set(now);
        }
    }
}
