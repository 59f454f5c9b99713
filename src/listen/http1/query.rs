//! Escapes the query of a request line: hyper refuses `"`, `<` and `>` there, but many clients send them as they are.

use bytes::{BufMut, BytesMut};

/// Percent-encodes what hyper refuses in the query of a request line. `bytes` begin within the query, and go on after the
/// line.
pub(super) fn escape_query(bytes: &[u8]) -> BytesMut {
    let end = memchr::memchr2(b' ', b'\n', bytes).unwrap_or(bytes.len());
    let (query, rest) = bytes.split_at(end);
    let mut escaped = BytesMut::with_capacity(bytes.len() + 64);
    for byte in query {
        match byte {
            b'"' => escaped.extend_from_slice(b"%22"),
            b'<' => escaped.extend_from_slice(b"%3C"),
            b'>' => escaped.extend_from_slice(b"%3E"),
            byte => escaped.put_u8(*byte),
        }
    }
    escaped.extend_from_slice(rest);
    escaped
}

/// Returns the first byte of `line` from `begin` on that hyper refuses in a query.
pub(super) fn refused_in_query(line: &[u8], begin: usize) -> Option<usize> {
    let query = line.get(begin..)?;
    memchr::memchr3(b'"', b'<', b'>', query).map(|at| begin + at)
}

/// Returns whether hyper refuses `byte` in a query.
pub(super) const fn is_refused_in_query(byte: u8) -> bool {
    matches!(byte, b'"' | b'<' | b'>')
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
            (b"\"\n\"", b"%22\n\""),
            (b"", b""),
        ] {
            assert_eq!(escape_query(bytes), escaped);
        }
    }
}
