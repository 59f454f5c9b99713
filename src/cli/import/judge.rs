//! What the gateway itself says about a piece of configuration.

use crate::clock::Clock;
use crate::config::{self, Diagnostic, Diagnostics, Severity, Source};
use crate::observe::Log;
use crate::snapshot::Lasting;
use crate::store::Bounds;

/// What a piece needs to be a whole file.
const LISTENER: &str = "\n[[listeners]]\naddress = \"127.0.0.1:0\"\n";

/// Reads and compiles configuration as a run would. Listens on nothing.
pub struct Judge {
    lasting: Lasting,
}

// === impl Judge ===

impl Judge {
    /// A judge with an empty store.
    pub fn new() -> anyhow::Result<Self> {
        let lasting = Lasting::new(Clock::System, Log::off(), Bounds::keys(1024))?;
        Ok(Self { lasting })
    }

    /// Why the gateway would refuse `piece`; empty: it would not.
    pub fn errors(&self, piece: &str) -> Vec<String> {
        let source = Source::new("", format!("{piece}{LISTENER}"));
        let mut diagnostics = Diagnostics::new();
        if let Some(file) = config::read(&source, &mut diagnostics) {
            config::rehearse(&file, &source, &self.lasting, &mut diagnostics);
        }
        let all = diagnostics.sorted().into_iter();
        let errors = all.filter(|found| found.severity == Severity::Error);
        errors.map(|error| said(error, &source)).collect()
    }
}

/// A mistake without its place in a file that the user never sees: the key, the words that are
/// wrong, the message and its help.
fn said(error: &Diagnostic, source: &Source) -> String {
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

/// The key on whose line a mistake is.
fn key<'a>(error: &Diagnostic, source: &'a Source) -> Option<&'a str> {
    let before = source.slice(0..error.span.start);
    let line = before.rsplit('\n').next()?;
    let (key, _) = line.split_once(" = ")?;
    key.bytes()
        .all(|b| b.is_ascii_lowercase() || b == b'_')
        .then_some(key)
}
