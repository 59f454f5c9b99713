//! A request that keeps its connection busy, until its answer has ended.

use std::rc::Rc;

use super::{Entry, Phase};
use crate::listen::io::Signal;

/// A request in flight, until its answer has ended or was given up.
pub(in crate::listen) struct InFlight(pub(super) Rc<Entry>);

// === impl InFlight ===

impl InFlight {
    /// Whether the client does not take what it was given.
    pub(in crate::listen) fn is_blocked(&self) -> bool {
        self.0.is_blocked()
    }

    /// Says that there is more of the answer, once the socket takes more: the driver asks
    /// [`super::Watch::can_go_on`].
    pub(in crate::listen) fn hold(&self) {
        self.0.held.set(true);
    }

    /// What its connection marks.
    pub(in crate::listen) fn signal(&self) -> &Signal {
        &self.0.signal
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let entry = &self.0;
        let left = entry.in_flight.get().saturating_sub(1);
        entry.in_flight.set(left);
        if left == 0 {
            entry.signal.set_busy(false);
        }
        let Phase::Busy(protocol) = entry.phase.get() else {
            return;
        };
        if left == 0 {
            // Bytes heard until now were of this request; those of a next one are read from now on.
            entry.signal.take_heard();
            if entry.signal.has_behind() {
                entry.wake();
            }
            entry.enter(match entry.closing.get() {
                true => Phase::Closing,
                false => Phase::Idle(protocol),
            });
        }
    }
}
