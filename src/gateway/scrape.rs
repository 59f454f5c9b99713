//! The metrics as text, with those that are read off other parts at this moment.

use std::sync::atomic::Ordering;

use super::servers;
use crate::snapshot::{Live, Snapshot};

// === impl Live ===

impl Live {
    /// The metrics as text, those that are read off other parts included.
    pub fn scrape(&self) -> String {
        let snapshot = self.current.load();
        let (store, metrics) = (&self.lasting.store, &self.lasting.metrics);
        let keys = store.keys(self.lasting.clock.now());
        for ((_, rule), kit) in snapshot.rules.iter().zip(&snapshot.rule_kits) {
            let own = keys.iter().find(|(slot, _)| *slot == rule.id.slot);
            kit.metrics
                .keys
                .set(own.map_or(0, |(_, count)| *count as i64));
        }
        servers::scrape(metrics, &snapshot);
        metrics.set_certificates(&ends(&snapshot));
        metrics.set_held(self.lasting.held.load(Ordering::Relaxed));
        let evictions = store.evictions();
        metrics.set_evictions(evictions.counters, evictions.bans);
        let access = snapshot
            .access
            .as_ref()
            .map_or(0, |access| access.sink().dropped());
        metrics.set_log_lines_dropped(access + self.lasting.log.dropped());
        metrics.encode()
    }
}

/// When the certificates of each listener end.
fn ends(snapshot: &Snapshot) -> Vec<(&str, &str, u64)> {
    let listeners = snapshot.listeners.iter();
    let ends = listeners.flat_map(|listener| {
        let ends = listener.tls.iter().flat_map(|tls| tls.ends());
        ends.map(|(name, end)| (&*listener.label, &**name, end.as_secs()))
    });
    ends.collect()
}
