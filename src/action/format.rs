//! Which form an answer takes: problem details, HTML or text, by `Accept` (RFC 9110, 12.5.1).

use std::fmt::Write as _;

use http::HeaderValue;

/// The form of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `application/problem+json` (RFC 9457).
    Problem,
    /// A small page.
    Html,
    /// A line of text.
    Text,
}

/// The media types that choose a form, in order of preference where a client has none.
const OFFERS: [(Form, &str); 4] = [
    (Form::Problem, "application/problem+json"),
    (Form::Problem, "application/json"),
    (Form::Html, "text/html"),
    (Form::Text, "text/plain"),
];

// === impl Form ===

impl Form {
    /// The form that `accept` likes best; a machine's form where it does not say.
    pub fn negotiate(accept: &[u8]) -> Self {
        let mut best = (Form::Problem, 0);
        for range in accept.split(|&byte| byte == b',') {
            let Some((form, quality)) = offer(range) else {
                continue;
            };
            if quality > best.1 {
                best = (form, quality);
            }
        }
        best.0
    }

    /// Its `content-type`.
    pub fn content_type(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Form::Problem => "application/problem+json",
            Form::Html => "text/html; charset=utf-8",
            Form::Text => "text/plain; charset=utf-8",
        })
    }
}

/// The form and quality (thousandths) of one media range; `None`: nothing that is offered.
fn offer(range: &[u8]) -> Option<(Form, u16)> {
    let range = std::str::from_utf8(range).ok()?;
    let mut pieces = range.split(';').map(str::trim);
    let media = pieces.next()?;
    let quality = pieces
        .find_map(|piece| piece.strip_prefix("q=").or(piece.strip_prefix("Q=")))
        .map_or(1000, thousandths);
    let (form, _) = OFFERS
        .iter()
        .find(|(_, offered)| media.eq_ignore_ascii_case(offered))?;
    Some((*form, quality))
}

fn thousandths(quality: &str) -> u16 {
    let value: f32 = quality.parse().unwrap_or(0.0);
    (value.clamp(0.0, 1.0) * 1000.0) as u16
}

/// `text` as the inside of a JSON string.
pub fn json_escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out
}

/// `text` as HTML text or a quoted attribute.
pub fn html_escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}
