//! `[responses]`: configured responses. Body and headers may contain `{{…}}` values, which are escaped for the
//! content type of the body.

use std::fmt::Write as _;

use http::{HeaderName, HeaderValue, Response, StatusCode};

use super::escape::escape_for;
use super::format::ResponseFormat;
use super::{RefusingRule, RequestInfo};
use crate::body::Body;
use crate::clock::Rfc3339;

/// The media types of the bodies that are selected by `Accept`.
const HTML: &str = "text/html; charset=utf-8";
const JSON: &str = "application/json";

/// A configured response.
#[derive(Clone, Debug)]
pub struct ResponseTemplate {
    /// The status code.
    pub status: StatusCode,
    /// The `content-type`.
    pub content_type: HeaderValue,
    /// Additional headers.
    pub headers: Vec<(HeaderName, HeaderTemplate)>,
    /// The body.
    pub body: Template,
    /// The HTML body for clients that prefer HTML. `None` for `body`.
    pub html: Option<Template>,
    /// The JSON body for clients that prefer JSON. `None` for `body`.
    pub json: Option<Template>,
    /// Whether a shadow response copies headers and timing of the route's real responses, once they are learned.
    pub imitate: bool,
}

/// The value of a header of a configured response.
#[derive(Clone, Debug)]
pub enum HeaderTemplate {
    /// A constant value.
    Fixed(HeaderValue),
    /// A value with `{{…}}` parts.
    Filled(Template),
}

/// A text with `{{…}}` values.
#[derive(Clone, Debug, Default)]
pub struct Template(Vec<TemplatePiece>);

#[derive(Clone, Debug)]
enum TemplatePiece {
    Text(String),
    Value(TemplateValue),
}

/// The values that `{{…}}` can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TemplateValue {
    Uuid,
    Now,
    RequestId,
    Rule,
    RetryAfter,
    Hex(u8),
    Int(i64, i64),
}

/// An error in a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateError {
    /// Byte offsets into the template.
    pub span: std::ops::Range<usize>,
    /// What is wrong.
    pub message: String,
}

// === impl ResponseTemplate ===

impl ResponseTemplate {
    /// Builds the response.
    pub fn to_response(
        &self,
        request: &RequestInfo<'_>,
        refused: &RefusingRule<'_>,
    ) -> Response<Body> {
        self.to_response_with(self.status, request, refused)
    }

    /// Builds the response with another status.
    pub(super) fn to_response_with(
        &self,
        status: StatusCode,
        request: &RequestInfo<'_>,
        refused: &RefusingRule<'_>,
    ) -> Response<Body> {
        let (content_type, body) = self.filled(request, refused);
        let mut response = request.to_response(status, &content_type, body);
        for (name, field) in &self.headers {
            if let Some(value) = field.value(request, refused) {
                response.headers_mut().append(name, value);
            }
        }
        response
    }

    /// Renders the body that the client prefers, and returns it with its media type.
    pub(super) fn filled(
        &self,
        request: &RequestInfo<'_>,
        refused: &RefusingRule<'_>,
    ) -> (HeaderValue, String) {
        let (content_type, body) = self.body_for(request);
        let escape = escape_for(&content_type);
        (content_type, body.fill(request, refused, escape))
    }

    /// Returns the body that the client prefers. A client that prefers a form which is absent gets `body`, or else the
    /// other form.
    fn body_for(&self, request: &RequestInfo<'_>) -> (HeaderValue, &Template) {
        let plain = (self.content_type.clone(), &self.body);
        if self.html.is_none() && self.json.is_none() {
            return plain;
        }
        let html = self.html.as_ref().map(|html| (HTML, html));
        let json = self.json.as_ref().map(|json| (JSON, json));
        let (preferred, other) = match ResponseFormat::negotiate(&request.accept()) {
            ResponseFormat::Html => (html, json),
            ResponseFormat::Problem => (json, html),
            ResponseFormat::Text => (None, html.or(json)),
        };
        let other = other.filter(|_| self.body.is_empty());
        let chosen = preferred.or(other);
        chosen.map_or(plain, |(media, body)| {
            (HeaderValue::from_static(media), body)
        })
    }
}

// === impl HeaderTemplate ===

impl HeaderTemplate {
    /// Parses a value; `{{` starts a template value.
    pub fn parse(value: &HeaderValue) -> Result<Self, TemplateError> {
        let text = std::str::from_utf8(value.as_bytes()).unwrap_or_default();
        Ok(match text.contains("{{") {
            true => HeaderTemplate::Filled(Template::parse(text)?),
            false => HeaderTemplate::Fixed(value.clone()),
        })
    }

    /// Returns whether the value contains the rule's name or a wait.
    pub fn names_rule_or_wait(&self) -> bool {
        match self {
            HeaderTemplate::Fixed(_) => false,
            HeaderTemplate::Filled(template) => template.names_rule_or_wait(),
        }
    }

    /// Renders the value. `None` if it is no valid header value, which no template value causes.
    pub(super) fn value(
        &self,
        request: &RequestInfo<'_>,
        refused: &RefusingRule<'_>,
    ) -> Option<HeaderValue> {
        match self {
            HeaderTemplate::Fixed(value) => Some(value.clone()),
            HeaderTemplate::Filled(template) => {
                HeaderValue::try_from(template.fill(request, refused, str::to_owned)).ok()
            }
        }
    }
}

// === impl Template ===

impl Template {
    /// Parses a template; `{{` starts a value.
    pub fn parse(source: &str) -> Result<Self, TemplateError> {
        let error = |span, message| TemplateError { span, message };
        let (mut pieces, mut rest, mut offset) = (Vec::new(), source, 0);
        while let Some((text, after)) = rest.split_once("{{") {
            let start = offset + text.len();
            let Some((name, tail)) = after.split_once("}}") else {
                return Err(error(start..start + 2, "`{{` without `}}`".to_owned()));
            };
            let end = start + name.len() + 4;
            let value = TemplateValue::parse(name).map_err(|message| error(start..end, message))?;
            pieces.push(TemplatePiece::Text(text.to_owned()));
            pieces.push(TemplatePiece::Value(value));
            rest = tail;
            offset = end;
        }
        pieces.push(TemplatePiece::Text(rest.to_owned()));
        Ok(Self(pieces))
    }

    /// Returns whether the text contains the rule's name or a wait, which a shadow response must not reveal.
    pub fn names_rule_or_wait(&self) -> bool {
        self.0.iter().any(|piece| {
            matches!(
                piece,
                TemplatePiece::Value(TemplateValue::Rule | TemplateValue::RetryAfter)
            )
        })
    }

    /// Returns whether the text is empty.
    pub fn is_empty(&self) -> bool {
        let mut pieces = self.0.iter();
        pieces.all(|piece| matches!(piece, TemplatePiece::Text(text) if text.is_empty()))
    }

    /// Returns the usual length in bytes.
    pub(super) fn length(&self) -> usize {
        let pieces = self.0.iter();
        let length = |piece: &TemplatePiece| match piece {
            TemplatePiece::Text(text) => text.len(),
            TemplatePiece::Value(value) => value.length(),
        };
        pieces.map(length).sum()
    }

    fn fill(
        &self,
        request: &RequestInfo<'_>,
        refused: &RefusingRule<'_>,
        escape: fn(&str) -> String,
    ) -> String {
        let mut out = String::new();
        for piece in &self.0 {
            match piece {
                TemplatePiece::Text(text) => out.push_str(text),
                TemplatePiece::Value(value) => out.push_str(&escape(&value.make(request, refused))),
            }
        }
        out
    }
}

// === impl TemplateValue ===

impl TemplateValue {
    /// Parses the text between `{{` and `}}`. The error is a message for the user.
    fn parse(text: &str) -> Result<Self, String> {
        let mut words = text.split_whitespace();
        let name = words.next().unwrap_or_default();
        let arguments: Vec<&str> = words.collect();
        let value = match (name, arguments.as_slice()) {
            ("uuid", []) => Some(TemplateValue::Uuid),
            ("now", []) => Some(TemplateValue::Now),
            ("request.id", []) => Some(TemplateValue::RequestId),
            ("rule", []) => Some(TemplateValue::Rule),
            ("retry_after", []) => Some(TemplateValue::RetryAfter),
            ("hex", [digits]) => digits.parse().ok().map(TemplateValue::Hex),
            ("int", [low, high]) => match (low.parse(), high.parse()) {
                (Ok(low), Ok(high)) if low <= high => Some(TemplateValue::Int(low, high)),
                _ => None,
            },
            _ => None,
        };
        value.ok_or_else(|| match name {
            "uuid" | "now" | "request.id" | "rule" | "retry_after" => {
                format!("`{name}` takes no arguments, as in `{{{{{name}}}}}`")
            }
            "hex" => "`hex` takes a number of digits up to 255, as in `{{hex 16}}`".to_owned(),
            "int" => "`int` takes two whole numbers, the lower one first, as in `{{int 1 1000}}`"
                .to_owned(),
            _ => format!("unknown template value `{}`", text.trim()),
        })
    }

    /// Returns the usual length in bytes.
    fn length(self) -> usize {
        match self {
            TemplateValue::Uuid => 36,
            TemplateValue::Now => 24,
            TemplateValue::RequestId => 32,
            TemplateValue::Rule => 16,
            TemplateValue::RetryAfter => 2,
            TemplateValue::Hex(digits) => usize::from(digits),
            TemplateValue::Int(_, high) => high.to_string().len(),
        }
    }

    fn make(self, request: &RequestInfo<'_>, refused: &RefusingRule<'_>) -> String {
        match self {
            TemplateValue::Uuid => uuid(random()),
            TemplateValue::Now => Rfc3339(request.now).to_string(),
            TemplateValue::RequestId => request.id.to_owned(),
            TemplateValue::Rule => refused.rule.to_owned(),
            TemplateValue::RetryAfter => refused.retry_after.unwrap_or(0).to_string(),
            TemplateValue::Hex(digits) => hex(usize::from(digits)),
            TemplateValue::Int(low, high) => between(low, high).to_string(),
        }
    }
}

/// Returns random bytes. Zeros if the system has none, because that is better than no response.
fn random() -> u128 {
    let mut bytes = [0; 16];
    let _ = getrandom::fill(&mut bytes);
    u128::from_le_bytes(bytes)
}

/// Formats a version 4 UUID (RFC 9562, 5.4).
fn uuid(random: u128) -> String {
    let bits = (random & !(0xf << 76) & !(0x3 << 62)) | (0x4 << 76) | (0x2 << 62);
    let group = |shift: u32, digits: u32| bits >> shift & ((1 << (4 * digits)) - 1);
    let (a, b, c, d, e) = (
        group(96, 8),
        group(80, 4),
        group(64, 4),
        group(48, 4),
        group(0, 12),
    );
    format!("{a:08x}-{b:04x}-{c:04x}-{d:04x}-{e:012x}")
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
