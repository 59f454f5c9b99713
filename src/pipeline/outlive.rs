//! Requests whose client leaves before the answer: where a rule may count it, what an origin was
//! asked is finished all the same. Otherwise a client that never waits would never be counted.
//!
//! It keeps no `concurrency` place: those are freed when a client leaves.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use super::Core;
use super::tab::Tab;

/// How many requests a core finishes for nobody at once; more are given up, as all are where no
/// rule counts answers.
const MOST: usize = 1024;

/// A request that is finished even if nobody waits for it.
pub struct Outlive<F: Future + 'static> {
    request: Option<Pin<Box<F>>>,
    core: Rc<Core>,
    tab: Rc<Tab>,
}

/// A place among those that are finished for nobody.
struct Place(Rc<Core>);

/// `request`, finished in any case if it was begun. `tab` is what it has open.
pub fn outlive<F: Future + 'static>(
    core: Rc<Core>,
    tab: Rc<Tab>,
    request: Pin<Box<F>>,
) -> Outlive<F> {
    let request = Some(request);
    Outlive { request, core, tab }
}

// === impl Outlive ===

impl<F: Future + 'static> Future for Outlive<F> {
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

impl<F: Future + 'static> Drop for Outlive<F> {
    fn drop(&mut self) {
        let Some(request) = self.request.take() else {
            return;
        };
        self.tab.places.free();
        self.tab.left.set(true);
        let begun = self.tab.begun.get();
        if let Some(place) = begun.then(|| Place::take(&self.core)).flatten() {
            drop(tokio::task::spawn_local(async move {
                drop(request.await);
                drop(place);
            }));
        }
    }
}

// === impl Place ===

impl Place {
    fn take(core: &Rc<Core>) -> Option<Self> {
        // A request that panicked cannot go on, and a runtime that ends takes no new tasks.
        let ends = std::thread::panicking() || core.drain.is_started();
        let taken = core.outlived.get();
        if ends || !core.snapshot().rules.counts_responses() {
            return None;
        }
        if taken >= MOST {
            core.live.lasting.metrics.uncounted.inc();
            return None;
        }
        core.outlived.set(taken + 1);
        Some(Self(core.clone()))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let taken = self.0.outlived.get();
        self.0.outlived.set(taken.saturating_sub(1));
    }
}
