//! The traffic of the last 15 minutes, from `/api/history`.

use std::time::Duration;

use serde_json::Value;

use super::action_layer::ActionLayer;
use super::api_fields::ApiFields as _;
use crate::clock::Timestamp;

/// Requests per second by step, oldest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TrafficHistory {
    /// The start of the first step.
    pub start: Timestamp,
    pub step: Duration,
    pub forwarded: Vec<f64>,
    pub mitigated: Vec<f64>,
}

// === impl TrafficHistory ===

impl TrafficHistory {
    /// Reads the object of the API.
    pub fn new(history: &Value) -> Self {
        let mut own = Self {
            start: history.time("start").unwrap_or_default(),
            step: Duration::from_millis(history.count("step_ms")),
            ..Self::default()
        };
        let actions = history.object("actions_per_s").as_object();
        for (action, _) in actions.into_iter().flatten() {
            let layer = ActionLayer::of(action);
            let sum = match layer {
                ActionLayer::Forwarded => &mut own.forwarded,
                layer if layer.is_mitigated() => &mut own.mitigated,
                _ => continue,
            };
            add(
                sum,
                &complete_steps(history.object("actions_per_s"), action),
            );
        }
        own
    }
}

/// Returns a list of rates without the last step, which is not over yet.
pub fn complete_steps(object: &Value, name: &str) -> Vec<f64> {
    let rates = object.list(name);
    let complete = rates.len().saturating_sub(1);
    let rates = rates.iter().take(complete);
    rates
        .map(|rate| rate.as_f64().unwrap_or_default())
        .collect()
}

fn add(sum: &mut Vec<f64>, rates: &[f64]) {
    sum.resize(sum.len().max(rates.len()), 0.0);
    for (sum, rate) in sum.iter_mut().zip(rates) {
        *sum += rate;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn actions_are_summed_without_the_incomplete_step() {
        let history = json!({
            "step_ms": 5000, "start": "2026-11-18T03:00:00.000Z",
            "actions_per_s": {"forward": [1.0, 2.0, 9.0], "allow": [1.0, 0.0, 9.0], "block": [4.0, 0.0, 9.0],
                "shadow": [0.5, 0.0, 9.0], "own": [7.0, 7.0, 9.0]},
        });
        let history = TrafficHistory::new(&history);
        assert_eq!(history.forwarded, [2.0, 2.0]);
        assert_eq!(history.mitigated, [4.5, 0.0]);
        assert_eq!(history.step, Duration::from_secs(5));
        assert_eq!(TrafficHistory::new(&Value::Null), TrafficHistory::default());
    }
}
