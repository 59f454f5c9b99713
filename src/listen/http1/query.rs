//! Escapes the query of a request line. hyper refuses `"`, `<` and `>` there, and bytes that are not UTF-8, but many clients
//! send them as they are. All bytes that are not ASCII are escaped: reads may end within a character.

use bytes::{BufMut, BytesMut};

/// Percent-encodes `"`, `<`, `>` and all that is not ASCII in the query of a request line. `bytes` begin within the query,
/// and go on after the line.
pub(super) fn escape_query(bytes: &[u8]) -> BytesMut {
    let end = memchr::memchr2(b' ', b'\n', bytes).unwrap_or(bytes.len());
    let (query, rest) = bytes.split_at(end);
    let mut escaped = BytesMut::with_capacity(bytes.len() + 64);
    for byte in query {
        if is_unescaped_in_query(*byte) {
            escaped.extend_from_slice(&[b'%', digit(byte >> 4), digit(byte & 15)]);
        } else {
            escaped.put_u8(*byte);
        }
    }
    escaped.extend_from_slice(rest);
    escaped
}

/// Returns the hexadecimal digit of a value below 16.
const fn digit(value: u8) -> u8 {
    match value {
        0..=9 => b'0' + value,
        _ => b'A' + (value - 10),
    }
}

/// Returns the first byte of `line` from `begin` on that must be escaped in a query.
pub(super) fn unescaped_in_query(line: &[u8], begin: usize) -> Option<usize> {
    let query = line.get(begin..)?;
    let delimiter = memchr::memchr3(b'"', b'<', b'>', query);
    let before = query.get(..delimiter.unwrap_or(query.len()))?;
    let at = if before.is_ascii() {
        delimiter
    } else {
        before.iter().position(|byte| !byte.is_ascii())
    };
    at.map(|at| begin + at)
}

/// Returns whether `byte` must be escaped in a query.
pub(super) const fn is_unescaped_in_query(byte: u8) -> bool {
    matches!(byte, b'"' | b'<' | b'>' | 0x80..)
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn only_the_rest_of_the_query_is_escaped() {
        for (bytes, escaped) in [
            (
                &b"\"a\" HTTP/1.1\r\nx: \"<\r\n"[..],
                &b"%22a%22 HTTP/1.1\r\nx: \"<\r\n"[..],
            ),
            (b"<%3C>", b"%3C%3C%3E"),
            (
                b"\xe9t\xc3\xa9\xff HTTP/1.1\r\nx: \xe9",
                b"%E9t%C3%A9%FF HTTP/1.1\r\nx: \xe9",
            ),
            (b"\"\n\"", b"%22\n\""),
            (b"", b""),
        ] {
            assert_eq!(escape_query(bytes), escaped);
        }
    }
}
