//! Finds the rules in a JSON document: a ruleset, an API response, a list of either, a list of
//! rules or a single rule.

use serde_json::Value;

use super::quote::{kind, visible};

const EXPECTED: &str = "expected a ruleset `{\"rules\": […]}`, the API's response `{\"success\": \
                        true, \"result\": …}` or an array of rules";

const TERRAFORM: &str = "Terraform files are not read; fetch the deployed ruleset from the API, as \
                         `lockgate help import-cloudflare` shows";

/// The order in which Cloudflare evaluates rulesets.
const PHASES: [&str; 3] = [
    "http_request_firewall_custom",
    "http_ratelimit",
    "http_request_firewall_managed",
];

/// A group of rules. Rules outside a ruleset have no name, id or phase.
#[derive(Default)]
pub struct CloudflareRuleset<'a> {
    /// Its name, if present.
    pub name: Option<&'a str>,
    /// Its identifier, if present.
    pub id: Option<&'a str>,
    /// The phase in which Cloudflare evaluates it, if known.
    pub phase: Option<&'a str>,
    /// Its rules. Empty if the API omitted them.
    pub rules: &'a [Value],
}

/// Parses the document. The error contains the position of the JSON syntax error.
pub fn parse(file: &str, json: &[u8]) -> Result<Value, String> {
    let json = json.strip_prefix(b"\xef\xbb\xbf").unwrap_or(json);
    if json.iter().all(u8::is_ascii_whitespace) {
        return Err(format!("{file}: found nothing; {EXPECTED}"));
    }
    serde_json::from_slice(json).map_err(|error| {
        if is_hcl(file, json) {
            return format!("{file}: {TERRAFORM}");
        }
        let text = error.to_string();
        let message = text.split(" at line ").next().unwrap_or_default();
        let column = column(json, error.line(), error.column());
        format!(
            "{file}:{}:{column}: not JSON: {message}; {EXPECTED}",
            error.line()
        )
    })
}

/// Returns whether a document that is not JSON is a Terraform file.
fn is_hcl(file: &str, text: &[u8]) -> bool {
    const BLOCKS: [&[u8]; 4] = [
        b"resource \"",
        b"variable \"",
        b"terraform {",
        b"provider \"",
    ];
    let block = |line: &[u8]| BLOCKS.iter().any(|block| line.starts_with(block));
    file.ends_with(".tf") || text.split(|byte| *byte == b'\n').any(block)
}

/// Returns whether a document is Terraform's configuration, state or plan in JSON.
fn is_terraform(document: &Value) -> bool {
    let has = |key| document.get(key).is_some();
    let resource = document.get("resource");
    has("terraform_version")
        || has("format_version")
        || resource.is_some_and(|resource| resource.get("cloudflare_ruleset").is_some())
}

/// Returns all rulesets in the document, in evaluation order.
pub fn rulesets(document: &Value) -> Result<Vec<CloudflareRuleset<'_>>, String> {
    let result = document.get("result").filter(|_| !is_ruleset(document));
    let content = result.unwrap_or(document);
    let items = match content {
        Value::Array(items) => items.as_slice(),
        single => std::slice::from_ref(single),
    };
    let mut found = if items.iter().any(is_ruleset) {
        items.iter().map(ruleset).collect::<Result<_, _>>()?
    } else if items.iter().any(is_rule) {
        vec![CloudflareRuleset {
            rules: items,
            ..CloudflareRuleset::default()
        }]
    } else {
        return Err(match is_terraform(document) {
            true => TERRAFORM.to_owned(),
            false => refusal(document, content),
        });
    };
    if found.iter().all(|ruleset| ruleset.rules.is_empty()) {
        return Err(no_rules(&found));
    }
    let rank = |phase| PHASES.iter().position(|known| Some(*known) == phase);
    found.sort_by_key(|ruleset| rank(ruleset.phase).unwrap_or(PHASES.len()));
    Ok(found)
}

/// Returns whether a value is a ruleset. The API's list of rulesets omits `rules`.
fn is_ruleset(value: &Value) -> bool {
    let has = |key| value.get(key).is_some();
    has("rules") || (has("phase") || has("kind")) && !is_rule(value)
}

fn is_rule(value: &Value) -> bool {
    let mut keys = ["expression", "action", "ratelimit"].iter();
    keys.any(|key| value.get(key).is_some())
}

fn ruleset(value: &Value) -> Result<CloudflareRuleset<'_>, String> {
    if !is_ruleset(value) {
        return Err(format!(
            "found rulesets and {}; {EXPECTED}",
            describe(value)
        ));
    }
    let text = |key: &str| value.get(key).and_then(Value::as_str);
    let rules = match value.get("rules") {
        Some(Value::Array(rules)) => rules.as_slice(),
        None | Some(Value::Null) => &[],
        Some(other) => return Err(format!("`rules` is {}; expected an array", kind(other))),
    };
    Ok(CloudflareRuleset {
        name: text("name"),
        id: text("id"),
        phase: text("phase"),
        rules,
    })
}

/// Returns why a document without rules is refused: the API's error, or what it contains instead.
fn refusal(document: &Value, content: &Value) -> String {
    let errors = document.get("errors").and_then(Value::as_array);
    let messages = errors.into_iter().flatten();
    let messages = messages.filter_map(|error| error.get("message")?.as_str());
    let messages: Vec<_> = messages.map(visible).collect();
    if messages.is_empty() {
        return format!("found {}; {EXPECTED}", describe(content));
    }
    let messages = messages.join("; ");
    format!("found an API response with errors: {messages}; {EXPECTED}")
}

fn no_rules(found: &[CloudflareRuleset<'_>]) -> String {
    let names: Vec<_> = found.iter().map(CloudflareRuleset::title).collect();
    format!(
        "found no rules in {}; the list of rulesets does not include them: request each ruleset, \
         `GET /zones/ZONE/rulesets/ID`",
        names.join(", ")
    )
}

/// Describes a value by its type and up to eight of its JSON keys.
fn describe(value: &Value) -> String {
    match value {
        Value::Array(items) => match items.first() {
            Some(first) => format!("an array that begins with {}", describe(first)),
            None => "an empty array".to_owned(),
        },
        Value::Object(map) if map.is_empty() => "an empty object".to_owned(),
        Value::Object(map) => {
            let names = map.keys().take(8);
            let names: Vec<_> = names.map(|key| format!("`{}`", visible(key))).collect();
            format!("an object with the members {}", names.join(", "))
        }
        other => kind(other).to_owned(),
    }
}

/// Converts a column from bytes, as the parser counts, to characters, as editors count.
fn column(json: &[u8], line: usize, column: usize) -> usize {
    let mut lines = json.split(|byte| *byte == b'\n');
    let line = lines.nth(line.saturating_sub(1)).unwrap_or_default();
    let before = line.get(..column.saturating_sub(1)).unwrap_or(line);
    String::from_utf8_lossy(before).chars().count() + 1
}

// === impl CloudflareRuleset ===

impl CloudflareRuleset<'_> {
    /// The name of the ruleset in messages.
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
