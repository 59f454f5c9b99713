//! The gateway's metrics, one set for the process.
//!
//! Handles are looked up when a configuration is built: a request only updates atomics. No label contains
//! data from a client.

mod handles;
mod process_usage;
mod rule_series;
mod scraped;
mod series;

use std::sync::Arc;

use prometheus_client::encoding::text::encode_registry;
pub use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

pub use handles::{
    BodyInspection, CandidateDivergence, ChallengeCounters, ConnectionPhase, GaugeGuard,
    HandshakeCounters, KnownClientResult, ListenerMetrics, ProtocolError, ReloadCounters,
    RuleMetrics, RuleUsage, UpstreamMetrics,
};
pub use process_usage::ProcessUsage;
pub use series::{HISTOGRAM_BOUNDS, Histogram, MetricCounter, UntypedGauge};

use super::AbortReason;
use handles::{CLASSES, ConnectionGauges, METHODS};
use series::{MetricFamily, SecondsCounter};

/// All metrics of the process.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    families: Families,
    /// TLS handshakes.
    pub handshakes: HandshakeCounters,
    /// Configuration reloads.
    pub reloads: ReloadCounters,
    protocol_errors: [MetricCounter; ProtocolError::ALL.len()],
    cuts: [MetricCounter; AbortReason::ALL.len()],
    known_clients: [MetricCounter; KnownClientResult::ALL.len()],
    inspections: [MetricCounter; BodyInspection::ALL.len()],
    /// Solutions of challenges whose rule is not loaded.
    pub other_challenges: ChallengeCounters,
    /// Time from a challenge to its solution.
    pub challenge_solve: Histogram,
    /// Requests cancelled by a client disconnect although a rule might have counted the response.
    pub uncounted: MetricCounter,
    /// Bytes of request bodies.
    pub bytes_in: MetricCounter,
    /// Bytes of response bodies.
    pub bytes_out: MetricCounter,
    /// Panics.
    pub panics: MetricCounter,
}

/// Declares [`Families`] with the type, name and help line of each metric, and registers them.
macro_rules! families {
    ($($field:ident: $kind:ty, $name:literal, $help:literal;)*) => {
        /// Every metric of the gateway.
        #[derive(Debug, Default)]
        struct Families {
            $($field: $kind,)*
        }

        impl Families {
            fn register(registry: &mut Registry) -> Self {
                let all = Self::default();
                $(registry.register($name, $help, all.$field.clone());)*
                all
            }
        }
    };
}

families! {
    requests: MetricFamily<MetricCounter>, "requests_total", "Requests with a response";
    duration: Histogram, "request_duration_seconds",
        "Time from the request head to the end of the response";
    bytes: MetricFamily<MetricCounter>, "bytes_total",
        "Bytes of request bodies (in) and of response bodies (out)";
    connections: MetricFamily<Gauge>, "connections", "Open client connections";
    tunnels: Gauge, "tunnels", "Open tunnels, such as WebSockets";
    tls_handshakes: MetricFamily<MetricCounter>, "tls_handshakes_total", "TLS handshakes by result";
    certificate_not_after: MetricFamily<Gauge>, "certificate_not_after_timestamp_seconds",
        "When a certificate expires, in seconds since the epoch";
    upstream_requests: MetricFamily<MetricCounter>, "upstream_requests_total",
        "Attempts to send a request to a server, by result";
    upstream_in_flight: MetricFamily<Gauge>, "upstream_in_flight",
        "Requests to a server without a response yet";
    upstream_healthy: MetricFamily<Gauge>, "upstream_healthy", "Addresses of a server that take requests";
    upstream_duration: MetricFamily<Histogram>, "upstream_duration_seconds",
        "Time until the head of a response, by server and class of its status code";
    upstream_retries: MetricFamily<MetricCounter>, "upstream_retries_total",
        "Requests sent again after a server failed them";
    responses_cut: MetricFamily<MetricCounter>, "responses_cut_total",
        "Responses that ended early, by cause";
    protocol_errors: MetricFamily<MetricCounter>, "protocol_errors_total",
        "Requests and connections refused for a protocol error, by kind";
    body_inspections: MetricFamily<MetricCounter>, "body_inspections_total",
        "Request bodies that a rule may have needed, by what was read of them";
    rule_matched: MetricFamily<MetricCounter>, "rule_matched_total",
        "Requests that a rule's expression matched, by phase";
    rule_mitigated: MetricFamily<MetricCounter>, "rule_mitigated_total", "Requests that a rule acted on";
    rule_would_mitigate: MetricFamily<MetricCounter>, "rule_would_mitigate_total",
        "Requests that a dry run would have acted on";
    rule_divergence: MetricFamily<MetricCounter>, "rule_divergence_total",
        "Requests for which a rule and its candidate decide differently";
    known_clients: MetricFamily<MetricCounter>, "known_clients_total",
        "Checks and issues of known-client cookies, by result";
    rule_count: MetricFamily<UntypedGauge>, "rule_count", "Units that a rule without a key has counted";
    rule_total: MetricFamily<UntypedGauge>, "rule_total",
        "Units of which those of a rule with a ratio and without a key are a share";
    challenges: MetricFamily<MetricCounter>, "challenges_total", "Challenges by result";
    challenge_solve: Histogram, "challenge_solve_seconds", "Time from a challenge to its solution";
    held_requests: Gauge, "held_requests",
        "Requests that wait before they are forwarded or get a response";
    uncounted: MetricCounter, "requests_uncounted_total",
        "Requests whose client disconnected and whose response no rule counted";
    store_keys: MetricFamily<Gauge>, "store_keys", "Keys that have a counter, by rule";
    store_evictions: MetricFamily<MetricCounter>, "store_evictions_total",
        "Counters and bans evicted for new ones, by kind";
    store_max_keys: Gauge, "store_max_keys", "The maximum number of keys in this process";
    store_errors: MetricFamily<MetricCounter>, "store_errors_total",
        "Calls to the shared store that failed, by kind";
    store_state: MetricFamily<Gauge>, "store_state", "1 for the state of the store";
    store_failed_open: Gauge, "store_failed_open",
        "Whether the shared store is unavailable and rules use their on_failure fallback";
    store_roundtrip: Histogram, "store_roundtrip_seconds", "Time of a call to the shared store";
    settle_dropped: MetricCounter, "settle_dropped_total",
        "Counts and slot releases dropped because the store was too slow";
    config_reloads: MetricFamily<MetricCounter>, "config_reloads_total", "Configuration reloads by result";
    config_last_reload_success: Gauge, "config_last_reload_success",
        "Whether the last reload succeeded";
    bans: MetricFamily<Gauge>, "bans", "Active bans that this gateway knows, by rule";
    imitation_ready: MetricFamily<Gauge>, "imitation_ready",
        "Whether enough is learned for the shadow responses of a rule with imitate";
    build_info: MetricFamily<Gauge>, "build_info", "1, with the version";
    process_start: Gauge, "process_start_time_seconds", "When the process started, in seconds since the epoch";
    process_cpu: SecondsCounter, "process_cpu_seconds_total", "User and system CPU time";
    process_memory: Gauge, "process_resident_memory_bytes", "Resident memory";
    process_fds: Gauge, "process_open_fds", "Open file descriptors";
    process_max_fds: Gauge, "process_max_fds", "The maximum number of open file descriptors";
    log_lines_dropped: MetricCounter, "log_lines_dropped_total",
        "Log lines dropped because a target was too slow";
    panics: MetricCounter, "panics_total",
        "Bugs in the gateway, each of which ended at most one connection";
}

// === impl Metrics ===

impl Metrics {
    /// Creates metrics with all values zero.
    pub fn new() -> Self {
        let mut registry = Registry::with_prefix("lockgate");
        let families = Families::register(&mut registry);
        let cut = |cut: AbortReason| families.responses_cut.series(&[("by", cut.name())]);
        let error = |kind: ProtocolError| {
            let labels = [("kind", kind.name())];
            families.protocol_errors.series(&labels)
        };
        let known = |result: KnownClientResult| {
            let labels = [("result", result.name())];
            families.known_clients.series(&labels)
        };
        let inspection = |result: BodyInspection| {
            let labels = [("result", result.name())];
            families.body_inspections.series(&labels)
        };
        let metrics = Self {
            known_clients: KnownClientResult::ALL.map(known),
            inspections: BodyInspection::ALL.map(inspection),
            handshakes: families.handshakes(),
            reloads: families.reloads(),
            protocol_errors: ProtocolError::ALL.map(error),
            cuts: AbortReason::ALL.map(cut),
            other_challenges: families.challenges(""),
            challenge_solve: families.challenge_solve.clone(),
            uncounted: families.uncounted.clone(),
            bytes_in: families.bytes.series(&[("direction", "in")]),
            bytes_out: families.bytes.series(&[("direction", "out")]),
            panics: families.panics.clone(),
            registry,
            families,
        };
        metrics.set_evictions(0, 0);
        let version = [("version", env!("CARGO_PKG_VERSION"))];
        metrics.families.build_info.series(&version).set(1);
        metrics
    }

    /// Counts a request or a connection that violated the protocol.
    pub fn count_protocol_error(&self, kind: ProtocolError) {
        let count = self.protocol_errors.get(kind as usize);
        count.into_iter().for_each(MetricCounter::inc);
    }

    /// Counts an inspected request body.
    pub fn count_inspection(&self, result: BodyInspection) {
        let count = self.inspections.get(result as usize);
        count.into_iter().for_each(MetricCounter::inc);
    }

    /// Counts a response that ended early.
    pub fn count_cut(&self, cut: AbortReason) {
        let count = self.cuts.get(cut as usize);
        count.into_iter().for_each(MetricCounter::inc);
    }

    /// Counts an open tunnel until the returned value is dropped.
    pub fn tunnel(&self) -> GaugeGuard {
        GaugeGuard::new(&self.families.tunnels)
    }

    /// Returns the number of open tunnels.
    pub fn tunnels(&self) -> usize {
        usize::try_from(self.families.tunnels.get()).unwrap_or_default()
    }

    /// Counts a check of a known-client cookie, or a response that sets one.
    pub fn count_known_client(&self, result: KnownClientResult) {
        let count = self.known_clients.get(result as usize);
        count.into_iter().for_each(MetricCounter::inc);
    }

    /// Returns the handles of a listener. A listener with this address keeps its values.
    pub fn listener(&self, address: &str) -> ListenerMetrics {
        let (all, listener) = (&self.families, ("listener", address));
        let cell = |method, class| {
            let labels = [listener, ("method", method), ("status_class", class)];
            all.requests.series(&labels)
        };
        let connections = |phase: ConnectionPhase| {
            let labels = [listener, ("protocol", phase.name())];
            all.connections.series(&labels)
        };
        let table = METHODS.map(|method| CLASSES.map(|class| cell(method, class)));
        ListenerMetrics {
            connections: ConnectionGauges {
                opening: connections(ConnectionPhase::Opening),
                http1: connections(ConnectionPhase::Http1),
                http2: connections(ConnectionPhase::Http2),
            },
            requests: Arc::new(table),
            duration: all.duration.clone(),
        }
    }

    /// Removes the series of all listeners except `addresses`.
    pub fn keep_listeners(&self, addresses: &[&str]) {
        let addresses: Vec<[&str; 1]> = addresses.iter().map(|address| [*address]).collect();
        self.families.requests.keep(&addresses);
        self.families.connections.keep(&addresses);
    }

    /// Returns the handles of one server of an upstream. The server keeps its values.
    pub fn upstream(&self, upstream: &str, server: &str) -> UpstreamMetrics {
        let all = &self.families;
        let owner @ [upstream, server] = [("upstream", upstream), ("server", server)];
        let requests = |result| {
            let labels = [upstream, server, ("result", result)];
            all.upstream_requests.series(&labels)
        };
        let duration = |class| {
            let labels = [upstream, server, ("status_class", class)];
            all.upstream_duration.series(&labels)
        };
        UpstreamMetrics {
            durations: CLASSES.map(duration),
            in_flight: all.upstream_in_flight.series(&owner),
            healthy: all.upstream_healthy.series(&owner),
            retries: all.upstream_retries.series(&owner),
            ok: requests("ok"),
            connect_error: requests("connect_error"),
            error: requests("error"),
            timeout: requests("timeout"),
        }
    }

    /// Removes the series of all servers except `servers`: pairs of upstream name and server label.
    pub fn keep_upstreams(&self, servers: &[(&str, &str)]) {
        let servers: Vec<[&str; 2]> = servers.iter().copied().map(Into::into).collect();
        let all = &self.families;
        all.upstream_requests.keep(&servers);
        all.upstream_duration.keep(&servers);
        all.upstream_in_flight.keep(&servers);
        all.upstream_healthy.keep(&servers);
        all.upstream_retries.keep(&servers);
    }

    /// Returns all series as Prometheus text (version 0.0.4).
    pub fn encode(&self) -> String {
        let mut text = String::with_capacity(16 << 10);
        // Writing to a `String` does not fail, and every label here can be encoded.
        let _ = encode_registry(&mut text, &self.registry);
        // The library writes OpenMetrics, where an untyped metric is `unknown`.
        text.replace(" unknown\n", " untyped\n")
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

// === impl Families ===

impl Families {
    fn challenges(&self, rule: &str) -> ChallengeCounters {
        let of = |result| {
            self.challenges
                .series(&[("rule", rule), ("result", result)])
        };
        ChallengeCounters {
            sent: of("sent"),
            solved: of("solved"),
            wrong: of("wrong"),
            expired: of("expired"),
        }
    }

    fn handshakes(&self) -> HandshakeCounters {
        let of = |result| self.tls_handshakes.series(&[("result", result)]);
        HandshakeCounters {
            full: of("full"),
            resumed: of("resumed"),
            failed: of("failed"),
        }
    }

    /// Starts with a success as the last result, because the gateway runs with an accepted configuration.
    fn reloads(&self) -> ReloadCounters {
        let last = self.config_last_reload_success.clone();
        last.set(1);
        let of = |result| self.config_reloads.series(&[("result", result)]);
        ReloadCounters {
            success: of("success"),
            failure: of("failure"),
            last,
        }
    }
}

#[cfg(test)]
mod tests;
