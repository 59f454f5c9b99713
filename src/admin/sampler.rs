//! Looks at the gateway once per second, so that rates and times do not depend on requests.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::task::spawn_blocking;

use super::mitigations;
use super::state::AdminState;
use super::status;
use crate::snapshot::Snapshot;

/// The time between two samples.
const INTERVAL: Duration = Duration::from_secs(1);
/// The number of samples from one count of likely false positives to the next. A count reads every ban.
const COUNT_EVERY: u64 = 10;

/// Samples until the task is aborted.
pub(super) async fn sample_forever(state: Arc<AdminState>) {
    let mut tick = tokio::time::interval(INTERVAL);
    for number in 0_u64.. {
        tick.tick().await;
        if number.is_multiple_of(COUNT_EVERY) {
            count_bans(&state).await;
        }
        sample(&state);
    }
}

/// Counts the bans that are likely false positives.
async fn count_bans(state: &AdminState) {
    let live = state.live.clone();
    let counted = spawn_blocking(move || mitigations::count_likely_false_positives(&live)).await;
    if let Ok(count) = counted {
        state.likely_false_positives.store(count, Ordering::Relaxed);
    }
}

fn sample(state: &AdminState) {
    let (snapshot, process) = (state.snapshot(), &state.live.process);
    state.listings.drop_old(process.clock.instant());
    sample_servers(state, &snapshot);
    let now = process.clock.now();
    state.store_watch.lock().note(process.store.state(now), now);
    // Entries must appear and disappear even if no client reads them.
    status::update_attention(state, &snapshot);
}

fn sample_servers(state: &AdminState, snapshot: &Snapshot) {
    let upstreams = snapshot.upstreams.iter();
    let servers = upstreams.flat_map(|upstream| {
        let figures = upstream.figures().into_iter();
        figures.map(|(address, figures)| (upstream.name.clone(), address, figures))
    });
    let instant = state.live.process.clock.instant();
    state.server_rates.lock().sample(instant, servers);
}
