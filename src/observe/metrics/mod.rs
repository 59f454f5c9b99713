//! The gateway's metrics, one set for the process.
//!
//! Handles are resolved when a configuration is built: a request touches atomics and never looks
//! up a label. No label comes from what a client sent.

mod families;
mod handles;
mod histogram;
mod value;

use std::collections::{BTreeMap, BTreeSet};

use parking_lot::Mutex;
use prometheus_client::encoding::text::encode_registry;
use prometheus_client::registry::Registry;

pub use handles::{
    Cuts, Divergence, Handshakes, ListenerMetrics, ProtocolError, ProtocolErrors, Reloads,
    RuleMetrics, UpstreamMetrics,
};
pub use histogram::Histogram;
pub use prometheus_client::metrics::gauge::Gauge;
pub use value::Count;

use families::Families;

/// All metrics of the process.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    families: Families,
    known: Mutex<Known>,
    /// TLS handshakes.
    pub handshakes: Handshakes,
    /// Configuration reloads.
    pub reloads: Reloads,
    /// Requests and connections that broke the protocol.
    pub protocol_errors: ProtocolErrors,
    /// Answers that broke off.
    pub cuts: Cuts,
    /// Requests that were given up when their clients left, though a rule might have counted the
    /// answer.
    pub uncounted: Count,
    /// Panics.
    pub panics: Count,
}

/// Whose series exist, so that they can go when their owner does.
#[derive(Debug, Default)]
struct Known {
    /// Rules, each with the actions it has had.
    rules: BTreeMap<String, BTreeSet<&'static str>>,
    listeners: BTreeSet<String>,
    upstreams: BTreeSet<(String, String)>,
    /// Certificates, each with its listener first.
    certificates: BTreeSet<(String, String)>,
}

// === impl Metrics ===

impl Metrics {
    /// Metrics that all stand at zero.
    pub fn new() -> Self {
        let mut registry = Registry::with_prefix("lockgate");
        let families = Families::register(&mut registry);
        Self {
            handshakes: families.handshakes(),
            reloads: families.reloads(),
            protocol_errors: families.protocol_errors(),
            cuts: families.cuts(),
            uncounted: families.uncounted.clone(),
            panics: families.panics.clone(),
            known: Mutex::default(),
            registry,
            families,
        }
    }

    /// A rule's handles. Its series exist from now on; a rule of this name keeps its values.
    /// `candidate`: it has one.
    pub fn rule(&self, name: &str, action: &'static str, candidate: bool) -> RuleMetrics {
        let mut known = self.known.lock();
        known.rules.entry(name.into()).or_default().insert(action);
        self.families.rule(name, action, candidate)
    }

    /// Removes the series of all rules but `names`.
    pub fn keep_rules(&self, names: &[&str]) {
        self.known.lock().rules.retain(|name, actions| {
            let keep = names.contains(&name.as_str());
            if !keep {
                self.families.remove_rule(name, actions);
            }
            keep
        });
    }

    /// A listener's handles. A listener of this address keeps its values.
    pub fn listener(&self, address: &str) -> ListenerMetrics {
        let mut known = self.known.lock();
        known.listeners.insert(address.into());
        self.families.listener(address)
    }

    /// Removes the series of all listeners but `addresses`.
    pub fn keep_listeners(&self, addresses: &[&str]) {
        self.known.lock().listeners.retain(|address| {
            let keep = addresses.contains(&address.as_str());
            if !keep {
                self.families.remove_listener(address);
            }
            keep
        });
    }

    /// The handles of one server of an upstream, which keeps its values.
    pub fn upstream(&self, upstream: &str, server: &str) -> UpstreamMetrics {
        let mut known = self.known.lock();
        known.upstreams.insert((upstream.into(), server.into()));
        self.families.upstream(upstream, server)
    }

    /// Removes the series of all servers but these, each with its upstream's name first.
    pub fn keep_upstreams(&self, servers: &[(&str, &str)]) {
        self.known.lock().upstreams.retain(|(upstream, server)| {
            let keep = servers.contains(&(upstream, server));
            if !keep {
                self.families.remove_upstream(upstream, server);
            }
            keep
        });
    }

    /// Sets how many entries the store has pushed out so far. For the moment of a scrape.
    pub fn set_evictions(&self, counters: u64, bans: u64) {
        self.families.set_evictions(counters, bans);
    }

    /// Sets when each certificate ends, in seconds since the epoch, with its listener and its
    /// name; of those with one name the first that ends. For the moment of a scrape.
    pub fn set_certificates(&self, ends: &[(&str, &str, u64)]) {
        let mut first = BTreeMap::new();
        for (listener, name, end) in ends {
            let known = first.entry((*listener, *name)).or_insert(*end);
            *known = (*end).min(*known);
        }
        let mut known = self.known.lock();
        known.certificates.retain(|(listener, name)| {
            let keep = first.contains_key(&(listener.as_str(), name.as_str()));
            if !keep {
                self.families.remove_certificate(listener, name);
            }
            keep
        });
        for ((listener, name), end) in first {
            self.families.set_certificate(listener, name, end);
            known.certificates.insert((listener.into(), name.into()));
        }
    }

    /// Sets how many requests are held. For the moment of a scrape.
    pub fn set_held(&self, requests: usize) {
        let requests = i64::try_from(requests).unwrap_or(i64::MAX);
        self.families.held_requests.set(requests);
    }

    /// Sets how many log lines were lost so far. For the moment of a scrape.
    pub fn set_log_lines_dropped(&self, lines: u64) {
        self.families.log_lines_dropped.set(lines);
    }

    /// All series, as Prometheus text (version 0.0.4).
    pub fn encode(&self) -> String {
        let mut text = String::with_capacity(16 << 10);
        // Writing to a String does not fail, and no label here refuses to be shown.
        let _ = encode_registry(&mut text, &self.registry);
        text
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests;
