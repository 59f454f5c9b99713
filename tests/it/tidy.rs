//! The shape of the source tree: who may import whom, sizes, module docs.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use lockgate::facts::fields::{self, find};

/// The layers, from the bottom. A module may import its own layer's modules and those below,
/// except that edges never import each other.
const LAYERS: &[(&str, &[&str])] = &[
    ("words", &["clock", "decision"]),
    ("pure", &["credential", "fingerprint", "expr", "limit"]),
    ("meaning", &["body", "facts", "route", "rules", "trust"]),
    (
        "edges",
        &[
            "listen", "tls", "store", "action", "upstream", "observe", "geo",
        ],
    ),
    ("assembly", &["snapshot", "config", "process", "pipeline"]),
    (
        "program",
        &["gateway", "signals", "systemd", "admin", "cli", "main"],
    ),
];

/// Outside crates, with the modules that may name them.
const CRATES: &[(&str, &[&str])] = &[
    ("serde", &["admin", "config"]),
    ("toml", &["config"]),
    ("annotate_snippets", &["config"]),
    (
        "serde_json",
        &["gateway", "signals", "admin", "cli", "main"],
    ),
    ("anyhow", &["gateway", "signals", "admin", "cli", "main"]),
    ("clap", &["cli"]),
    ("clap_complete", &["cli"]),
    ("clap_mangen", &["cli"]),
    ("ratatui", &["cli"]),
    ("listenfd", &["systemd"]),
    ("maxminddb", &["geo"]),
    ("mimalloc", &["main"]),
    ("flate2", &["geo", "action"]),
    ("prometheus_client", &["observe"]),
    (
        "aws_lc_rs",
        &["credential", "fingerprint", "tls", "upstream"],
    ),
    ("rcgen", &["tls"]),
    ("rustls", &["tls", "trust", "upstream"]),
    ("tokio_rustls", &["tls", "upstream"]),
    ("rustls_native_certs", &["upstream"]),
    ("h2", &["upstream"]),
    ("regex", &["expr"]),
    ("regex_syntax", &["expr"]),
    ("aho_corasick", &["expr", "rules"]),
    (
        "hyper",
        &["listen", "upstream", "pipeline", "admin", "gateway"],
    ),
    (
        "tokio",
        &[
            "listen", "tls", "upstream", "store", "observe", "pipeline", "gateway", "signals",
            "admin", "cli",
        ],
    ),
    (
        "tracing",
        &[
            "observe", "config", "pipeline", "gateway", "store", "systemd", "admin", "cli",
        ],
    ),
    ("tracing_subscriber", &["observe"]),
];

/// The field table, the table of other gateways' names, and the conditions that presets write: the
/// only files with a string that is the name of a field. Help texts that mention a field in a sentence are not names.
const FIELD_TABLES: &[&str] = &[
    "facts/fields.rs",
    "facts/fields/foreign.rs",
    "config/presets/conditions.rs",
];

const LONGEST_FILE: usize = 400;
const LONGEST_FUNCTION: usize = 60;

struct Source {
    path: PathBuf,
    module: String,
    text: String,
}

#[test]
fn modules_import_only_from_allowed_layers() {
    let layer_of: BTreeMap<&str, usize> = LAYERS
        .iter()
        .enumerate()
        .flat_map(|(layer, (_, modules))| modules.iter().map(move |module| (*module, layer)))
        .collect();
    let mut wrong = Vec::new();
    for source in sources() {
        let own = layer_of[source.module.as_str()];
        for (line, import) in imports(&source.text) {
            let Some(&layer) = layer_of.get(import.as_str()) else {
                continue;
            };
            let between_edges = own == 3 && layer == 3 && import != source.module;
            if layer > own || between_edges {
                wrong.push(format!("{}:{line} imports {import}", source.path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_module_is_in_the_layer_table() {
    let known: Vec<&str> = LAYERS.iter().flat_map(|(_, m)| m.iter().copied()).collect();
    for source in sources() {
        assert!(
            known.contains(&source.module.as_str()),
            "{} is in no layer",
            source.path.display()
        );
    }
}

#[test]
fn external_crates_are_used_only_in_their_modules() {
    let mut wrong = Vec::new();
    for source in sources().iter().filter(|source| !is_test(&source.path)) {
        for (name, allowed) in CRATES {
            let names_it = source.text.lines().any(|line| {
                let line = line.trim_start();
                !line.starts_with("//") && mentions(line, &format!("{name}::"))
            });
            if names_it && !allowed.contains(&source.module.as_str()) {
                wrong.push(format!("{} uses {name}", source.path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn only_the_clock_reads_time() {
    for source in sources() {
        if source.module == "clock" || is_test(&source.path) {
            continue;
        }
        for reading in ["SystemTime::now", "std::time::Instant::now"] {
            assert!(
                !source.text.contains(reading),
                "{} reads the time; take a Clock",
                source.path.display()
            );
        }
    }
}

#[test]
fn files_begin_with_a_module_doc_and_stay_short() {
    let mut wrong = Vec::new();
    for source in sources() {
        if !source.text.starts_with("//!") {
            wrong.push(format!("{} has no module doc", source.path.display()));
        }
        let lines = source.text.lines().count();
        if lines > LONGEST_FILE && !is_test(&source.path) {
            wrong.push(format!("{} has {lines} lines", source.path.display()));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn functions_stay_short() {
    let mut wrong = Vec::new();
    for source in sources().iter().filter(|source| !is_test(&source.path)) {
        for (line, length) in functions(&source.text) {
            if length > LONGEST_FUNCTION {
                wrong.push(format!("{}:{line}: {length} lines", source.path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn only_the_field_table_names_fields() {
    let is_name = |text: &str| {
        let is_family = |name: &str| text.ends_with('.') && name.starts_with(text);
        let mut fields = fields::all().iter();
        find(text).is_some() || fields.any(|field| is_family(field.name))
    };
    let mut wrong = Vec::new();
    for source in sources().iter().filter(|source| !is_test(&source.path)) {
        if FIELD_TABLES
            .iter()
            .any(|table| source.path.ends_with(table))
        {
            continue;
        }
        let code = source.text.split("#[cfg(test)]\nmod tests {").next();
        for (number, line) in code.unwrap().lines().enumerate() {
            let is_comment = line.trim_start().starts_with("//");
            let mut literals = line.split('"').skip(1).step_by(2);
            if !is_comment && literals.any(is_name) {
                wrong.push(format!("{}:{}: {line}", source.path.display(), number + 1));
            }
        }
    }
    assert!(wrong.is_empty(), "read a column of the table: {wrong:#?}");
}

fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let inside = path.strip_prefix(&root).unwrap().to_owned();
                let first = inside.components().next().unwrap();
                let module = Path::new(first.as_os_str()).with_extension("");
                let module = module.to_string_lossy().into_owned();
                if module != "lib" {
                    let text = fs::read_to_string(&path).unwrap();
                    found.push(Source { path, module, text });
                }
            }
        }
    }
    assert!(found.len() > 50, "the tree was not found");
    found
}

fn is_test(path: &Path) -> bool {
    path.components()
        .any(|part| part.as_os_str() == "tests" || part.as_os_str() == "tests.rs")
}

/// The crate's own modules that each line names.
fn imports(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("//") {
            continue;
        }
        for (at, _) in line.match_indices("crate::") {
            let rest = &line[at + "crate::".len()..];
            let end = rest
                .find(|c: char| !c.is_alphanumeric() && c != '_')
                .unwrap_or(rest.len());
            found.push((number + 1, rest[..end].to_owned()));
        }
    }
    found
}

fn mentions(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':')
    })
}

/// Line and length of each function, by the indentation of its closing brace.
fn functions(text: &str) -> Vec<(usize, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (start, line) in lines.iter().enumerate() {
        let code = line.trim_start();
        let is_function = ["fn ", "pub fn ", "async fn ", "pub async fn ", "const fn "]
            .iter()
            .any(|word| code.starts_with(word))
            || code.starts_with("pub(") && code.contains(" fn ")
            || code.starts_with("pub const fn ");
        if !is_function || code.ends_with(';') {
            continue;
        }
        let closing = format!("{}}}", &line[..line.len() - code.len()]);
        let end = lines.iter().skip(start).position(|l| *l == closing);
        if let Some(length) = end {
            found.push((start + 1, length + 1));
        }
    }
    found
}
