//! Reads values from JSON and writes values as TOML. The content of a string can never end the
//! string or start a new line.

use serde_json::{Map, Number, Value};

/// The maximum length of a value in a note, in characters.
const LONGEST_SHOWN: usize = 300;

/// A JSON object that tracks which entries were read. A null value counts as absent.
pub struct JsonObject<'a> {
    map: &'a Map<String, Value>,
    keys_read: Vec<&'static str>,
}

// === impl JsonObject ===

impl<'a> JsonObject<'a> {
    /// Creates a reader of `map`.
    pub fn new(map: &'a Map<String, Value>) -> Self {
        Self {
            map,
            keys_read: Vec::new(),
        }
    }

    /// Returns the value of a JSON key. `None` if it is absent or null.
    pub fn get(&mut self, key: &'static str) -> Option<&'a Value> {
        self.keys_read.push(key);
        self.map.get(key).filter(|value| !value.is_null())
    }

    /// Returns the entries that were not read.
    pub fn left(self) -> impl Iterator<Item = (&'a str, &'a Value)> {
        let keys_read = self.keys_read;
        self.map
            .iter()
            .map(|(key, value)| (key.as_str(), value))
            .filter(move |(key, value)| !keys_read.contains(key) && !value.is_null())
    }
}

/// Returns the only element of an array, and any other value unchanged. Terraform writes an object
/// as an array of one object.
pub fn single(value: &Value) -> &Value {
    match value {
        Value::Array(items) if items.len() == 1 => items.first().unwrap_or(value),
        other => other,
    }
}

/// Renders a value as JSON on one line, truncated if it is long.
pub fn shown(value: &Value) -> String {
    let text = visible(&value.to_string());
    match text.char_indices().nth(LONGEST_SHOWN) {
        Some((end, _)) => format!("{}… (cut)", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

/// Returns the message that a value does not have the expected type.
pub fn mismatch(what: &str, value: &Value, expected: &str) -> String {
    let (kind, shown) = (kind(value), shown(value));
    format!("{what} is {kind}, not {expected}: {shown}")
}

/// Returns the type of a value, for messages.
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

/// The seconds in each unit, largest unit first.
const UNITS: [(u64, &str); 3] = [(86_400, "d"), (3_600, "h"), (60, "m")];

/// Renders a long string, as a literal string if possible so that expressions stay readable.
pub fn string(text: &str) -> String {
    let odd = text.chars().any(|c| is_odd(c) && c != '\n' && c != '\t');
    let edge = text.starts_with('\'') || text.ends_with('\'');
    match (text.contains('\n'), text.contains('\'')) {
        _ if odd || edge || text.contains("'''") => escaped(text),
        (true, _) => format!("'''\n{text}'''"),
        (false, true) => format!("'''{text}'''"),
        (false, false) => format!("'{text}'"),
    }
}

/// Renders a short string, in double quotes if it needs no escapes.
pub fn word(text: &str) -> String {
    if text.chars().any(|c| is_odd(c) || c == '"' || c == '\\') {
        string(text)
    } else {
        format!("\"{text}\"")
    }
}

/// Renders any value. TOML has no null; the configuration loader refuses null and non-finite numbers.
pub fn value(value: &Value) -> String {
    match value {
        Value::Null => word("null"),
        Value::Bool(boolean) => boolean.to_string(),
        Value::Number(number) => self::number(number),
        Value::String(text) => word(text),
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(self::value).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(map) => {
            let entry =
                |(key, value): (&String, _)| format!("{} = {}", escaped(key), self::value(value));
            let entries: Vec<_> = map.iter().map(entry).collect();
            format!("{{ {} }}", entries.join(", "))
        }
    }
}

/// Renders an expression or a body.
pub fn text(value: &Value) -> String {
    match value {
        Value::String(text) => string(text),
        other => self::value(other),
    }
}

/// Renders a number of seconds as a duration.
pub fn duration(value: &Value) -> String {
    let Some(seconds) = whole(value) else {
        return self::value(value);
    };
    let fits = |(scale, _): &&(u64, _)| seconds > 0 && seconds.is_multiple_of(*scale);
    match UNITS.iter().find(fits) {
        Some((scale, unit)) => word(&format!("{}{unit}", seconds / scale)),
        None => word(&format!("{seconds}s")),
    }
}

/// Returns a non-negative whole number, also if it is written as `60.0`. `None` for other values.
pub fn whole(value: &Value) -> Option<u64> {
    let digits = match value {
        Value::Number(number) => self::number(number),
        _ => return None,
    };
    digits.parse().ok()
}

/// Renders text on one line, without characters that move the cursor or change the text direction.
pub fn visible(text: &str) -> String {
    let shown = |c: char| match c {
        '\n' => "\\n".to_owned(),
        '\t' => "\\t".to_owned(),
        c if is_odd(c) => c.escape_unicode().to_string(),
        c => c.to_string(),
    };
    text.chars().map(shown).collect()
}

fn escaped(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if is_odd(c) => out.push_str(&format!("\\U{:08X}", u32::from(c))),
            c => out.push(c),
        }
    }
    out + "\""
}

fn number(number: &Number) -> String {
    let float = number.as_f64().filter(|_| number.is_f64());
    match float {
        // Below 2^53, a float represents every whole number exactly.
        Some(float) if float.fract() == 0.0 && float.abs() < 9e15 => format!("{float:.0}"),
        _ => number.to_string(),
    }
}

/// Returns whether `c` is a control character or changes the text direction.
fn is_odd(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{61c}')
        || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}')
}
