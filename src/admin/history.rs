//! `/api/history`: the last 15 minutes in steps of five seconds.

use tokio::task::spawn_blocking;

use super::api_error::ApiError;
use super::objects::{HistoryObject, RuleHistoryObject, raw_json};
use super::query::QueryParameters;
use super::reply::{ApiReply, ApiResult};
use super::state::AdminState;
use crate::observe::activity::{ActionClass, HistoryView, Marker, RuleHistory, STEP};

/// The length of the history, in seconds.
const LONGEST: usize = 900;

/// Returns the last `seconds` seconds.
pub(super) async fn history(state: &AdminState, query: &QueryParameters) -> ApiResult {
    let seconds = query.number("seconds", 1..=LONGEST, LONGEST)?;
    let (hub, now) = (state.hub().clone(), state.now());
    // There can be thousands of rules.
    let reply = spawn_blocking(move || {
        let (view, markers) = hub.history(seconds as u64, now);
        ApiReply::json(&object(view, &markers))
    });
    reply.await.map_err(|_| ApiError::internal())
}

fn object(view: HistoryView, markers: &[Marker]) -> HistoryObject {
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
    HistoryObject {
        step_ms: STEP.as_millis() as u64,
        start: view.start.into(),
        actions_per_s: names.zip(rates).collect(),
        rules: view.rules.into_iter().map(rule).collect(),
        markers: markers.collect(),
    }
}

/// Rounds rates to two decimals, so that JSON stays short.
fn rounded(rates: Vec<f32>) -> Vec<f32> {
    let round = |rate: f32| (rate * 100.0).round() / 100.0;
    rates.into_iter().map(round).collect()
}
