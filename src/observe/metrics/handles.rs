//! Metric handles for the other modules: counters that are looked up in advance.

use std::sync::Arc;
use std::time::Duration;

use http::Method;
use prometheus_client::metrics::gauge::Gauge;

use super::series::{Histogram, MetricCounter, UntypedGauge};

/// The methods with their own series, in the order of the table in [`ListenerMetrics`].
pub(super) const METHODS: [&str; 10] = [
    "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "CONNECT", "OTHER",
];
/// The status classes, in the order of the table.
pub(super) const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

/// Requests by method, then by status class.
pub(super) type Table = [[MetricCounter; CLASSES.len()]; METHODS.len()];

/// A rule's counters.
#[derive(Clone, Debug)]
pub struct RuleMetrics {
    /// Requests that `count` matched.
    pub matched_count: MetricCounter,
    /// Requests that `mitigate` matched.
    pub matched_mitigate: MetricCounter,
    /// Requests that were mitigated.
    pub mitigated: MetricCounter,
    /// Requests that would have been mitigated, if the rule were not a dry run.
    pub would_mitigate: MetricCounter,
    /// Requests with different decisions of rule and candidate. `None` without a candidate.
    pub divergence: Option<CandidateDivergence>,
    /// The challenges of the rule. `None` if it sends none.
    pub challenges: Option<ChallengeCounters>,
    /// Keys in the store. Updated for each scrape.
    pub keys: Gauge,
    /// Active bans. Updated for each scrape.
    pub bans: Gauge,
    /// The units in the only counter of a rule without a key. `None` for other rules.
    pub usage: Option<RuleUsage>,
}

/// The units in the only counter of a rule. Updated for each scrape.
#[derive(Clone, Debug)]
pub struct RuleUsage {
    /// The units of `count`.
    pub count: UntypedGauge,
    /// The units of `total`. `None` for a rule without a ratio.
    pub total: Option<UntypedGauge>,
}

/// Challenges by result.
#[derive(Clone, Debug)]
pub struct ChallengeCounters {
    /// Challenges that were sent.
    pub sent: MetricCounter,
    /// Correct solutions.
    pub solved: MetricCounter,
    /// Wrong solutions and tokens.
    pub wrong: MetricCounter,
    /// Solutions that came too late.
    pub expired: MetricCounter,
}

/// Requests with different decisions of a rule and its candidate.
#[derive(Clone, Debug)]
pub struct CandidateDivergence {
    /// The candidate would have mitigated a request that the rule did not.
    pub mitigates: MetricCounter,
    /// The candidate would not have mitigated a request that the rule did.
    pub admits: MetricCounter,
}

/// A listener's counters.
#[derive(Clone, Debug)]
pub struct ListenerMetrics {
    /// Open connections, by phase.
    pub(super) connections: ConnectionGauges,
    pub(super) requests: Arc<Table>,
    pub(super) duration: Histogram,
}

/// The open connections of a listener by phase.
#[derive(Clone, Debug)]
pub(super) struct ConnectionGauges {
    pub(super) opening: Gauge,
    pub(super) http1: Gauge,
    pub(super) http2: Gauge,
}

/// Counts an open connection in its phase until dropped.
#[derive(Debug)]
pub struct OpenConnectionGauge {
    connections: ConnectionGauges,
    current: GaugeGuard,
}

/// Counts one in a gauge until dropped.
#[derive(Debug)]
pub struct GaugeGuard(Gauge);

/// The counters of one server of an upstream, updated for each scrape. Each attempt has one of the results
/// `ok` to `timeout`.
#[derive(Clone, Debug)]
pub struct UpstreamMetrics {
    /// Requests in flight.
    pub in_flight: Gauge,
    /// Eligible addresses.
    pub healthy: Gauge,
    /// Requests sent again after this server failed.
    pub retries: MetricCounter,
    /// The time until the response head, by class of the status code, `1xx` first.
    pub durations: [Histogram; CLASSES.len()],
    /// Attempts with a response.
    pub ok: MetricCounter,
    /// Attempts without a connection.
    pub connect_error: MetricCounter,
    /// Attempts with a broken connection or an invalid response.
    pub error: MetricCounter,
    /// Attempts that exceeded a timeout.
    pub timeout: MetricCounter,
}

/// TLS handshakes by result.
#[derive(Clone, Debug)]
pub struct HandshakeCounters {
    /// Full handshakes.
    pub full: MetricCounter,
    /// Resumed sessions.
    pub resumed: MetricCounter,
    /// Handshakes that failed or timed out.
    pub failed: MetricCounter,
}

/// Configuration reloads.
#[derive(Clone, Debug)]
pub struct ReloadCounters {
    pub(super) success: MetricCounter,
    pub(super) failure: MetricCounter,
    pub(super) last: Gauge,
}

named! {
    /// What a client connection is used for.
    pub enum ConnectionPhase {
        /// The PROXY header, the TLS handshake or the first bytes are awaited.
        Opening = "opening",
        /// HTTP/1.0 or HTTP/1.1.
        Http1 = "http/1.1",
        /// HTTP/2.
        Http2 = "h2",
    }
}

named! {
    /// How a client violated the protocol.
    pub enum ProtocolError {
        /// A head that cannot be parsed.
        Malformed = "malformed",
        /// The end of the body is ambiguous.
        Framing = "framing",
        /// A transfer coding other than `chunked`.
        TransferCoding = "transfer_coding",
        /// A missing, repeated or invalid host, or one that differs from the authority.
        Host = "host",
        /// A target that is not in origin form, or a path that disguises another.
        Target = "target",
        /// CONNECT, or another method that the gateway refuses.
        Method = "method",
        /// A head above the limits.
        HeadTooLarge = "head_too_large",
        /// A body above the limit.
        BodyTooLarge = "body_too_large",
        /// A host that this connection's certificate does not cover.
        Misdirected = "misdirected",
        /// A head, body or read that exceeded a timeout.
        Timeout = "timeout",
        /// Too many HTTP/2 frames of a kind.
        Flood = "flood",
        /// A connection above the limit for its network.
        TooManyConnections = "too_many_connections",
        /// A required PROXY header is missing, or its peer is not trusted.
        Proxy = "proxy",
    }
}

named! {
    /// What happened to the cookie of a known client.
    pub enum KnownClientResult {
        /// A request had a valid cookie.
        Known = "known",
        /// A request had no cookie.
        New = "new",
        /// A request had a cookie that was not renewed in time.
        Expired = "expired",
        /// A request had a cookie that no gateway with these secrets issued for this host.
        Invalid = "invalid",
        /// A client became known.
        Issued = "issued",
        /// A success renewed a cookie.
        Renewed = "renewed",
        /// A further user succeeded with a cookie.
        UserAdded = "user_added",
        /// A success set no cookie, because caches may share the response.
        Cacheable = "cacheable",
    }
}

named! {
    /// The result of inspecting a request body.
    pub enum BodyInspection {
        /// The body was read to its end.
        Read = "read",
        /// The body is longer than `limits.inspect_body`.
        Truncated = "truncated",
        /// The body has no value that a rule reads: another media type, or too many form fields.
        Unsupported = "unsupported",
        /// The body has a content coding.
        Encoded = "encoded",
        /// A form field that a rule reads occurs twice.
        Ambiguous = "ambiguous",
        /// All inspections together hold as much memory as they may.
        Full = "full",
    }
}

// === impl RuleMetrics ===

impl RuleMetrics {
    /// Counts a request that the candidate would have mitigated and the rule did not.
    pub fn candidate_acts(&self) {
        self.divergence.iter().for_each(|both| both.mitigates.inc());
    }

    /// Counts a request that the rule mitigated and the candidate would not have.
    pub fn candidate_passes(&self) {
        self.divergence.iter().for_each(|both| both.admits.inc());
    }
}

// === impl RuleUsage ===

impl RuleUsage {
    /// Sets both counts.
    pub fn set(&self, count: u64, total: u64) {
        let value = |units: u64| i64::try_from(units).unwrap_or(i64::MAX);
        self.count.set(value(count));
        self.total.iter().for_each(|gauge| gauge.set(value(total)));
    }
}

// === impl ListenerMetrics ===

impl ListenerMetrics {
    /// Counts an open connection until the returned value is dropped.
    pub fn open(&self) -> OpenConnectionGauge {
        OpenConnectionGauge {
            current: GaugeGuard::new(&self.connections.opening),
            connections: self.connections.clone(),
        }
    }

    /// Counts a finished request.
    pub fn request(&self, method: &Method, status: u16, duration: Duration) {
        self.count(method_index(method), status);
        self.duration.observe(duration);
    }

    /// Counts a request with an unreadable head and therefore an unknown method.
    pub fn unread(&self, status: u16) {
        self.count(METHODS.len() - 1, status);
    }

    fn count(&self, method: usize, status: u16) {
        let row = self.requests.get(method);
        if let Some(count) = row.and_then(|row| row.get(class_index(status))) {
            count.inc();
        }
    }
}

// === impl OpenConnectionGauge ===

impl OpenConnectionGauge {
    /// Counts the connection in another phase from now on.
    pub fn enter(&mut self, phase: ConnectionPhase) {
        self.current = GaugeGuard::new(self.connections.of(phase));
    }
}

// === impl ConnectionGauges ===

impl ConnectionGauges {
    fn of(&self, phase: ConnectionPhase) -> &Gauge {
        match phase {
            ConnectionPhase::Opening => &self.opening,
            ConnectionPhase::Http1 => &self.http1,
            ConnectionPhase::Http2 => &self.http2,
        }
    }
}

// === impl GaugeGuard ===

impl GaugeGuard {
    pub(super) fn new(gauge: &Gauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for GaugeGuard {
    fn drop(&mut self) {
        self.0.dec();
    }
}

fn method_index(method: &Method) -> usize {
    let known = METHODS.iter().position(|known| *known == method.as_str());
    known.unwrap_or(METHODS.len() - 1)
}

/// Returns the index of a status class. A status outside 100 to 599 counts as 5xx (RFC 9110, section 15).
fn class_index(status: u16) -> usize {
    match status / 100 {
        class @ 1..5 => usize::from(class) - 1,
        _ => 4,
    }
}

// === impl ReloadCounters ===

impl ReloadCounters {
    /// Records that a new configuration was installed.
    pub fn succeeded(&self) {
        self.success.inc();
        self.last.set(1);
    }

    /// Records that a configuration was rejected.
    pub fn failed(&self) {
        self.failure.inc();
        self.last.set(0);
    }
}
