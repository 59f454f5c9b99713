//! The text of a key in listings is read back into the key.

use proptest::prelude::*;

use super::super::key_buffer::KeyBuffer;
use super::super::{Key, KeyTextError, MissingPart};
use super::{Ask, key};

const TWO: &[&str] = &[
    r#"http.request.headers["x-a"]"#,
    r#"http.request.headers["x-b"]"#,
];

fn bytes(key: &Key, ask: &Ask) -> Vec<u8> {
    let mut out = KeyBuffer::new();
    assert!(ask.facts(|facts| key.write(facts, &mut out)));
    out.to_vec()
}

fn list(key: &Key, bytes: &[u8]) -> String {
    key.list(bytes, &|secret| format!("h:{:016x}", secret.len()))
}

#[test]
fn parts_of_every_type_are_read_back() {
    let parts = [
        "ip.src",
        TWO[0],
        TWO[1],
        "http.request.timestamp.sec",
        "ssl",
    ];
    let key = key(&parts, MissingPart::Group);
    for value in [
        "python-requests/2.32",
        "two words",
        "",
        "-",
        "say \"hi\"",
        "ä…😀",
        "h:1",
    ] {
        let bytes = bytes(&key, &Ask::get("/").header("x-a", value));
        assert_eq!(key.read(&list(&key, &bytes)), Ok(bytes), "{value}");
    }
}

#[test]
fn the_parts_of_a_text_are_shown_without_quotes() {
    let key = key(&["ip.src", TWO[0], TWO[1]], MissingPart::Group);
    let text = list(
        &key,
        &bytes(&key, &Ask::get("/").header("x-b", "two words")),
    );
    let parts = key.shown_parts(&text);
    assert_eq!((parts[0].field, parts[0].is_address), ("ip.src", true));
    assert_eq!((&parts[1].value, parts[1].is_address), (&None, false));
    assert_eq!(parts[2].value.as_deref(), Some("two words"));
    let cut = text.get(..text.len() - 3).unwrap();
    assert_eq!(key.shown_parts(cut).len(), 2);
    assert!(key.shown_parts("").is_empty());
}

#[test]
fn only_text_that_could_mislead_is_quoted() {
    let key = key(&TWO[..1], MissingPart::Group);
    let shown = |value: &str| list(&key, &bytes(&key, &Ask::get("/").header("x-a", value)));
    assert_eq!(
        shown("t13d1516h2_8daaf6152771_b186095e22b6"),
        "t13d1516h2_8daaf6152771_b186095e22b6"
    );
    assert_eq!(shown("a b"), "\"a b\"");
    assert_eq!(shown("-"), "\"-\"");
    assert_eq!(shown(""), "\"\"");
    assert_eq!(shown("a\"b\\c\td"), r#""a\"b\\c\u0009d""#);
    assert_eq!(list(&key, &bytes(&key, &Ask::get("/"))), "-");
}

#[test]
fn an_address_stands_for_its_network() {
    let key = key(&["ip.src"], MissingPart::Group);
    let mut ask = Ask::get("/");
    ask.client = "203.0.113.42".parse().unwrap();
    let bytes = bytes(&key, &ask);
    assert_eq!(list(&key, &bytes), "203.0.113.0/24");
    for text in [
        "203.0.113.0/24",
        "203.0.113.99/24",
        "203.0.113.42",
        "::ffff:203.0.113.1",
    ] {
        assert_eq!(key.read(text).as_ref(), Ok(&bytes), "{text}");
    }
    for text in [
        "203.0.113.0/25",
        "203.0.113",
        "\"203.0.113.42\"",
        "example.com",
    ] {
        let error = key.read(text).unwrap_err().to_string();
        let expected = "ip.src must be an address, or a network of the length that the rule counts";
        assert_eq!(error, expected, "{text}");
    }
}

#[test]
fn a_rule_without_a_key_has_an_empty_text() {
    let key = Key::default();
    assert_eq!(list(&key, b""), "");
    assert_eq!(key.read(""), Ok(Vec::new()));
    let error = key.read("x").unwrap_err().to_string();
    let expected =
        "the key has 1 part, but the rule counts all requests together: its key is empty";
    assert_eq!(error, expected);
}

#[test]
fn a_secret_or_cut_part_cannot_be_read_back() {
    let parts = [r#"http.request.cookies["session"]"#, TWO[0]];
    let key = key(&parts, MissingPart::Group);
    let ask = Ask::get("/").header("cookie", "session=secret");
    let hashed = list(&key, &bytes(&key, &ask));
    assert!(hashed.starts_with("h:"));
    let secret = KeyTextError::Hashed(parts[0].to_owned());
    assert_eq!(key.read(&hashed), Err(secret.clone()));
    assert_eq!(key.read("secret value"), Err(secret));
    // A missing secret is known.
    let missing = bytes(&key, &Ask::get("/"));
    assert_eq!(key.read("- -"), Ok(missing));
    for long in ["b".repeat(300), "b b".repeat(300), "b".repeat(250) + "… c"] {
        let bytes = bytes(&key, &Ask::get("/").header("x-a", long));
        let text = list(&key, &bytes);
        assert!(text.len() <= 256);
        assert!(key.read(&text).is_err(), "{text}");
    }
    let cut = key.read("- aaa…").unwrap_err();
    assert_eq!(cut, KeyTextError::Cut(TWO[0].to_owned()));
}

#[test]
fn a_part_that_the_rule_requires_cannot_be_missing() {
    let key = key(&TWO[..1], MissingPart::Skip);
    assert!(matches!(key.read("-"), Err(KeyTextError::Value { .. })));
    assert!(key.read("\"-\"").is_ok());
}

proptest! {
    #[test]
    fn any_text_of_two_strings_is_read_back(a: String, b: String) {
        let key = key(TWO, MissingPart::Group);
        let mut raw = Vec::new();
        for value in [&a, &b] {
            prop_assume!(value.len() <= 256 && !value.contains(char::REPLACEMENT_CHARACTER));
            raw.push(1);
            raw.extend((value.len() as u32).to_le_bytes());
            raw.extend(value.bytes());
        }
        let text = key.describe(&raw, &|_| String::new());
        prop_assert_eq!(key.read(&text), Ok(raw));
    }

    #[test]
    fn no_text_of_a_listing_panics(text: String) {
        let _ = key(TWO, MissingPart::Group).read(&text);
    }
}
