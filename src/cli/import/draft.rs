//! A rule on its way from JSON to TOML.

use std::fmt::Write as _;

/// The response of a denial: Cloudflare answers 403 where a rule has no limit.
pub const FORBIDDEN: &str = "forbidden";
const FORBIDDEN_TABLE: &str = "[responses.forbidden]\nstatus = 403\nbody = \"forbidden\\n\"\n";

/// The keys of a rule in the order in which they are written.
const ORDER: [&str; 10] = [
    "count", "mitigate", "key", "limit", "period", "duration", "cost", "action", "response",
    "enabled",
];

/// A rule as far as it is known.
pub struct Draft {
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

// === impl Draft ===

impl Draft {
    /// A rule of which only the name is known.
    pub fn new(name: String) -> Self {
        Self {
            name,
            description: None,
            notes: Vec::new(),
            lists: Vec::new(),
            forbidden: false,
            expressions: Vec::new(),
            refused: false,
            keys: Vec::new(),
            right: Vec::new(),
            response: None,
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
        self.set("response", super::quote::word(&name));
        self.response = Some((name, keys));
    }

    /// Says what could not be carried over.
    pub fn note(&mut self, note: impl AsRef<str>) {
        self.notes.push(super::quote::visible(note.as_ref()));
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
        lists(&self.lists) + &self.render(&self.right) + shared
    }

    fn render(&self, instead: &[(&'static str, String)]) -> String {
        let mut text = format!("[[rules]]\nname = {}\n", super::quote::word(&self.name));
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

/// The shared 403 as TOML.
pub const fn forbidden() -> &'static str {
    FORBIDDEN_TABLE
}

/// Empty lists of these names as TOML.
pub fn lists<'a>(names: impl IntoIterator<Item = &'a String>) -> String {
    let lines: String = names
        .into_iter()
        .map(|name| format!("{name} = []\n"))
        .collect();
    match lines.is_empty() {
        true => lines,
        false => format!("[lists]\n{lines}\n"),
    }
}

fn lines<'a>(text: &mut String, keys: impl IntoIterator<Item = &'a (&'static str, String)>) {
    for (key, value) in keys {
        let _ = writeln!(text, "{key} = {value}");
    }
}
