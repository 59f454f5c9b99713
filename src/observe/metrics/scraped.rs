//! Series whose values come from elsewhere. They are set for each scrape.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Metrics, ProcessUsage};
use crate::clock::Timestamp;

// === impl Metrics ===

impl Metrics {
    /// Sets the number of evicted store entries.
    pub fn set_evictions(&self, counters: u64, bans: u64) {
        let evictions = &self.families.store_evictions;
        evictions.series(&[("kind", "counter")]).set(counters);
        evictions.series(&[("kind", "ban")]).set(bans);
    }

    /// Sets the maximum number of keys in this process.
    pub fn set_max_keys(&self, keys: usize) {
        let keys = i64::try_from(keys).unwrap_or(i64::MAX);
        self.families.store_max_keys.set(keys);
    }

    /// Sets which of `states` the store is in.
    pub fn set_store_state(&self, states: &[&str], current: &str, is_down: bool) {
        for state in states {
            let series = self.families.store_state.series(&[("state", state)]);
            series.set(i64::from(*state == current));
        }
        self.families.store_failed_open.set(i64::from(is_down));
    }

    /// Sets the number of failed calls of one kind.
    pub fn set_store_errors(&self, kind: &str, count: u64) {
        let series = self.families.store_errors.series(&[("kind", kind)]);
        series.set(count);
    }

    /// Sets the histogram of round trips, with the bounds [`HISTOGRAM_BOUNDS`](super::HISTOGRAM_BOUNDS).
    pub fn set_store_roundtrips(&self, counts: &[u64], sum: Duration) {
        self.families.store_roundtrip.set(counts, sum);
    }

    /// Sets the number of response-phase operations that were dropped.
    pub fn set_settle_dropped(&self, dropped: u64) {
        self.families.settle_dropped.set(dropped);
    }

    /// Sets the expiry of each certificate, in seconds since the epoch: listener, name, time. Of several with
    /// one name, the earliest counts.
    pub fn set_certificates(&self, ends: &[(&str, &str, u64)]) {
        let mut first = BTreeMap::new();
        for (listener, name, end) in ends {
            let known = first.entry([*listener, *name]).or_insert(*end);
            *known = (*end).min(*known);
        }
        let family = &self.families.certificate_not_after;
        family.keep(&first.keys().copied().collect::<Vec<_>>());
        for ([listener, name], end) in first {
            let end = i64::try_from(end).unwrap_or(i64::MAX);
            let labels = [("listener", listener), ("certificate", name)];
            family.series(&labels).set(end);
        }
    }

    /// Sets the number of held requests.
    pub fn set_held(&self, requests: usize) {
        let requests = i64::try_from(requests).unwrap_or(i64::MAX);
        self.families.held_requests.set(requests);
    }

    /// Sets what the process uses. `started` is when it started.
    pub fn set_process(&self, usage: &ProcessUsage, started: Timestamp) {
        let all = &self.families;
        all.process_start
            .set(i64::try_from(started.as_secs()).unwrap_or(i64::MAX));
        usage
            .cpu_time
            .iter()
            .for_each(|time| all.process_cpu.set(*time));
        for (gauge, value) in [
            (&all.process_memory, usage.resident_memory),
            (&all.process_fds, usage.open_descriptors),
            (&all.process_max_fds, usage.max_descriptors),
        ] {
            let value = value.map(|value| i64::try_from(value).unwrap_or(i64::MAX));
            if let Some(value) = value {
                gauge.set(value);
            }
        }
    }

    /// Sets for which rules enough is learned to imitate responses.
    pub fn set_imitations(&self, rules: &[(&str, bool)]) {
        let family = &self.families.imitation_ready;
        family.keep(&rules.iter().map(|(rule, _)| [*rule]).collect::<Vec<_>>());
        for (rule, is_ready) in rules {
            family.series(&[("rule", rule)]).set(i64::from(*is_ready));
        }
    }

    /// Sets the number of lost log lines.
    pub fn set_log_lines_dropped(&self, lines: u64) {
        self.families.log_lines_dropped.set(lines);
    }
}
