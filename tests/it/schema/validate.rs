//! JSON Schema (draft 2020-12) as far as `lockgate schema` uses it. A keyword that is not here is an
//! error, so that nothing is believed unchecked.

use std::collections::BTreeSet;

use regex::Regex;
use serde_json::Value as Json;

/// The draft that is printed.
pub const DRAFT: &str = "https://json-schema.org/draft/2020-12/schema";

/// What is wrong with `value`, each with its place.
pub fn errors(schema: &Json, value: &Json) -> Vec<String> {
    let mut found = Vec::new();
    check(schema, value, "", &mut found);
    found
}

/// What is wrong with a schema itself: unknown keywords, values of the wrong kind, defaults and
/// examples that it refuses.
pub fn malformed(schema: &Json) -> Vec<String> {
    let mut found = Vec::new();
    inspect(schema, "", &mut found);
    found
}

fn check(schema: &Json, value: &Json, at: &str, out: &mut Vec<String>) {
    let Json::Object(keywords) = schema else {
        if schema == &Json::Bool(false) {
            out.push(format!("{at}: nothing may be here"));
        }
        return;
    };
    for (keyword, want) in keywords {
        let fits = match keyword.as_str() {
            "type" => is_type(want, value),
            "enum" => want.as_array().unwrap().contains(value),
            "minimum" => value.as_f64().is_none_or(|n| n >= want.as_f64().unwrap()),
            "maximum" => value.as_f64().is_none_or(|n| n <= want.as_f64().unwrap()),
            "minLength" => {
                let least = want.as_u64().unwrap();
                value
                    .as_str()
                    .is_none_or(|s| s.chars().count() as u64 >= least)
            }
            "pattern" => value.as_str().is_none_or(|s| regex(want).is_match(s)),
            "minItems" => {
                let least = want.as_u64().unwrap();
                value.as_array().is_none_or(|a| a.len() as u64 >= least)
            }
            "uniqueItems" => value.as_array().is_none_or(|a| {
                let texts: BTreeSet<String> = a.iter().map(Json::to_string).collect();
                texts.len() == a.len()
            }),
            "required" => value.as_object().is_none_or(|object| {
                let mut names = want.as_array().unwrap().iter();
                names.all(|name| object.contains_key(name.as_str().unwrap()))
            }),
            "not" => !errors(want, value).is_empty(),
            "anyOf" => matches(want, value) > 0,
            "oneOf" => matches(want, value) == 1,
            "allOf" => matches(want, value) == want.as_array().unwrap().len(),
            "items" => {
                for (n, item) in value.as_array().into_iter().flatten().enumerate() {
                    check(want, item, &format!("{at}[{n}]"), out);
                }
                true
            }
            "properties" | "patternProperties" | "additionalProperties" => true,
            word if ANNOTATIONS.contains(&word) => true,
            other => panic!("{at}: the keyword {other} is not known here"),
        };
        if !fits {
            out.push(format!("{at}: {keyword} {want} refuses {value}"));
        }
    }
    members(schema, value, at, out);
}

fn members(schema: &Json, value: &Json, at: &str, out: &mut Vec<String>) {
    for (name, member) in value.as_object().into_iter().flatten() {
        let at = format!("{at}.{name}");
        let mut known = false;
        if let Some(schema) = schema["properties"].get(name) {
            known = true;
            check(schema, member, &at, out);
        }
        let patterns = schema["patternProperties"].as_object();
        for (pattern, schema) in patterns.into_iter().flatten() {
            if Regex::new(pattern).unwrap().is_match(name) {
                known = true;
                check(schema, member, &at, out);
            }
        }
        if !known && schema["additionalProperties"] == Json::Bool(false) {
            out.push(format!("{at}: unknown key"));
        }
    }
}

const ANNOTATIONS: [&str; 6] = [
    "$schema",
    "$comment",
    "title",
    "description",
    "default",
    "examples",
];

fn inspect(schema: &Json, at: &str, out: &mut Vec<String>) {
    let Json::Object(keywords) = schema else {
        if !schema.is_boolean() {
            out.push(format!("{at}: not a schema"));
        }
        return;
    };
    for (keyword, value) in keywords {
        let at = format!("{at}/{keyword}");
        let right = match keyword.as_str() {
            "$schema" => value == DRAFT && at == "/$schema",
            "$comment" | "title" | "description" => value.as_str().is_some_and(|s| !s.is_empty()),
            "type" => value.as_str().is_some_and(|t| TYPES.contains(&t)),
            "enum" => value.as_array().is_some_and(|a| !a.is_empty()),
            "minimum" | "maximum" => value.is_number(),
            "minLength" | "minItems" => value.is_u64(),
            "uniqueItems" | "additionalProperties" => value.is_boolean(),
            "pattern" => value.as_str().is_some_and(|p| Regex::new(p).is_ok()),
            "required" => strings(value),
            "default" => errors(schema, value).is_empty(),
            "examples" => {
                let each = value.as_array().unwrap();
                !each.is_empty() && each.iter().all(|e| errors(schema, e).is_empty())
            }
            "not" | "items" => {
                inspect(value, &at, out);
                true
            }
            "anyOf" | "oneOf" | "allOf" => {
                let all = value.as_array().unwrap();
                all.iter().for_each(|schema| inspect(schema, &at, out));
                !all.is_empty()
            }
            "properties" | "patternProperties" => {
                for (name, schema) in value.as_object().unwrap() {
                    inspect(schema, &format!("{at}/{name}"), out);
                }
                true
            }
            _ => false,
        };
        if !right {
            out.push(format!("{at}: {value}"));
        }
    }
}

const TYPES: [&str; 6] = ["object", "array", "string", "integer", "number", "boolean"];

fn is_type(want: &Json, value: &Json) -> bool {
    match want.as_str().unwrap() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        other => panic!("the type {other} is not known here"),
    }
}

/// How many of several schemas accept.
fn matches(schemas: &Json, value: &Json) -> usize {
    let schemas = schemas.as_array().unwrap().iter();
    schemas.filter(|s| errors(s, value).is_empty()).count()
}

fn strings(value: &Json) -> bool {
    let all = value.as_array().unwrap();
    let names: BTreeSet<&str> = all.iter().filter_map(Json::as_str).collect();
    names.len() == all.len()
}

fn regex(pattern: &Json) -> Regex {
    Regex::new(pattern.as_str().unwrap()).unwrap()
}
