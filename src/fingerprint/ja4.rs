//! JA4, as FoxIO's `technical_details/JA4.md` defines it: a readable part, a hash of the sorted
//! ciphers, a hash of the sorted extensions with the signature algorithms.
//!
//! Only the TLS client fingerprint, which is BSD-licensed; the other JA4+ ones are not.

use sha2::{Digest, Sha256};

use super::ClientHello;
use super::hello::extension;
use super::text::{digit, push_hex, push_hex16};

/// The JA4 fingerprint of a hello over TCP, 36 characters.
pub fn ja4(hello: &ClientHello<'_>) -> String {
    let mut ciphers: Vec<u16> = hello.ciphers().collect();
    let mut extensions: Vec<u16> = hello.extensions().collect();
    let mut out = String::with_capacity(36);
    out.push('t');
    out.push_str(version(hello.highest_version()));
    out.push(if hello.has_server_name() { 'd' } else { 'i' });
    push_count(&mut out, ciphers.len());
    push_count(&mut out, extensions.len());
    push_protocol(&mut out, hello.first_protocol());

    // The readable part has said these two already.
    extensions.retain(|&number| number != extension::SERVER_NAME && number != extension::ALPN);
    ciphers.sort_unstable();
    extensions.sort_unstable();
    let mut list = String::with_capacity(256);
    push_list(&mut list, ciphers.into_iter());
    push_hash(&mut out, &list);
    list.clear();
    push_list(&mut list, extensions.into_iter());
    push_signatures(&mut list, hello);
    push_hash(&mut out, &list);
    out
}

fn version(number: u16) -> &'static str {
    match number {
        0x0304 => "13",
        0x0303 => "12",
        0x0302 => "11",
        0x0301 => "10",
        0x0300 => "s3",
        0x0002 => "s2",
        0xfeff => "d1",
        0xfefd => "d2",
        0xfefc => "d3",
        _ => "00",
    }
}

fn push_count(out: &mut String, count: usize) {
    let count = u16::try_from(count).unwrap_or(u16::MAX).min(99);
    out.push(digit(count / 10));
    out.push(digit(count % 10));
}

/// First and last character of the protocol; of its hexadecimal form where either is no letter or
/// digit.
fn push_protocol(out: &mut String, protocol: &[u8]) {
    let (Some(&first), Some(&last)) = (protocol.first(), protocol.last()) else {
        out.push_str("00");
        return;
    };
    if first.is_ascii_alphanumeric() && last.is_ascii_alphanumeric() {
        out.push(first.into());
        out.push(last.into());
    } else {
        out.push(digit((first >> 4).into()));
        out.push(digit(last.into()));
    }
}

/// No underscore where there are no signature algorithms.
fn push_signatures(list: &mut String, hello: &ClientHello<'_>) {
    let mut algorithms = hello.signature_algorithms().peekable();
    if algorithms.peek().is_some() {
        list.push('_');
        push_list(list, algorithms);
    }
}

fn push_list(out: &mut String, numbers: impl Iterator<Item = u16>) {
    for (position, number) in numbers.enumerate() {
        if position > 0 {
            out.push(',');
        }
        push_hex16(out, number);
    }
}

/// The first twelve digits of the SHA-256; zeros for an empty list.
fn push_hash(out: &mut String, list: &str) {
    let hash = match list {
        "" => Default::default(),
        list => Sha256::digest(list),
    };
    out.push('_');
    push_hex(out, hash.get(..6).unwrap_or_default());
}
