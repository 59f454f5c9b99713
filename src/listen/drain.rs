//! The end of work, of a whole gateway or of one listener: no new connections, and a wait until
//! those of a core have ended.
//!
//! It carries the word and counts; closing is the work of the accept loop and of each connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tokio::sync::{Notify, watch};

/// Starts the drain of all cores.
#[derive(Clone, Debug)]
pub struct DrainTrigger(Arc<watch::Sender<Stage>>);

/// How far a gateway is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// At work.
    Open,
    /// Ending.
    Draining,
    /// Ending; another process accepts from its sockets.
    HandedOver,
    /// Ending at once.
    Over,
}

/// One core's side of the drain. Clones count together.
#[derive(Clone, Debug)]
pub struct Drain {
    stage: watch::Receiver<Stage>,
    leaving: Arc<Leaving>,
    open: Arc<Open>,
}

/// Whether a listener alone is to end.
#[derive(Debug, Default)]
struct Leaving {
    told: AtomicBool,
    word: Notify,
}

/// The open connections of a core.
#[derive(Debug, Default)]
struct Open {
    count: AtomicUsize,
    none: Notify,
}

/// One open connection, until it is dropped.
#[derive(Debug)]
pub(super) struct Presence {
    open: Arc<Open>,
    leaving: Arc<Leaving>,
}

// === impl DrainTrigger ===

impl DrainTrigger {
    /// A trigger that has not been pulled.
    pub fn new() -> Self {
        Self(Arc::new(watch::Sender::new(Stage::Open)))
    }

    /// Starts the drain; the second time changes nothing.
    pub fn start(&self) {
        self.begin(Stage::Draining);
    }

    /// Starts the drain of a gateway whose sockets another process has.
    pub fn hand_over(&self) {
        self.begin(Stage::HandedOver);
    }

    /// Ends the drain, whether it has started or not: nothing is waited for any more.
    pub fn cut(&self) {
        self.0.send_replace(Stage::Over);
    }

    fn begin(&self, stage: Stage) {
        self.0.send_if_modified(|now| {
            let open = *now == Stage::Open;
            if open {
                *now = stage;
            }
            open
        });
    }

    /// Whether the drain has started.
    pub fn is_started(&self) -> bool {
        *self.0.borrow() != Stage::Open
    }

    /// A core's side, with a count of its own.
    pub fn core(&self) -> Drain {
        Drain {
            stage: self.0.subscribe(),
            leaving: Arc::default(),
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
    /// The same for one listener of the core, which can end before the others.
    pub fn apart(&self) -> Self {
        Self {
            leaving: Arc::default(),
            ..self.clone()
        }
    }

    /// Starts the drain of this listener. Its connections look when they are woken: see
    /// [`super::Deadlines::tell`].
    pub fn leave(&self) {
        self.leaving.told.store(true, Ordering::Release);
        self.leaving.word.notify_waiters();
    }

    /// Whether the drain has started.
    pub fn is_started(&self) -> bool {
        self.leaving.is_told() || *self.stage.borrow() != Stage::Open
    }

    /// Waits for the drain to start. A trigger that is gone will never start it.
    pub async fn started(&self) {
        tokio::select! {
            () = self.all_started() => {}
            () = self.leaving.told() => {}
        }
    }

    /// Waits for the word that nothing is waited for any more.
    pub async fn over(&self) {
        let mut stage = self.stage.clone();
        if stage.wait_for(|stage| *stage == Stage::Over).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    async fn all_started(&self) {
        let mut stage = self.stage.clone();
        let started = stage.wait_for(|stage| *stage != Stage::Open).await;
        if started.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Whether all of the gateway ends, and nobody takes its sockets over.
    pub(super) fn is_of_all(&self) -> bool {
        *self.stage.borrow() == Stage::Draining
    }

    /// Whether what waits in the sockets' queues is left there, for another process or for nobody.
    pub(super) fn is_handed_over(&self) -> bool {
        matches!(*self.stage.borrow(), Stage::HandedOver | Stage::Over)
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
        Presence {
            open: self.open.clone(),
            leaving: self.leaving.clone(),
        }
    }
}

// === impl Leaving ===

impl Leaving {
    fn is_told(&self) -> bool {
        self.told.load(Ordering::Acquire)
    }

    async fn told(&self) {
        let mut word = std::pin::pin!(self.word.notified());
        // Registered before the flag is read, so that the word is not missed.
        word.as_mut().enable();
        if !self.is_told() {
            word.await;
        }
    }
}

// === impl Presence ===

impl Presence {
    /// Whether the listener that it came through is to end.
    pub(super) fn is_leaving(&self) -> bool {
        self.leaving.is_told()
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        if self.open.count.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.open.none.notify_waiters();
        }
    }
}
