//! `[responses]`: configured answers whose body and headers may hold `{{…}}` values, escaped for
//! the content type in the body.

use std::fmt::Write as _;

use http::{HeaderName, HeaderValue, Response, StatusCode};

use super::escape::escape_for;
use super::{Asked, Refused};
use crate::body::Body;
use crate::clock::Rfc3339;

/// A configured answer.
#[derive(Clone, Debug)]
pub struct Canned {
    /// The status code.
    pub status: StatusCode,
    /// The `content-type`.
    pub content_type: HeaderValue,
    /// Further headers.
    pub headers: Vec<(HeaderName, Field)>,
    /// The body.
    pub body: Template,
    /// `shadow`: headers and timing are those of the route's real answers, once they are known.
    pub imitate: bool,
}

/// The value of a header of a configured answer.
#[derive(Clone, Debug)]
pub enum Field {
    /// As it is.
    Fixed(HeaderValue),
    /// With values to fill in.
    Filled(Template),
}

/// A text with values to fill in.
#[derive(Clone, Debug, Default)]
pub struct Template(Vec<Piece>);

#[derive(Clone, Debug)]
enum Piece {
    Text(String),
    Value(Value),
}

/// What `{{…}}` can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value {
    Uuid,
    Now,
    RequestId,
    Rule,
    RetryAfter,
    Hex(u8),
    Int(i64, i64),
}

/// A mistake in a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateError {
    /// Byte offsets into the template.
    pub span: std::ops::Range<usize>,
    /// What is wrong.
    pub message: String,
}

// === impl Canned ===

impl Canned {
    /// The answer.
    pub fn answer(&self, asked: &Asked<'_>, refused: &Refused<'_>) -> Response<Body> {
        let escape = escape_for(&self.content_type);
        let body = self.body.fill(asked, refused, escape);
        let mut response = asked.answer(self.status, &self.content_type, body);
        for (name, field) in &self.headers {
            if let Some(value) = field.value(asked, refused) {
                response.headers_mut().append(name, value);
            }
        }
        response
    }

    /// The body of an answer that names no rule.
    pub(super) fn filled(&self, asked: &Asked<'_>) -> String {
        let escape = escape_for(&self.content_type);
        self.body.fill(asked, &Refused::NOBODY, escape)
    }
}

// === impl Field ===

impl Field {
    /// Reads a value; `{{` starts one to fill in.
    pub fn parse(value: &HeaderValue) -> Result<Self, TemplateError> {
        let text = std::str::from_utf8(value.as_bytes()).unwrap_or_default();
        Ok(match text.contains("{{") {
            true => Field::Filled(Template::parse(text)?),
            false => Field::Fixed(value.clone()),
        })
    }

    /// Whether it would name the rule or a wait.
    pub fn tells(&self) -> bool {
        match self {
            Field::Fixed(_) => false,
            Field::Filled(template) => template.tells(),
        }
    }

    /// The value; `None`: what it is filled with cannot stand in a header, as no value of ours is.
    pub(super) fn value(&self, asked: &Asked<'_>, refused: &Refused<'_>) -> Option<HeaderValue> {
        match self {
            Field::Fixed(value) => Some(value.clone()),
            Field::Filled(template) => {
                HeaderValue::try_from(template.fill(asked, refused, str::to_owned)).ok()
            }
        }
    }
}

// === impl Template ===

impl Template {
    /// Reads a template; `{{` starts a value.
    pub fn parse(source: &str) -> Result<Self, TemplateError> {
        let mut pieces = Vec::new();
        let mut rest = source;
        let mut offset = 0;
        while let Some((text, after)) = rest.split_once("{{") {
            let start = offset + text.len();
            let Some((name, tail)) = after.split_once("}}") else {
                return Err(TemplateError {
                    span: start..start + 2,
                    message: "`{{` without `}}`".to_owned(),
                });
            };
            let end = start + name.len() + 4;
            let value = Value::parse(name).map_err(|message| TemplateError {
                span: start..end,
                message,
            })?;
            pieces.push(Piece::Text(text.to_owned()));
            pieces.push(Piece::Value(value));
            rest = tail;
            offset = end;
        }
        pieces.push(Piece::Text(rest.to_owned()));
        Ok(Self(pieces))
    }

    /// Whether it would name the rule or a wait, which a shadow answer must not.
    pub fn tells(&self) -> bool {
        self.0
            .iter()
            .any(|piece| matches!(piece, Piece::Value(Value::Rule | Value::RetryAfter)))
    }

    fn fill(&self, asked: &Asked<'_>, refused: &Refused<'_>, escape: fn(&str) -> String) -> String {
        let mut out = String::new();
        for piece in &self.0 {
            match piece {
                Piece::Text(text) => out.push_str(text),
                Piece::Value(value) => out.push_str(&escape(&value.make(asked, refused))),
            }
        }
        out
    }
}

// === impl Value ===

impl Value {
    /// The error is one sentence.
    fn parse(text: &str) -> Result<Self, String> {
        let mut words = text.split_whitespace();
        let name = words.next().unwrap_or_default();
        let arguments: Vec<&str> = words.collect();
        match (name, arguments.as_slice()) {
            ("uuid", []) => Ok(Value::Uuid),
            ("now", []) => Ok(Value::Now),
            ("request.id", []) => Ok(Value::RequestId),
            ("rule", []) => Ok(Value::Rule),
            ("retry_after", []) => Ok(Value::RetryAfter),
            ("uuid" | "now" | "request.id" | "rule" | "retry_after", _) => {
                Err(format!("`{name}` stands alone, as in `{{{{{name}}}}}`"))
            }
            ("hex", arguments) => Self::hex(arguments).ok_or_else(|| {
                "`hex` takes a number of digits up to 255, as in `{{hex 16}}`".to_owned()
            }),
            ("int", arguments) => Self::int(arguments).ok_or_else(|| {
                "`int` takes two whole numbers, the lower one first, as in `{{int 1 1000}}`"
                    .to_owned()
            }),
            _ => Err(format!("unknown template value `{}`", text.trim())),
        }
    }

    fn hex(arguments: &[&str]) -> Option<Self> {
        let [digits] = arguments else {
            return None;
        };
        digits.parse().ok().map(Value::Hex)
    }

    fn int(arguments: &[&str]) -> Option<Self> {
        let [low, high] = arguments else {
            return None;
        };
        let (low, high) = (low.parse().ok()?, high.parse().ok()?);
        (low <= high).then_some(Value::Int(low, high))
    }

    fn make(self, asked: &Asked<'_>, refused: &Refused<'_>) -> String {
        match self {
            Value::Uuid => uuid(random()),
            Value::Now => Rfc3339(asked.now).to_string(),
            Value::RequestId => asked.id.to_owned(),
            Value::Rule => refused.rule.to_owned(),
            Value::RetryAfter => refused.retry_after.unwrap_or(0).to_string(),
            Value::Hex(digits) => hex(usize::from(digits)),
            Value::Int(low, high) => between(low, high).to_string(),
        }
    }
}

/// Random bytes; zeros if the machine has none, which is better than no answer.
fn random() -> u128 {
    let mut bytes = [0; 16];
    let _ = getrandom::fill(&mut bytes);
    u128::from_le_bytes(bytes)
}

/// A version 4 UUID (RFC 9562, 5.4).
fn uuid(random: u128) -> String {
    let bits = (random & !(0xf << 76) & !(0x3 << 62)) | (0x4 << 76) | (0x2 << 62);
    let digits = format!("{bits:032x}");
    let mut out = String::with_capacity(36);
    for (place, digit) in digits.chars().enumerate() {
        if matches!(place, 8 | 12 | 16 | 20) {
            out.push('-');
        }
        out.push(digit);
    }
    out
}

fn hex(digits: usize) -> String {
    let mut out = String::with_capacity(digits + 32);
    while out.len() < digits {
        let _ = write!(out, "{:032x}", random());
    }
    out.truncate(digits);
    out
}

fn between(low: i64, high: i64) -> i64 {
    let span = (i128::from(high) - i128::from(low) + 1) as u128;
    (i128::from(low) + (random() % span) as i128) as i64
}
