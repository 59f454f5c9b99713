//! Valid and invalid PROXY headers.

use proptest::prelude::*;

use super::*;

fn source(address: &str) -> ProxyHeader {
    ProxyHeader::Source(address.parse().unwrap())
}

/// Version 2 with this command, family and what follows.
fn v2(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
    let mut bytes = SIGNATURE.to_vec();
    bytes.extend([command, family]);
    bytes.extend(u16::try_from(rest.len()).unwrap().to_be_bytes());
    bytes.extend(rest);
    bytes
}

const V4: [u8; 12] = [203, 0, 113, 7, 10, 0, 0, 1, 0xdc, 0x04, 0x01, 0xbb];

fn v6() -> Vec<u8> {
    let mut bytes = "2001:db8::7".parse::<Ipv6Addr>().unwrap().octets().to_vec();
    bytes.extend("::1".parse::<Ipv6Addr>().unwrap().octets());
    bytes.extend([0xdc, 0x04, 0x01, 0xbb]);
    bytes
}

/// Checks that the header is read, whatever follows, and that every prefix of it needs more bytes.
fn reads(bytes: &[u8], said: ProxyHeader) {
    let whole = [bytes, b"GET / HTTP/1.1\r\n"].concat();
    assert_eq!(parse(&whole), Ok(Some((said, bytes.len()))), "{bytes:?}");
    for end in 0..bytes.len() {
        assert_eq!(parse(&bytes[..end]), Ok(None), "{:?}", &bytes[..end]);
    }
}

#[test]
fn version_1_is_read() {
    let line = b"PROXY TCP4 203.0.113.7 10.0.0.1 56324 443\r\n";
    reads(line, source("203.0.113.7:56324"));
    let line = b"PROXY TCP6 2001:db8::7 ::1 0 443\r\n";
    reads(line, source("[2001:db8::7]:0"));
    let longest = b"PROXY TCP6 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff \
                    ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n";
    reads(
        longest,
        source("[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535"),
    );
    reads(b"PROXY UNKNOWN\r\n", ProxyHeader::Nothing);
    reads(b"PROXY UNKNOWN any words 1 2\r\n", ProxyHeader::Nothing);
}

#[test]
fn version_1_has_one_spelling() {
    for line in [
        "PROXY TCP4 203.0.113.7 10.0.0.1 56324\r\n",
        "PROXY TCP4 203.0.113.7 10.0.0.1 56324 443 9\r\n",
        "PROXY TCP4  203.0.113.7 10.0.0.1 56324 443\r\n",
        "PROXY TCP4 203.0.113.7 10.0.0.1 56324 443 \r\n",
        "PROXY TCP4 203.0.113.007 10.0.0.1 56324 443\r\n",
        "PROXY TCP4 203.0.113.7 10.0.0.1 056324 443\r\n",
        "PROXY TCP4 203.0.113.7 10.0.0.1 65536 443\r\n",
        "PROXY TCP4 203.0.113.7 10.0.0.1 +1 443\r\n",
        "PROXY TCP4 203.0.113.7 10.0.0.1 1 -1\r\n",
        "PROXY TCP4 203.0.113.7 10.0.0.1 1 \r\n",
        "PROXY TCP4 2001:db8::7 ::1 1 2\r\n",
        "PROXY TCP6 203.0.113.7 10.0.0.1 1 2\r\n",
        "PROXY TCP4 example.com 10.0.0.1 1 2\r\n",
        "PROXY TCP4\r\n",
        "PROXY TCP4 \r\n",
    ] {
        assert_eq!(
            parse(line.as_bytes()),
            Err(ProxyHeaderError::Malformed),
            "{line:?}"
        );
    }
    for line in [
        "PROXY \r\n",
        "PROXY UDP4 1.1.1.1 1.1.1.1 1 2\r\n",
        "PROXY tcp4 \r\n",
    ] {
        assert_eq!(
            parse(line.as_bytes()),
            Err(ProxyHeaderError::Unknown),
            "{line:?}"
        );
    }
    assert_eq!(
        parse(b"PROXY TCP4 \xff\r\n"),
        Err(ProxyHeaderError::Malformed)
    );
    // A line feed alone does not end the line.
    assert_eq!(parse(b"PROXY UNKNOWN\nGET / HTTP/1.1\n"), Ok(None));
    let long = format!("PROXY UNKNOWN {}\r\n", "x".repeat(LONGEST_V1));
    assert_eq!(parse(long.as_bytes()), Err(ProxyHeaderError::TooLong));
}

#[test]
fn version_2_is_read() {
    reads(&v2(0x21, 0x11, &V4), source("203.0.113.7:56324"));
    reads(&v2(0x21, 0x21, &v6()), source("[2001:db8::7]:56324"));
    // A proxy's own connection, an unknown client, a Unix socket.
    reads(&v2(0x20, 0x00, b""), ProxyHeader::Nothing);
    reads(&v2(0x20, 0x11, &V4), ProxyHeader::Nothing);
    reads(&v2(0x21, 0x00, b""), ProxyHeader::Nothing);
    reads(&v2(0x21, 0x31, &[0; 216]), ProxyHeader::Nothing);
    // Extensions: ALPN, an unknown one, an empty one.
    let extended = [&V4[..], &[1, 0, 2, b'h', b'2', 0xee, 0, 1, 9, 4, 0, 0]].concat();
    reads(&v2(0x21, 0x11, &extended), source("203.0.113.7:56324"));
    let largest = [&V4[..], &[4, 0x0f, 0xe1], &[0; LONGEST - FIXED - 15]].concat();
    reads(&v2(0x21, 0x11, &largest), source("203.0.113.7:56324"));
}

#[test]
fn version_2_has_its_declared_length() {
    for (family, rest) in [
        (0x11, &V4[..11]),
        (0x11, &[][..]),
        (0x21, &v6()[..35]),
        (0x21, &v6()[..16]),
        (0x31, &[0; 215][..]),
        (0x11, &[&V4[..], &[1]].concat()[..]),
        (0x11, &[&V4[..], &[1, 0, 3, 0, 0]].concat()[..]),
        (0x11, &[&V4[..], &[3, 0, 3, 0, 0, 0]].concat()[..]),
    ] {
        assert_eq!(
            parse(&v2(0x21, family, rest)),
            Err(ProxyHeaderError::Malformed)
        );
    }
    for (command, family) in [
        (0x11, 0x11),
        (0x22, 0x11),
        (0x31, 0x11),
        (0x21, 0x12),
        (0x21, 0x22),
    ] {
        assert_eq!(
            parse(&v2(command, family, &V4)),
            Err(ProxyHeaderError::Unknown)
        );
    }
    // A header that is too long is refused by its length field, before its bytes arrive.
    let mut long = v2(0x21, 0x11, &[]);
    long[14..16].copy_from_slice(&(LONGEST as u16).to_be_bytes());
    assert_eq!(parse(&long), Err(ProxyHeaderError::TooLong));
}

#[test]
fn a_checksum_must_match_the_header() {
    // The check value of the polynomial (RFC 3720, appendix B.4, and elsewhere).
    assert_eq!(crc32c_without(b"123456789", 100), 0xe306_9283);
    let with = |sum: [u8; 4]| v2(0x21, 0x11, &[&V4[..], &[CRC32C, 0, 4], &sum].concat());
    let zero = with([0; 4]);
    let sum = crc32c_without(&zero, zero.len() - 4).to_be_bytes();
    reads(&with(sum), source("203.0.113.7:56324"));
    let mut other = with(sum);
    other[FIXED] ^= 1;
    assert_eq!(parse(&other), Err(ProxyHeaderError::Checksum));
    assert_eq!(parse(&zero), Err(ProxyHeaderError::Checksum));
}

#[test]
fn other_bytes_are_rejected() {
    for bytes in [
        &b"GET / HTTP/1.1\r\n"[..],
        b"\x16\x03\x01",
        b"PRI * HTTP/2.0",
        b"proxy TCP4",
        b"\r\n\r\n\0\r\nQUIT\r",
        b"\r\nGET",
    ] {
        assert_eq!(parse(bytes), Err(ProxyHeaderError::NoHeader), "{bytes:?}");
    }
    assert_eq!(parse(b""), Ok(None));
}

proptest! {
    #[test]
    fn no_bytes_cause_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300), v in 0..3) {
        let bytes = match v {
            0 => bytes,
            1 => [WORD, &bytes].concat(),
            _ => v2(0x21, 0x11, &bytes),
        };
        check(&bytes)?;
    }

    #[test]
    fn no_text_causes_a_panic(line in "PROXY (TCP4|TCP6|UNKNOWN)( [0-9.:]{1,12}){0,5}\r\n.*") {
        check(line.as_bytes())?;
    }
}

/// Checks that the result does not depend on the bytes after the header.
fn check(bytes: &[u8]) -> Result<(), TestCaseError> {
    if let Ok(Some((said, length))) = parse(bytes) {
        prop_assert!(length <= bytes.len() && length <= LONGEST);
        prop_assert_eq!(parse(&bytes[..length]), Ok(Some((said, length))));
        prop_assert_eq!(parse(&bytes[..length - 1]), Ok(None));
    }
    Ok(())
}
