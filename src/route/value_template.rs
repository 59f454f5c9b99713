//! Header values with parts that are computed for each request.

use std::ops::Range;

use http::HeaderValue;

use crate::expr::{FieldFacts, Scalar, ScalarValue};

/// A header value with parts that are computed for each request, such as `{ip.src.country}`.
#[derive(Debug, PartialEq, Eq)]
pub struct ValueTemplate(Vec<ValuePart>);

/// A part of a header value.
#[derive(Debug)]
pub enum ValuePart {
    /// Text, sent as it is.
    Text(String),
    /// The value of an expression.
    Value(Scalar),
}

/// A part of a header value as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WrittenPart {
    /// Text, without its escapes.
    Text(String),
    /// An expression, by its position in the value.
    Value(Range<usize>),
}

// === impl ValuePart ===

/// Expressions are equal if they are written in the same way.
impl PartialEq for ValuePart {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Text(one), Self::Text(other)) => one == other,
            (Self::Value(one), Self::Value(other)) => one.source() == other.source(),
            _ => false,
        }
    }
}

impl Eq for ValuePart {}

// === impl WrittenPart ===

impl WrittenPart {
    /// Splits a value: `{…}` is an expression, `{{` and `}}` are braces. The error is a position and a message for
    /// the user.
    pub fn split(value: &str) -> Result<Vec<Self>, (Range<usize>, String)> {
        let (mut parts, mut text, mut at) = (Vec::new(), String::new(), 0);
        while let Some(rest) = value.get(at..).filter(|rest| !rest.is_empty()) {
            let plain = rest.find(['{', '}']).unwrap_or(rest.len());
            text.push_str(rest.get(..plain).unwrap_or_default());
            at += plain;
            let rest = rest.get(plain..).unwrap_or_default();
            if rest.starts_with("{{") || rest.starts_with("}}") {
                text.extend(rest.chars().next());
                at += 2;
            } else if rest.starts_with('}') {
                let message = "this `}` closes nothing; write `}}` for a literal brace";
                return Err((at..at + 1, message.to_owned()));
            } else if let Some(inside) = rest.strip_prefix('{') {
                let Some(length) = closing_brace(inside) else {
                    let message = "this `{` is not closed; write `{{` for a literal brace";
                    return Err((at..at + 1, message.to_owned()));
                };
                if !text.is_empty() {
                    parts.push(Self::Text(std::mem::take(&mut text)));
                }
                parts.push(Self::Value(at + 1..at + 1 + length));
                at += length + 2;
            }
        }
        if !text.is_empty() {
            parts.push(Self::Text(text));
        }
        Ok(parts)
    }
}

/// Returns the position of the brace that ends an expression, which may contain braces and strings.
fn closing_brace(text: &str) -> Option<usize> {
    let (mut depth, mut in_string, mut is_escaped) = (0, false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_string => is_escaped = true,
            b'"' => in_string = !in_string,
            b'{' if !in_string => depth += 1,
            b'}' if !in_string && depth == 0 => return Some(at),
            b'}' if !in_string => depth -= 1,
            _ => {}
        }
    }
    None
}

// === impl ValueTemplate ===

impl ValueTemplate {
    /// Creates a template from its parts.
    pub fn new(parts: Vec<ValuePart>) -> Self {
        Self(parts)
    }

    /// The value for a request. `None` if a part is missing. Control characters of a part are percent-encoded, so
    /// that no client can add a header.
    pub fn fill(&self, facts: &dyn FieldFacts) -> Option<HeaderValue> {
        let mut value = Vec::new();
        for part in &self.0 {
            match part {
                ValuePart::Text(text) => value.extend_from_slice(text.as_bytes()),
                ValuePart::Value(scalar) => match scalar.eval(facts)? {
                    ScalarValue::Bytes(bytes) => push(&mut value, &bytes),
                    ScalarValue::Int(number) => push(&mut value, number.to_string().as_bytes()),
                    ScalarValue::Ip(ip) => push(&mut value, ip.to_string().as_bytes()),
                    ScalarValue::Bool(is) => push(&mut value, is.to_string().as_bytes()),
                },
            }
        }
        HeaderValue::from_bytes(value.trim_ascii()).ok()
    }
}

fn push(value: &mut Vec<u8>, bytes: &[u8]) {
    for &byte in bytes {
        if byte.is_ascii_control() {
            value.extend_from_slice(format!("%{byte:02X}").as_bytes());
        } else {
            value.push(byte);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{WrittenPart, push};

    fn split(value: &str) -> Vec<String> {
        let parts = WrittenPart::split(value).unwrap();
        let shown = parts.into_iter().map(|part| match part {
            WrittenPart::Text(text) => text,
            WrittenPart::Value(range) => format!("<{}>", &value[range]),
        });
        shown.collect()
    }

    #[test]
    fn braces_are_expressions_and_double_braces_are_braces() {
        assert_eq!(split("plain"), ["plain"]);
        assert_eq!(split("{ip.src}"), ["<ip.src>"]);
        assert_eq!(
            split("a={ip.src}; b={x}"),
            ["a=", "<ip.src>", "; b=", "<x>"]
        );
        assert_eq!(split("{{\"group\":1}}"), ["{\"group\":1}"]);
        assert_eq!(split("{{{x}}}"), ["{", "<x>", "}"]);
        assert_eq!(split(r#"{f("}\"}")}"#), [r#"<f("}\"}")>"#]);
        assert_eq!(split("{a in {1 2}}"), ["<a in {1 2}>"]);
        assert_eq!(split("\u{e9}{x}"), ["\u{e9}", "<x>"]);
        assert!(split("").is_empty());
    }

    #[test]
    fn unbalanced_braces_are_errors() {
        for (value, at) in [("a{b", 1..2), ("a}b", 1..2), ("{\"}", 0..1), ("{{}", 2..3)] {
            assert_eq!(WrittenPart::split(value).unwrap_err().0, at, "{value}");
        }
    }

    #[test]
    fn control_characters_are_encoded() {
        let mut value = Vec::new();
        push(&mut value, b"a\r\nx: y\t\x7f\xe9");
        assert_eq!(value, b"a%0D%0Ax: y%09%7F\xe9");
    }
}
