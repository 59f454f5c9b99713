//! JA3: five lists of the hello as decimal numbers, and the MD5 of that string.
//!
//! Clients that shuffle their extensions (Chrome does) have another JA3 with every connection;
//! JA4 is the better key.

use md5::{Digest, Md5};

use super::ClientHello;
use super::text::{into_text, push_decimal, push_hex};

/// Digits of an MD5.
const HASH: usize = 32;

/// The JA3 string (`version,ciphers,extensions,groups,point formats`) and its MD5.
pub fn ja3(hello: &ClientHello<'_>) -> (String, String) {
    let mut raw = Vec::with_capacity(512);
    push_decimal(&mut raw, hello.version(), b',');
    push_list(&mut raw, hello.ciphers());
    push_list(&mut raw, hello.extensions());
    push_list(&mut raw, hello.groups());
    push_list(&mut raw, hello.point_formats().map(u16::from));
    raw.pop();
    let mut hash = Vec::with_capacity(HASH);
    push_hex(&mut hash, &Md5::digest(&raw));
    (into_text(raw), into_text(hash))
}

/// Appends the numbers with dashes between them, and a comma.
fn push_list(out: &mut Vec<u8>, numbers: impl Iterator<Item = u16>) {
    let start = out.len();
    for number in numbers {
        push_decimal(out, number, b'-');
    }
    if out.len() > start {
        out.pop();
    }
    out.push(b',');
}
