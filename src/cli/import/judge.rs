//! Validates a piece of configuration with the real configuration loader: its errors and the lists
//! that it reads.

use std::collections::BTreeSet;

use super::draft::RuleDraft;
use crate::clock::Clock;
use crate::config::lint::lists_in;
use crate::config::{self, ConfigSource, Diagnostic, Diagnostics, Severity};

/// Makes a piece of configuration a complete file.
const LISTENER: &str = "\n[[listeners]]\naddress = \"127.0.0.1:0\"\n";

/// Returns the errors that the gateway reports for `piece`. Empty if it is valid.
pub fn errors(piece: &str) -> Vec<String> {
    let source = ConfigSource::new("", format!("{piece}{LISTENER}"));
    let mut diagnostics = Diagnostics::new();
    if let Some(file) = config::read(&source, &mut diagnostics) {
        let now = Clock::System.now();
        config::compile(&file, &source, now, None, &mut diagnostics);
    }
    let all = diagnostics.sorted().into_iter();
    let errors = all.filter(|found| found.severity == Severity::Error);
    errors.map(|error| error_text(&error, &source)).collect()
}

/// Renders an error without line and column, because the user never sees the generated file: the
/// setting, the wrong text, the message and its help.
fn error_text(error: &Diagnostic, source: &ConfigSource) -> String {
    let mut text = String::new();
    let named = |name: &str| error.message.contains(&format!("`{name}`"));
    if let Some(key) = key(error, source).filter(|key| !named(key)) {
        text = format!("`{key}`: ");
    }
    text.push_str(&error.message);
    let words = source.slice(error.span.clone());
    let words = words.trim().trim_matches(['"', '\'']);
    if words.len() < 60 && !words.is_empty() && !error.message.contains(words) {
        text.push_str(&format!(" (at `{words}`)"));
    }
    for help in &error.help {
        text.push_str("; ");
        text.push_str(help);
    }
    text
}

/// Returns the setting on the line of the error. `None` if the line has no setting.
fn key<'a>(error: &Diagnostic, source: &'a ConfigSource) -> Option<&'a str> {
    let before = source.slice(0..error.span.start);
    let line = before.rsplit('\n').next()?;
    let (key, _) = line.split_once(" = ")?;
    key.bytes()
        .all(|b| b.is_ascii_lowercase() || b == b'_')
        .then_some(key)
}

/// The prefix of the lists that Cloudflare itself maintains.
const MANAGED: &str = "cf.";

/// Records the lists that a rule reads, `$name`. Cloudflare stores lists separately from rules, so
/// their values are not in the file.
pub fn find_lists(draft: &mut RuleDraft) {
    let read: BTreeSet<String> = draft.expressions.iter().flat_map(|e| lists_in(e)).collect();
    let (managed, own): (Vec<_>, Vec<_>) =
        read.into_iter().partition(|name| name.starts_with(MANAGED));
    for name in own.into_iter().filter(|name| is_name(name)) {
        draft.note(format!(
            "the values of the list `${name}` are not in this file; add them to `{name}` in \
             `[lists]`, which is empty now"
        ));
        draft.lists.push(name);
    }
    for name in managed {
        let own = name.trim_start_matches(MANAGED).replace('.', "_");
        draft.note(format!(
            "only Cloudflare has the list `${name}`; nearest: your own list, `{own} = {{ file = \
             \"{own}.txt\" }}` in `[lists]`"
        ));
    }
}

fn is_name(name: &str) -> bool {
    name.len() <= 64 && !name.contains('.')
}
