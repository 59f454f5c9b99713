//! A JSON object being read. It knows at the end which keys nobody asked for.

use serde_json::{Map, Value};

use super::quote::visible;

/// How much of a value a note shows.
const LONGEST: usize = 300;

/// One object. A key whose value is null counts as absent.
pub struct Object<'a> {
    map: &'a Map<String, Value>,
    asked: Vec<&'static str>,
}

// === impl Object ===

impl<'a> Object<'a> {
    /// A reader of `map`.
    pub fn new(map: &'a Map<String, Value>) -> Self {
        Self {
            map,
            asked: Vec::new(),
        }
    }

    /// The value of a key, if it is there.
    pub fn get(&mut self, key: &'static str) -> Option<&'a Value> {
        self.asked.push(key);
        self.map.get(key).filter(|value| !value.is_null())
    }

    /// What nobody asked for.
    pub fn left(self) -> impl Iterator<Item = (&'a str, &'a Value)> {
        let asked = self.asked;
        self.map
            .iter()
            .map(|(key, value)| (key.as_str(), value))
            .filter(move |(key, value)| !asked.contains(key) && !value.is_null())
    }
}

/// A value as JSON on one line, cut where it is long.
pub fn shown(value: &Value) -> String {
    let text = visible(&value.to_string());
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}… (cut)", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

/// What a value is, for messages.
pub fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
