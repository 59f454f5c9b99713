//! The table of metric names and labels, and the look-ups that happen when a configuration is
//! built.

use std::collections::BTreeSet;
use std::sync::Arc;

use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::handles::{
    CLASSES, Cuts, Divergence, Handshakes, ListenerMetrics, METHODS, ProtocolError, ProtocolErrors,
    Reloads, RuleMetrics, UpstreamMetrics,
};
use super::histogram::Histogram;
use super::value::Count;
use crate::observe::cut::Cut;

type Labels = Vec<(&'static str, String)>;
type Counts = Family<Labels, Count>;
type Gauges = Family<Labels, Gauge>;

/// What can become of a request to an upstream.
const RESULTS: [&str; 4] = ["ok", "connect_error", "error", "timeout"];

/// How a rule and its candidate can differ: what the rule does, then what the candidate would do.
const DIVERGENCES: [(&str, &str); 2] = [("pass", "act"), ("act", "pass")];

/// Every metric of the gateway.
#[derive(Debug, Default)]
pub(super) struct Families {
    requests: Counts,
    duration: Histogram,
    connections: Gauges,
    rule_matched: Counts,
    rule_mitigated: Counts,
    rule_would_mitigate: Counts,
    rule_divergence: Counts,
    pub(super) held_requests: Gauge,
    pub(super) uncounted: Count,
    store_keys: Gauges,
    store_evictions: Counts,
    tls_handshakes: Counts,
    certificate_not_after: Gauges,
    upstream_requests: Counts,
    upstream_in_flight: Gauges,
    upstream_healthy: Gauges,
    upstream_retries: Counts,
    config_reloads: Counts,
    config_last_reload_success: Gauge,
    protocol_errors: Counts,
    responses_cut: Counts,
    pub(super) log_lines_dropped: Count,
    pub(super) panics: Count,
}

// === impl Families ===

impl Families {
    /// Makes all families and gives each its name and its help line.
    pub(super) fn register(registry: &mut Registry) -> Self {
        let all = Self::default();
        all.register_traffic(registry);
        all.register_rules(registry);
        all.register_process(registry);
        all.set_evictions(0, 0);
        all
    }

    fn register_traffic(&self, r: &mut Registry) {
        r.register("requests_total", "Requests answered", self.requests.clone());
        let help = "From the request's head to the response's end";
        r.register("request_duration_seconds", help, self.duration.clone());
        let help = "Open client connections";
        r.register("connections", help, self.connections.clone());
        let help = "TLS handshakes by how they ended";
        r.register("tls_handshakes_total", help, self.tls_handshakes.clone());
        let help = "When a certificate ends, in seconds since the epoch";
        let ends = self.certificate_not_after.clone();
        r.register("certificate_not_after_timestamp_seconds", help, ends);
        let help = "Requests sent to a server by what became of them";
        let requests = self.upstream_requests.clone();
        r.register("upstream_requests_total", help, requests);
        let help = "Requests that a server has not answered yet";
        let in_flight = self.upstream_in_flight.clone();
        r.register("upstream_in_flight", help, in_flight);
        let help = "Addresses of a server that take requests";
        let healthy = self.upstream_healthy.clone();
        r.register("upstream_healthy", help, healthy);
        let help = "Requests sent once more after a server failed them";
        let retries = self.upstream_retries.clone();
        r.register("upstream_retries_total", help, retries);
        let help = "Answers that had begun and broke off";
        r.register("responses_cut_total", help, self.responses_cut.clone());
        let help = "Requests and connections refused for breaking the protocol";
        r.register("protocol_errors_total", help, self.protocol_errors.clone());
    }

    fn register_rules(&self, r: &mut Registry) {
        let help = "Requests that a rule's expression matched, by phase";
        r.register("rule_matched_total", help, self.rule_matched.clone());
        let help = "Requests that a rule acted on";
        r.register("rule_mitigated_total", help, self.rule_mitigated.clone());
        let help = "Requests that a dry run would have acted on";
        let would = self.rule_would_mitigate.clone();
        r.register("rule_would_mitigate_total", help, would);
        let help = "Requests on which a rule and its candidate differ";
        r.register("rule_divergence_total", help, self.rule_divergence.clone());
        let help = "Requests that wait before they are forwarded or answered";
        r.register("held_requests", help, self.held_requests.clone());
        let help = "Requests whose clients left and whose answers no rule counted";
        r.register("requests_uncounted_total", help, self.uncounted.clone());
        let help = "Keys that the store tracks for a rule";
        r.register("store_keys", help, self.store_keys.clone());
        let help = "Entries that made room for others";
        r.register("store_evictions_total", help, self.store_evictions.clone());
    }

    fn register_process(&self, r: &mut Registry) {
        let help = "Configuration reloads by result";
        r.register("config_reloads_total", help, self.config_reloads.clone());
        let help = "Whether the last configuration was taken";
        let last = self.config_last_reload_success.clone();
        r.register("config_last_reload_success", help, last);
        let help = "Log lines lost because a target could not keep up";
        let dropped = self.log_lines_dropped.clone();
        r.register("log_lines_dropped_total", help, dropped);
        let help = "Faults of the gateway's own: each cost a connection at the most";
        r.register("panics_total", help, self.panics.clone());
    }

    pub(super) fn rule(&self, name: &str, action: &str, candidate: bool) -> RuleMetrics {
        RuleMetrics {
            matched_count: count(&self.rule_matched, phase_labels(name, "count")),
            matched_mitigate: count(&self.rule_matched, phase_labels(name, "mitigate")),
            mitigated: count(&self.rule_mitigated, action_labels(name, action)),
            would_mitigate: count(&self.rule_would_mitigate, rule_labels(name)),
            divergence: candidate.then(|| self.divergence(name)),
            keys: gauge(&self.store_keys, rule_labels(name)),
        }
    }

    fn divergence(&self, name: &str) -> Divergence {
        let [acts, passes] =
            DIVERGENCES.map(|pair| count(&self.rule_divergence, divergence_labels(name, pair)));
        Divergence { acts, passes }
    }

    pub(super) fn remove_rule(&self, name: &str, actions: &BTreeSet<&'static str>) {
        for phase in ["count", "mitigate"] {
            self.rule_matched.remove(&phase_labels(name, phase));
        }
        for action in actions {
            self.rule_mitigated.remove(&action_labels(name, action));
        }
        for pair in DIVERGENCES {
            self.rule_divergence.remove(&divergence_labels(name, pair));
        }
        self.rule_would_mitigate.remove(&rule_labels(name));
        self.store_keys.remove(&rule_labels(name));
    }

    pub(super) fn listener(&self, address: &str) -> ListenerMetrics {
        let cell = |method, class| count(&self.requests, request_labels(address, method, class));
        let table = METHODS.map(|method| CLASSES.map(|class| cell(method, class)));
        ListenerMetrics {
            connections: gauge(&self.connections, listener_labels(address)),
            requests: Arc::new(table),
            duration: self.duration.clone(),
        }
    }

    pub(super) fn remove_listener(&self, address: &str) {
        for method in METHODS {
            for class in CLASSES {
                let labels = request_labels(address, method, class);
                self.requests.remove(&labels);
            }
        }
        self.connections.remove(&listener_labels(address));
    }

    pub(super) fn upstream(&self, upstream: &str, server: &str) -> UpstreamMetrics {
        let labels = || server_labels(upstream, server);
        let [ok, connect_error, error, timeout] = RESULTS.map(|result| {
            let labels = result_labels(upstream, server, result);
            count(&self.upstream_requests, labels)
        });
        UpstreamMetrics {
            in_flight: gauge(&self.upstream_in_flight, labels()),
            healthy: gauge(&self.upstream_healthy, labels()),
            retries: count(&self.upstream_retries, labels()),
            ok,
            connect_error,
            error,
            timeout,
        }
    }

    pub(super) fn remove_upstream(&self, upstream: &str, server: &str) {
        let labels = server_labels(upstream, server);
        self.upstream_in_flight.remove(&labels);
        self.upstream_healthy.remove(&labels);
        self.upstream_retries.remove(&labels);
        for result in RESULTS {
            let labels = result_labels(upstream, server, result);
            self.upstream_requests.remove(&labels);
        }
    }

    pub(super) fn set_certificate(&self, listener: &str, name: &str, end: u64) {
        let end = i64::try_from(end).unwrap_or(i64::MAX);
        gauge(
            &self.certificate_not_after,
            certificate_labels(listener, name),
        )
        .set(end);
    }

    pub(super) fn remove_certificate(&self, listener: &str, name: &str) {
        let labels = certificate_labels(listener, name);
        self.certificate_not_after.remove(&labels);
    }

    pub(super) fn handshakes(&self) -> Handshakes {
        let of = |result: &str| count(&self.tls_handshakes, one("result", result));
        Handshakes {
            full: of("full"),
            resumed: of("resumed"),
            failed: of("failed"),
        }
    }

    /// The gateway runs, so a configuration was taken: the last result starts as a success.
    pub(super) fn reloads(&self) -> Reloads {
        let last = self.config_last_reload_success.clone();
        last.set(1);
        let of = |result: &str| count(&self.config_reloads, one("result", result));
        Reloads {
            success: of("success"),
            failure: of("failure"),
            last,
        }
    }

    pub(super) fn protocol_errors(&self) -> ProtocolErrors {
        ProtocolErrors(
            ProtocolError::ALL.map(|kind| count(&self.protocol_errors, one("kind", kind.name()))),
        )
    }

    pub(super) fn cuts(&self) -> Cuts {
        Cuts(Cut::ALL.map(|cut| count(&self.responses_cut, one("by", cut.name()))))
    }

    pub(super) fn set_evictions(&self, counters: u64, bans: u64) {
        count(&self.store_evictions, one("kind", "counter")).set(counters);
        count(&self.store_evictions, one("kind", "ban")).set(bans);
    }
}

fn count(family: &Counts, labels: Labels) -> Count {
    family.get_or_create_owned(&labels)
}

fn gauge(family: &Gauges, labels: Labels) -> Gauge {
    family.get_or_create_owned(&labels)
}

fn one(name: &'static str, value: &str) -> Labels {
    vec![(name, value.into())]
}

fn rule_labels(rule: &str) -> Labels {
    one("rule", rule)
}

fn phase_labels(rule: &str, phase: &str) -> Labels {
    vec![("rule", rule.into()), ("phase", phase.into())]
}

fn action_labels(rule: &str, action: &str) -> Labels {
    vec![("rule", rule.into()), ("action", action.into())]
}

fn divergence_labels(rule: &str, (live, candidate): (&str, &str)) -> Labels {
    let mut labels = rule_labels(rule);
    labels.push(("live", live.into()));
    labels.push(("candidate", candidate.into()));
    labels
}

fn listener_labels(address: &str) -> Labels {
    one("listener", address)
}

fn certificate_labels(listener: &str, name: &str) -> Labels {
    vec![("listener", listener.into()), ("certificate", name.into())]
}

fn request_labels(listener: &str, method: &str, class: &str) -> Labels {
    vec![
        ("listener", listener.into()),
        ("method", method.into()),
        ("status_class", class.into()),
    ]
}

fn server_labels(upstream: &str, server: &str) -> Labels {
    vec![("upstream", upstream.into()), ("server", server.into())]
}

fn result_labels(upstream: &str, server: &str, result: &str) -> Labels {
    let mut labels = server_labels(upstream, server);
    labels.push(("result", result.into()));
    labels
}
