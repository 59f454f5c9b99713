//! What the metrics show of upstreams, read off them at the moment of a scrape.

use crate::observe::Metrics;
use crate::snapshot::Snapshot;

/// Sets the series of every server.
pub(super) fn scrape(metrics: &Metrics, snapshot: &Snapshot) {
    for upstream in &snapshot.upstreams {
        for (server, figures) in upstream.figures() {
            let series = metrics.upstream(&upstream.name, &server);
            series.in_flight.set(gauge(figures.in_flight));
            series.healthy.set(gauge(figures.healthy));
            series.ok.set(figures.ok);
            series.connect_error.set(figures.connect_error);
            series.error.set(figures.error);
            series.timeout.set(figures.timeout);
            series.retries.set(figures.retried);
        }
    }
}

/// Removes the series of servers that are not configured any more.
pub(super) fn keep_series(metrics: &Metrics, snapshot: &Snapshot) {
    let upstreams = snapshot.upstreams.iter();
    let servers: Vec<_> = upstreams
        .flat_map(|upstream| upstream.labels().map(|label| (&*upstream.name, label)))
        .collect();
    metrics.keep_upstreams(&servers);
}

fn gauge(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
