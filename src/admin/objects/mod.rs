//! The JSON objects of the admin API, as docs/admin-api.md describes them. Plain data: nothing here reads the gateway.

use std::fmt;
use std::time::Duration;

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::clock::{Rfc3339, Timestamp};

mod activity;
mod mitigation;
mod rule;
mod status;
mod upstream;

pub use activity::{HistoryObject, RuleHistoryObject, SkippedObject};
pub use mitigation::{
    ClientObject, CommonPartObject, ExemptionObject, KeyPartObject, MitigationObject,
    MitigationPage, RemovedObject, TopKeyObject,
};
pub use rule::{
    CandidateObject, DistributionObject, ImitationObject, RuleDetailObject, RuleObject,
};
pub use status::{
    AttentionLevel, AttentionObject, CertificateObject, ConfigErrorObject, ConfigObject,
    ConnectionsObject, HeldObject, LastReloadObject, StatusObject, StoreObject,
};
pub use upstream::{ServerObject, UpstreamObject};

/// A time as RFC 3339 text in UTC with milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ApiTime(pub Timestamp);

// === impl ApiTime ===

impl ApiTime {
    /// Reads the text that a time formats as. `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        let number = |from: usize, to: usize| text.get(from..to)?.parse::<u64>().ok();
        let date = [number(0, 4)?, number(5, 7)?, number(8, 10)?];
        let time = [number(11, 13)?, number(14, 16)?, number(17, 19)?];
        let whole = Timestamp::from_utc(date, time)?;
        let read = Self(whole.plus(Duration::from_millis(number(20, 23)?)));
        (read.to_string() == text).then_some(read)
    }
}

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

/// JSON that was written before.
pub type RawJson = Box<RawValue>;

/// Wraps text that is JSON. `None` if it is not.
pub fn raw_json(text: impl Into<String>) -> Option<RawJson> {
    RawValue::from_string(text.into()).ok()
}

/// Rounds a rate or a ratio to three decimals, so that JSON stays short.
pub fn rounded(value: f64) -> f64 {
    (value * 1_000.0).round() / 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_read_as_it_is_written() {
        for text in ["2026-11-18T03:14:07.480Z", "2024-02-29T00:00:00.000Z"] {
            assert_eq!(ApiTime::parse(text).unwrap().to_string(), text);
        }
        for wrong in [
            "",
            "2026-11-18",
            "2026-13-18T03:14:07.480Z",
            "2026-11-18T03:14:07.480+01",
        ] {
            assert_eq!(ApiTime::parse(wrong), None, "{wrong}");
        }
    }
}
