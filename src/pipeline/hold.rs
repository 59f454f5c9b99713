//! Requests that wait before their verdict is carried out, a bounded number at once.
//!
//! Their bodies are not read meanwhile. A client that leaves frees its place; one of HTTP/1 whose
//! body is still to come is only seen to leave when the wait is over, for nobody reads.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::{Core, Visit};
use crate::decision::Decision;
use crate::snapshot::Snapshot;

/// A place among the requests that are held.
struct Place<'a>(&'a AtomicUsize);

/// Waits until `time` has passed since `began`; `false`, at once: too many are held already.
pub async fn hold(core: &Core, snapshot: &Snapshot, began: Instant, time: Duration) -> bool {
    if time.is_zero() {
        return true;
    }
    let lasting = &core.live.lasting;
    let Some(_place) = Place::take(&lasting.held, snapshot.max_held) else {
        return false;
    };
    let left = time.saturating_sub(lasting.clock.instant() - began);
    tokio::select! {
        () = tokio::time::sleep(left) => {}
        () = last_moment(core, snapshot) => {}
    }
    true
}

/// What becomes of a request that cannot be held.
pub fn cannot_hold(visit: &Visit, decision: &mut Decision) {
    visit.snapshot.rules.cannot_hold(decision);
    if !decision.verdict.is_served() {
        visit.tab.places.free();
    }
}

/// A gateway that stops holds nobody for longer than half of the time that it has: the other half
/// is for the answers.
async fn last_moment(core: &Core, snapshot: &Snapshot) {
    core.drain.started().await;
    tokio::time::sleep(snapshot.drain_timeout / 2).await;
}

// === impl Place ===

impl<'a> Place<'a> {
    fn take(held: &'a AtomicUsize, max: usize) -> Option<Self> {
        let more = |taken| (taken < max).then_some(taken + 1);
        let taken = held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        taken.ok().map(|_| Self(held))
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
