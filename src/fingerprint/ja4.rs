//! JA4, as defined by FoxIO's `technical_details/JA4.md`: a readable part, a hash of the sorted
//! ciphers, and a hash of the sorted extensions with the signature algorithms.
//!
//! Implements only the TLS client fingerprint, which is BSD-licensed; the other JA4+ ones are not.

use aws_lc_rs::digest::{SHA256, digest};
use smallvec::SmallVec;

use super::hello::extension;
use super::{ClientHello, hex_digit, into_text, push_hex, push_list};

/// The number of characters of a JA4.
const LENGTH: usize = 36;

/// The JA4 fingerprint of a hello over TCP, 36 characters.
pub fn ja4(hello: &ClientHello<'_>) -> String {
    let (mut ciphers, mut extensions) = (Vec::with_capacity(512), Vec::with_capacity(512));
    let cipher_count = push_sorted(&mut ciphers, hello.ciphers(), &[]);
    // The readable part covers these two.
    let readable = [extension::SERVER_NAME, extension::ALPN];
    let extension_count = push_sorted(&mut extensions, hello.extensions(), &readable);
    push_signatures(&mut extensions, hello);

    let mut out = Vec::with_capacity(LENGTH);
    out.push(b't');
    out.extend_from_slice(version(hello.highest_version()));
    out.push(if hello.has_server_name() { b'd' } else { b'i' });
    push_count(&mut out, cipher_count);
    push_count(&mut out, extension_count);
    push_protocol(&mut out, hello.first_protocol());
    push_hash(&mut out, &ciphers);
    push_hash(&mut out, &extensions);
    into_text(out)
}

fn version(number: u16) -> &'static [u8; 2] {
    match number {
        0x0304 => b"13",
        0x0303 => b"12",
        0x0302 => b"11",
        0x0301 => b"10",
        0x0300 => b"s3",
        0x0002 => b"s2",
        0xfeff => b"d1",
        0xfefd => b"d2",
        0xfefc => b"d3",
        _ => b"00",
    }
}

fn push_count(out: &mut Vec<u8>, count: usize) {
    let count = u8::try_from(count).unwrap_or(u8::MAX).min(99);
    out.extend_from_slice(&[hex_digit(count / 10), hex_digit(count % 10)]);
}

/// Appends the first and last character of the protocol, or of its hexadecimal form if either is
/// not a letter or digit.
fn push_protocol(out: &mut Vec<u8>, protocol: &[u8]) {
    out.extend_from_slice(&match (protocol.first(), protocol.last()) {
        (Some(&first), Some(&last)) => {
            if first.is_ascii_alphanumeric() && last.is_ascii_alphanumeric() {
                [first, last]
            } else {
                [hex_digit(first >> 4), hex_digit(last)]
            }
        }
        _ => *b"00",
    });
}

/// Appends the signature algorithms in the client's order; no underscore if there are none.
fn push_signatures(list: &mut Vec<u8>, hello: &ClientHello<'_>) {
    let mut algorithms = hello.signature_algorithms().peekable();
    if algorithms.peek().is_some() {
        list.push(b'_');
        push_list(list, algorithms, b',', push_number);
    }
}

/// Appends the numbers except those in `but`, ascending and separated by commas. Returns the number
/// of all, including `but`.
fn push_sorted(out: &mut Vec<u8>, numbers: impl Iterator<Item = u16>, but: &[u16]) -> usize {
    let mut sorted: SmallVec<[u16; 64]> = numbers.collect();
    let count = sorted.len();
    sorted.sort_unstable();
    sorted.retain(|number| !but.contains(number));
    push_list(out, sorted.into_iter(), b',', push_number);
    count
}

fn push_number(out: &mut Vec<u8>, number: u16) {
    push_hex(out, &number.to_be_bytes());
}

/// Appends the first twelve digits of the SHA-256; zeros for an empty list.
fn push_hash(out: &mut Vec<u8>, list: &[u8]) {
    out.push(b'_');
    match list {
        [] => out.extend_from_slice(b"000000000000"),
        list => {
            let hash = digest(&SHA256, list);
            push_hex(out, hash.as_ref().get(..6).unwrap_or_default());
        }
    }
}
