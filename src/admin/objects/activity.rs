//! The history of the last 15 minutes. The hub itself writes ticks, decisions and markers as JSON.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;

use super::{ApiTime, RawJson};

/// The history of the last 15 minutes. Each list has one value per step, oldest first.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs)]
pub struct HistoryObject {
    pub step_ms: u64,
    /// The start of the first step.
    pub start: ApiTime,
    pub actions_per_s: BTreeMap<&'static str, Vec<f32>>,
    /// By name.
    pub rules: BTreeMap<Arc<str>, RuleHistoryObject>,
    /// Oldest first.
    pub markers: Vec<RawJson>,
}

/// The history of a rule. For a dry run, `mitigated_per_s` is what it would mitigate.
#[derive(Clone, Debug, Default, Serialize)]
#[expect(missing_docs)]
pub struct RuleHistoryObject {
    pub matched_per_s: Vec<f32>,
    pub mitigated_per_s: Vec<f32>,
}

/// Decisions that a stream did not send.
#[derive(Clone, Copy, Debug, Serialize)]
#[expect(missing_docs)]
pub struct SkippedObject {
    pub ts: ApiTime,
    pub count: u64,
}
