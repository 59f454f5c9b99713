//! JSON lines of the gateway's log in the text format, so that tests read the same in both.

use std::fmt::{self, Write as _};

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;

/// The fields of a line, in their order.
struct Fields(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Fields(Vec::new()))
    }
}

impl<'de> Visitor<'de> for Fields {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a log line")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Self, A::Error> {
        while let Some(field) = map.next_entry()? {
            self.0.push(field);
        }
        Ok(self)
    }
}

/// `None` if `line` is not a JSON line.
pub fn as_text(line: &str) -> Option<String> {
    let Fields(fields) = serde_json::from_str(line).ok()?;
    let mut fields = fields.iter();
    let mut next = |name| {
        let (found, value) = fields.next()?;
        (found == name).then(|| value.as_str())?
    };
    let (ts, level, event) = (next("ts")?, next("level")?, next("event")?);
    let mut text = format!("{ts} {:<5} {event}", level.to_uppercase());
    for (name, value) in fields {
        let shown = match value {
            Value::String(word) if is_word(word) => word.clone(),
            other => other.to_string(),
        };
        write!(text, " {name}={shown}").unwrap();
    }
    Some(text)
}

fn is_word(text: &str) -> bool {
    let plain = |b: u8| b.is_ascii_graphic() && !matches!(b, b'"' | b'\\' | b'=');
    !text.is_empty() && text.bytes().all(plain)
}
