//! Each warning with a file that triggers it, and a variant of the file that does not.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod allow;
mod challenge;
mod counting;
mod implies;
mod keys;
mod known_clients;
mod order;
mod presets;
mod reads;
mod routes;
mod store_mode;
mod values;

use crate::clock::Clock;
use crate::config::{self, ConfigSource, Diagnostics};

const TLS: &str = "[[listeners]]\naddress = \"127.0.0.1:0\"\n[listeners.tls]\n";
const PLAIN: &str = "[[listeners]]\naddress = \"127.0.0.1:0\"\n";

/// Returns the warnings and notes of a file, except the one about the development certificate.
fn warnings(text: &str) -> Vec<String> {
    let source = ConfigSource::new("gateway.toml", text);
    let mut diagnostics = Diagnostics::new();
    let file = config::read(&source, &mut diagnostics);
    if let Some(file) = file.filter(|_| !diagnostics.has_errors()) {
        let now = Clock::System.now();
        config::compile(&file, &source, now, None, &mut diagnostics);
    }
    assert!(
        !diagnostics.has_errors(),
        "{text}\n{}",
        diagnostics.render(&source, false)
    );
    let found = diagnostics.sorted().into_iter();
    let found = found.inspect(|d| assert!(d.span.end <= text.len()));
    let found = found.map(|d| d.message.clone());
    found.filter(|m| !m.contains("certificate")).collect()
}

/// A rule with a limit, with these additional lines.
fn rule(lines: &str) -> String {
    format!("{TLS}[[rules]]\nname = \"r\"\nlimit = 5\nperiod = \"1m\"\n{lines}\n")
}

/// A deny rule with this expression.
fn deny(expression: &str) -> String {
    format!("{TLS}[[rules]]\nname = \"r\"\nmitigate = '{expression}'\n")
}

fn only(text: &str, message: &str) {
    assert_eq!(warnings(text), [message], "{text}");
}

fn none(text: &str) {
    assert_eq!(warnings(text), [] as [&str; 0], "{text}");
}

/// A second rule with a limit.
const GUARD: &str = "[[rules]]\nname = \"by-ip\"\nlimit = 9\nperiod = \"1m\"\n";

const PATH: &str = "mitigate = 'http.request.uri.path eq \"/a\"'\n";
