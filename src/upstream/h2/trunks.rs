//! The HTTP/2 connections of a core to one server. Never opens one itself, but sees to it that
//! requests which come together do not open one each.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use tokio::sync::Notify;

use super::trunk::{STREAMS, Trunk};
use crate::clock::Timestamp;
use crate::upstream::Server;
use crate::upstream::server::InFlight;

/// The connections to one server.
pub(in crate::upstream) struct Trunks {
    open: RefCell<Vec<Rc<Trunk>>>,
    /// Since when none of them was in use.
    idle_since: Cell<Option<Timestamp>>,
    /// How many are being opened, and how many requests wait for one of them.
    opening: Cell<usize>,
    waiting: Cell<usize>,
    /// How many requests the last one took at once.
    room: Cell<usize>,
    /// How many were opened so far.
    opened: Cell<u64>,
    turn: Notify,
    /// The server chose HTTP/1.1 last.
    http1: Cell<bool>,
}

/// A place for one request on a connection; free when dropped.
pub(in crate::upstream) struct Seat {
    pub(super) trunk: Rc<Trunk>,
    pub(super) in_flight: InFlight,
}

/// Others wait for the connection that its holder opens.
pub(in crate::upstream) struct Opening<'a>(&'a Trunks);

/// A request that waits for a connection.
struct Waiting<'a>(&'a Trunks);

// === impl Trunks ===

impl Trunks {
    /// A connection with room for a request.
    pub(in crate::upstream) fn take(&self) -> Option<Rc<Trunk>> {
        let mut open = self.open.borrow_mut();
        open.retain(|trunk| trunk.is_open());
        open.iter().find(|trunk| trunk.has_room()).cloned()
    }

    /// Keeps a new connection.
    pub(in crate::upstream) fn put(&self, trunk: Trunk) -> Rc<Trunk> {
        let trunk = Rc::new(trunk);
        self.room.set(trunk.room());
        self.opened.set(self.opened.get() + 1);
        self.open.borrow_mut().push(Rc::clone(&trunk));
        self.idle_since.set(None);
        trunk
    }

    /// Begins to open a connection, for which others may wait.
    pub(in crate::upstream) fn begin(&self) -> Opening<'_> {
        self.opening.set(self.opening.get() + 1);
        Opening(self)
    }

    /// Whether a connection that is being opened will have room for one more request.
    pub(in crate::upstream) fn expects_room(&self) -> bool {
        let opening = self.opening.get();
        let seats = opening.saturating_mul(self.room.get());
        opening + self.waiting.get() < seats
    }

    /// Waits for a connection that somebody opens; whether there is one more than before.
    pub(in crate::upstream) async fn wait(&self) -> bool {
        let before = self.opened.get();
        let _waiting = Waiting::begin(self);
        self.turn.notified().await;
        self.opened.get() > before
    }

    /// Whether the server chose HTTP/1.1 last.
    pub(in crate::upstream) fn is_http1(&self) -> bool {
        self.http1.get()
    }

    /// Remembers what the server chose.
    pub(in crate::upstream) fn note(&self, http1: bool) {
        self.http1.set(http1);
    }

    /// Connections without a request.
    pub(in crate::upstream) fn idle(&self) -> usize {
        let open = self.open.borrow();
        open.iter().filter(|trunk| trunk.is_idle()).count()
    }

    pub(in crate::upstream) fn len(&self) -> usize {
        self.open.borrow().len()
    }

    /// Closes what was not used for `most`.
    pub(in crate::upstream) fn prune(&self, now: Timestamp, most: std::time::Duration) {
        let mut open = self.open.borrow_mut();
        open.retain(|trunk| trunk.is_open());
        if open.iter().any(|trunk| !trunk.is_idle()) {
            self.idle_since.set(None);
            return;
        }
        let since = self.idle_since.get().unwrap_or(now);
        self.idle_since.set(Some(since));
        if now.since(since) >= most {
            open.clear();
        }
    }
}

impl Default for Trunks {
    fn default() -> Self {
        Self {
            open: RefCell::default(),
            idle_since: Cell::default(),
            opening: Cell::default(),
            waiting: Cell::default(),
            room: Cell::new(STREAMS as usize),
            opened: Cell::default(),
            turn: Notify::new(),
            http1: Cell::default(),
        }
    }
}

// === impl Waiting ===

impl<'a> Waiting<'a> {
    fn begin(trunks: &'a Trunks) -> Self {
        trunks.waiting.set(trunks.waiting.get() + 1);
        Self(trunks)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.set(self.0.waiting.get().saturating_sub(1));
    }
}

// === impl Opening ===

impl Drop for Opening<'_> {
    fn drop(&mut self) {
        self.0.opening.set(self.0.opening.get().saturating_sub(1));
        self.0.turn.notify_waiters();
    }
}

// === impl Seat ===

impl Seat {
    pub(in crate::upstream) fn new(trunk: Rc<Trunk>, in_flight: InFlight) -> Self {
        trunk.enter();
        Self { trunk, in_flight }
    }

    pub(in crate::upstream) fn server(&self) -> &Arc<Server> {
        self.in_flight.server()
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.trunk.leave();
    }
}
