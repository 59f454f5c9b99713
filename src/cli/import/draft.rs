//! A rule on its way from JSON to TOML, and the names of rules and responses:
//! `[A-Za-z0-9_-]{1,64}`, each only once.

use std::collections::HashMap;
use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::quote;

/// The response of a denial: Cloudflare answers 403 where a rule has no limit.
pub const FORBIDDEN: &str = "forbidden";
/// The response of a denial as TOML.
pub const FORBIDDEN_TABLE: &str = "[responses.forbidden]\nstatus = 403\nbody = \"forbidden\\n\"\n";

/// The keys of a rule in the order in which they are written.
const ORDER: [&str; 10] = [
    "count", "mitigate", "key", "limit", "period", "duration", "cost", "action", "response",
    "enabled",
];

/// A rule as far as it is known.
#[derive(Default)]
pub struct RuleDraft {
    /// Its name here.
    pub name: String,
    /// What its owner says about it.
    pub description: Option<String>,
    /// What could not be carried over, and why it is refused.
    pub notes: Vec<String>,
    /// Lists that it reads and that are to be filled.
    pub lists: Vec<String>,
    /// Whether it answers with the shared 403.
    pub forbidden: bool,
    /// Expressions, to look for lists in.
    pub expressions: Vec<String>,
    refused: bool,
    keys: Keys,
    /// Instead of keys that are known to be wrong, so that the gateway need not say it too.
    right: Keys,
    response: Option<(String, Keys)>,
}

/// Keys with values that are TOML already.
pub type Keys = Vec<(&'static str, String)>;

// === impl RuleDraft ===

impl RuleDraft {
    /// A rule of which only the name is known.
    pub fn new(name: String) -> Self {
        Self {
            name,
            ..Self::default()
        }
    }

    /// Sets a key to a value that is TOML already.
    pub fn set(&mut self, key: &'static str, value: String) {
        self.keys.push((key, value));
    }

    /// Sets a key to a value that the gateway must refuse; `right` would be one that it takes.
    pub fn set_wrong(&mut self, key: &'static str, value: String, right: &str) {
        self.set(key, value);
        self.right.push((key, right.to_owned()));
    }

    /// Gives it a response of its own.
    pub fn respond(&mut self, name: String, keys: Keys) {
        self.set("response", quote::word(&name));
        self.response = Some((name, keys));
    }

    /// Says what could not be carried over.
    pub fn note(&mut self, note: impl AsRef<str>) {
        self.notes.push(quote::visible(note.as_ref()));
    }

    /// Says that the value of the key at `path` could not be carried over.
    pub fn drop_key(&mut self, path: &str, value: &Value) {
        let shown = quote::shown(value);
        self.note(format!("`{path}` is not carried over: {shown}"));
    }

    /// Says why it can only be a comment.
    pub fn refuse(&mut self, note: impl AsRef<str>) {
        self.refused = true;
        self.note(note);
    }

    /// Whether it can only be a comment.
    pub fn is_refused(&self) -> bool {
        self.refused
    }

    /// Whether there is nothing to write but notes.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The rule and its response.
    pub fn toml(&self) -> String {
        self.render(&[])
    }

    /// The rule with all that it needs beside listeners and routes, for the gateway to judge.
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

/// Empty lists of these names as TOML. A list that is not used is a comment.
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

/// Names that are taken, with the last number put behind each.
type Taken = HashMap<String, usize>;

/// The names given so far.
#[derive(Default)]
pub struct UsedNames {
    rules: Taken,
    responses: Taken,
    count: usize,
}

// === impl UsedNames ===

impl UsedNames {
    /// A name for the next rule: its description, else what Cloudflare calls it, else its number.
    pub fn rule(&mut self, rule: Option<&Map<String, Value>>) -> String {
        self.count += 1;
        let texts = ["description", "ref", "id"].into_iter();
        let texts = texts.filter_map(|key| rule?.get(key)?.as_str());
        let name = texts.map(slug).find(|slug| !slug.is_empty());
        let name = name.unwrap_or_else(|| format!("rule-{}", self.count));
        free(name, &mut self.rules)
    }

    /// A name for the response of a rule.
    pub fn response(&mut self, rule: &str) -> String {
        self.responses.entry(FORBIDDEN.to_owned()).or_insert(1);
        free(rule.to_owned(), &mut self.responses)
    }
}

/// The letters and digits of a text, with `-` for everything between them.
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

/// `name`, with a number at its end if it is taken.
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
