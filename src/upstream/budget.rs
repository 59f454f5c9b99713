//! How many requests may be sent a second time: a share of all, so that servers in trouble do not
//! get more to do because of it. One a core; reads no clock.

use std::cell::Cell;

/// One retry for so many requests: 20 %.
const SHARE: u32 = 5;

/// Retries that are always allowed between two refills.
const FLOOR: u32 = 10;

/// The most that is saved up.
const MOST: u32 = 100;

/// What is left, in parts of a retry.
pub(super) struct Budget(Cell<u32>);

// === impl Budget ===

impl Budget {
    pub(super) fn new() -> Self {
        Self(Cell::new(FLOOR * SHARE))
    }

    /// A request came.
    pub(super) fn request(&self) {
        self.add(1);
    }

    /// Time has passed.
    pub(super) fn refill(&self) {
        self.add(FLOOR * SHARE);
    }

    /// Takes a retry, if one is left.
    pub(super) fn take(&self) -> bool {
        let left = self.0.get().checked_sub(SHARE);
        left.inspect(|left| self.0.set(*left)).is_some()
    }

    fn add(&self, parts: u32) {
        self.0.set((self.0.get() + parts).min(MOST * SHARE));
    }
}
