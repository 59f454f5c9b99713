//! Health checks: sends a probe request to a server and compares the response with the expected one. Reads a bounded
//! part of the body. The caller schedules the checks; `server_health` counts them.

use std::fmt;
use std::future::poll_fn;
use std::net::{IpAddr, Ipv4Addr};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use http::header::USER_AGENT;
use http::{HeaderMap, HeaderValue, Method, StatusCode, Version};
use http_body::Body as _;
use memchr::memmem;

use super::error::UpstreamError;
use super::http1::connection::IdleConnections;
use super::http1::response_head::ExpectedResponse;
use super::pool::{Pool, PreparedRequest};
use super::server::ServerInFlight;
use super::{ForwardedHeaders, OutboundRequest, Upstream, UpstreamResponse, UpstreamServer};
use crate::body::{Body, BodyError};
use crate::route::edit::HeaderChanges;

/// The maximum number of body bytes that a health check reads.
const BODY_BYTES: usize = 64 * 1024;

/// The maximum number of body bytes that an error shows.
const SHOWN_BYTES: usize = 60;

/// The health check settings of an upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthPolicy {
    /// The path of the probe request.
    pub path: String,
    /// The method of the probe request.
    pub method: Method,
    /// The host of the probe request. `None` for the name or address of the server.
    pub host: Option<Arc<str>>,
    /// Headers of the probe request, which replace those of the gateway.
    pub headers: HeaderChanges,
    /// The statuses that pass.
    pub statuses: Vec<StatusRange>,
    /// The text that the start of the body must contain. Empty for any body.
    pub body_contains: String,
    /// The time between two health checks of a server.
    pub interval: Duration,
    /// The timeout of one health check, body included.
    pub timeout: Duration,
    /// The number of consecutive passes that make a server healthy.
    pub healthy: u32,
    /// The number of consecutive failures that make a server unhealthy.
    pub unhealthy: u32,
}

/// A range of statuses, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusRange {
    /// The lowest status.
    pub low: u16,
    /// The highest status.
    pub high: u16,
}

/// The result of a health check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckResult {
    /// Whether the server is now healthy. `None` if its health did not change.
    pub changed: Option<bool>,
    /// The reason for a failed check, in a word or two.
    pub why: String,
    /// The reason for a failed check, as a text for logs: what was expected, and what came.
    pub error: String,
}

/// Why a probe failed.
enum ProbeFailure {
    Timeout,
    NoResponse(UpstreamError),
    Status(StatusCode),
    /// The start of a body without the expected text.
    Text(Vec<u8>),
    /// The body ended early.
    Body(BodyError),
}

// === impl HealthPolicy ===

impl HealthPolicy {
    /// Creates the policy with the default settings, which the caller may change.
    pub fn of_path(path: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            method: Method::GET,
            host: None,
            headers: HeaderChanges::default(),
            statuses: vec![StatusRange::SUCCESS],
            body_contains: String::new(),
            interval: Duration::from_secs(5),
            timeout: Duration::from_secs(1),
            healthy: 2,
            unhealthy: 3,
        }
    }

    fn accepts(&self, status: StatusCode) -> bool {
        let status = status.as_u16();
        let mut ranges = self.statuses.iter();
        ranges.any(|range| (range.low..=range.high).contains(&status))
    }

    /// Describes a failure in one sentence. `host` is the host of the probe request.
    fn describe(&self, failure: &ProbeFailure, host: &str) -> String {
        let Self { method, path, .. } = self;
        match failure {
            ProbeFailure::Timeout => {
                "the health check got no response within `health.timeout`".to_owned()
            }
            ProbeFailure::NoResponse(error) => error.to_string(),
            ProbeFailure::Status(status) => {
                let ranges = self.statuses.iter().map(StatusRange::to_string);
                let expected = ranges.collect::<Vec<_>>().join(", ");
                let status = status.as_u16();
                format!(
                    "expected status {expected}, got {status} for `{method} {path}` with host `{host}`"
                )
            }
            ProbeFailure::Text(body) => {
                let shown = body.get(..SHOWN_BYTES).unwrap_or(body);
                let shown = String::from_utf8_lossy(shown);
                format!(
                    "expected a body that contains {:?}, got one that starts with {shown:?}",
                    self.body_contains
                )
            }
            ProbeFailure::Body(error) => format!(
                "expected a body that contains {:?}, but the body ended early: {error}",
                self.body_contains
            ),
        }
    }
}

// === impl StatusRange ===

impl StatusRange {
    /// The statuses of success and redirection.
    pub const SUCCESS: Self = Self {
        low: 200,
        high: 399,
    };
}

impl fmt::Display for StatusRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.low)?;
        if self.low < self.high {
            write!(f, "-{}", self.high)?;
        }
        Ok(())
    }
}

// === impl ProbeFailure ===

impl ProbeFailure {
    fn word(&self) -> String {
        match self {
            Self::Timeout => "timeout".to_owned(),
            Self::NoResponse(error) => error.reason().to_owned(),
            Self::Status(status) => format!("status {}", status.as_u16()),
            Self::Text(_) | Self::Body(_) => "body".to_owned(),
        }
    }
}

// === impl Pool ===

impl Pool {
    /// Sends one health check to a server and records its result.
    pub async fn check(&self, upstream: &Upstream, server: &Arc<UpstreamServer>) -> CheckResult {
        let Some(health) = &upstream.health else {
            return CheckResult::default();
        };
        let own = || upstream.own_host(server);
        let host = health.host.clone().unwrap_or_else(own);
        let asking = self.probe(upstream, server, health, &host);
        let outcome = tokio::time::timeout(health.timeout, asking).await;
        let outcome = outcome.unwrap_or(Err(ProbeFailure::Timeout));
        let changed = server.health.checked(outcome.is_ok(), health);
        let failure = outcome.err();
        let error = failure.as_ref().map(|f| health.describe(f, &host));
        let error = error.unwrap_or_default();
        server.note_check(&error);
        CheckResult {
            changed,
            why: failure.map_or_else(String::new, |failure| failure.word()),
            error,
        }
    }

    async fn probe(
        &self,
        upstream: &Upstream,
        server: &Arc<UpstreamServer>,
        health: &HealthPolicy,
        host: &str,
    ) -> Result<(), ProbeFailure> {
        let answer = self.ask(upstream, server, health, host).await;
        let response = answer.map_err(ProbeFailure::NoResponse)?.response;
        if !health.accepts(response.status()) {
            return Err(ProbeFailure::Status(response.status()));
        }
        if health.body_contains.is_empty() {
            return Ok(());
        }
        find(response.into_body(), health.body_contains.as_bytes()).await
    }

    /// Sends a probe request on a new connection.
    async fn ask(
        &self,
        upstream: &Upstream,
        server: &Arc<UpstreamServer>,
        health: &HealthPolicy,
        host: &str,
    ) -> Result<UpstreamResponse, UpstreamError> {
        let agent = HeaderValue::from_static("lockgate-health");
        let outbound = OutboundRequest {
            method: &health.method,
            target: &health.path,
            headers: &HeaderMap::from_iter([(USER_AGENT, agent)]),
            edits: Some(&health.headers),
            version: Version::HTTP_11,
            host: None,
            forwarding: ForwardedHeaders {
                peer: IpAddr::V4(Ipv4Addr::LOCALHOST),
                client: IpAddr::V4(Ipv4Addr::LOCALHOST),
                trusted_peer: false,
                host,
                https: false,
                request_id: "health",
                rules: "",
                credentials: None,
            },
            body: Body::Empty,
            upgrade: false,
            key: 0,
            response_timeout: None,
        };
        let request = PreparedRequest::new(upstream, outbound)?;
        let expected = ExpectedResponse::new(&health.method, false, upstream);
        // The limit is zero, so the connection closes afterwards.
        let idle = Rc::new(IdleConnections::new(Rc::clone(&self.shared)));
        let server = ServerInFlight::begin(server);
        let sent = self.open_and_send(upstream, idle, server, expected, request);
        sent.await.or_else(|failed| failed.into_result())
    }
}

/// Searches the first [`BODY_BYTES`] of a body.
async fn find(mut body: Body, text: &[u8]) -> Result<(), ProbeFailure> {
    let finder = memmem::Finder::new(text);
    let mut read = Vec::new();
    while read.len() < BODY_BYTES {
        let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await else {
            break;
        };
        let Ok(data) = frame.map_err(ProbeFailure::Body)?.into_data() else {
            continue;
        };
        // The text may begin in the bytes of earlier frames.
        let from = read.len().saturating_sub(text.len());
        let most = data.len().min(BODY_BYTES - read.len());
        read.extend_from_slice(data.get(..most).unwrap_or_default());
        if finder.find(read.get(from..).unwrap_or_default()).is_some() {
            return Ok(());
        }
    }
    Err(ProbeFailure::Text(read))
}
