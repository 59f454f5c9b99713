//! JSON, Base64, tokens and replacements, compared with slower implementations.

use std::borrow::Cow;

use proptest::prelude::*;
use serde_json::Value;

use super::super::json::{self, JsonStep};
use super::super::replace::{ReplaceCall, ReplacePattern};
use super::super::transform::{claim, decode_base64};
use super::super::wildcard::WildcardPattern;
use super::naive;

fn name(name: &str) -> JsonStep {
    JsonStep::Name(name.as_bytes().into())
}

fn string(text: &str, path: &[JsonStep]) -> Option<String> {
    let found = json::find(text.as_bytes(), path)?.text()?;
    Some(String::from_utf8(found.into_owned()).unwrap())
}

fn int(text: &str, path: &[JsonStep]) -> Option<i64> {
    json::find(text.as_bytes(), path)?.int()
}

#[test]
fn strings_without_escapes_are_borrowed() {
    let text = br#"{"a":"plain","b":"\n"}"#;
    let found = |key: &str| json::find(text, &[name(key)]).unwrap().text().unwrap();
    assert!(matches!(found("a"), Cow::Borrowed(b"plain")));
    assert!(matches!(found("b"), Cow::Owned(_)));
}

#[test]
fn escapes_are_decoded() {
    for (body, expected) in [
        (r#"\"\\\/\b\f\n\r\t"#, Some("\"\\/\u{8}\u{c}\n\r\t")),
        (r"\u0041\u00e9\u2601", Some("Aé☁")),
        (r"\ud83d\ude00", Some("😀")),
        (r"\uD83D\uDE00!", Some("😀!")),
        (r"\ud83d", None),
        (r"\ude00\ud83d", None),
        (r"\ud83dx", None),
        (r"\ud83d\n", None),
        (r"\ud83d\u0041", None),
        (r"\u00", None),
        (r"\u00g0", None),
        (r"\x41", None),
        (r"\", None),
        ("\u{1}", None),
        ("é😀", Some("é😀")),
        ("", Some("")),
    ] {
        assert_eq!(
            string(&format!("[\"{body}\"]"), &[JsonStep::At(0)]).as_deref(),
            expected,
            "{body}"
        );
    }
}

#[test]
fn names_are_compared_after_decoding_escapes() {
    assert_eq!(int(r#"{"\u0061":1}"#, &[name("a")]), Some(1));
    assert_eq!(int(r#"{"a\\":1}"#, &[name("a\\")]), Some(1));
    assert_eq!(int(r#"{"\ud83d":1,"b":2}"#, &[name("b")]), Some(2));
    // Another parser may read the other one.
    assert_eq!(int(r#"{"a":1,"\u0061":2}"#, &[name("a")]), None);
    assert_eq!(int(r#"{"a":1,"a":2,"b":3}"#, &[name("b")]), Some(3));
}

#[test]
fn only_plain_integers_are_integers() {
    for (text, expected) in [
        ("0", Some(0)),
        ("-0", Some(0)),
        ("-234", Some(-234)),
        (" 7 ", Some(7)),
        ("9223372036854775807", Some(i64::MAX)),
        ("-9223372036854775808", Some(i64::MIN)),
        ("9223372036854775808", None),
        ("42.0", None),
        ("1e3", None),
        ("01", None),
        ("+1", None),
        ("-", None),
        ("", None),
        ("\"1\"", None),
        ("true", None),
    ] {
        assert_eq!(int(text, &[]), expected, "{text}");
    }
}

#[test]
fn hostile_documents_are_missing_and_use_no_stack() {
    let deep = |count| "[".repeat(count) + "1" + &"]".repeat(count);
    assert_eq!(int(&deep(64), &vec![JsonStep::At(0); 64]), Some(1));
    assert_eq!(int(&deep(65), &vec![JsonStep::At(0); 65]), None);
    assert_eq!(int(&deep(100_000), &[]), None);
    assert_eq!(int(&"[".repeat(1_000_000), &[JsonStep::At(0)]), None);
    assert_eq!(int(&"{\"a\":".repeat(1000), &[name("a")]), None);
    assert_eq!(json::find(b"\xef\xbb\xbf1", &[]), None);
    assert_eq!(json::find(b"\"\xff\"", &[]), None);
    for text in [
        "{",
        "[1",
        "{\"a\"",
        "{\"a\":",
        "{\"a\":1",
        "{\"a\" 1}",
        "[1 2]",
        "[,]",
        "{,}",
        "[1]]",
        "{1:2}",
        "nul",
        "tru e",
        "\"",
        "[}",
        "{]",
    ] {
        assert_eq!(json::find(text.as_bytes(), &[]), None, "{text}");
    }
}

#[test]
fn every_base64_variant_is_decoded() {
    for (text, expected) in [
        ("", Some(&b""[..])),
        ("YQ==", Some(b"a")),
        ("YQ", Some(b"a")),
        ("YWI=", Some(b"ab")),
        ("YWI", Some(b"ab")),
        ("YWJj", Some(b"abc")),
        ("-_-_", Some(b"\xfb\xff\xbf")),
        ("+/+/", Some(b"\xfb\xff\xbf")),
        ("Y", None),
        ("YQ=", None),
        ("YQ===", None),
        ("=", None),
        ("====", None),
        ("YQ==YQ==", None),
        ("Y Q=", None),
        ("YQ\n", None),
        ("é", None),
    ] {
        assert_eq!(
            decode_base64(text.as_bytes()).as_deref(),
            expected,
            "{text}"
        );
    }
}

#[test]
fn tokens_have_three_parts_and_a_maximum_length() {
    let sub = [name("sub")];
    // {"sub":"u"}
    let body = "eyJzdWIiOiJ1In0";
    let read = |token: &str| claim(token.as_bytes(), &sub);
    assert_eq!(read(&format!("e30.{body}.sig")).as_deref(), Some(&b"u"[..]));
    assert_eq!(read(&format!("e30.{body}.")).as_deref(), Some(&b"u"[..]));
    assert_eq!(
        read(&format!("BEARER   e30.{body}.sig")).as_deref(),
        Some(&b"u"[..])
    );
    assert_eq!(read(&format!("Basic e30.{body}.sig")), Some(b"u".to_vec()));
    assert_eq!(read(&format!("e30.{body}")), None);
    assert_eq!(read(&format!("e30.{body}.a.b")), None);
    assert_eq!(read(body), None);
    assert_eq!(read(""), None);
    assert_eq!(read("Bearer "), None);
    let long = format!("e30.{body}.{}", "a".repeat(8192 - body.len() - 5));
    assert_eq!(long.len(), 8192);
    assert_eq!(read(&long).as_deref(), Some(&b"u"[..]));
    assert_eq!(read(&format!("Bearer {long}")).as_deref(), Some(&b"u"[..]));
    assert_eq!(read(&format!("{long}a")), None);
}

#[test]
fn a_replacement_has_a_maximum_length() {
    let replace = |pattern: &str, with: &str| {
        let pattern =
            ReplacePattern::Wildcard(WildcardPattern::new(pattern.as_bytes(), true).unwrap());
        ReplaceCall::new(pattern, with.as_bytes()).unwrap()
    };
    let eight = replace("*", &"${1}".repeat(8));
    let fits = vec![b'a'; 8192];
    assert_eq!(eight.apply(Cow::Borrowed(&fits)).unwrap().len(), 65536);
    let longer = vec![b'a'; 8193];
    assert_eq!(eight.apply(Cow::Borrowed(&longer)), None);
    let unchanged = replace("b*", "x");
    assert!(matches!(
        unchanged.apply(Cow::Borrowed(&longer)),
        Some(Cow::Borrowed(_))
    ));
}

fn document() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3i64..3).prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[ab\"\\\\\\n\u{e9}\u{1F600}]{0,4}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[ab\"]{0,2}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn path() -> impl Strategy<Value = Vec<JsonStep>> {
    let step = prop_oneof![
        "[ab\"]{0,2}".prop_map(|text| name(&text)),
        (0usize..4).prop_map(JsonStep::At),
    ];
    prop::collection::vec(step, 0..4)
}

proptest! {
    #[test]
    fn documents_are_read_as_serde_reads_them(value in document(), path in path(), pretty: bool) {
        let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) };
        let text = text.unwrap();
        prop_assert_eq!(string(&text, &path), naive::json_text(&text, &path));
        prop_assert_eq!(int(&text, &path), naive::json_int(&text, &path));
    }

    #[test]
    fn any_text_is_json_only_if_serde_accepts_it(text in "[\\[\\]{},:\"0-9eE.+\\-a-ftrulns \\\\]{0,12}") {
        let ours = json::find(text.as_bytes(), &[]).is_some();
        let theirs = serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok();
        prop_assert_eq!(ours, theirs, "{}", text);
    }

    #[test]
    fn base64_agrees_with_a_bitwise_decoder(bytes in prop::collection::vec(any::<u8>(), 0..20), form in 0..4) {
        let text = naive::encode(&bytes, form & 1 == 1, form & 2 == 2);
        prop_assert_eq!(decode_base64(text.as_bytes()), Some(bytes));
    }

    #[test]
    fn no_bytes_cause_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..40), path in path()) {
        let _ = decode_base64(&bytes);
        let _ = json::find(&bytes, &path).map(|raw| (raw.text(), raw.int(), raw.plain()));
        let _ = claim(&bytes, &path);
    }
}
