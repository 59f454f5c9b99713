//! Requests that wait before their verdict is carried out, a bounded number at once.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::Core;
use crate::snapshot::Snapshot;

/// A place among the requests that are held.
struct Place<'a>(&'a AtomicUsize);

/// Waits until `time` has passed since `began`; `false`, at once: too many are held already.
pub async fn hold(core: &Core, snapshot: &Snapshot, began: Instant, time: Duration) -> bool {
    if time.is_zero() {
        return true;
    }
    let Some(_place) = Place::take(&core.live.lasting.held, snapshot.max_held) else {
        return false;
    };
    tokio::time::sleep_until((began + time).into()).await;
    true
}

// === impl Place ===

impl<'a> Place<'a> {
    fn take(held: &'a AtomicUsize, max: usize) -> Option<Self> {
        let more = |taken| (taken < max).then_some(taken + 1);
        let taken = held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        taken.is_ok().then_some(Self(held))
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
