//! Requests that continue after their clients have disconnected, so that rules can count their responses.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use super::CoreState;
use super::request_state::RequestState;

/// The maximum number of requests that a core finishes after their clients have disconnected. Further ones are
/// cancelled, as are all if no rule counts responses.
const MAX_DETACHED: usize = 1024;

/// A request that continues in a separate task if its client disconnects after it was forwarded and a rule may
/// count the response. Otherwise a client that never waits would never be counted. Its leases are released at
/// the disconnect.
pub struct DetachOnDisconnect<F: Future + 'static> {
    request: Option<Pin<Box<F>>>,
    state: Rc<RequestState>,
}

/// A slot among the detached requests of a core.
struct DetachedSlot(Rc<CoreState>);

// === impl DetachOnDisconnect ===

impl<F: Future + 'static> DetachOnDisconnect<F> {
    /// Wraps `request`, which uses `state`.
    pub fn new(state: Rc<RequestState>, request: Pin<Box<F>>) -> Self {
        let request = Some(request);
        Self { request, state }
    }
}

impl<F: Future + 'static> Future for DetachOnDisconnect<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let Some(request) = &mut self.request else {
            return Poll::Pending;
        };
        let polled = request.as_mut().poll(cx);
        if polled.is_ready() {
            self.request = None;
        }
        polled
    }
}

impl<F: Future + 'static> Drop for DetachOnDisconnect<F> {
    fn drop(&mut self) {
        let Some(request) = self.request.take() else {
            return;
        };
        self.state.release_leases();
        self.state.is_disconnected.set(true);
        let is_countable = self.state.is_countable.get();
        let slot = is_countable.then(|| DetachedSlot::take(&self.state.core));
        if let Some(slot) = slot.flatten() {
            drop(tokio::task::spawn_local(async move {
                drop(request.await);
                drop(slot);
            }));
        }
    }
}

// === impl DetachedSlot ===

impl DetachedSlot {
    fn take(core: &Rc<CoreState>) -> Option<Self> {
        // A panicked request cannot continue, and a runtime that ends starts no tasks.
        let ends = std::thread::panicking() || core.drain.is_started();
        if ends || !core.snapshot().rules.counts_responses() {
            return None;
        }
        let taken = core.detached.get();
        if taken >= MAX_DETACHED {
            core.live.process.metrics.uncounted.inc();
            return None;
        }
        core.detached.set(taken + 1);
        Some(Self(core.clone()))
    }
}

impl Drop for DetachedSlot {
    fn drop(&mut self) {
        let taken = self.0.detached.get();
        self.0.detached.set(taken.saturating_sub(1));
    }
}
