//! Any body as the form that a page sends again: nothing ends an attribute, and the fields stay what they are.

use std::borrow::Cow;

use lockgate::action::hidden_inputs;
use lockgate::facts::query;

/// Takes the input for an urlencoded body.
pub fn form_echo(data: &[u8]) {
    let Some(html) = hidden_inputs(data) else {
        return;
    };
    let body = std::str::from_utf8(data).expect("only text is repeated");
    let fields = query::parse(body.as_bytes());
    assert!(fields.len() <= 256);
    assert_eq!(html.lines().count(), fields.len());
    for (line, (name, value)) in html.lines().zip(&fields) {
        let inner = line.strip_prefix("<input type=\"hidden\" name=\"");
        let inner = inner
            .and_then(|inner| inner.strip_suffix("\">"))
            .expect("an input");
        let (shown_name, shown_value) = inner.split_once("\" value=\"").expect("a value");
        assert_eq!(unescaped(shown_name).as_bytes(), &**name);
        assert_eq!(unescaped(shown_value).as_bytes(), &**value);
    }
}

/// Reads an attribute as a browser does.
fn unescaped(text: &str) -> Cow<'_, str> {
    assert!(
        !text.contains(['<', '>', '"', '\'', '\r', '\t', '\0']),
        "{text:?}"
    );
    let pairs = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#39;", "'"),
        ("&#13;", "\r"),
        ("&#10;", "\n"),
        ("&#9;", "\t"),
        // Last, so that an escaped reference stays text.
        ("&amp;", "&"),
    ];
    let decode = |text: String, (from, to): (&str, &str)| text.replace(from, to);
    Cow::Owned(pairs.into_iter().fold(text.to_owned(), decode))
}
