//! Writes the whole output: comments, notes and rules.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::draft::{self, FORBIDDEN_TABLE, RuleDraft};
use super::quote::visible;
use super::{CloudflareRuleset, Imported};

/// The output in progress.
#[derive(Default)]
pub struct TomlWriter<'a> {
    file: &'a str,
    body: String,
    messages: Vec<String>,
    /// Lists, and whether a rule that is not a comment reads them.
    lists: BTreeMap<String, bool>,
    /// Whether a rule that is not a comment uses the shared 403 response. `None` if no rule uses it.
    forbidden: Option<bool>,
    written: usize,
    commented: usize,
}

// === impl TomlWriter ===

impl<'a> TomlWriter<'a> {
    /// Creates an empty output. `file` is the name of the input in messages.
    pub fn new(file: &'a str) -> Self {
        Self {
            file,
            ..Self::default()
        }
    }

    /// Starts the rules of a ruleset.
    pub fn ruleset(&mut self, ruleset: &CloudflareRuleset<'_>) {
        let title = ruleset.title();
        if ruleset.rules.is_empty() {
            let note = "it has no rules in this file";
            self.messages
                .push(format!("{}: {title}: {note}", self.file));
            let _ = writeln!(self.body, "# note: {title}: {note}\n");
        } else if ruleset.name.is_some() || ruleset.phase.is_some() {
            let _ = writeln!(self.body, "# === {title} ===\n");
        }
    }

    /// Adds a rule.
    pub fn rule(&mut self, draft: RuleDraft) {
        for note in &draft.notes {
            let line = format!("{}: rule \"{}\": {note}", self.file, draft.name);
            self.messages.push(line);
        }
        self.head(&draft);
        let toml = if draft.is_empty() {
            String::new()
        } else {
            draft.toml()
        };
        if draft.is_refused() {
            self.commented += 1;
            self.body.push_str(&comment(&toml));
        } else {
            self.written += 1;
            self.body.push_str(&toml);
        }
        self.body.push('\n');
        if draft.forbidden {
            self.forbidden = self.forbidden.max(Some(!draft.is_refused()));
        }
        let used = !draft.is_refused();
        for name in draft.lists {
            *self.lists.entry(name).or_default() |= used;
        }
    }

    /// Writes the comments above a rule. A rule without settings also gets its name as a comment.
    fn head(&mut self, draft: &RuleDraft) {
        for line in draft.description.iter().flat_map(|text| text.lines()) {
            let _ = writeln!(self.body, "{}", format!("# {}", visible(line)).trim_end());
        }
        if draft.is_empty() {
            let _ = writeln!(self.body, "# {}", draft.name);
        }
        for note in &draft.notes {
            let _ = writeln!(self.body, "# note: {note}");
        }
    }

    /// Returns the output and its messages.
    pub fn finish(mut self) -> Imported {
        let sum = format!(
            "{} written, {} written as {}, {}",
            number(self.written, "rule"),
            self.commented,
            if self.commented == 1 {
                "a comment"
            } else {
                "comments"
            },
            number(self.messages.len(), "note"),
        );
        let mut toml = format!(
            "# Imported from {}, a Cloudflare export: {sum}.\n\n",
            self.file
        );
        let lists = self.lists.iter().map(|(name, used)| (name, *used));
        toml.push_str(&draft::lists(lists));
        match self.forbidden {
            Some(true) => toml.push_str(&format!("{FORBIDDEN_TABLE}\n")),
            Some(false) => toml.push_str(&format!("{}\n", comment(FORBIDDEN_TABLE))),
            None => {}
        }
        toml.push_str(self.body.trim_end());
        toml.push('\n');
        self.messages.push(format!("{}: {sum}", self.file));
        Imported {
            toml,
            messages: self.messages,
        }
    }
}

fn number(count: usize, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        _ => format!("{count} {what}s"),
    }
}

/// Comments out the lines. Removing `# ` restores them.
fn comment(toml: &str) -> String {
    let line = |line: &str| match line {
        "" => "#\n".to_owned(),
        line => format!("# {line}\n"),
    };
    toml.lines().map(line).collect()
}
