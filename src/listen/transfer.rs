//! One message on its way from or to a client, as the sweeper sees it: a request's body, or the
//! answer of an HTTP/2 stream. It holds no bytes.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::{Context, Waker};
use std::time::Duration;

use tokio::task::AbortHandle;

use super::deadline::Entry;
use super::pace::Pace;
use super::slots::Slots;

/// Values that are kept for the next message.
const SPARE: usize = 256;

/// The messages of a core.
#[derive(Default)]
pub(super) struct Transfers {
    under_way: RefCell<Slots<Transfer>>,
    spare: RefCell<Vec<Rc<Transfer>>>,
}

/// A message's place among those of its core, until it is dropped.
pub(super) struct Carried {
    transfer: Rc<Transfer>,
    slot: usize,
    core: Rc<Transfers>,
}

/// Which way a message goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Way {
    /// From the client: a request's body.
    #[default]
    In,
    /// To the client: the answer of an HTTP/2 stream.
    Out,
}

/// One message.
#[derive(Default)]
pub(super) struct Transfer {
    way: Cell<Way>,
    /// Its connection.
    entry: RefCell<Option<Rc<Entry>>>,
    bytes: Cell<u64>,
    waits: Cell<bool>,
    excused: Cell<bool>,
    slow: Cell<bool>,
    pace: Pace,
    waker: Cell<Option<Waker>>,
    task: Cell<Option<AbortHandle>>,
}

// === impl Transfers ===

impl Transfers {
    /// A message that begins. Nobody waits for its client yet.
    pub(super) fn begin(self: &Rc<Self>, entry: &Rc<Entry>, way: Way) -> Carried {
        let transfer = self.spare.borrow_mut().pop().unwrap_or_default();
        transfer.way.set(way);
        transfer.entry.replace(Some(entry.clone()));
        Carried {
            slot: self.under_way.borrow_mut().insert(transfer.clone()),
            transfer,
            core: self.clone(),
        }
    }

    /// Ends those whose client does not keep the pace, and says how many tasks that ended.
    pub(super) fn sweep(&self, elapsed: Duration) -> usize {
        let under_way = self.under_way.borrow();
        let ended = under_way.iter().filter(|transfer| transfer.sweep(elapsed));
        ended.count()
    }

    fn end(&self, slot: usize) {
        let ended = self.under_way.borrow_mut().remove(slot);
        let Some(transfer) = ended else { return };
        transfer.reset();
        let mut spare = self.spare.borrow_mut();
        // One that others than us and its `Carried` hold is not free for the next message.
        if spare.len() < SPARE && Rc::strong_count(&transfer) == 2 {
            spare.push(transfer);
        }
    }
}

// === impl Carried ===

impl Carried {
    /// The message, for others that have to do with it.
    pub(super) fn share(&self) -> Rc<Transfer> {
        self.transfer.clone()
    }
}

impl std::ops::Deref for Carried {
    type Target = Transfer;

    fn deref(&self) -> &Transfer {
        &self.transfer
    }
}

impl Drop for Carried {
    fn drop(&mut self) {
        self.core.end(self.slot);
    }
}

// === impl Transfer ===

impl Transfer {
    /// So many bytes moved; nobody waits for the client.
    pub(super) fn moved(&self, bytes: usize) {
        self.bytes.set(self.bytes.get() + bytes as u64);
        self.waits.set(false);
    }

    /// Whether its client was waited for before it took the last of it, as far as was seen.
    pub(super) fn lags(&self) -> bool {
        self.pace.lags()
    }

    /// How many bytes moved so far.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.get()
    }

    /// Counts it: it cannot be read any further.
    pub(super) fn malformed(&self) {
        if let Some(entry) = self.entry.borrow().as_ref() {
            entry.malformed_body();
        }
    }

    /// Says whether the client is waited for.
    pub(super) fn waits(&self, waits: bool) {
        self.waits.set(waits);
    }

    /// From now on the client may take its time.
    pub(super) fn excuse(&self) {
        self.excused.set(true);
    }

    /// Whether its client was too slow.
    pub(super) fn is_slow(&self) -> bool {
        self.slow.get()
    }

    /// The task of `cx` is to be woken when the client is too slow.
    pub(super) fn wakes(&self, cx: &Context<'_>) {
        let waker = self.waker.take();
        self.waker.set(match waker {
            Some(waker) if waker.will_wake(cx.waker()) => Some(waker),
            _ => Some(cx.waker().clone()),
        });
    }

    /// The task is to be ended when the client is too slow.
    pub(super) fn ends(&self, task: AbortHandle) {
        self.task.set(Some(task));
    }

    /// Whether this ended its task.
    fn sweep(&self, elapsed: Duration) -> bool {
        let waits = self.waits.get() && !self.excused.get();
        let slow = self.entry.borrow().as_ref().is_some_and(|entry| {
            // Where the socket is blocked, its own pace is what counts.
            let waits = waits && !(self.way.get() == Way::Out && entry.is_blocked());
            let demand = entry.demand(self.way.get());
            let unread = match self.way.get() {
                Way::In => entry.unread(),
                Way::Out => 0,
            };
            let bytes = self.bytes.get() + unread;
            self.pace.is_slow(elapsed, bytes, waits, &demand)
        });
        if !slow {
            return false;
        }
        self.slow.set(true);
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
        let task = self.task.take();
        task.as_ref().inspect(|task| task.abort()).is_some()
    }

    fn reset(&self) {
        self.entry.take();
        self.bytes.set(0);
        self.waits.set(false);
        self.excused.set(false);
        self.slow.set(false);
        self.pace.reset();
        self.waker.set(None);
        self.task.set(None);
    }
}
