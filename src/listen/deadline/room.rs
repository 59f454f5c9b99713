//! What an HTTP/2 client has said that it takes at once. The rest of an answer waits for it in h2,
//! where nobody sees whether it is ever taken: so the answer must not end there.

use std::cell::Cell;

use super::{InFlight, Watch};
use crate::listen::meter::{WINDOW_AT_FIRST, Windows};

/// The windows of a connection. Never larger than they are; smaller where streams broke off.
pub(super) struct Room {
    stream: Cell<u32>,
    left: Cell<i64>,
    /// What the connection got beyond the window at first, so far.
    more: Cell<u64>,
}

// === impl Room ===

impl Room {
    pub(super) const fn new() -> Self {
        Self {
            stream: Cell::new(WINDOW_AT_FIRST),
            left: Cell::new(WINDOW_AT_FIRST as i64),
            more: Cell::new(0),
        }
    }

    /// Says that others send on the connection, who do not say how much.
    pub(super) fn forget(&self) {
        self.left.set(i64::MIN);
    }
}

// === impl Watch ===

impl Watch {
    /// Takes note of what the client allows, after each read.
    pub(in crate::listen) fn allows(&self, windows: Windows) {
        let room = &self.entry.room;
        room.stream.set(windows.stream);
        let more = windows.more - room.more.replace(windows.more);
        if room.left.get() != i64::MIN {
            room.left.set(room.left.get().saturating_add_unsigned(more));
        }
    }
}

// === impl InFlight ===

impl InFlight {
    /// Whether the client takes so many bytes at once on a stream that was given so many before.
    pub(in crate::listen) fn takes(&self, given: u64, bytes: usize) -> bool {
        let room = &self.0.room;
        let left = u64::try_from(room.left.get()).unwrap_or(0);
        let bytes = bytes as u64;
        bytes <= left && given + bytes <= u64::from(room.stream.get())
    }

    /// So many bytes were given to it.
    pub(in crate::listen) fn gave(&self, bytes: usize) {
        let left = &self.0.room.left;
        left.set(left.get().saturating_sub_unsigned(bytes as u64));
    }
}
