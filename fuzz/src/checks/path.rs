//! Any path: one normal form, whatever it is spelled like, or none in any spelling.

use std::borrow::Cow;

use lockgate::facts::path::normalise;

/// Takes the bytes as a path, and behind a `/`.
pub fn path(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    check(text);
    check(&format!("/{text}"));
}

fn check(path: &str) {
    let found = normalise(path).map(Cow::into_owned);
    for respelled in respellings(path) {
        let again = normalise(&respelled).map(Cow::into_owned);
        assert_eq!(again, found, "{path:?} as {respelled:?}");
    }
    if let Ok(normal) = found {
        is_normal(&normal);
        assert_eq!(normalise(&normal).as_deref(), Ok(&*normal));
    }
}

fn is_normal(path: &str) {
    let segments = path.strip_prefix('/').expect("it starts with `/`");
    let mut left = segments.split('/').peekable();
    while let Some(segment) = left.next() {
        assert!(!segment.is_empty() || left.peek().is_none(), "{path:?}");
        assert!(!matches!(segment, "." | ".."), "{path:?}");
        let mut rest = segment.bytes();
        while let Some(byte) = rest.next() {
            assert!(
                byte.is_ascii_graphic() && !b"\\?#".contains(&byte),
                "{path:?}"
            );
            if byte == b'%' {
                let pair = [rest.next(), rest.next()].map(Option::unwrap_or_default);
                assert!(pair.iter().all(is_upper_hex), "{path:?}");
                let byte = hex(pair).expect("two digits");
                assert!(byte != 0 && !is_unreserved(byte), "{path:?}");
            }
        }
    }
}

/// The same path in other words.
fn respellings(path: &str) -> [String; 7] {
    [
        decoded(path),
        escaped(path, false),
        escaped(path, true),
        path.replace('/', "//"),
        path.replace('/', "/./"),
        path.replacen('/', "/%2e/", 1),
        path.replacen('/', "/x/%2E./", 1),
    ]
}

/// Without the escapes of unreserved characters, up to one that is broken.
fn decoded(path: &str) -> String {
    let mut out = String::new();
    let mut rest = path;
    while let Some((before, after)) = rest.split_once('%') {
        out.push_str(before);
        let Some(byte) = escape(after) else {
            return out + "%" + after;
        };
        match is_unreserved(byte) {
            true => out.push(char::from(byte)),
            false => out.push_str(&format!("%{byte:02x}")),
        }
        rest = &after[2..];
    }
    out + rest
}

/// With an escape for each unreserved character, up to a broken escape.
fn escaped(path: &str, upper: bool) -> String {
    let mut out = String::new();
    let mut rest = path;
    while let Some(first) = rest.chars().next() {
        let whole = match first {
            '%' if escape(&rest[1..]).is_none() => return out + rest,
            '%' => 3,
            _ => first.len_utf8(),
        };
        match u8::try_from(first) {
            Ok(byte) if is_unreserved(byte) && upper => out.push_str(&format!("%{byte:02X}")),
            Ok(byte) if is_unreserved(byte) => out.push_str(&format!("%{byte:02x}")),
            _ => out.push_str(&rest[..whole]),
        }
        rest = &rest[whole..];
    }
    out
}

/// The byte of the two digits that `text` begins with.
fn escape(text: &str) -> Option<u8> {
    match text.as_bytes() {
        [high, low, ..] => hex([*high, *low]),
        _ => None,
    }
}

fn hex(digits: [u8; 2]) -> Option<u8> {
    let [high, low] = digits.map(|digit| char::from(digit).to_digit(16));
    u8::try_from(high? * 16 + low?).ok()
}

fn is_upper_hex(byte: &u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'A'..=b'F')
}

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)
}
