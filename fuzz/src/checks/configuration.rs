//! Any text as a configuration file: every mistake is shown where it is, and what is accepted is
//! accepted again.

use lockgate::clock::Clock;
use lockgate::config::{self, ConfigSource, Diagnostics};

/// A folder that is not there, so that no file is found that the text names.
const PATH: &str = "/no such folder/gateway.toml";

/// Reads and compiles the text; no file is written.
pub fn configuration(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    // A line with an absolute path may name what never ends, `/dev/stdin`.
    if ["/dev", "/proc", "/sys"]
        .iter()
        .any(|path| text.contains(path))
    {
        return;
    }
    let source = ConfigSource::new(PATH, text);
    let (usable, found) = compile(&source);
    assert_eq!(usable, !found.has_errors());
    places(&found, &source);
    let (again, found_again) = compile(&source);
    assert_eq!(again, usable);
    assert_eq!(found_again.sorted(), found.sorted());
    let longer = ConfigSource::new(PATH, format!("{text}\n# The end.\n"));
    if usable {
        assert!(compile(&longer).0, "a comment makes it worse");
    }
}

/// Whether a file can be used, and what was found.
fn compile(source: &ConfigSource) -> (bool, Diagnostics) {
    let mut found = Diagnostics::new();
    let file = config::read(source, &mut found);
    let now = Clock::System.now();
    let blueprint = file.and_then(|file| config::compile(&file, source, now, None, &mut found));
    (blueprint.is_some(), found)
}

fn places(found: &Diagnostics, source: &ConfigSource) {
    for one in found.sorted() {
        assert!(source.text.get(one.span.clone()).is_some(), "{one:?}");
        assert!(!one.message.is_empty());
        for related in &one.related {
            assert!(source.text.get(related.span.clone()).is_some(), "{one:?}");
        }
    }
    let shown = found.render(source, false);
    assert!(found.is_empty() || shown.starts_with(PATH), "{shown}");
}
