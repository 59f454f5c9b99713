//! What an HTTP/2 client has begun and must end: its preface, or a head. Nothing else can be said on
//! the connection until it has (RFC 9113, 4.3), so the whole connection waits for it.

use std::cell::Cell;
use std::time::Duration;

use tokio::time::Instant;

use super::{Entry, TICK, Watch};

/// The preface or head that is owed, by its number, and since when.
pub(super) struct Owed {
    head: Cell<Option<(u32, Instant)>>,
    timeout: Duration,
}

// === impl Owed ===

impl Owed {
    pub(super) const fn new(timeout: Duration) -> Self {
        let head = Cell::new(None);
        Self { head, timeout }
    }
}

// === impl Watch ===

impl Watch {
    /// Says which preface or head is begun and not ended, after each read.
    pub(in crate::listen) fn owes(&self, head: Option<u32>) {
        let owed = &self.entry.owed.head;
        let since = match (owed.get(), head) {
            (Some((before, since)), Some(head)) if before == head => since,
            _ => self.now(),
        };
        owed.set(head.map(|head| (head, since)));
    }
}

// === impl Entry ===

impl Entry {
    /// Whether the client has owed the rest for too long.
    pub(super) fn is_owed(&self) -> bool {
        let late = |since: Instant| self.core.now.get().duration_since(since);
        let owed = self.owed.head.get();
        owed.is_some_and(|(_, since)| late(since) > self.owed.timeout + TICK)
    }
}
