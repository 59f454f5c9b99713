//! Cookies as a rule sees them: split in one way, so that no spelling dodges a key.
//!
//! - Several `Cookie` lines (HTTP/2 splits them) are one list, in order.
//! - `;` alone separates; a `,` is data.
//! - Spaces and tabs around names and values are cut.
//! - Names keep their case and are not percent-decoded, values too: servers differ only in what
//!   they make of them, not in which bytes they are. Quotes are kept.
//! - The first `=` ends the name. Without one, all of it is the name and the value is empty.
//! - A name that comes twice has two values: `[0]` is the first, `[-1]` the last.
//! - Nothing between two `;` is no cookie.

use http::HeaderMap;
use http::header::COOKIE;

/// A name and its value.
pub type Cookie<'r> = (&'r [u8], &'r [u8]);

/// All cookies of a request, in order.
pub fn parse(headers: &HeaderMap) -> Vec<Cookie<'_>> {
    let lines = headers.get_all(COOKIE).iter();
    lines
        .flat_map(|line| line.as_bytes().split(|byte| *byte == b';'))
        .filter_map(pair)
        .collect()
}

fn pair(text: &[u8]) -> Option<Cookie<'_>> {
    let text = trim(text);
    if text.is_empty() {
        return None;
    }
    let end = text.iter().position(|byte| *byte == b'=');
    let (name, value) = text.split_at_checked(end.unwrap_or(text.len()))?;
    Some((trim(name), trim(value.strip_prefix(b"=").unwrap_or(value))))
}

fn trim(text: &[u8]) -> &[u8] {
    text.trim_ascii()
}

#[cfg(test)]
mod tests {
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
    fn each_decision() {
        one("a=1; b=2", &[("a", "1"), ("b", "2")]);
        one("a=1;b=2", &[("a", "1"), ("b", "2")]);
        one("a=1, b=2", &[("a", "1, b=2")]);
        one("  a\t=  1 ;b = 2", &[("a", "1"), ("b", "2")]);
        one("a=1; a=2", &[("a", "1"), ("a", "2")]);
        one("A=1; a=2", &[("A", "1"), ("a", "2")]);
        one("a%62=1", &[("a%62", "1")]);
        one("a=%31+x", &[("a", "%31+x")]);
        one("a=\"1\"", &[("a", "\"1\"")]);
        one("a=\"1;2\"", &[("a", "\"1"), ("2\"", "")]);
        one("a=b=c", &[("a", "b=c")]);
        one("a", &[("a", "")]);
        one("a=", &[("a", "")]);
        one("=a", &[("", "a")]);
        one("; ;;a=1;", &[("a", "1")]);
        one("", &[]);
    }

    #[test]
    fn lines_are_one_list() {
        let found = cookies(&[b"a=1; b=2", b"a=3"]);
        assert_eq!(found.len(), 3);
        assert_eq!(found[2], ("a".into(), "3".into()));
    }

    proptest! {
        #[test]
        fn any_line_is_read(line in "[ -~\t]{0,60}") {
            for (name, _) in cookies(&[line.as_bytes()]) {
                prop_assert!(!name.contains([';', '=']));
            }
        }
    }
}
