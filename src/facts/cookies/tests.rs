//! Each rule of cookie parsing.

use http::HeaderValue;
use proptest::prelude::*;

use super::*;

fn cookies(lines: &[&[u8]]) -> Vec<(String, String)> {
    let mut headers = HeaderMap::new();
    for line in lines {
        headers.append(COOKIE, HeaderValue::from_bytes(line).unwrap());
    }
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let pairs = parse(&headers);
    pairs.iter().map(|(n, v)| (text(n), text(v))).collect()
}

fn one(line: &str, expected: &[(&str, &str)]) {
    let found = cookies(&[line.as_bytes()]);
    let found: Vec<_> = found.iter().map(|(n, v)| (&**n, &**v)).collect();
    assert_eq!(found, expected, "{line}");
}

#[test]
fn edge_cases_are_parsed_as_specified() {
    one("a=1; b=2", &[("a", "1"), ("b", "2")]);
    one("a=1;b=2", &[("a", "1"), ("b", "2")]);
    one("a=1, b=2", &[("a", "1, b=2")]);
    one("  a\t=  1 ;b = 2", &[("a", "1"), ("b", "2")]);
    one("a=1; a=2", &[("a", "1"), ("a", "2")]);
    one("A=1; a=2", &[("A", "1"), ("a", "2")]);
    one("a%62=1", &[("a%62", "1")]);
    one("a=%31+x", &[("a", "1+x")]);
    one("a=%3B%3d", &[("a", ";=")]);
    one("a=%zz%4", &[("a", "%zz%4")]);
    one("a=%2541", &[("a", "%41")]);
    one("a=\"1\"", &[("a", "1")]);
    one("a=%221%22", &[("a", "1")]);
    one("a=\"%31\"", &[("a", "1")]);
    one("a=\"1", &[("a", "\"1")]);
    one("a=\"", &[("a", "\"")]);
    one("a=\"\"", &[("a", "")]);
    one("a=\"\\061\\\"\\\\\\x\\9\"", &[("a", "1\"\\x9")]);
    one("a=\"1\\\"", &[("a", "1\\")]);
    one("a=\\061", &[("a", "\\061")]);
    one("$Version=1; a=1", &[("$Version", "1"), ("a", "1")]);
    one("a=\"1;2\"", &[("a", "\"1"), ("2\"", "")]);
    one("a=b=c", &[("a", "b=c")]);
    one("a", &[("a", "")]);
    one("a=", &[("a", "")]);
    one("=a", &[("", "a")]);
    one("; ;;a=1;", &[("a", "1")]);
    one("", &[]);
}

#[test]
fn latin1_spaces_are_trimmed_and_utf8_is_kept() {
    for (line, expected) in [
        (&b"a=1\xa0"[..], &b"1"[..]),
        (b"a=\xa0\x85 1 \xa0 \x85", b"1"),
        (b"a=1\xa02", b"1\xa02"),
        ("a=voilà".as_bytes(), "voilà".as_bytes()),
        (b"a=voil\xc3\xa0\xa0", "voilà".as_bytes()),
        ("a=Å".as_bytes(), "Å".as_bytes()),
        (b"a=\xa0", b""),
    ] {
        let headers = HeaderMap::from_iter([(COOKIE, HeaderValue::from_bytes(line).unwrap())]);
        assert_eq!(&*parse(&headers)[0].1, expected, "{line:?}");
    }
}

#[test]
fn a_plain_value_is_borrowed() {
    let headers = HeaderMap::from_iter([(COOKIE, HeaderValue::from_static("a=1; b=\"2\""))]);
    let borrowed = |(_, value): &Cookie<'_>| matches!(value, Cow::Borrowed(_));
    assert!(parse(&headers).iter().all(borrowed));
}

#[test]
fn several_cookie_headers_are_one_list() {
    let found = cookies(&[b"a=1; b=2", b"a=3"]);
    assert_eq!(found.len(), 3);
    assert_eq!(found[2], ("a".into(), "3".into()));
}

proptest! {
    #[test]
    fn find_agrees_with_parse(
        lines in prop::collection::vec("([ab=; \"%]|%61|%3b){0,12}", 0..3),
        nth in 0..3usize,
    ) {
        let line = |line: &String| (COOKIE, HeaderValue::from_str(line).unwrap());
        let mut headers = HeaderMap::new();
        for (name, line) in lines.iter().map(line) {
            headers.append(name, line);
        }
        let all = parse(&headers);
        for name in all.iter().map(|(name, _)| *name).chain([&b"a"[..]]) {
            let mut named = all.iter().filter(|(found, _)| *found == name);
            let expected = named.nth(nth).map(|(_, value)| &**value);
            let found = find(&headers, name, nth);
            prop_assert_eq!(found.as_deref(), expected);
        }
    }

    #[test]
    fn any_cookie_header_is_parsed(line in "[ -~\t]{0,60}") {
        for (name, _) in cookies(&[line.as_bytes()]) {
            prop_assert!(!name.contains([';', '=']));
        }
    }
}
