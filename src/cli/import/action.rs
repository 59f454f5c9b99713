//! Imports `action` and `action_parameters` of a Cloudflare rule.

use serde_json::{Map, Value};

use super::draft::{FORBIDDEN, RuleDraft, UsedNames};
use super::quote;
use super::quote::{JsonObject, mismatch, shown};

/// How one of Cloudflare's actions is imported.
#[derive(Clone, Copy)]
enum Meaning {
    /// A lockgate action with equal behaviour.
    Same(&'static str),
    /// The nearest lockgate action, and how it differs.
    Near(&'static str, &'static str),
    /// `allow`, if the skipped phases or products exist in lockgate.
    Skip,
    /// Not a rule action in lockgate; the text names the nearest feature.
    Elsewhere(&'static str),
}

use Meaning::{Elsewhere, Near, Same, Skip};

const CHALLENGE: &str = "lockgate has no challenge page, so the rule also blocks clients that \
                         would have passed; test it with `dry_run = true`";

/// Cloudflare's actions. An action that is not listed is copied unchanged.
#[rustfmt::skip] // one row per line
const ACTIONS: &[(&str, Meaning)] = &[
    ("block", Same("block")),
    ("log", Same("log")),
    ("allow", Same("allow")),
    ("skip", Skip),
    ("challenge", Near("block", CHALLENGE)),
    ("js_challenge", Near("block", CHALLENGE)),
    ("managed_challenge", Near("block", CHALLENGE)),
    ("force_connection_close", Same("close")),
    ("execute", Elsewhere("import the ruleset that it names, and put its rules here")),
    ("rewrite", Elsewhere("`strip_prefix`, `request_headers` and `response_headers` of a route")),
    ("redirect", Elsewhere("a route with `redirect`")),
    ("route", Elsewhere("a route with another `upstream`")),
    ("set_config", Elsewhere("the settings of `[[listeners]]` and `[[routes]]`")),
    ("score", Elsewhere("one rule whose expression has all the conditions")),
    ("serve_error", Elsewhere("a route with `respond`, or `[responses]` for the response of a rule")),
    ("compress_response", Elsewhere("nothing; let the origin server compress")),
    ("set_cache_settings", Elsewhere("nothing; lockgate has no cache")),
    ("set_cache_control", Elsewhere("`response_headers` of a route")),
    ("set_cache_tags", Elsewhere("nothing; lockgate has no cache")),
    ("ddos_dynamic", Elsewhere("a rule with a `limit` by `ip.src` or `tls.ja4`")),
    ("log_custom_field", Elsewhere("the access log, which has the values that keys and expressions read")),
];

/// Cloudflare's phases and products that lockgate rules can replace.
const HERE: [&str; 3] = [
    "http_request_firewall_custom",
    "http_ratelimit",
    "rateLimit",
];

/// Reads `action` and `action_parameters`. `limited` is true if the rule has a limit.
pub fn read(
    rule: &mut JsonObject<'_>,
    limited: bool,
    names: &mut UsedNames,
    draft: &mut RuleDraft,
) {
    let empty = Map::new();
    let parameters = match rule.get("action_parameters").map(quote::single) {
        Some(Value::Object(map)) => map,
        Some(other) => {
            draft.note(mismatch("`action_parameters`", other, "an object"));
            &empty
        }
        None => &empty,
    };
    let Some(action) = rule.get("action") else {
        draft.set_wrong("action", quote::word(""), "\"log\"");
        return draft.refuse("it has no `action`");
    };
    let written = action.as_str().unwrap_or_default();
    let known = ACTIONS.iter().find(|(name, _)| *name == written);
    match known.map(|(_, meaning)| *meaning) {
        Some(Same(ours)) => plain(&quote::word(ours), parameters, limited, names, draft),
        Some(Near(ours, differs)) => {
            draft.note(format!("nearest to `{written}`: `{ours}`; {differs}"));
            plain(&quote::word(ours), parameters, limited, names, draft);
        }
        Some(Skip) => skip(parameters, draft),
        Some(Elsewhere(nearest)) => elsewhere(written, nearest, parameters, draft),
        None => plain(&quote::value(action), parameters, limited, names, draft),
    }
}

/// Sets an action that a rule can have. `ours` is already TOML.
fn plain(
    ours: &str,
    parameters: &Map<String, Value>,
    limited: bool,
    names: &mut UsedNames,
    draft: &mut RuleDraft,
) {
    draft.set("action", ours.to_owned());
    let answers = ours == "\"block\"";
    let mut parameters = JsonObject::new(parameters);
    match parameters.get("response").map(quote::single) {
        Some(Value::Object(map)) if answers => response(map, limited, names, draft),
        Some(other) => draft.note(format!(
            "`action_parameters.response` is not imported: {}; only `block` has a response, as an \
             object",
            shown(other)
        )),
        None if answers && !limited => {
            draft.forbidden = true;
            draft.set("response", quote::word(FORBIDDEN));
        }
        None => {}
    }
    for (key, value) in parameters.left() {
        draft.drop_key(&format!("action_parameters.{key}"), value);
    }
}

fn response(map: &Map<String, Value>, limited: bool, names: &mut UsedNames, draft: &mut RuleDraft) {
    let mut response = JsonObject::new(map);
    let mut keys = Vec::new();
    match response.get("status_code") {
        Some(status) => keys.push(("status", quote::value(status))),
        None if limited => {}
        None => keys.push(("status", "403".to_owned())),
    }
    if let Some(content_type) = response.get("content_type") {
        keys.push(("content_type", quote::value(content_type)));
    }
    if let Some(content) = response.get("content") {
        keys.push(("body", quote::text(content)));
        if content.as_str().is_some_and(|text| text.contains("{{")) {
            draft.note("the body contains `{{`, which starts a template value in lockgate");
        }
    }
    for (key, value) in response.left() {
        draft.drop_key(&format!("action_parameters.response.{key}"), value);
    }
    let name = names.response(&draft.name);
    draft.respond(name, keys);
}

/// Imports `skip` as `allow`, which skips all later rules. Cloudflare can skip features that lockgate lacks.
fn skip(parameters: &Map<String, Value>, draft: &mut RuleDraft) {
    draft.set("action", quote::word("allow"));
    let skipped = Value::Object(parameters.clone());
    let note = format!("`skip` has {}", shown(&skipped));
    if skips_ours(parameters) {
        let differs = "in lockgate, `allow` skips all later rules and nothing else";
        draft.note(format!("{note}; {differs}"));
    } else {
        let differs = "lockgate has none of these, and `allow` would skip all later rules";
        draft.refuse(format!("{note}; {differs}"));
    }
}

/// Returns whether the parameters skip rules that lockgate can have.
fn skips_ours(parameters: &Map<String, Value>) -> bool {
    let current = parameters.get("ruleset").and_then(Value::as_str) == Some("current");
    let lists = ["phases", "products"].into_iter();
    let named = lists.filter_map(|key| parameters.get(key)?.as_array());
    let mut named = named.flatten().filter_map(Value::as_str);
    current || named.any(|name| HERE.contains(&name))
}

fn elsewhere(action: &str, nearest: &str, parameters: &Map<String, Value>, draft: &mut RuleDraft) {
    draft.set_wrong("action", quote::word(action), "\"log\"");
    draft.refuse(format!(
        "lockgate has no action `{action}`; nearest: {nearest}"
    ));
    if !parameters.is_empty() {
        draft.drop_key("action_parameters", &Value::Object(parameters.clone()));
    }
}
