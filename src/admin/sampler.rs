//! Looks at the gateway once per second, so that rates and times do not depend on requests.

use std::sync::Arc;
use std::time::Duration;

use super::state::AdminState;
use super::status;
use crate::snapshot::Snapshot;

/// The time between two samples.
const INTERVAL: Duration = Duration::from_secs(1);

/// Samples until the task is aborted.
pub(super) async fn sample_forever(state: Arc<AdminState>) {
    let mut tick = tokio::time::interval(INTERVAL);
    loop {
        tick.tick().await;
        sample(&state);
    }
}

fn sample(state: &AdminState) {
    let (snapshot, process) = (state.snapshot(), &state.live.process);
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
