//! The drain of a whole gateway or of one listener: no new connections, and a wait until the open
//! connections of a core have ended.
//!
//! It only signals and counts; the accept loop and each connection close by themselves.

use std::sync::Arc;

use tokio::sync::watch;

/// Starts the drain of all cores.
#[derive(Clone, Debug, Default)]
pub struct DrainTrigger(Arc<watch::Sender<Stage>>);

/// How far a gateway is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    /// At work.
    #[default]
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
pub struct CoreDrain {
    stage: watch::Receiver<Stage>,
    /// Whether this listener drains.
    listener: Arc<watch::Sender<bool>>,
    /// How many connections of the core are open.
    open: Arc<watch::Sender<usize>>,
}

/// One open connection, until it is dropped.
#[derive(Debug)]
pub(super) struct DrainingConnection {
    open: Arc<watch::Sender<usize>>,
    listener: Arc<watch::Sender<bool>>,
}

// === impl DrainTrigger ===

impl DrainTrigger {
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

    /// A core's side, with a count of its own.
    pub fn core(&self) -> CoreDrain {
        CoreDrain {
            stage: self.0.subscribe(),
            listener: Arc::default(),
            open: Arc::default(),
        }
    }
}

// === impl CoreDrain ===

impl CoreDrain {
    /// The drain of one listener of the core, which can start before that of the others.
    pub fn apart(&self) -> Self {
        Self {
            listener: Arc::default(),
            ..self.clone()
        }
    }

    /// Starts the drain of this listener. Its connections look when they are woken: see
    /// [`super::ConnectionTimers::notice_drain`].
    pub fn leave(&self) {
        self.listener.send_replace(true);
    }

    /// Whether the drain has started.
    pub fn is_started(&self) -> bool {
        *self.listener.borrow() || *self.stage.borrow() != Stage::Open
    }

    /// Waits for the drain to start. A trigger that is gone will never start it.
    pub async fn started(&self) {
        tokio::select! {
            () = reached(self.stage.clone(), |stage| *stage != Stage::Open) => {}
            () = reached(self.listener.subscribe(), |started| *started) => {}
        }
    }

    /// Waits for [`DrainTrigger::cut`].
    pub async fn over(&self) {
        reached(self.stage.clone(), |stage| *stage == Stage::Over).await;
    }

    /// Whether the whole gateway ends, and no other process takes its sockets over.
    pub(super) fn is_of_all(&self) -> bool {
        *self.stage.borrow() == Stage::Draining
    }

    /// Whether the connections in the sockets' queues are left there: another process accepts them,
    /// or the gateway ends at once.
    pub(super) fn is_handed_over(&self) -> bool {
        matches!(*self.stage.borrow(), Stage::HandedOver | Stage::Over)
    }

    /// How many connections of this core are open, tunnels included.
    pub fn open(&self) -> usize {
        *self.open.borrow()
    }

    /// Waits until no connection of this core is open.
    pub async fn ended(&self) {
        let mut open = self.open.subscribe();
        // It cannot fail: the sender lives as long as `self`.
        let _ = open.wait_for(|open| *open == 0).await;
    }

    pub(super) fn enter(&self) -> DrainingConnection {
        self.open.send_modify(|open| *open += 1);
        DrainingConnection {
            open: self.open.clone(),
            listener: self.listener.clone(),
        }
    }
}

/// Waits until the value is as `is_reached` wants it: for ever, if its sender is gone before.
async fn reached<T>(mut value: watch::Receiver<T>, is_reached: impl FnMut(&T) -> bool) {
    if value.wait_for(is_reached).await.is_err() {
        std::future::pending::<()>().await;
    }
}

// === impl DrainingConnection ===

impl DrainingConnection {
    /// Whether the listener that accepted it drains.
    pub(super) fn is_leaving(&self) -> bool {
        *self.listener.borrow()
    }
}

impl Drop for DrainingConnection {
    fn drop(&mut self) {
        self.open.send_modify(|open| *open -= 1);
    }
}
