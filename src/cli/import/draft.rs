//! A rule during its conversion from JSON to TOML, and unique names for rules and responses,
//! `[A-Za-z0-9_-]{1,64}`.

use std::collections::HashMap;
use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::quote;

/// The name of the shared response for deny rules: Cloudflare sends 403 if a rule has no limit.
pub const FORBIDDEN: &str = "forbidden";
/// The shared 403 response as TOML.
pub const FORBIDDEN_TABLE: &str = "[responses.forbidden]\nstatus = 403\nbody = \"forbidden\\n\"\n";

/// The settings of a rule in output order.
const ORDER: [&str; 10] = [
    "count", "mitigate", "key", "limit", "period", "duration", "cost", "action", "response",
    "enabled",
];

/// A partially converted rule.
#[derive(Default)]
pub struct RuleDraft {
    /// Its name in gateway.toml.
    pub name: String,
    /// The description from Cloudflare.
    pub description: Option<String>,
    /// What could not be converted, and why the rule is refused.
    pub notes: Vec<String>,
    /// Lists that the rule reads; the user has to fill them.
    pub lists: Vec<String>,
    /// Whether the rule uses the shared 403 response.
    pub forbidden: bool,
    /// Expressions to search for list names.
    pub expressions: Vec<String>,
    refused: bool,
    keys: Keys,
    /// Valid replacements for settings that are known to be wrong, so that validation does not report them again.
    right: Keys,
    response: Option<(String, Keys)>,
}

/// Settings with values that are already TOML.
pub type Keys = Vec<(&'static str, String)>;

// === impl RuleDraft ===

impl RuleDraft {
    /// Creates a rule that has only a name.
    pub fn new(name: String) -> Self {
        Self {
            name,
            ..Self::default()
        }
    }

    /// Adds a setting with a value that is already TOML.
    pub fn set(&mut self, key: &'static str, value: String) {
        self.keys.push((key, value));
    }

    /// Adds a setting with a value that the gateway refuses. `right` is a valid value, used for validation.
    pub fn set_wrong(&mut self, key: &'static str, value: String, right: &str) {
        self.set(key, value);
        self.right.push((key, right.to_owned()));
    }

    /// Adds a separate response for the rule.
    pub fn respond(&mut self, name: String, keys: Keys) {
        self.set("response", quote::word(&name));
        self.response = Some((name, keys));
    }

    /// Adds a note about something that could not be converted.
    pub fn note(&mut self, note: impl AsRef<str>) {
        self.notes.push(quote::visible(note.as_ref()));
    }

    /// Adds a note that the value of the JSON key at `path` could not be converted.
    pub fn drop_key(&mut self, path: &str, value: &Value) {
        let shown = quote::shown(value);
        self.note(format!("`{path}` is not imported: {shown}"));
    }

    /// Marks the rule as refused, with the reason. It is written as a comment.
    pub fn refuse(&mut self, note: impl AsRef<str>) {
        self.refused = true;
        self.note(note);
    }

    /// Returns whether the rule is written as a comment.
    pub fn is_refused(&self) -> bool {
        self.refused
    }

    /// Returns whether the draft has only notes and no settings.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Renders the rule and its response.
    pub fn toml(&self) -> String {
        self.render(&[])
    }

    /// Renders the rule with its lists and responses, but without listeners and routes, for validation.
    pub fn fragment(&self) -> String {
        let shared = if self.forbidden { FORBIDDEN_TABLE } else { "" };
        let used = self.lists.iter().map(|name| (name, true));
        lists(used) + &self.render(&self.right) + shared
    }

    fn render(&self, instead: &[(&'static str, String)]) -> String {
        let mut text = format!("[[rules]]\nname = {}\n", quote::word(&self.name));
        for key in ORDER {
            let mut keys = instead.iter().chain(&self.keys);
            lines(&mut text, keys.find(|(name, _)| *name == key));
        }
        if let Some((name, keys)) = &self.response {
            let _ = writeln!(text, "\n[responses.{name}]");
            lines(&mut text, keys);
        }
        text
    }
}

/// Renders empty lists with these names. An unused list (`false`) is written as a comment.
pub fn lists<'a>(names: impl IntoIterator<Item = (&'a String, bool)>) -> String {
    let (mut lines, mut any_used) = (String::new(), false);
    let sign = |used| if used { "" } else { "# " };
    for (name, used) in names {
        any_used |= used;
        let _ = writeln!(lines, "{}{name} = []", sign(used));
    }
    if lines.is_empty() {
        return lines;
    }
    format!("{}[lists]\n{lines}\n", sign(any_used))
}

fn lines<'a>(text: &mut String, keys: impl IntoIterator<Item = &'a (&'static str, String)>) {
    for (key, value) in keys {
        let _ = writeln!(text, "{key} = {value}");
    }
}

const LONGEST: usize = 64;

/// Used names, with the last number appended to each.
type Taken = HashMap<String, usize>;

/// The names assigned so far.
#[derive(Default)]
pub struct UsedNames {
    rules: Taken,
    responses: Taken,
    count: usize,
}

// === impl UsedNames ===

impl UsedNames {
    /// Returns a name for the next rule: from its description, else from Cloudflare's name, else its number.
    pub fn rule(&mut self, rule: Option<&Map<String, Value>>) -> String {
        self.count += 1;
        let texts = ["description", "ref", "id"].into_iter();
        let texts = texts.filter_map(|key| rule?.get(key)?.as_str());
        let name = texts.map(slug).find(|slug| !slug.is_empty());
        let name = name.unwrap_or_else(|| format!("rule-{}", self.count));
        free(name, &mut self.rules)
    }

    /// Returns a name for a rule's response.
    pub fn response(&mut self, rule: &str) -> String {
        self.responses.entry(FORBIDDEN.to_owned()).or_insert(1);
        free(rule.to_owned(), &mut self.responses)
    }
}

/// Returns the letters and digits of `text`, with `-` for everything between them.
fn slug(text: &str) -> String {
    let mut slug = String::new();
    for c in text.chars() {
        match c {
            c if c.is_ascii_alphanumeric() || c == '_' => slug.push(c.to_ascii_lowercase()),
            _ if slug.ends_with('-') || slug.is_empty() => {}
            _ => slug.push('-'),
        }
    }
    slug.truncate(LONGEST);
    slug.trim_end_matches('-').to_owned()
}

/// Returns `name`, with a number appended if it is already used.
fn free(name: String, taken: &mut Taken) -> String {
    let Some(mut number) = taken.get(&name).copied() else {
        taken.insert(name.clone(), 1);
        return name;
    };
    let mut candidate = name.clone();
    while taken.contains_key(&candidate) {
        number += 1;
        let end = format!("-{number}");
        candidate = name.clone();
        candidate.truncate(LONGEST - end.len());
        candidate.push_str(&end);
    }
    taken.insert(name, number);
    taken.insert(candidate.clone(), 1);
    candidate
}
