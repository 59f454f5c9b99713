//! The end of work: no new connections, and a wait until those of a core have ended.
//!
//! It carries the word and counts; closing is the work of the accept loop and of each connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{Notify, watch};

/// Starts the drain of all cores.
#[derive(Clone, Debug)]
pub struct DrainTrigger(Arc<watch::Sender<bool>>);

/// One core's side of the drain. Clones count together.
#[derive(Clone, Debug)]
pub struct Drain {
    started: watch::Receiver<bool>,
    open: Arc<Open>,
}

/// The open connections of a core.
#[derive(Debug, Default)]
struct Open {
    count: AtomicUsize,
    none: Notify,
}

/// One open connection, until it is dropped.
#[derive(Debug)]
pub(super) struct Presence(Arc<Open>);

// === impl DrainTrigger ===

impl DrainTrigger {
    /// A trigger that has not been pulled.
    pub fn new() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }

    /// Starts the drain; the second time changes nothing.
    pub fn start(&self) {
        self.0.send_replace(true);
    }

    /// Whether the drain has started.
    pub fn is_started(&self) -> bool {
        *self.0.borrow()
    }

    /// A core's side, with a count of its own.
    pub fn core(&self) -> Drain {
        Drain {
            started: self.0.subscribe(),
            open: Arc::default(),
        }
    }
}

impl Default for DrainTrigger {
    fn default() -> Self {
        Self::new()
    }
}

// === impl Drain ===

impl Drain {
    /// Whether the drain has started.
    pub fn is_started(&self) -> bool {
        *self.started.borrow()
    }

    /// Waits for the drain to start. A trigger that is gone will never start it.
    pub async fn started(&self) {
        let mut started = self.started.clone();
        if started.wait_for(|started| *started).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// How many connections of this core are open, tunnels included.
    pub fn open(&self) -> usize {
        self.open.count.load(Ordering::Acquire)
    }

    /// Waits until no connection of this core is open.
    pub async fn ended(&self) {
        loop {
            let mut none = std::pin::pin!(self.open.none.notified());
            // Registered before the count is read, so that the last drop is not missed.
            none.as_mut().enable();
            if self.open() == 0 {
                return;
            }
            none.await;
        }
    }

    pub(super) fn enter(&self) -> Presence {
        self.open.count.fetch_add(1, Ordering::AcqRel);
        Presence(self.open.clone())
    }
}

// === impl Presence ===

impl Drop for Presence {
    fn drop(&mut self) {
        if self.0.count.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.none.notify_waiters();
        }
    }
}
