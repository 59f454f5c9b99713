//! Escaping of untrusted bytes.

use super::*;
use proptest::prelude::*;

fn made(write: fn(&mut Vec<u8>, &[u8]), value: &[u8]) -> String {
    let mut out = Vec::new();
    write(&mut out, value);
    String::from_utf8(out).unwrap()
}

#[test]
fn json_escapes_unprintable_bytes() {
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
fn values_are_unquoted_only_if_unambiguous() {
    assert_eq!(made(word, b"203.0.113.7"), "203.0.113.7");
    assert_eq!(made(word, b""), "\"\"");
    assert_eq!(made(word, b"a b"), "\"a b\"");
    assert_eq!(made(word, b"a=b"), "\"a=b\"");
    assert_eq!(made(word, b"x\ny\xff\x1b"), r#""x\ny\xff\u{001b}""#);
}

proptest! {
    #[test]
    fn valid_text_survives_a_json_round_trip(value in any::<String>()) {
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
