//! JA4, as FoxIO's `technical_details/JA4.md` defines it: a readable part, a hash of the sorted
//! ciphers, a hash of the sorted extensions with the signature algorithms.
//!
//! Only the TLS client fingerprint, which is BSD-licensed; the other JA4+ ones are not.

use aws_lc_rs::digest::{SHA256, digest};

use super::ClientHello;
use super::hello::extension;
use super::order::Order;
use super::text::{digit, hex16, into_text, push_hex, push_hex16};

/// Characters of a JA4.
const LENGTH: usize = 36;

/// The JA4 fingerprint of a hello over TCP, 36 characters.
pub fn ja4(hello: &ClientHello<'_>) -> String {
    let (mut ciphers, mut extensions) = (Vec::with_capacity(512), Vec::with_capacity(512));
    let cipher_count = push_sorted(&mut ciphers, hello.ciphers(), &[]);
    // The readable part says these two.
    let said = [extension::SERVER_NAME, extension::ALPN];
    let extension_count = push_sorted(&mut extensions, hello.extensions(), &said);
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
    out.extend_from_slice(&[digit(count / 10), digit(count % 10)]);
}

/// First and last character of the protocol; of its hexadecimal form where either is no letter or
/// digit.
fn push_protocol(out: &mut Vec<u8>, protocol: &[u8]) {
    out.extend_from_slice(&match (protocol.first(), protocol.last()) {
        (Some(&first), Some(&last)) => {
            match first.is_ascii_alphanumeric() && last.is_ascii_alphanumeric() {
                true => [first, last],
                false => [digit(first >> 4), digit(last)],
            }
        }
        _ => *b"00",
    });
}

/// No underscore where there are no signature algorithms.
fn push_signatures(list: &mut Vec<u8>, hello: &ClientHello<'_>) {
    let before = list.len();
    list.push(b'_');
    let start = list.len();
    push_list(list, hello.signature_algorithms());
    if list.len() == start {
        list.truncate(before);
    }
}

/// Appends the numbers but for those in `said`, in ascending order with commas between them. How
/// many there are, `said` included.
fn push_sorted(
    out: &mut Vec<u8>,
    numbers: impl Iterator<Item = u16> + Clone,
    said: &[u16],
) -> usize {
    let mut order = Order::new();
    let (mut kept, mut left_out) = (0, 0);
    let ordered = numbers.clone().all(|number| match said.contains(&number) {
        true => {
            left_out += 1;
            true
        }
        false => {
            kept += 1;
            order.insert(number)
        }
    });
    if !ordered {
        // Only a made-up hello names anything twice, or numbers from everywhere.
        let mut sorted: Vec<u16> = numbers.clone().filter(|n| !said.contains(n)).collect();
        sorted.sort_unstable();
        push_list(out, sorted.into_iter());
        return numbers.count();
    }
    out.resize(kept * 5, b',');
    let mut cells = out.as_chunks_mut::<5>().0.iter_mut();
    order.each(|number| {
        if let Some([cell @ .., _]) = cells.next() {
            *cell = hex16(number);
        }
    });
    out.pop();
    kept + left_out
}

/// Appends the numbers with commas between them.
fn push_list(out: &mut Vec<u8>, numbers: impl Iterator<Item = u16>) {
    let start = out.len();
    for number in numbers {
        push_hex16(out, number, b',');
    }
    if out.len() > start {
        out.pop();
    }
}

/// The first twelve digits of the SHA-256; zeros for an empty list.
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
