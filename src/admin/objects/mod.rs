//! The JSON objects of the admin API, as docs/admin-api.md describes them. Plain data: nothing here reads the gateway.

use std::fmt;

use serde::{Serialize, Serializer};

use crate::clock::{Rfc3339, Timestamp};

mod activity;
mod mitigation;
mod rule;
mod status;
mod upstream;

pub use activity::{
    ActionRates, CandidateRates, DecisionObject, HistoryObject, LatencyObject, MarkerObject,
    RuleHistoryObject, RuleTickObject, SkippedObject, TickObject,
};
pub use mitigation::{
    ClientObject, CommonPartObject, ExemptionObject, KeyPartObject, MitigationObject,
    MitigationPage, RemovedObject, TopKeyObject,
};
pub use rule::{CandidateObject, DistributionObject, RuleDetailObject, RuleObject};
pub use status::{
    AttentionLevel, AttentionObject, CertificateObject, ConfigErrorObject, ConfigObject,
    ConnectionsObject, HeldObject, LastReloadObject, StatusObject, StoreObject,
};
pub use upstream::{ServerObject, UpstreamObject};

/// A time as RFC 3339 text in UTC with milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ApiTime(pub Timestamp);

// === impl ApiTime ===

impl Serialize for ApiTime {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl fmt::Display for ApiTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Rfc3339(self.0).fmt(f)
    }
}

impl From<Timestamp> for ApiTime {
    fn from(time: Timestamp) -> Self {
        Self(time)
    }
}

/// Rounds a rate or a ratio to three decimals, so that JSON stays short.
pub fn rounded(value: f64) -> f64 {
    (value * 1_000.0).round() / 1_000.0
}
