//! Where the rules are in a JSON document: a ruleset, the API's answer, a list of either, a list of
//! rules or a single rule.

use serde_json::{Map, Value};

use super::quote::{kind, visible};

const EXPECTED: &str = "expected a ruleset `{\"rules\": […]}`, the API's answer \
                        `{\"success\": true, \"result\": …}` or an array of rules";

/// The order in which Cloudflare asks rulesets about a request.
const PHASES: [&str; 3] = [
    "http_request_firewall_custom",
    "http_ratelimit",
    "http_request_firewall_managed",
];

/// Rules that belong together.
pub struct Ruleset<'a> {
    /// What it is called, if it is.
    pub name: Option<&'a str>,
    /// Its identifier, if it has one.
    pub id: Option<&'a str>,
    /// When Cloudflare asks it, if known.
    pub phase: Option<&'a str>,
    /// Its rules. Empty where the API left them out.
    pub rules: &'a [Value],
}

/// The document; the error says where it is not JSON.
pub fn parse(file: &str, json: &[u8]) -> Result<Value, String> {
    let json = json.strip_prefix(b"\xef\xbb\xbf").unwrap_or(json);
    if json.iter().all(u8::is_ascii_whitespace) {
        return Err(format!("{file}: found nothing; {EXPECTED}"));
    }
    serde_json::from_slice(json).map_err(|error| {
        let text = error.to_string();
        let message = text.split(" at line ").next().unwrap_or_default();
        let column = column(json, error.line(), error.column());
        format!(
            "{file}:{}:{column}: not JSON: {message}; {EXPECTED}",
            error.line()
        )
    })
}

/// All rulesets that the document holds, in the order in which their rules are tried.
pub fn rulesets(document: &Value) -> Result<Vec<Ruleset<'_>>, String> {
    let mut found = match document {
        Value::Array(items) => array(items)?,
        Value::Object(map) if is_rule(map) => vec![loose(std::slice::from_ref(document))],
        Value::Object(map) => object(map)?,
        other => return Err(format!("found {}; {EXPECTED}", kind(other))),
    };
    if found.iter().all(|ruleset| ruleset.rules.is_empty()) {
        return Err(no_rules(&found));
    }
    let rank = |phase| PHASES.iter().position(|known| Some(*known) == phase);
    found.sort_by_key(|ruleset| rank(ruleset.phase).unwrap_or(PHASES.len()));
    Ok(found)
}

fn object(map: &Map<String, Value>) -> Result<Vec<Ruleset<'_>>, String> {
    if is_ruleset(map) {
        return Ok(vec![ruleset(map)?]);
    }
    match map.get("result") {
        Some(Value::Object(inner)) if is_ruleset(inner) => Ok(vec![ruleset(inner)?]),
        Some(Value::Array(items)) => array(items),
        Some(_) | None if map.contains_key("errors") || map.contains_key("result") => {
            Err(refusal(map))
        }
        _ => Err(format!("found an object with {}; {EXPECTED}", keys(map))),
    }
}

fn array(items: &[Value]) -> Result<Vec<Ruleset<'_>>, String> {
    let objects: Vec<_> = items.iter().filter_map(Value::as_object).collect();
    if objects.iter().any(|map| is_ruleset(map)) {
        let rulesets = objects.len() == items.len() && objects.iter().all(|map| is_ruleset(map));
        return match rulesets {
            true => objects.into_iter().map(ruleset).collect(),
            false => Err(format!(
                "found an array of rulesets and other things; {EXPECTED}"
            )),
        };
    }
    if objects.iter().any(|map| is_rule(map)) {
        return Ok(vec![loose(items)]);
    }
    let what = match (items.first(), objects.first()) {
        (None, _) => "an empty array".to_owned(),
        (_, Some(map)) => format!("an array of objects with {}", keys(map)),
        (Some(first), None) => format!("an array that begins with {}", kind(first)),
    };
    Err(format!("found {what}; {EXPECTED}"))
}

/// The list of rulesets leaves `rules` out.
fn is_ruleset(map: &Map<String, Value>) -> bool {
    let described = map.contains_key("phase") || map.contains_key("kind");
    map.contains_key("rules") || described && !is_rule(map)
}

fn is_rule(map: &Map<String, Value>) -> bool {
    let keys = ["expression", "action", "ratelimit"];
    keys.iter().any(|key| map.contains_key(*key))
}

/// Rules outside a ruleset.
fn loose(rules: &[Value]) -> Ruleset<'_> {
    Ruleset {
        name: None,
        id: None,
        phase: None,
        rules,
    }
}

fn ruleset(map: &Map<String, Value>) -> Result<Ruleset<'_>, String> {
    let text = |key: &str| map.get(key).and_then(Value::as_str);
    let rules = match map.get("rules") {
        Some(Value::Array(rules)) => rules.as_slice(),
        None | Some(Value::Null) => &[],
        Some(other) => return Err(format!("`rules` is {}; expected an array", kind(other))),
    };
    Ok(Ruleset {
        name: text("name"),
        id: text("id"),
        phase: text("phase"),
        rules,
    })
}

/// An answer without a result says why.
fn refusal(map: &Map<String, Value>) -> String {
    let errors = map.get("errors").and_then(Value::as_array);
    let errors = errors.map(Vec::as_slice).unwrap_or_default().iter();
    let messages = errors.filter_map(|error| error.get("message")?.as_str());
    let messages: Vec<_> = messages.map(visible).collect();
    match (messages.as_slice(), map.get("result")) {
        ([], Some(result)) => {
            let inside = result.as_object().map(|map| format!(" with {}", keys(map)));
            let inside = inside.unwrap_or_default();
            format!("`result` is {}{inside}; {EXPECTED}", kind(result))
        }
        ([], None) => format!("found an object with {}; {EXPECTED}", keys(map)),
        (messages, _) => format!(
            "found an answer that says: {}; {EXPECTED}",
            messages.join("; ")
        ),
    }
}

fn no_rules(found: &[Ruleset<'_>]) -> String {
    let names: Vec<_> = found.iter().map(Ruleset::title).collect();
    format!(
        "found no rules in {}; the list of rulesets leaves them out: ask the API for each, \
         `GET /zones/ZONE/rulesets/ID`",
        names.join(", ")
    )
}

/// Up to eight names of keys, in backticks.
fn keys(map: &Map<String, Value>) -> String {
    let names = map.keys().take(8);
    let names: Vec<_> = names.map(|key| format!("`{}`", visible(key))).collect();
    match names.is_empty() {
        true => "no keys".to_owned(),
        false => format!("the keys {}", names.join(", ")),
    }
}

/// A column in characters, as editors count. The parser counts bytes.
fn column(json: &[u8], line: usize, column: usize) -> usize {
    let mut lines = json.split(|byte| *byte == b'\n');
    let line = lines.nth(line.saturating_sub(1)).unwrap_or_default();
    let before = line.get(..column.saturating_sub(1)).unwrap_or(line);
    String::from_utf8_lossy(before).chars().count() + 1
}

// === impl Ruleset ===

impl Ruleset<'_> {
    /// How messages call it.
    pub fn title(&self) -> String {
        let phase = self.phase.map(|phase| format!(" ({})", visible(phase)));
        let phase = phase.unwrap_or_default();
        match (self.name, self.id) {
            (Some(name), Some(id)) if self.rules.is_empty() => {
                format!("ruleset \"{}\"{phase}, ID {}", visible(name), visible(id))
            }
            (Some(name), _) => format!("ruleset \"{}\"{phase}", visible(name)),
            (None, Some(id)) => format!("ruleset {}{phase}", visible(id)),
            (None, None) => format!("a ruleset without a name{phase}"),
        }
    }
}
