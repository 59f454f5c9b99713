//! File descriptors that the admin port keeps, to answer when the process has no other left.

use std::os::fd::{AsFd, OwnedFd};

/// How many are kept.
const KEPT: usize = 16;

/// Descriptors that are good for nothing but to be closed.
#[derive(Default)]
pub(super) struct Spares(Vec<OwnedFd>);

// === impl Spares ===

impl Spares {
    /// Takes as many as are missing, as far as the process has them.
    pub(super) fn fill(&mut self, of: impl AsFd) {
        while self.0.len() < KEPT {
            match of.as_fd().try_clone_to_owned() {
                Ok(spare) => self.0.push(spare),
                Err(_) => return,
            }
        }
    }

    /// Closes one, so that its number is free; false: there is none.
    pub(super) fn give(&mut self) -> bool {
        self.0.pop().is_some()
    }
}
