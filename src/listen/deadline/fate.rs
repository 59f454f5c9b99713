//! How the answers of a connection end, for those who learn of it when the body is dropped: a drop
//! alone does not say whether its client has left or was too slow.

use std::cell::Cell;
use std::rc::Rc;

use super::{Entry, InFlight, Watch};
use crate::listen::Slow;

/// How one answer ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fate {
    /// Some of it was taken from its body and not given to the client.
    pub rest: bool,
    /// Its client did not take it in time.
    pub slow: bool,
}

/// The fates of a connection's answers, each while it ends.
pub struct Fates(Rc<Entry>);

/// The fate of the answer that is ending.
#[derive(Default)]
pub(super) struct Ending(Cell<Fate>);

// === impl Fates ===

impl Fates {
    /// How the answer ends whose body is being dropped. Asked twice, nothing is known of it.
    pub fn take(&self) -> Fate {
        self.0.ending.0.take()
    }
}

// === impl Watch ===

impl Watch {
    /// How the answers of the connection end.
    pub fn fates(&self) -> Fates {
        Fates(self.entry.clone())
    }
}

// === impl InFlight ===

impl InFlight {
    /// The answer ends, and right after this its body is dropped.
    pub(in crate::listen) fn ends(&self, fate: Fate) {
        let entry = &self.0;
        let slow = fate.slow || entry.expired.get() == Some(Slow::Reading);
        entry.ending.0.set(Fate { slow, ..fate });
    }
}
