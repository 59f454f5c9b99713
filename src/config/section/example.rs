//! What a table may look like, for whoever wrote something else. Made of what its reader asks for.

use crate::config::schema::{Key, Shape, Table, Value};

/// Sections whose headers have two brackets.
pub(in crate::config) const SEVERAL: &[&str] = &["listeners", "upstreams", "routes", "rules"];

/// Sections within others that have a header in the documents.
const BELOW: &[&str] = &["listeners.tls", "geo.overrides"];

/// How the table at `path` is written.
pub(super) fn of(path: &str, table: &Table) -> String {
    match path.rsplit_once('.') {
        None if are_tables(table) => format!("write `[{path}.NAME]` and its keys below it"),
        None => format!("write `{}` and its keys below it", header(path)),
        Some((_, "NAME")) => format!("for example `{}`", inline(table)),
        Some((_, key)) => format!("for example `{key} = {}`", inline(table)),
    }
}

/// Whether its names are the user's own, and a table each.
fn are_tables(table: &Table) -> bool {
    let shapes = table.names.as_ref().map(|names| names.shapes.as_slice());
    matches!(shapes, Some([Shape::Table(_)]))
}

/// How an element of the array of tables at `path` is written.
pub(super) fn of_element(path: &str, table: &Table) -> String {
    match path.rsplit_once('.') {
        None => of(path, table),
        Some((_, key)) => format!("for example `{key} = [{}]`", inline(table)),
    }
}

/// The header of the section at `path`; of what stands within a section, its dotted path.
pub(super) fn header(path: &str) -> String {
    match path {
        path if SEVERAL.contains(&path) => format!("[[{path}]]"),
        path if path.contains('.') && !BELOW.contains(&path) => path.to_owned(),
        path => format!("[{path}]"),
    }
}

/// The path of `key` in the section at `path`.
pub(super) fn join(path: &str, key: &str) -> String {
    match path {
        "" => key.to_owned(),
        path => format!("{path}.{key}"),
    }
}

/// With the keys that must be there, else with the first.
fn inline(table: &Table) -> String {
    let sets = table.exactly_one.iter().chain(&table.at_least_one);
    let firsts: Vec<_> = sets.filter_map(|set| set.first()).collect();
    let must = |key: &&Key| key.required || firsts.contains(&&key.name);
    let mut shown: Vec<&Key> = table.keys.iter().filter(must).collect();
    if shown.is_empty() {
        shown.extend(table.keys.first());
    }
    let pair = |key: &Key| format!("{} = {}", key.name, sample(key));
    match shown.as_slice() {
        [] => "{}".to_owned(),
        keys => {
            let pairs: Vec<_> = keys.iter().map(|key| pair(key)).collect();
            format!("{{ {} }}", pairs.join(", "))
        }
    }
}

fn sample(key: &Key) -> String {
    match (key.example, &key.default) {
        (Some(example), _) => example.to_owned(),
        (None, Some(default)) if !is_nothing(default) => written(default),
        _ => shape(&key.shape),
    }
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Text(text) => text.is_empty(),
        Value::List(items) => items.is_empty(),
        _ => false,
    }
}

fn written(value: &Value) -> String {
    match value {
        Value::Text(text) => format!("{text:?}"),
        Value::Integer(number) => number.to_string(),
        Value::Number(number) => format!("{number:?}"),
        Value::Boolean(truth) => truth.to_string(),
        Value::List(items) => {
            let items: Vec<_> = items.iter().map(written).collect();
            format!("[{}]", items.join(", "))
        }
    }
}

fn shape(shape: &Shape) -> String {
    match shape {
        Shape::Text { examples, .. } => format!("{:?}", examples.first().unwrap_or(&"…")),
        Shape::Integer { low, .. } => (*low).max(1).to_string(),
        Shape::Number { low, .. } => format!("{low:?}"),
        Shape::Boolean => "true".to_owned(),
        Shape::Words(words) => format!("{:?}", words.first().unwrap_or(&"…")),
        Shape::Duration { .. } => "\"10s\"".to_owned(),
        Shape::Size { .. } => "\"64KiB\"".to_owned(),
        Shape::List { item, .. } => format!("[{}]", self::shape(item)),
        Shape::Table(table) => inline(table),
        Shape::Either(shapes) => shapes.first().map_or("…".to_owned(), self::shape),
    }
}
