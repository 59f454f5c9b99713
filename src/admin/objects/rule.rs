//! Rules with their settings and totals.

use std::sync::Arc;

use serde::Serialize;

use super::ApiTime;
use crate::store::FillLevels;

/// A rule with its totals since the start of the process.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs)]
pub struct RuleObject {
    pub name: Arc<str>,
    pub enabled: bool,
    pub dry_run: bool,
    /// `None` for a deny rule.
    pub algorithm: Option<&'static str>,
    /// 0 for a deny rule.
    pub limit: u64,
    /// `None` for a deny rule and for `concurrency`.
    pub period: Option<String>,
    /// `None` for an algorithm without a burst.
    pub burst: Option<u64>,
    /// The expressions.
    pub key: Vec<String>,
    pub action: &'static str,
    pub count: String,
    pub mitigate: String,
    /// The ban length. `None` without one.
    pub duration: Option<String>,
    /// The ban length of each offence. `None` without escalation.
    pub escalate: Option<Vec<String>>,
    pub matched: u64,
    pub mitigated: u64,
    pub would_mitigate: u64,
    pub keys: usize,
    pub bans: usize,
    /// When a request matched last. `None` if none has.
    pub last_matched: Option<ApiTime>,
    /// `None` without a candidate.
    pub candidate: Option<CandidateObject>,
    /// `None` if its responses imitate none.
    pub imitate: Option<ImitationObject>,
}

/// How much is learned about the real responses that a rule imitates.
#[derive(Clone, Debug, Serialize)]
pub struct ImitationObject {
    /// Whether enough is learned.
    pub ready: bool,
    /// The number of observed responses.
    pub responses: u32,
    /// The number of clients that received them, up to the number that is needed.
    pub clients: usize,
    /// How the configured body differs from real ones. `None` if it does not, or while too little is learned.
    pub difference: Option<String>,
}

/// The limiter that a rule tries, with totals.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs)]
pub struct CandidateObject {
    pub algorithm: &'static str,
    pub limit: u64,
    pub period: Option<String>,
    pub burst: Option<u64>,
    /// Requests that the rule admits and the candidate refuses.
    pub stricter: u64,
    /// Requests that the rule refuses and the candidate admits.
    pub laxer: u64,
    /// Of the 256 hottest keys, those that the two would decide differently. Only in the object of one rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub differing_keys: Option<u64>,
}

/// A rule with the distribution of its keys.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs)]
pub struct RuleDetailObject {
    #[serde(flatten)]
    pub rule: RuleObject,
    /// `None` for a deny rule.
    pub distribution: Option<DistributionObject>,
}

/// The number of keys by the share of the limit that they use.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[expect(missing_docs)]
pub struct DistributionObject {
    pub labels: [&'static str; 6],
    pub keys: [usize; 6],
}

// === impl DistributionObject ===

impl DistributionObject {
    /// A distribution with these numbers of keys.
    pub const fn new(levels: FillLevels) -> Self {
        Self {
            labels: FillLevels::LABELS,
            keys: levels.0,
        }
    }
}
