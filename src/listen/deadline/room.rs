//! What an HTTP/2 client has said that it takes at once. The rest of an answer waits for it in h2,
//! where nobody sees whether it is ever taken: so the answer must not end there.

use std::cell::Cell;

use super::{InFlight, Watch};
use crate::listen::meter::Windows;

/// The windows of a connection. Never larger than they are; smaller where streams broke off.
pub(super) struct Room {
    windows: Cell<Windows>,
    /// What was given so far.
    given: Cell<u64>,
}

// === impl Room ===

impl Room {
    pub(super) const fn new() -> Self {
        Self {
            windows: Cell::new(Windows::AT_FIRST),
            given: Cell::new(0),
        }
    }

    /// Says that others send on the connection, who do not say how much.
    pub(super) fn forget(&self) {
        self.given.set(u64::MAX);
    }
}

// === impl Watch ===

impl Watch {
    /// Takes note of what the client allows, after each read.
    pub(in crate::listen) fn allows(&self, windows: Windows) {
        self.entry.room.windows.set(windows);
    }
}

// === impl InFlight ===

impl InFlight {
    /// Whether the client takes so many bytes at once on a stream that was given so many before.
    pub(in crate::listen) fn takes(&self, given: u64, bytes: usize) -> bool {
        let room = &self.0.room;
        let (windows, bytes) = (room.windows.get(), bytes as u64);
        given + bytes <= u64::from(windows.stream)
            && room.given.get().saturating_add(bytes) <= windows.whole
    }

    /// What the client takes of a stream before it says more.
    pub(in crate::listen) fn at_first(&self) -> u64 {
        u64::from(self.0.room.windows.get().stream)
    }

    /// So many bytes were given to it.
    pub(in crate::listen) fn gave(&self, bytes: usize) {
        let given = &self.0.room.given;
        given.set(given.get().saturating_add(bytes as u64));
    }
}
