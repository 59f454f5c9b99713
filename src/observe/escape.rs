//! Bytes of strangers made safe to print. What comes out is one line of valid UTF-8 without
//! control characters and without characters that reorder or hide text.

/// How a character that cannot stand as it is gets written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    Json,
    Text,
}

/// Appends a JSON string, quotes included. A byte that is no UTF-8 becomes the four characters
/// `\xHH`: JSON has no escape for bytes.
pub(super) fn json(out: &mut Vec<u8>, value: &[u8]) {
    out.push(b'"');
    escaped(out, value, Style::Json);
    out.push(b'"');
}

/// Appends a value for people: bare where it is one plain word, else quoted.
pub(super) fn word(out: &mut Vec<u8>, value: &[u8]) {
    let bare = !value.is_empty()
        && value
            .iter()
            .all(|b| b.is_ascii_graphic() && !matches!(b, b'"' | b'\\' | b'='));
    if bare {
        out.extend_from_slice(value);
    } else {
        quoted(out, value);
    }
}

/// Appends a value for people between quotes.
pub(super) fn quoted(out: &mut Vec<u8>, value: &[u8]) {
    out.push(b'"');
    text(out, value);
    out.push(b'"');
}

/// Appends a value for people without quotes.
pub(super) fn text(out: &mut Vec<u8>, value: &[u8]) {
    escaped(out, value, Style::Text);
}

fn escaped(out: &mut Vec<u8>, value: &[u8], style: Style) {
    if value.iter().all(|b| is_plain(*b)) {
        return out.extend_from_slice(value);
    }
    for chunk in value.utf8_chunks() {
        for c in chunk.valid().chars() {
            one(out, c, style);
        }
        for b in chunk.invalid() {
            byte(out, *b, style);
        }
    }
}

const fn is_plain(b: u8) -> bool {
    matches!(b, 0x20..=0x7e) && b != b'"' && b != b'\\'
}

fn one(out: &mut Vec<u8>, c: char, style: Style) {
    match c {
        '"' => out.extend_from_slice(b"\\\""),
        '\\' => out.extend_from_slice(b"\\\\"),
        '\n' => out.extend_from_slice(b"\\n"),
        '\r' => out.extend_from_slice(b"\\r"),
        '\t' => out.extend_from_slice(b"\\t"),
        c if is_unsafe(c) => code(out, u32::from(c), style),
        c => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
    }
}

/// Control characters, line separators, and the format characters that can make a line look like
/// another one. All lie in the basic plane, so one JSON escape is enough.
fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
        || matches!(c, '\u{61c}' | '\u{feff}')
}

fn code(out: &mut Vec<u8>, code: u32, style: Style) {
    let (open, close): (&[u8], &[u8]) = match style {
        Style::Json => (b"\\u", b""),
        Style::Text => (b"\\u{", b"}"),
    };
    out.extend_from_slice(open);
    out.extend([12, 8, 4, 0].map(|shift| hex(code >> shift)));
    out.extend_from_slice(close);
}

fn byte(out: &mut Vec<u8>, b: u8, style: Style) {
    if style == Style::Json {
        out.push(b'\\');
    }
    out.extend_from_slice(b"\\x");
    out.push(hex(u32::from(b) >> 4));
    out.push(hex(u32::from(b)));
}

/// The lowest four bits as a hexadecimal digit.
pub(super) const fn hex(nibble: u32) -> u8 {
    let nibble = (nibble & 15) as u8;
    if nibble < 10 {
        b'0' + nibble
    } else {
        b'a' + nibble - 10
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn made(write: fn(&mut Vec<u8>, &[u8]), value: &[u8]) -> String {
        let mut out = Vec::new();
        write(&mut out, value);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn json_shows_what_cannot_be_printed() {
        assert_eq!(made(json, b"a\"b\\c"), r#""a\"b\\c""#);
        assert_eq!(
            made(json, b"\n\r\t\0\x1b\x7f"),
            r#""\n\r\t\u0000\u001b\u007f""#
        );
        assert_eq!(
            made(json, "é\u{202e}\u{85}😀".as_bytes()),
            "\"é\\u202e\\u0085😀\""
        );
        assert_eq!(made(json, b"a\xffz"), r#""a\\xffz""#);
    }

    #[test]
    fn words_are_bare_only_when_nothing_could_be_mistaken() {
        assert_eq!(made(word, b"203.0.113.7"), "203.0.113.7");
        assert_eq!(made(word, b""), "\"\"");
        assert_eq!(made(word, b"a b"), "\"a b\"");
        assert_eq!(made(word, b"a=b"), "\"a=b\"");
        assert_eq!(made(word, b"x\ny\xff\x1b"), r#""x\ny\xff\u{001b}""#);
    }

    proptest! {
        #[test]
        fn valid_text_comes_back_from_json(value in any::<String>()) {
            let back: String = serde_json::from_str(&made(json, value.as_bytes())).unwrap();
            prop_assert_eq!(back, value);
        }

        #[test]
        fn any_bytes_make_one_safe_line(value in any::<Vec<u8>>()) {
            for line in [made(json, &value), made(word, &value), made(text, &value)] {
                prop_assert!(!line.chars().any(is_unsafe));
            }
            let parsed: serde_json::Value = serde_json::from_str(&made(json, &value)).unwrap();
            prop_assert!(parsed.is_string());
        }
    }
}
