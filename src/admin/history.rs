//! `/api/history`: the last 15 minutes in steps of five seconds.

use super::objects::{HistoryObject, RuleHistoryObject, raw_json};
use super::query::QueryParameters;
use super::reply::{ApiReply, ApiResult};
use super::state::AdminState;
use crate::observe::activity::{ActionClass, Marker, RuleHistory, STEP};

/// The length of the history, in seconds.
const LONGEST: usize = 900;

/// Returns the last `seconds` seconds.
pub(super) fn history(state: &AdminState, query: &QueryParameters) -> ApiResult {
    let seconds = query.number("seconds", 1..=LONGEST, LONGEST)?;
    let (view, markers) = state.hub().history(seconds as u64, state.now());
    let names = ActionClass::ALL.map(ActionClass::name).into_iter();
    let rates = view.actions_per_s.into_iter().map(rounded);
    let markers = markers.iter().map(Marker::to_json).filter_map(raw_json);
    let rule = |rule: RuleHistory| {
        let rates = RuleHistoryObject {
            matched_per_s: rounded(rule.matched_per_s),
            mitigated_per_s: rounded(rule.mitigated_per_s),
        };
        (rule.name, rates)
    };
    Ok(ApiReply::json(&HistoryObject {
        step_ms: STEP.as_millis() as u64,
        start: view.start.into(),
        actions_per_s: names.zip(rates).collect(),
        rules: view.rules.into_iter().map(rule).collect(),
        markers: markers.collect(),
    }))
}

/// Rounds rates to two decimals, so that JSON stays short.
fn rounded(rates: Vec<f32>) -> Vec<f32> {
    let round = |rate: f32| (rate * 100.0).round() / 100.0;
    rates.into_iter().map(round).collect()
}
