//! The metrics as text, including those that are computed at scrape time.

use std::sync::atomic::Ordering;

use crate::observe::{Metrics, ProcessUsage};
use crate::process::RunningGateway;
use crate::snapshot::Snapshot;

// === impl RunningGateway ===

impl RunningGateway {
    /// Returns the metrics as text, including those that are computed at scrape time.
    pub fn scrape(&self) -> String {
        let snapshot = self.current.load();
        let (store, metrics) = (&self.process.store, &self.process.metrics);
        let now = self.process.clock.now();
        let (keys, bans) = (store.keys(now), store.ban_counts(now));
        for ((_, rule), kit) in snapshot.rules.iter().zip(&snapshot.rule_resources) {
            let own = keys.iter().find(|(slot, _)| *slot == rule.id.slot);
            kit.metrics
                .keys
                .set(own.map_or(0, |(_, count)| *count as i64));
            let active = bans.get(&rule.id).copied().unwrap_or(0);
            kit.metrics.bans.set(gauge(active));
            if let Some((usage, limiter)) = kit.metrics.usage.as_ref().zip(rule.limiter) {
                let held = store.usage(rule.id, &limiter, rule.store_mode, now);
                usage.set(held.count, held.total);
            }
        }
        set_servers(metrics, &snapshot);
        let progress = self.process.imitation_progress(&snapshot);
        let ready: Vec<_> = progress
            .iter()
            .map(|(rule, own)| (&**rule, own.is_ready))
            .collect();
        metrics.set_imitations(&ready);
        metrics.set_process(&ProcessUsage::read(), self.process.started_at);
        metrics.set_certificates(&ends(&snapshot));
        metrics.set_held(self.process.held.load(Ordering::Relaxed));
        let evictions = store.evictions();
        metrics.set_evictions(evictions.counters, evictions.bans);
        metrics.set_settle_dropped(store.settle_dropped());
        metrics.set_max_keys(snapshot.settings.startup.bounds.max_keys);
        self.set_store_health();
        let access = snapshot
            .access
            .as_ref()
            .map_or(0, |access| access.sink().dropped());
        metrics.set_log_lines_dropped(access + self.process.log.dropped());
        metrics.encode()
    }

    /// Sets the series of the shared store. A memory store is always `ok`.
    fn set_store_health(&self) {
        let (store, metrics) = (&self.process.store, &self.process.metrics);
        let state = store.state(self.process.clock.now());
        let is_down = store.is_falling_back();
        metrics.set_store_state(&STORE_STATES, state, is_down);
        let Some(health) = store.health() else {
            return;
        };
        for (kind, count) in health.errors() {
            metrics.set_store_errors(kind, count);
        }
        let (counts, sum) = health.round_trips();
        metrics.set_store_roundtrips(&counts, sum);
    }
}

/// The values of the label `state`.
const STORE_STATES: [&str; 5] = ["ok", "degraded", "local", "open", "closed"];

/// Returns the expiry times of the certificates of each listener.
fn ends(snapshot: &Snapshot) -> Vec<(&str, &str, u64)> {
    let listeners = snapshot.listeners.iter();
    let ends = listeners.flat_map(|listener| {
        let ends = listener.settings.tls.iter().flat_map(|tls| tls.ends());
        ends.map(|(name, end)| (&*listener.label, &**name, end.as_secs()))
    });
    ends.collect()
}

/// Sets the series of every server.
fn set_servers(metrics: &Metrics, snapshot: &Snapshot) {
    for upstream in &snapshot.upstreams {
        for (server, figures) in upstream.figures() {
            let series = metrics.upstream(&upstream.name, &server);
            series.in_flight.set(gauge(figures.in_flight));
            series.healthy.set(gauge(figures.healthy));
            for (series, latencies) in series.durations.iter().zip(&figures.latencies) {
                series.set(&latencies.buckets, latencies.sum);
            }
            series.ok.set(figures.ok);
            series.connect_error.set(figures.connect_error);
            series.error.set(figures.error);
            series.timeout.set(figures.timeout);
            series.retries.set(figures.retried);
        }
    }
}

fn gauge(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use crate::observe::HISTOGRAM_BOUNDS;
    use crate::store::redis::health::ROUND_TRIP_BOUNDS;
    use crate::upstream::LATENCY_BOUNDS;

    #[test]
    fn round_trips_and_latencies_have_the_buckets_of_the_metrics() {
        assert_eq!(ROUND_TRIP_BOUNDS, HISTOGRAM_BOUNDS);
        assert_eq!(LATENCY_BOUNDS, HISTOGRAM_BOUNDS);
    }
}
