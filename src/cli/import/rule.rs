//! One rule of a ruleset.

use serde_json::Value;

use super::draft::Draft;
use super::name::Names;
use super::object::{Object, kind, shown};
use super::{action, quote, ratelimit};

/// Keys that say nothing about requests. `ref` and `id` may have become the name.
const BOOKKEEPING: [&str; 5] = ["id", "ref", "version", "last_updated", "categories"];

/// Keys that mean something to Cloudflare, with the nearest thing.
const ELSEWHERE: [(&str, &str); 3] = [
    (
        "logging",
        "the access log names the rule of each request it acted on",
    ),
    (
        "exposed_credential_check",
        "a rule that counts answers of 401 and 403",
    ),
    ("position", "rules are tried in file order"),
];

/// What is known of the rule with this number.
pub fn read(number: usize, value: &Value, names: &mut Names) -> Draft {
    let Value::Object(map) = value else {
        let mut draft = Draft::new(names.rule(number, None));
        draft.refuse(format!(
            "it is {}, not an object: {}",
            kind(value),
            shown(value)
        ));
        return draft;
    };
    let mut draft = Draft::new(names.rule(number, Some(map)));
    let mut rule = Object::new(map);
    match rule.get("description") {
        Some(Value::String(text)) => draft.description = Some(text.clone()),
        Some(other) => draft.note(not_text("description", other)),
        None => {}
    }
    expression(&mut rule, &mut draft);
    let limited = limit(&mut rule, &mut draft);
    action::read(&mut rule, limited, names, &mut draft);
    if let Some(enabled) = rule.get("enabled").filter(|v| **v != Value::Bool(true)) {
        draft.set("enabled", quote::value(enabled));
    }
    rest(rule, &mut draft);
    draft
}

fn not_text(key: &str, value: &Value) -> String {
    format!("`{key}` is {}, not a string: {}", kind(value), shown(value))
}

fn expression(rule: &mut Object<'_>, draft: &mut Draft) {
    let Some(expression) = rule.get("expression") else {
        // A rule with `count` alone would stop what it counts.
        draft.set_wrong("mitigate", quote::word(""), "'ssl'");
        return draft.refuse("it has no `expression`");
    };
    draft
        .expressions
        .extend(expression.as_str().map(str::to_owned));
    draft.set("mitigate", quote::text(expression));
}

/// Whether the rule has a limit, right or wrong.
fn limit(rule: &mut Object<'_>, draft: &mut Draft) -> bool {
    match rule.get("ratelimit") {
        Some(Value::Object(map)) => ratelimit::read(Object::new(map), draft),
        Some(other) => {
            let text = format!(
                "`ratelimit` is {}, not an object: {}",
                kind(other),
                shown(other)
            );
            draft.refuse(text);
        }
        None => return false,
    }
    true
}

fn rest(mut rule: Object<'_>, draft: &mut Draft) {
    for key in BOOKKEEPING {
        rule.get(key);
    }
    for (key, value) in rule.left() {
        let nearest = ELSEWHERE.iter().find(|(known, _)| *known == key);
        let nearest = nearest.map(|(_, near)| format!("; nearest: {near}"));
        let nearest = nearest.unwrap_or_default();
        draft.note(format!(
            "`{key}` is not carried over: {}{nearest}",
            shown(value)
        ));
    }
}
