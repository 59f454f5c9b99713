//! The chunked coding: tables, and a comparison with a naive decoder at every split.

use proptest::prelude::*;

use super::HeaderMap;
use crate::upstream::http1::connection::ReadBuffer;
use crate::upstream::http1::response_body::ChunkedDecoder;

/// A body, its trailers and the unread bytes after it. `None` if it is malformed or incomplete.
type Decoded = Option<(Vec<u8>, Vec<(String, Vec<u8>)>, Vec<u8>)>;

fn list(trailers: &HeaderMap) -> Vec<(String, Vec<u8>)> {
    let fields = trailers.iter();
    fields
        .map(|(name, value)| (name.to_string(), value.as_bytes().to_vec()))
        .collect()
}

/// Decodes bytes that arrive in pieces.
fn decode(pieces: &[&[u8]]) -> Decoded {
    let (mut chunked, mut buffer) = (ChunkedDecoder::default(), ReadBuffer::default());
    let (mut data, mut trailers) = (Vec::new(), Vec::new());
    for piece in pieces {
        buffer.push(piece);
        while let Some(frame) = chunked.next(&mut buffer).ok()? {
            match frame.into_data() {
                Ok(bytes) => data.extend_from_slice(&bytes),
                Err(frame) => trailers = list(frame.trailers_ref()?),
            }
        }
    }
    let rest = buffer.bytes().to_vec();
    chunked.is_over().then_some((data, trailers, rest))
}

/// Decodes a complete body, naively.
fn naive(bytes: &[u8]) -> Decoded {
    let mut data = Vec::new();
    let mut rest = bytes;
    loop {
        let (line, behind) = line(rest)?;
        let size = std::str::from_utf8(line.split(|&b| b == b';').next()?).ok()?;
        let size = size.trim_end_matches([' ', '\t']);
        if size.is_empty() || size.len() > 16 || !size.bytes().all(|b| b.is_ascii_hexdigit()) {
            return None;
        }
        if line.iter().any(|&b| (b < b' ' && b != b'\t') || b == 0x7f) {
            return None;
        }
        let size = usize::from_str_radix(size, 16).ok()?;
        rest = behind;
        if size == 0 {
            break;
        }
        data.extend_from_slice(rest.get(..size)?);
        rest = rest.get(size..)?.strip_prefix(b"\r\n")?;
    }
    // Only fields of the shape that the generator makes.
    let mut trailers = Vec::new();
    loop {
        let (line, behind) = line(rest)?;
        rest = behind;
        if line.is_empty() {
            return Some((data, trailers, rest.to_vec()));
        }
        let (name, value) = std::str::from_utf8(line).ok()?.split_once(": ")?;
        trailers.push((name.to_owned(), value.as_bytes().to_vec()));
    }
}

fn line(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.windows(2).position(|pair| pair == b"\r\n")?;
    Some((&bytes[..end], &bytes[end + 2..]))
}

#[test]
fn valid_chunks_are_decoded() {
    for (bytes, body, rest) in [
        ("0\r\n\r\n", "", ""),
        ("5\r\nhello\r\n0\r\n\r\n", "hello", ""),
        ("5\r\nhello\r\n0\r\n\r\nmore", "hello", "more"),
        ("3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n", "hello", ""),
        ("0000000000000005\r\nhello\r\n0\r\n\r\n", "hello", ""),
        ("a\r\n0123456789\r\n00\r\n\r\n", "0123456789", ""),
        ("A\r\n0123456789\r\n0\r\n\r\n", "0123456789", ""),
        ("2;a=b\r\nok\r\n0;c\r\n\r\n", "ok", ""),
        ("2;a=\"b c\"\r\nok\r\n0\r\n\r\n", "ok", ""),
        ("2 \t;a\r\nok\r\n0\r\n\r\n", "ok", ""),
        ("2  \r\nok\r\n0\r\n\r\n", "ok", ""),
        ("2\r\n\r\n\r\n0\r\n\r\n", "\r\n", ""),
    ] {
        let decoded = decode(&[bytes.as_bytes()]);
        let (data, trailers, left) = decoded.expect(bytes);
        assert_eq!(
            (&data[..], &left[..]),
            (body.as_bytes(), rest.as_bytes()),
            "{bytes:?}"
        );
        assert!(trailers.is_empty());
    }
}

#[test]
fn invalid_chunks_are_errors() {
    let long = format!("2;{}\r\nok\r\n0\r\n\r\n", "x".repeat(17 * 1024));
    let many = format!("0\r\n{}\r\n", "a: b\r\n".repeat(101));
    let large = format!("0\r\na: {}\r\n\r\n", "b".repeat(65 * 1024));
    for bytes in [
        "",
        "\r\n",
        "5",
        "5\r",
        "5\r\n",
        "5\r\nhell",
        "5\r\nhello",
        "5\r\nhello\r\n",
        "5\nhello\r\n0\r\n\r\n",
        "5\r\nhello\n0\r\n\r\n",
        "5\r\nhello0\r\n\r\n",
        "5\r\rhello\r\n0\r\n\r\n",
        "4\r\nhello\r\n0\r\n\r\n",
        "6\r\nhello\r\n0\r\n\r\n",
        "0x5\r\nhello\r\n0\r\n\r\n",
        "+5\r\nhello\r\n0\r\n\r\n",
        "-5\r\nhello\r\n0\r\n\r\n",
        " 5\r\nhello\r\n0\r\n\r\n",
        "5 5\r\nhello\r\n0\r\n\r\n",
        ";a\r\n0\r\n\r\n",
        "5,\r\nhello\r\n0\r\n\r\n",
        "g\r\n",
        "00000000000000005\r\nhello\r\n0\r\n\r\n",
        "fffffffffffffffff\r\n",
        "2;a\nb\r\nok\r\n0\r\n\r\n",
        "2;a\0\r\nok\r\n0\r\n\r\n",
        "2;a\x7f\r\nok\r\n0\r\n\r\n",
        "2\t5\r\n",
        "0\r\nno colon\r\n\r\n",
        "0\r\na : b\r\n\r\n",
        "0\r\na: b\r\n c\r\n\r\n",
        "0\r\na: b\r\n",
        "0\r\n",
        &long,
        &many,
        &large,
    ] {
        let shown = &bytes[..bytes.len().min(60)];
        assert!(decode(&[bytes.as_bytes()]).is_none(), "{shown:?}");
    }
}

#[test]
fn a_huge_chunk_is_delivered_piecewise() {
    let mut chunked = ChunkedDecoder::default();
    let mut buffer = ReadBuffer::from(&b"ffffffffffffffff\r\nabc"[..]);
    let frame = chunked.next(&mut buffer).unwrap().unwrap();
    assert_eq!(frame.into_data().unwrap(), "abc");
    assert!(chunked.next(&mut buffer).unwrap().is_none());
}

prop_compose! {
    fn encoded()(
        chunks in prop::collection::vec((prop::collection::vec(any::<u8>(), 1..40), "(;[a-z =]{0,5})?"), 0..5),
        trailers in prop::collection::vec("x-[a-z]{1,5}: [a-z]{1,5}", 0..3),
        rest in "[a-z]{0,3}",
    ) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (data, extension) in chunks {
            bytes.extend_from_slice(format!("{:x}{extension}\r\n", data.len()).as_bytes());
            bytes.extend_from_slice(&data);
            bytes.extend_from_slice(b"\r\n");
        }
        bytes.extend_from_slice(b"0\r\n");
        for trailer in trailers {
            bytes.extend_from_slice(trailer.as_bytes());
            bytes.extend_from_slice(b"\r\n");
        }
        bytes.extend_from_slice(b"\r\n");
        bytes.extend_from_slice(rest.as_bytes());
        bytes
    }
}

/// Sorts the trailers, because a map groups those of one name.
fn sorted(decoded: Decoded) -> Decoded {
    decoded.map(|(data, mut trailers, rest)| {
        trailers.sort();
        (data, trailers, rest)
    })
}

proptest! {
    #[test]
    fn every_split_decodes_to_the_same_body(bytes in encoded()) {
        let expected = sorted(naive(&bytes));
        prop_assert!(expected.is_some());
        for at in 0..=bytes.len() {
            let (one, two) = bytes.split_at(at);
            prop_assert_eq!(&sorted(decode(&[one, two])), &expected);
        }
        let single: Vec<_> = bytes.chunks(1).collect();
        prop_assert_eq!(&sorted(decode(&single)), &expected);
    }

    #[test]
    fn a_changed_byte_is_decoded_the_same_for_every_split(bytes in encoded(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut bytes = bytes;
        let end = bytes.windows(3).position(|w| w == b"0\r\n").unwrap_or(0);
        // Trailers are left to httparse; the naive decoder does not check them.
        let at = at.index(end + 1);
        bytes[at] = byte;
        let (ours, theirs) = (decode(&[&bytes]), naive(&bytes));
        prop_assert_eq!(ours.map(|d| d.0), theirs.map(|d| d.0));
    }
}
