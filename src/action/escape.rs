//! Escapes values for the bodies of configured responses.

use http::HeaderValue;

/// Returns the function that escapes a value for a body of this `content-type`: within quotes, or as an
/// element's text. An unknown type is plain text.
pub(super) fn escape_for(content_type: &HeaderValue) -> fn(&str) -> String {
    let media = media_type(content_type);
    let has = |word: &str| media.contains(word);
    if has("json") {
        json_escape
    } else if has("html") || has("xml") {
        html_escape
    } else if has("javascript") || has("ecmascript") {
        script_escape
    } else if media == "text/csv" {
        // The inside of a quoted field (RFC 4180, section 2).
        |text| text.replace('"', "\"\"")
    } else {
        str::to_owned
    }
}

/// Returns the media type in lower case without parameters: `text/html` of `Text/HTML; charset=utf-8`.
pub(super) fn media_type(content_type: &HeaderValue) -> String {
    let text = String::from_utf8_lossy(content_type.as_bytes());
    let media = text.split(';').next().unwrap_or_default();
    media.trim().to_ascii_lowercase()
}

/// Escapes `text` for the inside of a JSON string.
pub(super) fn json_escape(text: &str) -> String {
    escape(text, |c| match c {
        '"' => Some("\\\"".to_owned()),
        '\\' => Some("\\\\".to_owned()),
        c => c.is_control().then(|| unicode(c)),
    })
}

/// Escapes `text` for HTML or XML text or a quoted attribute. Removes control characters, which XML does not
/// allow.
pub(super) fn html_escape(text: &str) -> String {
    escape(text, |c| match c {
        '&' => Some("&amp;".to_owned()),
        '<' => Some("&lt;".to_owned()),
        '>' => Some("&gt;".to_owned()),
        '"' => Some("&quot;".to_owned()),
        '\'' => Some("&#39;".to_owned()),
        '\n' | '\t' => None,
        c => c.is_control().then(String::new),
    })
}

/// Escapes `text` for the inside of a script string, in quotes of any kind, also within a page.
fn script_escape(text: &str) -> String {
    escape(text, |c| match c {
        '\\' => Some("\\\\".to_owned()),
        '"' | '\'' | '`' | '$' | '<' | '>' | '&' | '/' | '\u{2028}' | '\u{2029}' => {
            Some(unicode(c))
        }
        c => c.is_control().then(|| unicode(c)),
    })
}

/// Replaces the characters for which `replacement` returns a text.
fn escape(text: &str, replacement: impl Fn(char) -> Option<String>) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match replacement(c) {
            Some(replaced) => out.push_str(&replaced),
            None => out.push(c),
        }
    }
    out
}

/// Formats a character as `\uXXXX`; the escaped characters have at most four digits.
fn unicode(c: char) -> String {
    format!("\\u{:04x}", u32::from(c))
}
