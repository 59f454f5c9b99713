//! The error about an unknown setting: its name in other gateways, its correct spelling, or its
//! section.

use std::collections::BTreeSet;
use std::ops::Range;

use toml::de::DeValue;

use crate::config::Diagnostics;
use crate::config::scalar::rate;
use crate::config::schema::{self, TableSchema, ValueSchema};
use crate::config::suggest::{either, nearest};
use crate::config::vocabulary::foreign_setting;

/// Sections with headers in double brackets.
pub(in crate::config) const SEVERAL: &[&str] =
    &["listeners", "protect", "upstreams", "routes", "rules"];

/// Nested sections that have their own heading in the documentation.
const BELOW: &[&str] = &["listeners.tls", "geo.overrides"];

/// The syntax of tables that are written inline.
const INLINE: &[(&str, &str)] = &[
    (
        "certificates",
        "certificates = [{ cert = \"site.pem\", key = \"site.key\" }]",
    ),
    ("health", "health = { path = \"/healthz\" }"),
    ("circuit_breaker", "circuit_breaker = { failures = 5 }"),
    ("respond", "respond = { status = 200 }"),
    ("candidate", "candidate = { limit = 100 }"),
    ("timeouts", "timeouts = { response = \"5m\" }"),
    ("errors", "errors = { 502 = \"sorry\" }"),
];

/// The maximum number of sections in a help line.
const MOST: usize = 3;

/// Reports `name` in the section at `path`. `known` are its settings; `unwanted` are refused there.
pub(super) fn report(
    path: &str,
    (name, value): (&str, &DeValue<'_>),
    known: &BTreeSet<&'static str>,
    unwanted: &[&'static str],
    span: Range<usize>,
    out: &mut Diagnostics,
) {
    if name == "include" {
        let header = header(path);
        let message = format!("`include` is not a setting of `{header}`");
        out.error(span, message)
            .help("move it to the top of the file, before the first `[section]`");
        return;
    }
    if let Some(help) = foreign_setting(path, name) {
        let error = out.error(span, format!("unknown setting `{name}`"));
        // `rate = "5r/m"` as in nginx.
        match value.as_str().and_then(rate).filter(|_| path == "rules") {
            Some((limit, period)) => error.help(format!(
                "write `limit = {limit}` and `period = \"{period}\"`"
            )),
            None => error.help(help),
        };
        return;
    }
    if let Some(near) = nearest(name, known.iter().chain(unwanted).copied()) {
        let message = format!("unknown setting `{name}`; did you mean `{near}`?");
        let error = out.error(span, message);
        if path.is_empty() && SEVERAL.contains(&near) {
            error.help(format!("write `[[{near}]]`"));
        }
        return;
    }
    let sections: Vec<_> = sections(name).into_iter().take(MOST).collect();
    let help = if sections.is_empty() {
        let known: Vec<_> = known.iter().copied().collect();
        format!("the settings here are {}", known.join(", "))
    } else {
        format!("it is a setting of {}", either(&sections))
    };
    out.error(span, format!("unknown setting `{name}`"))
        .help(help);
}

/// Returns help for a value that should be the table `key` in the section at `path`.
pub(super) fn table_help(path: &str, key: &str) -> String {
    let row = INLINE.iter().find(|(name, _)| *name == key);
    match (path, row) {
        ("", _) => format!("write `{}` and its settings below it", header(key)),
        (_, Some((_, example))) => format!("for example `{example}`"),
        _ => "write a table: `{ … }`".to_owned(),
    }
}

/// Returns the header of the section at `path`, or the dotted path of an inline table.
pub(super) fn header(path: &str) -> String {
    match path {
        "responses" => "[responses.NAME]".to_owned(),
        path if SEVERAL.contains(&path) => format!("[[{path}]]"),
        path if path.contains('.') && !BELOW.contains(&path) => path.to_owned(),
        path => format!("[{path}]"),
    }
}

/// Returns the path of `key` in the section at `path`.
pub(super) fn join(path: &str, key: &str) -> String {
    match path {
        "" => key.to_owned(),
        path => format!("{path}.{key}"),
    }
}

/// Returns the sections that have a setting with this name.
fn sections(name: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    collect(&schema::root(), "", name, &mut found);
    found
}

fn collect(table: &TableSchema, path: &str, name: &str, found: &mut BTreeSet<String>) {
    for key in &table.keys {
        if key.name == name && !path.is_empty() {
            found.insert(header(path));
        }
        within(&key.shape, &join(path, key.name), name, found);
    }
    for shape in table.names.iter().flat_map(|names| &names.shapes) {
        within(shape, &join(path, "NAME"), name, found);
    }
}

fn within(shape: &ValueSchema, path: &str, name: &str, found: &mut BTreeSet<String>) {
    match shape {
        ValueSchema::Table(table) => collect(table, path, name, found),
        ValueSchema::List { item, .. } => within(item, path, name, found),
        ValueSchema::Either(shapes) => shapes
            .iter()
            .for_each(|shape| within(shape, path, name, found)),
        _ => {}
    }
}
