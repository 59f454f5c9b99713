//! The location of a redirect: a template over the request's host, path and query.
//!
//! A client's input is escaped to visible ASCII, so no header can be split.

use http::HeaderValue;

use crate::facts::RequestHead;

/// A redirect's location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedirectTemplate {
    parts: Vec<RedirectPart>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum RedirectPart {
    Text(Box<str>),
    Host,
    Uri,
    Path,
    Query,
}

// === impl RedirectTemplate ===

impl RedirectTemplate {
    /// Parses a template such as `https://{host}{uri}`: `{host}` is the host without its port, `{uri}`
    /// the path with the query, `{path}` and `{query}` one of them. The error is a message for the user.
    pub fn parse(text: &str) -> Result<Self, String> {
        check(text)?;
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            push_text(&mut parts, before)?;
            let unclosed = || format!("a `{{` in `{text}` is not closed");
            let (name, after) = after.split_once('}').ok_or_else(unclosed)?;
            parts.push(placeholder(name)?);
            rest = after;
        }
        push_text(&mut parts, rest)?;
        Ok(Self { parts })
    }

    /// The location for a request. `None` if it needs the host and the request has none, which HTTP/1.0 allows.
    pub fn expand(&self, head: &RequestHead<'_>) -> Option<HeaderValue> {
        if head.host.is_empty() && self.parts.contains(&RedirectPart::Host) {
            return None;
        }
        let mut location = String::new();
        for part in &self.parts {
            match part {
                RedirectPart::Text(text) => location.push_str(text),
                RedirectPart::Host => push(&mut location, &head.host),
                RedirectPart::Uri => push(&mut location, absolute(&head.uri())),
                RedirectPart::Path => push(&mut location, absolute(&head.path)),
                RedirectPart::Query => push(&mut location, head.query.unwrap_or_default()),
            }
        }
        // Visible ASCII is always a valid value.
        HeaderValue::try_from(location).ok()
    }
}

/// nginx's variables and their equivalents here.
const VARIABLES: [(&str, &str); 6] = [
    ("$host", "{host}"),
    ("$http_host", "{host}"),
    ("$server_name", "{host}"),
    ("$request_uri", "{uri}"),
    ("$uri", "{path}"),
    ("$args", "{query}"),
];

fn check(text: &str) -> Result<(), String> {
    if let Some((variable, placeholder)) = VARIABLES.iter().find(|(v, _)| text.contains(v)) {
        return Err(format!(
            "`{variable}` would be sent unchanged; write `{placeholder}`"
        ));
    }
    let starts = ["http://", "https://", "/", "{uri}", "{path}"];
    if text.starts_with("//") || !starts.iter().any(|start| text.starts_with(start)) {
        return Err(format!(
            "`{text}` is not a location; it starts with `https://`, `http://` or `/`"
        ));
    }
    if text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Ok(());
    }
    let shown = text.escape_debug();
    Err(format!(
        "`{shown}` is not a location; it can only contain visible ASCII characters"
    ))
}

fn push_text(parts: &mut Vec<RedirectPart>, text: &str) -> Result<(), String> {
    if text.contains('}') {
        return Err(format!("`}}` in `{text}` has no opening `{{`"));
    }
    if !text.is_empty() {
        parts.push(RedirectPart::Text(text.into()));
    }
    Ok(())
}

fn placeholder(name: &str) -> Result<RedirectPart, String> {
    match name {
        "host" => Ok(RedirectPart::Host),
        "uri" => Ok(RedirectPart::Uri),
        "path" => Ok(RedirectPart::Path),
        "query" => Ok(RedirectPart::Query),
        _ => Err(format!(
            "unknown placeholder `{{{name}}}`; there are `{{host}}`, `{{uri}}`, `{{path}}` and `{{query}}`"
        )),
    }
}

/// Returns `/` for `OPTIONS *`, which has no path.
fn absolute(target: &str) -> &str {
    if target == "*" { "/" } else { target }
}

fn push(location: &mut String, value: &str) {
    for byte in value.bytes() {
        if byte.is_ascii_graphic() {
            location.push(char::from(byte))
        } else {
            location.push_str(&format!("%{byte:02X}"))
        }
    }
}
