//! The idle connections to one server. Never opens one, and never sends.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use super::exchange::Connection;
use crate::clock::Timestamp;

/// How long a connection may stand idle.
const IDLE: Duration = Duration::from_secs(60);

/// The idle connections to one server, the longest idle first.
pub(super) struct Shelf {
    idle: RefCell<VecDeque<Idle>>,
    max: Cell<usize>,
    /// The time of the last pruning: good enough to age by, and no clock is read on a request.
    now: Rc<Cell<Timestamp>>,
}

struct Idle {
    connection: Connection,
    since: Timestamp,
}

// === impl Shelf ===

impl Shelf {
    pub(super) fn new(now: Rc<Cell<Timestamp>>) -> Self {
        Self {
            idle: RefCell::default(),
            max: Cell::new(0),
            now,
        }
    }

    /// The connection used last, so that the others can grow old. One that is not ready yet
    /// stays: its task has still to see that the exchange is over.
    pub(super) fn take(&self) -> Option<Connection> {
        let mut idle = self.idle.borrow_mut();
        let mut at = idle.len();
        while let Some(next) = at.checked_sub(1) {
            at = next;
            let connection = &idle.get(at)?.connection;
            if connection.is_closed() {
                idle.remove(at);
            } else if connection.is_ready() {
                return idle.remove(at).map(|idle| idle.connection);
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
        if connection.is_closed() || self.max.get() == 0 {
            return;
        }
        let mut idle = self.idle.borrow_mut();
        while idle.len() >= self.max.get() {
            idle.pop_front();
        }
        let since = self.now.get();
        idle.push_back(Idle { connection, since });
    }

    pub(super) fn prune(&self, now: Timestamp) {
        self.idle
            .borrow_mut()
            .retain(|idle| !idle.connection.is_closed() && now.since(idle.since) < IDLE);
    }

    pub(super) fn close(&self) {
        self.max.set(0);
        self.idle.borrow_mut().clear();
    }
}
