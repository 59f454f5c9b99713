//! The mapping from a range of a decoded string back to the bytes of its literal.

use proptest::prelude::*;
use toml::de::DeTable;

use crate::config::{ConfigSource, Spanned, Text};

/// Returns the value of the first setting of a file.
fn first_value(source: &ConfigSource) -> Option<Text> {
    let root = DeTable::parse(&source.text).ok()?;
    let (_, value) = root.get_ref().iter().next()?;
    let text = value.get_ref().as_str()?.to_owned();
    Some(Spanned::new(text, value.span()))
}

/// Returns the text in the file for `part` of the value.
fn written(file: &str, part: &str) -> String {
    let source = ConfigSource::new("t.toml", file);
    let text = first_value(&source).unwrap();
    let start = text.value.find(part).unwrap();
    let span = text.inner(&source, start..start + part.len());
    source.text[span].to_owned()
}

#[test]
fn literal_strings_map_byte_by_byte() {
    assert_eq!(written(r"x = 'a \n pth'", "pth"), "pth");
    assert_eq!(written(r"x = 'ä \n pth'", r"\n"), r"\n");
    assert_eq!(written("x = '''a\n''pth'''", "''pth"), "''pth");
}

#[test]
fn the_first_newline_of_a_long_string_is_not_in_the_value() {
    assert_eq!(written("x = '''\npth\n'''", "pth"), "pth");
    assert_eq!(written("x = '''\r\npth\r\n'''", "pth"), "pth");
    assert_eq!(written("x = \"\"\"\npth\"\"\"", "pth"), "pth");
    assert_eq!(written("x = \"\"\"\r\na\r\npth\"\"\"", "pth"), "pth");
}

#[test]
fn escapes_count_as_what_they_mean() {
    assert_eq!(written(r#"x = "\"\\\t pth""#, "pth"), "pth");
    assert_eq!(written(r#"x = "\u00e4\U0001F600 pth""#, "pth"), "pth");
    assert_eq!(written(r#"x = "\x41\e pth""#, "pth"), "pth");
    assert_eq!(written(r#"x = "a \u00e4 b""#, "ä"), r"\u00e4");
    assert_eq!(written(r#"x = "path eq \"/x\"""#, "\"/x\""), r#"\"/x\""#);
}

#[test]
fn a_line_continuation_is_not_in_the_value() {
    assert_eq!(written("x = \"\"\"a \\\n   pth\"\"\"", "pth"), "pth");
    assert_eq!(
        written("x = \"\"\"a \\  \r\n\r\n \t pth\"\"\"", "pth"),
        "pth"
    );
    assert_eq!(written("x = \"\"\"\\\n  pth\"\"\"", "pth"), "pth");
}

#[test]
fn quotes_may_touch_the_closing_ones() {
    assert_eq!(written("x = \"\"\"a\"\"\"\"\"", "a\"\""), "a\"\"");
    assert_eq!(written("x = '''a'''''", "a''"), "a''");
}

#[test]
fn the_end_of_a_string_is_before_its_quote() {
    for (file, end) in [
        ("x = 'abc'", 8),
        ("x = \"abc\"", 8),
        ("x = '''abc'''", 10),
        ("x = ''", 5),
        ("x = \"\"\"\"\"\"", 7),
    ] {
        let source = ConfigSource::new("t.toml", file);
        let text = first_value(&source).unwrap();
        let len = text.value.len();
        assert_eq!(text.inner(&source, len..len), end..end, "{file}");
        assert_eq!(text.inner(&source, len + 7..len + 9), end..end, "{file}");
    }
}

/// Generates string bodies from pieces that are valid only in some literals; those that do not parse are skipped.
fn bodies() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[a-z ]{1,3}",
        Just("ä".to_owned()),
        Just("😀".to_owned()),
        Just("\\n".to_owned()),
        Just("\\\\".to_owned()),
        Just("\\\"".to_owned()),
        Just("\\u00e4".to_owned()),
        Just("\\x7e".to_owned()),
        Just("\\U0001F600".to_owned()),
        Just("\\\n  ".to_owned()),
        Just("\n".to_owned()),
        Just("\r\n".to_owned()),
    ];
    prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn every_character_is_found_where_it_was_written(
        body in bodies(),
        quote in prop::sample::select(vec!["'", "\"", "'''", "\"\"\""]),
    ) {
        let source = ConfigSource::new("t.toml", format!("# ä\nx = {quote}{body}{quote} # end"));
        if let Some(text) = first_value(&source) {
            for (at, c) in text.value.char_indices() {
                let span = text.inner(&source, at..at + c.len_utf8());
                let found = &source.text[span];
                prop_assert_eq!(decoded(found), c.to_string());
            }
        }
    }
}

/// Decodes a piece of a literal.
fn decoded(found: &str) -> String {
    if found.len() == 1 || !found.starts_with('\\') {
        return found.to_owned();
    }
    let source = ConfigSource::new("t.toml", format!("x = \"{found}\""));
    first_value(&source).unwrap().value
}
