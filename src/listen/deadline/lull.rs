//! How long a tunnel may be quiet once one of its sides has ended. It never moves a byte, and a
//! tunnel with two living sides has no such bound.

use std::cell::Cell;
use std::rc::Rc;
use std::task::{Context, Waker};
use std::time::Duration;

use tokio::time::Instant;

use super::{Deadlines, TICK};

/// The wait for the other side's end, until it is dropped.
pub struct Lull {
    quiet: Rc<Quiet>,
    slot: usize,
    core: Rc<Deadlines>,
}

/// One such wait, as the sweeper sees it.
pub(super) struct Quiet {
    limit: Duration,
    since: Cell<Instant>,
    over: Cell<bool>,
    waker: Cell<Option<Waker>>,
}

// === impl Deadlines ===

impl Deadlines {
    /// The time that a tunnel may be quiet, from now on, because one of its sides has ended.
    pub fn lull(self: &Rc<Self>, limit: Duration) -> Lull {
        self.now.set(Instant::now());
        let quiet = Rc::new(Quiet {
            limit,
            since: Cell::new(self.now.get()),
            over: Cell::new(false),
            waker: Cell::new(None),
        });
        let slot = self.lulls.borrow_mut().insert(quiet.clone());
        self.filled.notify_one();
        let core = self.clone();
        Lull { quiet, slot, core }
    }
}

// === impl Lull ===

impl Lull {
    /// Bytes went through.
    pub fn stir(&self) {
        self.quiet.since.set(self.core.now.get());
    }

    /// Whether it was quiet for too long; if not, the task of `cx` is woken when it was.
    pub fn is_over(&self, cx: &Context<'_>) -> bool {
        self.quiet.waker.set(Some(cx.waker().clone()));
        self.quiet.over.get()
    }
}

impl Drop for Lull {
    fn drop(&mut self) {
        let quiet = self.core.lulls.borrow_mut().remove(self.slot);
        // Outside of the borrow: a waker runs code of others.
        drop(quiet);
    }
}

// === impl Quiet ===

impl Quiet {
    pub(super) fn sweep(&self, now: Instant) {
        // `since` may be a tick older than the event it stands for.
        if now.duration_since(self.since.get()) > self.limit + TICK {
            self.over.set(true);
            if let Some(waker) = self.waker.take() {
                waker.wake();
            }
        }
    }
}
