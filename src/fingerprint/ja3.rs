//! JA3: five lists of the hello as decimal numbers, and the MD5 of that string.
//!
//! Clients that shuffle their extensions (Chrome does) have another JA3 with every connection;
//! JA4 is the better key.

use md5::{Digest, Md5};

use super::ClientHello;
use super::text::{push_decimal, push_hex};

/// The JA3 string (`version,ciphers,extensions,groups,point formats`) and its MD5.
pub fn ja3(hello: &ClientHello<'_>) -> (String, String) {
    let mut raw = String::with_capacity(512);
    push_decimal(&mut raw, hello.version());
    push_list(&mut raw, hello.ciphers());
    push_list(&mut raw, hello.extensions());
    push_list(&mut raw, hello.groups());
    push_list(&mut raw, hello.point_formats().map(u16::from));
    let mut hash = String::with_capacity(32);
    push_hex(&mut hash, &Md5::digest(&raw));
    (raw, hash)
}

fn push_list(out: &mut String, numbers: impl Iterator<Item = u16>) {
    let mut before = ',';
    for number in numbers {
        out.push(before);
        push_decimal(out, number);
        before = '-';
    }
    if before == ',' {
        out.push(before);
    }
}
