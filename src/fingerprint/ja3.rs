//! JA3: five lists of the hello as decimal numbers, and the MD5 of that string.
//!
//! Clients that shuffle their extensions, such as Chrome, have a different JA3 on every connection.
//! JA4 is the better key.

use md5::{Digest, Md5};

use super::{ClientHello, into_text, push_hex, push_list};

/// The number of hexadecimal digits of an MD5.
const HASH: usize = 32;

/// The JA3 string (`version,ciphers,extensions,groups,point formats`) and its MD5.
pub fn ja3(hello: &ClientHello<'_>) -> (String, String) {
    let mut raw = Vec::with_capacity(512);
    push_decimal(&mut raw, hello.version());
    push_numbers(&mut raw, hello.ciphers());
    push_numbers(&mut raw, hello.extensions());
    push_numbers(&mut raw, hello.groups());
    push_numbers(&mut raw, hello.point_formats().map(u16::from));
    let mut hash = Vec::with_capacity(HASH);
    push_hex(&mut hash, &Md5::digest(&raw));
    (into_text(raw), into_text(hash))
}

/// Appends a comma and the numbers, separated by dashes.
fn push_numbers(out: &mut Vec<u8>, numbers: impl Iterator<Item = u16>) {
    out.push(b',');
    push_list(out, numbers, b'-', push_decimal);
}

fn push_decimal(out: &mut Vec<u8>, number: u16) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}
