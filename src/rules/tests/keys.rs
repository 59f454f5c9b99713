//! Whom a rule counts: different clients have different bytes, and people can read them.

use std::collections::HashMap;

use proptest::prelude::*;

use super::super::key_buffer::KeyBuffer;
use super::super::{Key, MissingPart};
use super::{Ask, key};

const TWO: &[&str] = &[
    r#"http.request.headers["x-a"]"#,
    r#"http.request.headers["x-b"]"#,
];

#[test]
fn an_address_key_part_is_its_network() {
    let key = key(&["ip.src"], MissingPart::Group);
    let from = |ip: &str| {
        let mut ask = Ask::get("/");
        ask.client = ip.parse().unwrap();
        bytes(&key, &ask).unwrap()
    };
    assert_eq!(from("203.0.113.1"), from("203.0.113.254"));
    assert_ne!(from("203.0.113.1"), from("203.0.114.1"));
    assert_eq!(from("2001:db8::1"), from("2001:db8::ffff:1"));
    assert_ne!(from("2001:db8::1"), from("2001:db8:0:1::1"));
    // The first four bytes of an IPv6 network are not an IPv4 one.
    assert_ne!(from("203.0.113.0"), from("cb00:7100::"));
}

#[test]
fn a_missing_part_an_empty_part_and_no_part_differ() {
    let one = key(&TWO[..1], MissingPart::Group);
    let missing = bytes(&one, &Ask::get("/"));
    let empty = bytes(&one, &Ask::get("/").header("x-a", ""));
    let nothing = bytes(&Key::default(), &Ask::get("/"));
    assert!(missing.is_some() && missing != empty && missing != nothing && empty != nothing);
    let skip = key(&TWO[..1], MissingPart::Skip);
    assert_eq!(bytes(&skip, &Ask::get("/")), None);
    assert_eq!(bytes(&skip, &Ask::get("/").header("x-a", "")), empty);
}

#[test]
fn ja3_and_ja4_keys_ignore_the_address() {
    for field in ["tls.ja3", "tls.ja4"] {
        let key = key(&[field], MissingPart::Group);
        let of = |ja3, client: [u8; 4]| {
            let mut ask = Ask::get("/");
            (ask.ja3, ask.client) = (ja3, client.into());
            bytes(&key, &ask)
        };
        let one = Some("cd08e31494f9531f560d64c695473da9");
        assert_eq!(of(one, [203, 0, 113, 1]), of(one, [198, 51, 100, 9]));
        let other = Some("0a08e31494f9531f560d64c695473da9");
        assert_ne!(of(one, [203, 0, 113, 1]), of(other, [203, 0, 113, 1]));
        assert_ne!(of(one, [203, 0, 113, 1]), of(None, [203, 0, 113, 1]));
    }
}

#[test]
fn long_values_are_shortened_in_a_key_and_still_differ() {
    let key = key(&TWO[..1], MissingPart::Group);
    let of = |value: String| bytes(&key, &Ask::get("/").header("x-a", value)).unwrap();
    let long = "a".repeat(5_000);
    assert!(of(long.clone()).len() < 128);
    assert_eq!(of(long.clone()), of(long.clone()));
    assert_ne!(of(long.clone()), of(format!("{long}b")));
    assert_ne!(of("a".repeat(256)), of("a".repeat(257)));
    assert_eq!(of("a".repeat(256)).len(), 261);
}

#[test]
fn a_number_from_a_secret_is_hashed() {
    let number = r#"lookup_json_integer(http.request.cookies["session"], "user")"#;
    let key = key(&[number, "len(http.request.uri.path)"], MissingPart::Group);
    let ask = Ask::get("/a").header("cookie", r#"session={"user":40961}"#);
    assert_eq!(describe(&key, &bytes(&key, &ask).unwrap()), "#5 2");
}

#[test]
fn a_displayed_key_is_readable_and_secrets_are_hashed() {
    let parts = [
        "ip.src",
        r#"http.request.headers["x-a"]"#,
        r#"http.request.headers["x-b"]"#,
        r#"http.request.cookies["session"]"#,
        "http.request.timestamp.sec",
        "ssl",
    ];
    let key = key(&parts, MissingPart::Group);
    let ask = Ask::get("/")
        .header("x-a", "say \"hi\"")
        .header("cookie", "session=secret");
    let shown = "203.0.113.0/24 \"say \\\"hi\\\"\" - #6 1700000040 false";
    assert_eq!(describe(&key, &bytes(&key, &ask).unwrap()), shown);
    let long = ask
        .header("x-b", "b".repeat(300))
        .header("cookie", format!("x=1; y={}", "z".repeat(300)));
    let shown = describe(&key, &bytes(&key, &long).unwrap());
    let expected = format!(" {}… ", "b".repeat(64));
    assert!(shown.contains(&expected), "{shown}");
}

#[test]
fn bytes_that_are_not_a_valid_key_are_shown_as_such() {
    let key = key(TWO, MissingPart::Group);
    for bytes in [
        &b""[..],
        &[9],
        &[1, 255, 255, 255, 255],
        &[1, 0, 0],
        &[6, 0],
    ] {
        assert!(describe(&key, bytes).ends_with('?'), "{bytes:?}");
    }
}

proptest! {
    #[test]
    fn two_different_pairs_never_share_a_key(
        pairs in prop::collection::vec((value(), value()), 2..40)
    ) {
        let key = key(TWO, MissingPart::Group);
        let mut seen = HashMap::new();
        for (a, b) in pairs {
            let mut ask = Ask::get("/");
            for (name, value) in [("x-a", &a), ("x-b", &b)] {
                if let Some(value) = value {
                    ask = ask.header(name, value.clone());
                }
            }
            let bytes = bytes(&key, &ask).unwrap();
            let pair = (a, b);
            let known = seen.entry(bytes).or_insert_with(|| pair.clone());
            prop_assert_eq!(&*known, &pair);
        }
    }
}

fn value() -> impl Strategy<Value = Option<String>> {
    prop_oneof![
        1 => Just(None),
        4 => "[ab]{0,3}".prop_map(Some),
        1 => (250usize..262).prop_map(|n| Some("a".repeat(n))),
    ]
}

fn bytes(key: &Key, ask: &Ask) -> Option<Vec<u8>> {
    let mut out = KeyBuffer::new();
    let whole = ask.facts(|facts| key.write(facts, &mut out));
    whole.then(|| out.to_vec())
}

fn describe(key: &Key, bytes: &[u8]) -> String {
    key.describe(bytes, &|secret| format!("#{}", secret.len()))
}
