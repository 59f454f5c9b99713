//! The idle connections to one server. Never opens one, and never sends.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use super::alarm::Alarm;
use super::connection::Connection;
use super::inbox::Shared;
use crate::clock::Timestamp;

/// How long a connection may stand idle.
pub(super) const IDLE: Duration = Duration::from_secs(60);

/// The idle connections to one server, the longest idle first.
pub(super) struct Shelf {
    pub(super) local: Rc<Local>,
    idle: RefCell<VecDeque<Idle>>,
    max: Cell<usize>,
}

/// What all exchanges of a core share.
pub(super) struct Local {
    /// The time of the last pruning: good enough to age by, and no clock is read on a request.
    pub(super) now: Cell<Timestamp>,
    pub(super) alarm: Rc<Alarm>,
    pub(super) buffer: Shared,
}

struct Idle {
    connection: Connection,
    since: Timestamp,
}

// === impl Shelf ===

impl Shelf {
    pub(super) fn new(local: Rc<Local>) -> Self {
        Self {
            local,
            idle: RefCell::default(),
            max: Cell::new(0),
        }
    }

    /// The connection used last, so that the others can grow old. One that the origin closed, or
    /// wrote on unasked, is dropped. A request that can be sent `once` only is worth a question to
    /// the kernel.
    pub(super) fn take(&self, once: bool) -> Option<Connection> {
        let mut idle = self.idle.borrow_mut();
        while let Some(Idle { mut connection, .. }) = idle.pop_back() {
            let quiet = match once {
                true => connection.stream.is_quiet(),
                false => connection.stream.seems_quiet(),
            };
            if quiet {
                return Some(connection);
            }
        }
        None
    }

    pub(super) fn len(&self) -> usize {
        self.idle.borrow().len()
    }

    /// Sets how many may stand here.
    pub(super) fn bound(&self, max: usize) {
        self.max.set(max);
    }

    pub(super) fn put(&self, connection: Connection) {
        let max = self.max.get();
        if max == 0 {
            return;
        }
        let mut idle = self.idle.borrow_mut();
        while idle.len() >= max {
            idle.pop_front();
        }
        let since = self.local.now.get();
        idle.push_back(Idle { connection, since });
    }

    pub(super) fn prune(&self, now: Timestamp) {
        self.idle
            .borrow_mut()
            .retain_mut(|idle| now.since(idle.since) < IDLE && idle.connection.stream.is_quiet());
    }

    pub(super) fn close(&self) {
        self.max.set(0);
        self.idle.borrow_mut().clear();
    }
}
