//! The drain of a whole gateway or of one listener: accepts no new connections, and waits until the open
//! connections of a core have ended.
//!
//! It only signals and counts; the accept loop and each connection close by themselves.

use std::sync::Arc;

use tokio::sync::watch;

/// Starts the drain of all cores.
#[derive(Clone, Debug, Default)]
pub struct DrainTrigger(Arc<watch::Sender<Stage>>);

/// The stage of a gateway.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    /// Serving.
    #[default]
    Open,
    /// Draining.
    Draining,
    /// Draining while another process accepts from its sockets.
    HandedOver,
    /// Ending immediately.
    Over,
}

/// One core's view of the drain. Clones share its count.
#[derive(Clone, Debug)]
pub struct CoreDrain {
    stage: watch::Receiver<Stage>,
    /// Whether this listener drains.
    listener: Arc<watch::Sender<bool>>,
    /// The number of open connections of the core.
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
    /// Starts the drain; a second call changes nothing.
    pub fn start(&self) {
        self.begin(Stage::Draining);
    }

    /// Starts the drain of a gateway after a handover of its sockets.
    pub fn hand_over(&self) {
        self.begin(Stage::HandedOver);
    }

    /// Ends the drain, whether it has started or not: the gateway waits for no connection any more.
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

    /// Creates a core's view, with a separate count.
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
    /// Creates the view of one listener of the core, which can drain before the others.
    pub fn apart(&self) -> Self {
        Self {
            listener: Arc::default(),
            ..self.clone()
        }
    }

    /// Starts the drain of this listener. Its connections notice it when they are woken: see
    /// [`super::ConnectionTimers::notice_drain`].
    pub fn leave(&self) {
        self.listener.send_replace(true);
    }

    /// Returns whether the drain has started.
    pub fn is_started(&self) -> bool {
        *self.listener.borrow() || *self.stage.borrow() != Stage::Open
    }

    /// Waits until the drain starts. If the trigger is dropped, it never does.
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

    /// Returns whether the whole gateway drains without a handover.
    pub(super) fn is_of_all(&self) -> bool {
        *self.stage.borrow() == Stage::Draining
    }

    /// Returns whether the connections in the sockets' queues are left there: another process accepts them, or
    /// the gateway ends immediately.
    pub(super) fn is_handed_over(&self) -> bool {
        matches!(*self.stage.borrow(), Stage::HandedOver | Stage::Over)
    }

    /// Returns the number of open connections of this core, including tunnels.
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

/// Waits until `is_reached` returns `true`; for ever if the sender is dropped before.
async fn reached<T>(mut value: watch::Receiver<T>, is_reached: impl FnMut(&T) -> bool) {
    if value.wait_for(is_reached).await.is_err() {
        std::future::pending::<()>().await;
    }
}

// === impl DrainingConnection ===

impl DrainingConnection {
    /// Returns whether the listener that accepted it drains.
    pub(super) fn is_leaving(&self) -> bool {
        *self.listener.borrow()
    }
}

impl Drop for DrainingConnection {
    fn drop(&mut self) {
        self.open.send_modify(|open| *open -= 1);
    }
}
