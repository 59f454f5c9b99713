//! A report as JSON: the shape of `lockgate explain --format json`, described in docs/explain.md.

use std::time::Duration;

use http::HeaderMap;
use serde_json::{Map, Value, json};

use super::ExplainOutput;
use crate::expr;
use crate::observe::Redactor;
use crate::pipeline::simulate::{SimulatedOutcome, SimulationReport};
use crate::rules::trace::{CandidateTrace, RuleTrace, TracedCondition, TracedValue};

/// Renders the full report of the last request and a summary line for each request.
pub(super) fn json(output: &ExplainOutput, redactor: &Redactor) -> Value {
    let mut value = report(&output.last, redactor);
    if let Some(object) = value.as_object_mut() {
        let lines = (1..).zip(&output.lines).map(|(number, line)| {
            json!({
                "request": number,
                "at_ms": millis(line.at),
                "decision": name(line.outcome),
                "rule": line.decided_by.as_ref().map(|(rule, _)| &**rule),
                "action": line.decided_by.as_ref().map(|(_, action)| action),
                "status": line.status.map(|status| status.as_u16()),
            })
        });
        object.insert("request".into(), json!(output.request));
        object.insert("notes".into(), json!(output.notes));
        object.insert("repeat".into(), lines.collect());
    }
    value
}

/// Renders the report of one request.
pub fn report(report: &SimulationReport, redactor: &Redactor) -> Value {
    let reason = match report.outcome {
        SimulatedOutcome::Refuse(reason) => Some(reason),
        _ => None,
    };
    json!({
        "decision": name(report.outcome),
        "rule": report.decided_by.as_ref().map(|(rule, _)| &**rule),
        "action": report.decided_by.as_ref().map(|(_, action)| action),
        "reason": reason,
        "client": report.client.to_string(),
        "route": report.route,
        "to": report.to,
        "upstream": report.upstream,
        "held_ms": millis(report.held),
        "tags": report.tags.iter().map(|rule| &**rule).collect::<Vec<_>>(),
        "response": report.response.as_ref().map(|response| json!({
            "status": response.status().as_u16(),
            "headers": headers(response.headers(), redactor),
        })),
        "rules": report.rules.iter().map(trace).collect::<Vec<_>>(),
    })
}

const fn name(outcome: SimulatedOutcome) -> &'static str {
    match outcome {
        SimulatedOutcome::Forward => "forward",
        SimulatedOutcome::Allow => "allow",
        SimulatedOutcome::Delay => "delay",
        SimulatedOutcome::Tag => "tag",
        SimulatedOutcome::Divert => "divert",
        SimulatedOutcome::Block => "block",
        SimulatedOutcome::Challenge => "challenge",
        SimulatedOutcome::Tarpit => "tarpit",
        SimulatedOutcome::Close => "close",
        SimulatedOutcome::Shadow => "shadow",
        SimulatedOutcome::Refuse(_) => "refuse",
    }
}

fn headers(headers: &HeaderMap, redactor: &Redactor) -> Value {
    let shown = headers.keys().map(|name| {
        let values = headers.get_all(name).iter().map(|value| {
            if redactor.is_redacted(name.as_str()) {
                redactor.hash(value.as_bytes())
            } else {
                String::from_utf8_lossy(value.as_bytes()).into_owned()
            }
        });
        let values = values.collect::<Vec<_>>().join(", ");
        (name.as_str().to_owned(), Value::String(values))
    });
    Value::Object(shown.collect())
}

fn trace(trace: &RuleTrace) -> Value {
    let parts = trace.key_parts.iter();
    let parts = parts.map(|(part, value)| json!({ "part": part, "value": value }));
    let conditions: Map<String, Value> = (trace.conditions.iter())
        .map(|(label, part)| ((*label).to_owned(), condition(part)))
        .collect();
    json!({
        "name": &*trace.name,
        "count": trace.count,
        "mitigate": trace.mitigate,
        "key": trace.key,
        "value": trace.value,
        "limit": trace.limit,
        "remaining": trace.remaining,
        "total": trace.share.map(|share| share.total),
        "ratio": trace.share.map(|share| share.ratio),
        "verdict": trace.verdict.name(),
        "why": trace.why,
        "room": trace.capacity,
        "drawn_from": trace.drawn_from,
        "cost": trace.cost,
        "held_ms": trace.held_for.map(millis),
        "candidate": trace.candidate.as_ref().map(tried),
        "counts_at": if trace.counts_response { "response" } else { "request" },
        "banned_for_ms": trace.banned_for.map(millis),
        "key_parts": parts.collect::<Vec<_>>(),
        "conditions": conditions,
    })
}

fn tried(tried: &CandidateTrace) -> Value {
    json!({
        "verdict": tried.verdict.name(),
        "value": tried.value,
        "limit": tried.limit,
        "room": tried.capacity,
        "remaining": tried.remaining,
        "total": tried.share.map(|share| share.total),
        "ratio": tried.share.map(|share| share.ratio),
        "banned_for_ms": tried.banned_for.map(millis),
    })
}

fn condition(part: &TracedCondition) -> Value {
    json!({
        "text": part.text,
        "kind": part.kind.name(),
        "holds": part.holds,
        "reads": part.reads.iter().map(seen).collect::<Vec<_>>(),
        "parts": part.parts.iter().map(condition).collect::<Vec<_>>(),
    })
}

fn seen(seen: &TracedValue) -> Value {
    let values: Vec<Value> = seen.values.iter().map(value).collect();
    json!({
        "name": seen.label,
        "values": (!values.is_empty()).then_some(values),
        "secret": seen.secret,
    })
}

fn value(value: &expr::ScalarValue<'_>) -> Value {
    match value {
        expr::ScalarValue::Bytes(bytes) => String::from_utf8_lossy(bytes).into(),
        expr::ScalarValue::Int(int) => (*int).into(),
        expr::ScalarValue::Ip(ip) => ip.to_string().into(),
        expr::ScalarValue::Bool(truth) => (*truth).into(),
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
