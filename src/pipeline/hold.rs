//! Requests that wait before their verdict is carried out, a bounded number at once.
//!
//! Their bodies are not read meanwhile. A client that leaves frees its place; one of HTTP/1 whose
//! body is still to come is only seen to leave when the wait is over, for nobody reads.

use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::{Core, Visit, stop};
use crate::action::Asked;
use crate::decision::Decision;
use crate::snapshot::Snapshot;

/// A place among the requests that are held; given up when dropped.
pub struct Place {
    core: Rc<Core>,
    /// A gateway that stops holds nobody for longer than half of the time that it has: the other
    /// half is for the answers.
    patience: Duration,
}

/// Waits until `time` has passed since the request came; `false`, at once: too many are held
/// already.
pub async fn hold(visit: &Visit, time: Duration) -> bool {
    if time.is_zero() {
        return true;
    }
    let Some(place) = Place::take(&visit.core, &visit.snapshot) else {
        return false;
    };
    place.until(visit.began + time).await;
    visit.went_on.set(place.now());
    true
}

/// What becomes of a request that cannot be held.
pub fn cannot_hold(visit: &Visit, asked: &Asked<'_>, decision: &mut Decision) {
    visit.snapshot.rules.cannot_hold(decision);
    stop::openly(asked, decision);
    if !decision.verdict.is_served() {
        visit.tab.places.free();
    }
}

// === impl Place ===

impl Place {
    /// A place; `None`: too many are held already.
    pub fn take(core: &Rc<Core>, snapshot: &Snapshot) -> Option<Self> {
        let more = |taken| (taken < snapshot.max_held).then_some(taken + 1);
        let held = &core.live.lasting.held;
        let taken = held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        taken.is_ok().then(|| Self {
            core: core.clone(),
            patience: snapshot.drain_timeout / 2,
        })
    }

    /// The time.
    pub fn now(&self) -> Instant {
        self.core.live.lasting.clock.instant()
    }

    /// Waits until then.
    pub async fn until(&self, then: Instant) {
        tokio::select! {
            () = self.core.alarm.until(then) => {}
            () = self.last_moment() => {}
        }
    }

    async fn last_moment(&self) {
        self.core.drain.started().await;
        tokio::time::sleep(self.patience).await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.core.live.lasting.held.fetch_sub(1, Ordering::Relaxed);
    }
}
