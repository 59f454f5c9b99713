//! Imports one rule of a ruleset, with its `ratelimit`.

use serde_json::Value;

use super::draft::{RuleDraft, UsedNames};
use super::quote::{JsonObject, mismatch, shown};
use super::{action, quote};
use crate::facts::fields;

/// JSON keys that do not affect requests. `ref` and `id` may be used as the rule's name.
const BOOKKEEPING: [&str; 5] = ["id", "ref", "version", "last_updated", "categories"];

/// JSON keys that have an effect at Cloudflare, with the nearest lockgate feature.
const ELSEWHERE: [(&str, &str); 3] = [
    (
        "logging",
        "the access log names the rule that acted on a request",
    ),
    (
        "exposed_credential_check",
        "a rule that counts responses with 401 and 403",
    ),
    ("position", "rules run in file order"),
];

/// Converts one rule.
pub fn read(value: &Value, names: &mut UsedNames) -> RuleDraft {
    let Value::Object(map) = value else {
        let mut draft = RuleDraft::new(names.rule(None));
        draft.refuse(mismatch("it", value, "an object"));
        return draft;
    };
    let mut draft = RuleDraft::new(names.rule(Some(map)));
    let mut rule = JsonObject::new(map);
    match rule.get("description") {
        Some(Value::String(text)) => draft.description = Some(text.clone()),
        Some(other) => draft.note(mismatch("`description`", other, "a string")),
        None => {}
    }
    expression(&mut rule, &mut draft);
    let limited = limit(&mut rule, &mut draft);
    action::read(&mut rule, limited, names, &mut draft);
    if let Some(enabled) = rule.get("enabled").filter(|v| **v != Value::Bool(true)) {
        draft.set("enabled", quote::value(enabled));
    }
    other_settings(rule, &mut draft);
    draft
}

fn expression(rule: &mut JsonObject<'_>, draft: &mut RuleDraft) {
    let Some(expression) = rule.get("expression") else {
        // Without `mitigate`, the rule would also mitigate the requests that it counts.
        draft.set_wrong("mitigate", quote::word(""), "'ssl'");
        return draft.refuse("it has no `expression`");
    };
    draft
        .expressions
        .extend(expression.as_str().map(str::to_owned));
    draft.set("mitigate", quote::text(expression));
}

/// Reads the limit. Returns whether the rule has one, valid or not.
fn limit(rule: &mut JsonObject<'_>, draft: &mut RuleDraft) -> bool {
    match rule.get("ratelimit").map(quote::single) {
        Some(Value::Object(map)) => read_limit(JsonObject::new(map), draft),
        Some(other) => draft.refuse(mismatch("`ratelimit`", other, "an object")),
        None => return false,
    }
    true
}

fn other_settings(mut rule: JsonObject<'_>, draft: &mut RuleDraft) {
    for key in BOOKKEEPING {
        rule.get(key);
    }
    for (key, value) in rule.left() {
        let nearest = ELSEWHERE.iter().find(|(known, _)| *known == key);
        let nearest = nearest.map(|(_, near)| format!("; nearest: {near}"));
        let nearest = nearest.unwrap_or_default();
        draft.note(format!(
            "`{key}` is not imported: {}{nearest}",
            shown(value)
        ));
    }
}

/// Reads `ratelimit`: the counted requests, the key and the limit.
fn read_limit(mut limit: JsonObject<'_>, draft: &mut RuleDraft) {
    if let Some(parts) = limit.get("characteristics") {
        key(parts, draft);
    }
    if let Some(period) = limit.get("period") {
        draft.set("period", quote::duration(period));
    }
    if let Some(timeout) = limit.get("mitigation_timeout") {
        draft.set("duration", quote::duration(timeout));
    }
    let count = limit.get("counting_expression");
    if let Some(count) = count.filter(|count| count.as_str() != Some("")) {
        draft.expressions.extend(count.as_str().map(str::to_owned));
        draft.set("count", quote::text(count));
    }
    amount(&mut limit, draft);
    origin(&mut limit, draft);
    for (key, value) in limit.left() {
        draft.drop_key(&format!("ratelimit.{key}"), value);
    }
}

fn key(parts: &Value, draft: &mut RuleDraft) {
    let Value::Array(parts) = parts else {
        return draft.set("key", quote::value(parts));
    };
    let mut key: Vec<String> = Vec::new();
    for part in parts {
        let meant = match part.as_str().map(str::trim) {
            Some("cf.colo.id") => {
                draft.note(
                    "`cf.colo.id` is not in the key: a gateway does not count per data center",
                );
                continue;
            }
            Some("cf.unique_visitor_id") => {
                draft.note(
                    "only Cloudflare provides `cf.unique_visitor_id`; used instead: `ip.src` and \
                     `tls.ja4`",
                );
                let fields = [fields::CLIENT_ADDRESS, fields::JA4];
                fields.map(|id| quote::word(fields::by_id(id).name)).into()
            }
            _ => vec![quote::value(part)],
        };
        let new: Vec<_> = meant
            .into_iter()
            .filter(|part| !key.contains(part))
            .collect();
        key.extend(new);
    }
    if !key.is_empty() {
        draft.set("key", format!("[{}]", key.join(", ")));
    }
}

/// Reads the limit: a number of requests, or a total of the scores that the origin server reports.
fn amount(limit: &mut JsonObject<'_>, draft: &mut RuleDraft) {
    // A limit of 0 means no limit in lockgate; Cloudflare's minimum is 1.
    let requests = limit.get("requests_per_period").filter(|v| !is_zero(v));
    let score = limit.get("score_per_period").filter(|v| !is_zero(v));
    let header = limit.get("score_response_header_name");
    let header = header.filter(|v| v.as_str() != Some(""));
    match (requests, score, header) {
        (requests, Some(score), Some(header)) => {
            draft.set("limit", quote::value(score));
            let cost = format!("{{ response_header = {} }}", quote::value(header));
            draft.set("cost", cost);
            if let Some(requests) = requests {
                draft.note(format!(
                    "`ratelimit.requests_per_period` is not imported: {}; nearest: a second rule, \
                     because this one counts a score",
                    shown(requests)
                ));
            }
        }
        (Some(requests), None, header) => {
            draft.set("limit", quote::value(requests));
            if let Some(header) = header {
                draft.note(format!(
                    "`ratelimit.score_response_header_name` is not imported: {}; there is no \
                     `score_per_period`",
                    shown(header)
                ));
            }
        }
        (requests, Some(score), None) => {
            draft.set("limit", quote::value(requests.unwrap_or(score)));
            draft.refuse(format!(
                "`ratelimit.score_per_period` is {}, but `score_response_header_name` is missing",
                shown(score)
            ));
        }
        (None, None, _) => draft.refuse(
            "`ratelimit` has neither `requests_per_period` nor `score_per_period`: without a \
             limit the rule would act on every request",
        ),
    }
}

fn origin(limit: &mut JsonObject<'_>, draft: &mut RuleDraft) {
    match limit.get("requests_to_origin") {
        Some(Value::Bool(true)) => draft.note(
            "`requests_to_origin` does not count cached responses; lockgate has no cache, so every \
             forwarded request counts",
        ),
        None | Some(Value::Bool(false)) => {}
        Some(other) => draft.drop_key("ratelimit.requests_to_origin", other),
    }
}

fn is_zero(value: &Value) -> bool {
    quote::whole(value) == Some(0)
}
