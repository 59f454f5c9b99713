//! `lockgate schema`: the JSON Schema (draft 2020-12) of gateway.toml, for editors and CI. It
//! renders the schema that the configuration readers describe as JSON.

use std::process::ExitCode;
use std::time::Duration;

use serde_json::{Map, Value as Json, json};

use super::print;
use crate::config::schema::{
    self, ExampleValue, SettingSchema, TableSchema, UserNames, ValueSchema,
};

mod notes;
use notes::SettingDocs;

/// Prints the schema. Object keys are sorted, so that the output changes only with the schema.
pub fn schema() -> ExitCode {
    print(&format!("{:#}\n", document()))
}

fn document() -> Json {
    let mut document = table(&schema::root(), "", &SettingDocs::read());
    let about = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$comment": concat!("printed by lockgate ", env!("CARGO_PKG_VERSION"), ": lockgate schema"),
        "title": "gateway.toml",
        "description": "The configuration of lockgate, an edge gateway.",
    });
    add(&mut document, about);
    document
}

/// Renders the table at `path`, the dotted names of its parent sections.
fn table(table: &TableSchema, path: &str, notes: &SettingDocs) -> Json {
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
    let required = table.keys.iter().filter(|key| key.required);
    let required: Vec<_> = required.map(|key| key.name).collect();
    let all = constraints(table);
    present(json!({
        "type": "object",
        "additionalProperties": false,
        "properties": (!properties.is_empty()).then_some(properties),
        "patternProperties": table.names.as_ref().map(|names| own_names(names, path, notes)),
        "required": (!required.is_empty()).then_some(required),
        "allOf": (!all.is_empty()).then_some(all),
    }))
}

fn property(key: &SettingSchema, path: &str, notes: &SettingDocs) -> Json {
    let path = join(path, key.name);
    let mut property = shape(&key.shape, &path, notes);
    let described = json!({
        "description": notes.of(&path),
        "default": key.default.as_ref().map(value),
    });
    add(&mut property, present(described));
    property
}

fn own_names(names: &UserNames, path: &str, notes: &SettingDocs) -> Json {
    let shape = either(&names.shapes, &join(path, "NAME"), notes);
    json!({ names.pattern: shape })
}

/// Renders which settings are required and which exclude each other.
fn constraints(table: &TableSchema) -> Vec<Json> {
    let one = table.exactly_one.iter();
    let one = one.map(|keys| json!({ "oneOf": each_required(table, keys) }));
    let some = table.at_least_one.iter();
    let some = some.map(|keys| json!({ "anyOf": each_required(table, keys) }));
    let names = table.aliases.iter();
    let names = names.map(|(ours, theirs)| json!({ "not": { "required": [ours, theirs] } }));
    let apart = table.apart.iter();
    let apart = apart.flat_map(|(one, other)| {
        let names = names_of(table, std::slice::from_ref(one)).into_iter();
        names.map(move |name| json!({ "not": { "required": [name, other] } }))
    });
    one.chain(some).chain(names).chain(apart).collect()
}

/// Renders that each of `keys` is required, under any of its names.
fn each_required(table: &TableSchema, keys: &[&'static str]) -> Vec<Json> {
    let names = names_of(table, keys).into_iter();
    names.map(|name| json!({ "required": [name] })).collect()
}

/// Returns the names of `keys`: lockgate's names first, then the aliases.
fn names_of(table: &TableSchema, keys: &[&'static str]) -> Vec<&'static str> {
    let aliases = table.aliases.iter();
    let theirs = aliases.filter(|(ours, _)| keys.contains(ours));
    keys.iter()
        .copied()
        .chain(theirs.map(|(_, theirs)| *theirs))
        .collect()
}

fn shape(shape: &ValueSchema, path: &str, notes: &SettingDocs) -> Json {
    match shape {
        ValueSchema::Text {
            pattern,
            least,
            examples,
        } => text(*pattern, *least, examples),
        ValueSchema::Integer { low, high } => integer(*low, *high),
        ValueSchema::Number { low, high } => {
            json!({ "type": "number", "minimum": low, "maximum": high })
        }
        ValueSchema::Boolean => json!({ "type": "boolean" }),
        ValueSchema::Words(words) => json!({ "type": "string", "enum": words }),
        ValueSchema::Duration { low, high, seconds } => duration(*low, *high, *seconds),
        ValueSchema::Size { .. } => text(Some(schema::SIZE), 0, &["64KiB", "1MiB", "0"]),
        ValueSchema::List {
            item,
            least,
            unique,
        } => present(json!({
            "type": "array",
            "items": self::shape(item, path, notes),
            "minItems": (*least > 0).then_some(least),
            "uniqueItems": unique.then_some(true),
        })),
        ValueSchema::Table(inner) => table(inner, path, notes),
        ValueSchema::Either(shapes) => either(shapes, path, notes),
    }
}

/// A reference to an environment variable.
const REFERENCE: &str = r"\$\{[A-Za-z_][A-Za-z0-9_]*(:-[^}]*)?\}";

fn text(pattern: Option<&str>, least: u32, examples: &[&str]) -> Json {
    let pattern = pattern.map(|pattern| format!("{pattern}|{REFERENCE}"));
    present(json!({
        "type": "string",
        "pattern": pattern,
        "minLength": (least > 0).then_some(least),
        "examples": (!examples.is_empty()).then_some(examples),
    }))
}

/// Renders an integer. Omits the bounds that TOML itself has.
fn integer(low: i64, high: i64) -> Json {
    present(json!({
        "type": "integer",
        "minimum": (low > i64::MIN).then_some(low),
        "maximum": (high < i64::MAX).then_some(high),
    }))
}

/// Renders a duration. JSON Schema cannot express the bounds of a string with a unit.
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

fn either(shapes: &[ValueSchema], path: &str, notes: &SettingDocs) -> Json {
    match shapes {
        [only] => shape(only, path, notes),
        several => {
            let several = several.iter().map(|one| shape(one, path, notes));
            json!({ "anyOf": several.collect::<Vec<_>>() })
        }
    }
}

fn value(value: &ExampleValue) -> Json {
    match value {
        ExampleValue::Text(text) => json!(text),
        ExampleValue::Integer(number) => json!(number),
        ExampleValue::Number(number) => json!(number),
        ExampleValue::Boolean(truth) => json!(truth),
        ExampleValue::List(items) => items.iter().map(self::value).collect(),
    }
}

fn join(path: &str, name: &str) -> String {
    match path {
        "" => name.to_owned(),
        path => format!("{path}.{name}"),
    }
}

/// Removes the members that are null.
fn present(mut object: Json) -> Json {
    if let Json::Object(members) = &mut object {
        members.retain(|_, value| !value.is_null());
    }
    object
}

/// Adds the members of `more` to `object`.
fn add(object: &mut Json, more: Json) {
    if let (Json::Object(object), Json::Object(more)) = (object, more) {
        object.extend(more);
    }
}
