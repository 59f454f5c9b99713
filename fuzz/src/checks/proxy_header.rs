//! Any bytes as a PROXY header: what is read is read the same however the bytes arrive.

use std::net::SocketAddr;

use lockgate::facts::proxy::{self, LONGEST, ProxyHeader};

const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";

/// Takes the bytes as they are, and behind the beginning of each version.
pub fn proxy_header(data: &[u8]) {
    check(data);
    check(&[b"PROXY ", data].concat());
    check(&[SIGNATURE, data].concat());
}

/// A header ends where it ends: with less it is not whole, with more it is the same.
fn check(bytes: &[u8]) {
    let Ok(Some((said, length))) = proxy::parse(bytes) else {
        return;
    };
    assert!((8..=LONGEST).contains(&length) && length <= bytes.len());
    let header = &bytes[..length];
    assert_eq!(proxy::parse(header), Ok(Some((said, length))));
    let more = [header, b"\r\n\r\nGET / HTTP/1.1"].concat();
    assert_eq!(proxy::parse(&more), Ok(Some((said, length))));
    for end in [0, 1, 6, 12, 16, length / 2, length - 1] {
        if end < length {
            assert_eq!(proxy::parse(&header[..end]), Ok(None), "{end}");
        }
    }
    if let (ProxyHeader::Source(source), true) = (said, header.starts_with(b"PROXY ")) {
        written_again(source, header);
    }
}

/// An address of version 1 stands there as it was read, or in another spelling of IPv6.
fn written_again(source: SocketAddr, header: &[u8]) {
    let line = std::str::from_utf8(header).expect("it was read");
    let mut words = line.trim_end().split(' ').skip(2);
    let address = words.next().expect("it was read").parse();
    assert_eq!(address, Ok(source.ip()));
    let port = words.nth(1).expect("it was read");
    assert_eq!(port, source.port().to_string());
}
