//! What the rest of the gateway holds: counters that were looked up beforehand.

use std::sync::Arc;
use std::time::Duration;

use http::Method;
use prometheus_client::metrics::gauge::Gauge;

use super::series::{Histogram, MetricCounter};

/// The methods with a series of their own, in the order of [`ListenerMetrics`]' table.
pub(super) const METHODS: [&str; 10] = [
    "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "CONNECT", "OTHER",
];
/// The classes of a status, in the order of the table.
pub(super) const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

/// Requests by method, then by class of status.
pub(super) type Table = [[MetricCounter; CLASSES.len()]; METHODS.len()];

/// A rule's counters.
#[derive(Clone, Debug)]
pub struct RuleMetrics {
    /// Requests that `count` matched.
    pub matched_count: MetricCounter,
    /// Requests that `mitigate` matched.
    pub matched_mitigate: MetricCounter,
    /// Requests that were acted on.
    pub mitigated: MetricCounter,
    /// Requests that would have been, were it not a dry run.
    pub would_mitigate: MetricCounter,
    /// Where it has a candidate: requests on which the two differ.
    pub divergence: Option<CandidateDivergence>,
    /// Keys in the store. For the moment of a scrape.
    pub keys: Gauge,
}

/// Requests on which a rule and its candidate differ.
#[derive(Clone, Debug)]
pub struct CandidateDivergence {
    /// The candidate would have acted where the rule did not.
    pub acts: MetricCounter,
    /// The candidate would have passed what the rule acted on.
    pub passes: MetricCounter,
}

/// A listener's counters.
#[derive(Clone, Debug)]
pub struct ListenerMetrics {
    /// Open connections.
    pub connections: Gauge,
    pub(super) requests: Arc<Table>,
    pub(super) duration: Histogram,
}

/// An open connection in the metrics, until it is dropped.
#[derive(Debug)]
pub struct OpenConnectionGauge(Gauge);

/// The counters of one server of an upstream, for the moment of a scrape. An attempt ends in one of
/// the results.
#[derive(Clone, Debug)]
pub struct UpstreamMetrics {
    /// Requests on their way.
    pub in_flight: Gauge,
    /// Addresses that take requests.
    pub healthy: Gauge,
    /// Requests sent once more after it failed them.
    pub retries: MetricCounter,
    /// A response came.
    pub ok: MetricCounter,
    /// No connection could be made.
    pub connect_error: MetricCounter,
    /// The connection broke, or what came was no response.
    pub error: MetricCounter,
    /// The server took too long.
    pub timeout: MetricCounter,
}

/// TLS handshakes by how they ended.
#[derive(Clone, Debug)]
pub struct HandshakeCounters {
    /// A full handshake.
    pub full: MetricCounter,
    /// An earlier session went on.
    pub resumed: MetricCounter,
    /// It failed or took too long.
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
    /// How a client broke the protocol.
    pub enum ProtocolError {
        /// A head that cannot be parsed.
        Malformed = "malformed",
        /// Where the body ends is not beyond doubt.
        Framing = "framing",
        /// A transfer coding other than `chunked`.
        TransferCoding = "transfer_coding",
        /// No host, several, a broken one, or not the authority's.
        Host = "host",
        /// A target that is not in origin form, or a path that hides another.
        Target = "target",
        /// CONNECT, or another method that a gateway refuses.
        Method = "method",
        /// A head over the limits.
        HeadTooLarge = "head_too_large",
        /// A body over the limit.
        BodyTooLarge = "body_too_large",
        /// A host that this connection's certificate does not cover.
        Misdirected = "misdirected",
        /// A head, body or read that took too long.
        Timeout = "timeout",
        /// More HTTP/2 frames of a kind than anyone needs.
        Flood = "flood",
        /// A connection more than its network may have.
        TooManyConnections = "too_many_connections",
        /// No PROXY header where one is required, or one of a stranger.
        Proxy = "proxy",
    }
}

// === impl RuleMetrics ===

impl RuleMetrics {
    /// The rule passed what its candidate would have acted on.
    pub fn candidate_acts(&self) {
        self.divergence.iter().for_each(|both| both.acts.inc());
    }

    /// The rule acted on what its candidate would have passed.
    pub fn candidate_passes(&self) {
        self.divergence.iter().for_each(|both| both.passes.inc());
    }
}

// === impl ListenerMetrics ===

impl ListenerMetrics {
    /// Counts a connection for as long as the value lives.
    pub fn open(&self) -> OpenConnectionGauge {
        self.connections.inc();
        OpenConnectionGauge(self.connections.clone())
    }

    /// Counts a request that is over.
    pub fn request(&self, method: &Method, status: u16, duration: Duration) {
        self.count(method_index(method), status);
        self.duration.observe(duration);
    }

    /// Counts a request whose head could not be read, so that its method is not known.
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

impl Drop for OpenConnectionGauge {
    fn drop(&mut self) {
        self.0.dec();
    }
}

fn method_index(method: &Method) -> usize {
    let known = METHODS.iter().position(|known| *known == method.as_str());
    known.unwrap_or(METHODS.len() - 1)
}

/// A status outside 100 to 599 is treated as a 5xx (RFC 9110, section 15).
fn class_index(status: u16) -> usize {
    match status / 100 {
        class @ 1..5 => usize::from(class) - 1,
        _ => 4,
    }
}

// === impl ReloadCounters ===

impl ReloadCounters {
    /// A new configuration is in force.
    pub fn succeeded(&self) {
        self.success.inc();
        self.last.set(1);
    }

    /// A configuration was refused; the one before stays.
    pub fn failed(&self) {
        self.failure.inc();
        self.last.set(0);
    }
}
