//! `lockgate schema`: the JSON Schema (draft 2020-12) of gateway.toml, for editors and CI. It turns
//! what the readers say into JSON; what a key may hold is not known here.

use std::process::ExitCode;
use std::time::Duration;

use serde_json::{Map, Value as Json, json};

use super::print;
use crate::config::schema::{self, Key, Names, Shape, Table, Value};

mod notes;
use notes::Notes;

/// Prints it. Keys of an object are sorted, so that it changes only with what it says.
pub fn schema() -> ExitCode {
    print(&format!("{:#}\n", document()))
}

fn document() -> Json {
    let notes = Notes::read();
    let mut document = table(&schema::root(), "", &notes);
    let about = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$comment": concat!("printed by lockgate ", env!("CARGO_PKG_VERSION"), ": lockgate schema"),
        "title": "gateway.toml",
        "description": "The configuration of lockgate, an edge gateway.",
    });
    add(&mut document, about);
    document
}

/// A table at `path`, the dotted names of the sections down to it.
fn table(table: &Table, path: &str, notes: &Notes) -> Json {
    let mut properties = Map::new();
    for key in &table.keys {
        properties.insert(key.name.to_owned(), property(key, path, notes));
    }
    for (ours, theirs) in &table.aliases {
        let note = notes.alias(path, ours);
        let mut same = properties.get(*ours).cloned().unwrap_or_default();
        add(&mut same, json!({ "description": note }));
        properties.insert((*theirs).to_owned(), same);
    }
    let mut object = json!({ "type": "object", "additionalProperties": false });
    if !properties.is_empty() {
        add(&mut object, json!({ "properties": properties }));
    }
    if let Some(names) = &table.names {
        add(&mut object, own_names(names, path, notes));
    }
    add(&mut object, demands(table));
    object
}

fn property(key: &Key, path: &str, notes: &Notes) -> Json {
    let path = join(path, key.name);
    let mut property = shape(&key.shape, &path, notes);
    if let Some(note) = notes.of(&path) {
        add(&mut property, json!({ "description": note }));
    }
    if let Some(default) = &key.default {
        add(&mut property, json!({ "default": value(default) }));
    }
    property
}

fn own_names(names: &Names, path: &str, notes: &Notes) -> Json {
    let path = join(path, "NAME");
    let shape = either(&names.shapes, &path, notes);
    json!({ "patternProperties": { names.pattern: shape } })
}

/// Which keys must be there, and which not together.
fn demands(table: &Table) -> Json {
    let required = table.keys.iter().filter(|key| key.required);
    let required: Vec<_> = required.map(|key| key.name).collect();
    let one = table.exactly_one.iter();
    let one = one.map(|keys| json!({ "oneOf": each_required(table, keys) }));
    let some = table.at_least_one.iter();
    let some = some.map(|keys| json!({ "anyOf": each_required(table, keys) }));
    let names = table.aliases.iter();
    let names = names.map(|(ours, theirs)| json!({ "not": { "required": [ours, theirs] } }));
    let apart = table.apart.iter();
    let apart = apart.flat_map(|(one, other)| never_both(table, one, other));
    let all: Vec<Json> = one.chain(some).chain(names).chain(apart).collect();
    let mut demands = json!({});
    if !required.is_empty() {
        add(&mut demands, json!({ "required": required }));
    }
    if !all.is_empty() {
        add(&mut demands, json!({ "allOf": all }));
    }
    demands
}

/// Two keys that are not there together, the first under each of its names.
fn never_both(table: &Table, one: &'static str, other: &'static str) -> Vec<Json> {
    let aliases = table.aliases.iter().filter(|(ours, _)| *ours == one);
    let names = aliases.map(|(_, theirs)| *theirs).chain([one]);
    names
        .map(|name| json!({ "not": { "required": [name, other] } }))
        .collect()
}

/// Each of `keys`, under each of its names.
fn each_required(table: &Table, keys: &[&str]) -> Vec<Json> {
    let aliases = table.aliases.iter();
    let theirs = aliases.filter(|(ours, _)| keys.contains(ours));
    let names = keys.iter().chain(theirs.map(|(_, theirs)| theirs));
    names.map(|name| json!({ "required": [name] })).collect()
}

fn shape(shape: &Shape, path: &str, notes: &Notes) -> Json {
    match shape {
        Shape::Text {
            pattern,
            least,
            examples,
        } => text(*pattern, *least, examples),
        Shape::Integer { low, high } => integer(*low, *high),
        Shape::Number { low, high } => {
            json!({ "type": "number", "minimum": low, "maximum": high })
        }
        Shape::Boolean => json!({ "type": "boolean" }),
        Shape::Words(words) => json!({ "type": "string", "enum": words }),
        Shape::Duration { low, high, seconds } => duration(*low, *high, *seconds),
        Shape::Size { .. } => text(Some(schema::SIZE), 0, &["64KiB", "1MiB", "0"]),
        Shape::List {
            item,
            least,
            unique,
        } => list(self::shape(item, path, notes), *least, *unique),
        Shape::Table(inner) => table(inner, path, notes),
        Shape::Either(shapes) => either(shapes, path, notes),
    }
}

fn text(pattern: Option<&str>, least: u32, examples: &[&str]) -> Json {
    let mut text = json!({ "type": "string" });
    if let Some(pattern) = pattern {
        add(&mut text, json!({ "pattern": pattern }));
    }
    if least > 0 {
        add(&mut text, json!({ "minLength": least }));
    }
    if !examples.is_empty() {
        add(&mut text, json!({ "examples": examples }));
    }
    text
}

/// The bounds of TOML itself are not worth saying.
fn integer(low: i64, high: i64) -> Json {
    let mut integer = json!({ "type": "integer" });
    if low > i64::MIN {
        add(&mut integer, json!({ "minimum": low }));
    }
    if high < i64::MAX {
        add(&mut integer, json!({ "maximum": high }));
    }
    integer
}

/// The bounds of a string with a unit cannot be said.
fn duration(low: Duration, high: Duration, seconds: bool) -> Json {
    let string = text(
        Some(schema::DURATION),
        0,
        &["500ms", "10s", "5m", "1h", "1d"],
    );
    if !seconds {
        return string;
    }
    let low = low.as_secs() + u64::from(low.subsec_nanos() > 0);
    let bound = |seconds| i64::try_from(seconds).unwrap_or(i64::MAX);
    json!({ "anyOf": [string, integer(bound(low), bound(high.as_secs()))] })
}

fn list(item: Json, least: u32, unique: bool) -> Json {
    let mut list = json!({ "type": "array", "items": item });
    if least > 0 {
        add(&mut list, json!({ "minItems": least }));
    }
    if unique {
        add(&mut list, json!({ "uniqueItems": true }));
    }
    list
}

fn either(shapes: &[Shape], path: &str, notes: &Notes) -> Json {
    match shapes {
        [only] => shape(only, path, notes),
        several => {
            let several = several.iter().map(|one| shape(one, path, notes));
            json!({ "anyOf": several.collect::<Vec<_>>() })
        }
    }
}

fn value(value: &Value) -> Json {
    match value {
        Value::Text(text) => json!(text),
        Value::Integer(number) => json!(number),
        Value::Number(number) => json!(number),
        Value::Boolean(truth) => json!(truth),
        Value::List(items) => items.iter().map(self::value).collect(),
    }
}

fn join(path: &str, name: &str) -> String {
    match path {
        "" => name.to_owned(),
        path => format!("{path}.{name}"),
    }
}

/// Puts the members of an object into another.
fn add(object: &mut Json, more: Json) {
    if let (Json::Object(object), Json::Object(more)) = (object, more) {
        object.extend(more);
    }
}
