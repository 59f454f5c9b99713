//! Repeats the fields of a submitted form as hidden inputs, so that a page can send the form again.
//!
//! The fields are foreign text inside a page. Every character that could end an attribute is escaped, and a page that
//! repeats them allows no script but its own.

use crate::facts::query;

/// The most fields of a form that is repeated.
const MAX_FIELDS: usize = 256;

/// Returns hidden inputs for the fields of an urlencoded form, in order and with duplicates. `None` if a name or a value
/// is not UTF-8 or has a NUL, if a name is empty, or if there are more than 256 fields.
pub fn hidden_inputs(body: &[u8]) -> Option<String> {
    std::str::from_utf8(body).ok()?;
    let fields = query::parse(body);
    // Browsers do not send a field without a name.
    let is_nameless = fields.iter().any(|(name, _)| name.is_empty());
    if is_nameless || fields.len() > MAX_FIELDS {
        return None;
    }
    let mut inputs = String::with_capacity(2 * body.len());
    for (name, value) in &fields {
        inputs.push_str("<input type=\"hidden\" name=\"");
        push_escaped(&mut inputs, name)?;
        inputs.push_str("\" value=\"");
        push_escaped(&mut inputs, value)?;
        inputs.push_str("\">\n");
    }
    Some(inputs)
}

/// Appends `text` as the value of an attribute. `None` if it is not UTF-8 or has a NUL.
pub(super) fn push_escaped(html: &mut String, text: &[u8]) -> Option<()> {
    for character in std::str::from_utf8(text).ok()?.chars() {
        match character {
            '\0' => return None,
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            '\'' => html.push_str("&#39;"),
            // A parser would normalize these as line ends.
            '\r' => html.push_str("&#13;"),
            '\n' => html.push_str("&#10;"),
            '\t' => html.push_str("&#9;"),
            other => html.push(other),
        }
    }
    Some(())
}
