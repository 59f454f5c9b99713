//! What happens on this gateway: ticks, decisions, markers, and the history of the last 15 minutes.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;

use super::ApiTime;

/// Rates by action. Absent actions are zero.
pub type ActionRates = BTreeMap<&'static str, f64>;

/// One second of the gateway.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs)]
pub struct TickObject {
    pub ts: ApiTime,
    pub requests_per_s: f64,
    /// Each request once, by its final decision.
    pub actions_per_s: ActionRates,
    /// The latency of forwarded requests of the last ten seconds. `None` without such requests.
    pub latency_ms: Option<LatencyObject>,
    pub connections: usize,
    /// By name.
    pub rules: BTreeMap<Arc<str>, RuleTickObject>,
}

/// The latency of forwarded requests without the time that rules held them, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[expect(missing_docs)]
pub struct LatencyObject {
    pub p50: f64,
    pub p99: f64,
}

/// One second of a rule.
#[derive(Clone, Debug, Default, Serialize)]
#[expect(missing_docs)]
pub struct RuleTickObject {
    pub matched_per_s: f64,
    pub mitigated_per_s: f64,
    pub would_mitigate_per_s: f64,
    /// `None` without a candidate.
    pub candidate: Option<CandidateRates>,
    pub keys: usize,
    pub bans: usize,
}

/// Requests per second for which a rule and its candidate decide differently.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct CandidateRates {
    /// The rule admits and the candidate refuses.
    pub stricter_per_s: f64,
    /// The rule refuses and the candidate admits.
    pub laxer_per_s: f64,
}

/// The history of the last 15 minutes. Each list has one value per step, oldest first.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs)]
pub struct HistoryObject {
    pub step_ms: u32,
    /// The start of the first step.
    pub start: ApiTime,
    pub actions_per_s: BTreeMap<&'static str, Vec<f32>>,
    /// By name.
    pub rules: BTreeMap<Arc<str>, RuleHistoryObject>,
    /// Oldest first.
    pub markers: Vec<MarkerObject>,
}

/// The history of a rule. For a dry run, `mitigated_per_s` is what it would mitigate.
#[derive(Clone, Debug, Default, Serialize)]
#[expect(missing_docs)]
pub struct RuleHistoryObject {
    pub matched_per_s: Vec<f32>,
    pub mitigated_per_s: Vec<f32>,
}

/// Something that happened at one moment.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs)]
pub struct MarkerObject {
    pub ts: ApiTime,
    /// `reload`, `ban`, `store` or `server`.
    pub kind: &'static str,
    /// Whether an operator should look at it.
    pub bad: bool,
    pub label: String,
    pub text: String,
}

/// A decision about a request, with names and redaction as in the access log.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs)]
pub struct DecisionObject {
    pub ts: ApiTime,
    pub id: String,
    pub client_ip: String,
    pub asn: Option<u32>,
    pub country: Option<String>,
    pub ja4: Option<String>,
    pub method: String,
    pub host: Option<String>,
    pub path: String,
    pub query: Option<String>,
    /// `None` if the request got no response.
    pub status: Option<u16>,
    pub user_agent: Option<String>,
    /// `None` if no rule acted.
    pub rule: Option<Arc<str>>,
    pub action: &'static str,
    /// `None` if no rule acted.
    pub key: Option<String>,
    pub dry_run: bool,
    pub banned: bool,
    pub count: Option<u64>,
    pub limit: Option<u64>,
    /// The number of equal decisions that this one stands for.
    pub repeat: u64,
}

/// Decisions that a stream did not send.
#[derive(Clone, Copy, Debug, Serialize)]
#[expect(missing_docs)]
pub struct SkippedObject {
    pub ts: ApiTime,
    pub count: u64,
}
