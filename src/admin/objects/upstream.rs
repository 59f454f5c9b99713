//! Upstreams and their servers.

use std::sync::Arc;

use serde::Serialize;

use super::ApiTime;

/// An upstream.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs)]
pub struct UpstreamObject {
    pub name: Arc<str>,
    pub balance: &'static str,
    pub servers: Vec<ServerObject>,
}

/// A configured server. Rates cover the last ten seconds.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs)]
pub struct ServerObject {
    pub address: Arc<str>,
    pub weight: u32,
    pub backup: bool,
    /// `ready` or `drain`.
    pub state: &'static str,
    /// `healthy` or `unhealthy`.
    pub health: &'static str,
    /// Why it is unhealthy.
    pub reason: Option<String>,
    /// When it became healthy or unhealthy. `None` if it has been healthy since it was added.
    pub since: Option<ApiTime>,
    pub in_flight: usize,
    pub requests_per_s: f64,
    /// The share of failed attempts, 0 to 1.
    pub error_ratio: f64,
    /// The 99th percentile of the time until the response head. `None` without responses.
    pub p99_ms: Option<f64>,
    /// Attempts of the last ten seconds, for what needs attention.
    #[serde(skip)]
    pub recent_attempts: u64,
    /// Those without a response.
    #[serde(skip)]
    pub recent_errors: u64,
}

// === impl ServerObject ===

impl ServerObject {
    /// Whether the server gets requests.
    pub fn takes_requests(&self) -> bool {
        self.state == "ready" && self.health == "healthy"
    }
}
