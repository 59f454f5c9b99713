//! Hosts in all their spellings.

use std::borrow::Cow;

use proptest::prelude::*;

use super::parse;

const ACCEPTED: &[(&str, &str, Option<u16>)] = &[
    ("example.com", "example.com", None),
    ("EXAMPLE.com", "example.com", None),
    ("example.com.", "example.com", None),
    ("example.com:443", "example.com", None),
    ("example.com.:443", "example.com", None),
    ("Example.Com.:8443", "example.com", Some(8443)),
    ("example.com:80", "example.com", Some(80)),
    ("example.com:", "example.com", None),
    ("example.com:0443", "example.com", None),
    ("example.com:65535", "example.com", Some(65535)),
    ("localhost", "localhost", None),
    ("localhost:9000", "localhost", Some(9000)),
    ("a_b.example.com", "a_b.example.com", None),
    ("xn--bcher-kva.example", "xn--bcher-kva.example", None),
    ("a-b", "a-b", None),
    ("1a", "1a", None),
    ("1.example", "1.example", None),
    ("192.0.2.1", "192.0.2.1", None),
    ("192.0.2.1.", "192.0.2.1", None),
    ("192.0.2.1:8080", "192.0.2.1", Some(8080)),
    ("[::1]", "[::1]", None),
    ("[::1]:443", "[::1]", None),
    ("[2001:DB8::0:1]:8443", "[2001:db8::1]", Some(8443)),
    ("[2001:db8:0:0:0:0:0:1]", "[2001:db8::1]", None),
    ("[::ffff:192.0.2.1]", "[::ffff:192.0.2.1]", None),
];

const REFUSED: &[&str] = &[
    "",
    ".",
    "..",
    ":443",
    ".example.com",
    "example..com",
    "example.com..",
    "user@example.com",
    "user:pass@example.com",
    "example.com:port",
    "example.com:+80",
    "example.com:-1",
    "example.com:65536",
    "example.com:000443",
    "example.com:0",
    "example.com:80:80",
    "example.com,evil.com",
    "example.com evil.com",
    " example.com",
    "example.com ",
    "example.com/",
    "example.com/path",
    "example.com?x",
    "example.com#x",
    "ex%61mple.com",
    "ex\u{e4}mple.com",
    "*.example.com",
    "exam\0ple.com",
    "exam\tple.com",
    "127.1",
    "1.2.3.4.5",
    "256.1.1.1",
    "01.2.3.4",
    "2130706433",
    "0x7f.1",
    "0x7f000001",
    "a.0x1F",
    "::1",
    "2001:db8::1",
    "[::1",
    "::1]",
    "[]",
    "[::1]a",
    "[::1]:a",
    "[fe80::1%25eth0]",
    "[192.0.2.1]",
    "[v1.a]",
    "[[::1]]",
];

#[test]
fn hosts_have_one_normal_form() {
    for (text, name, port) in ACCEPTED {
        let host = parse(text, 443).unwrap_or_else(|| panic!("{text} refused"));
        assert_eq!((&*host.name, host.port), (*name, *port), "{text}");
    }
}

#[test]
fn invalid_hosts_are_refused() {
    for text in REFUSED {
        assert_eq!(parse(text, 443), None, "{text:?}");
    }
    let long = "a.".repeat(127);
    assert_eq!(parse(&format!("{long}a"), 443), None);
    assert!(parse(&long, 443).is_some());
}

#[test]
fn the_default_port_depends_on_the_transport() {
    assert_eq!(parse("a:80", 80).unwrap().port, None);
    assert_eq!(parse("a:443", 80).unwrap().port, Some(443));
}

#[test]
fn a_normal_name_is_borrowed() {
    let host = parse("example.com:443", 443).unwrap();
    assert!(matches!(host.name, Cow::Borrowed(_)));
}

proptest! {
    #[test]
    fn normalizing_twice_changes_nothing(text in "[a-zA-Z0-9._:\\[\\]@-]{0,20}|\\PC*") {
        if let Some(host) = parse(&text, 443) {
            prop_assert!(!host.name.bytes().any(|b| b.is_ascii_uppercase()));
            let again = parse(&host.name, 443).map(|h| h.name.into_owned());
            prop_assert_eq!(again.as_deref(), Some(&*host.name));
        }
    }
}

#[test]
fn name_and_port_have_one_spelling() {
    for text in ["a.com:8443", "A.com:8443", "a.com.:8443", "a.com:08443"] {
        let host = parse(text, 443).unwrap();
        assert_eq!(host.with_port.as_deref(), Some("a.com:8443"), "{text}");
    }
    let v6 = parse("[0:0::1]:81", 443).unwrap();
    assert_eq!(v6.with_port.as_deref(), Some("[::1]:81"));
    assert_eq!(parse("a.com:443", 443).unwrap().with_port, None);
}
