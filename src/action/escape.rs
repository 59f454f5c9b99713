//! Values made harmless for the media type that they are written into: between quotes, or as the
//! text of an element.

use std::fmt::Write as _;

use http::HeaderValue;

/// How a value is written into a body.
pub type Escape = fn(&str) -> String;

/// The way that suits a `content-type`; what is not known is text.
pub fn escape_for(content_type: &HeaderValue) -> Escape {
    let media = media_type(content_type);
    let has = |word: &str| media.contains(word);
    if has("json") {
        json_escape
    } else if has("html") || has("xml") {
        html_escape
    } else if has("javascript") || has("ecmascript") {
        script_escape
    } else if media == "text/csv" {
        csv_escape
    } else {
        str::to_owned
    }
}

/// `text/html` of `Text/HTML; charset=utf-8`.
fn media_type(content_type: &HeaderValue) -> String {
    let text = String::from_utf8_lossy(content_type.as_bytes());
    let media = text.split(';').next().unwrap_or_default();
    media.trim().to_ascii_lowercase()
}

/// `text` as the inside of a JSON string.
pub fn json_escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            c if c.is_control() => push_unicode(&mut out, c),
            c => out.push(c),
        }
    }
    out
}

/// `text` as HTML or XML text or a quoted attribute. A control character, of which XML has none,
/// is left out.
pub fn html_escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(c),
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
    out
}

/// `text` as the inside of a string of a script, in quotes of any kind, in a page too.
fn script_escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '"' | '\'' | '`' | '$' | '<' | '>' | '&' | '/' | '\u{2028}' | '\u{2029}' => {
                push_unicode(&mut out, c);
            }
            c if c.is_control() => push_unicode(&mut out, c),
            c => out.push(c),
        }
    }
    out
}

/// `text` as the inside of a quoted field (RFC 4180, section 2).
fn csv_escape(text: &str) -> String {
    text.replace('"', "\"\"")
}

fn push_unicode(out: &mut String, c: char) {
    // What needs it has at most four digits.
    let _ = write!(out, "\\u{:04x}", u32::from(c));
}
