//! Reads the fields of a client's certificate for rules: subject, names, serial number and fingerprint. The TLS
//! library has already verified the certificate; what cannot be read here is missing.

use std::fmt::Write;
use std::net::IpAddr;

use aws_lc_rs::digest::{SHA256, digest};

use super::x509::{SEQUENCE, address, alternative_names, elements, first};
use crate::facts::CertificateFields;

const INTEGER: u8 = 0x02;
const OBJECT_IDENTIFIER: u8 = 0x06;
const UTF8_STRING: u8 = 0x0c;
const NUMERIC_STRING: u8 = 0x12;
const PRINTABLE_STRING: u8 = 0x13;
const IA5_STRING: u8 = 0x16;
const BMP_STRING: u8 = 0x1e;
const SET: u8 = 0x31;

/// The attribute types with a short name (RFC 4514, section 3, and those that certificates often have).
const SHORT_NAMES: &[(&[u8], &str)] = &[
    (&[0x55, 4, 3], "CN"),
    (&[0x55, 4, 5], "serialNumber"),
    (&[0x55, 4, 6], "C"),
    (&[0x55, 4, 7], "L"),
    (&[0x55, 4, 8], "ST"),
    (&[0x55, 4, 9], "STREET"),
    (&[0x55, 4, 10], "O"),
    (&[0x55, 4, 11], "OU"),
    (
        &[0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 1, 1],
        "UID",
    ),
    (
        &[0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 1, 25],
        "DC",
    ),
    (
        &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 1],
        "emailAddress",
    ),
];

/// Returns the fields of a DER certificate.
pub(super) fn fields_of(der: &[u8]) -> CertificateFields {
    let names = elements(alternative_names(der).unwrap_or_default());
    CertificateFields {
        subject: subject(der).unwrap_or_default().into(),
        names: names.filter_map(name).map(Into::into).collect(),
        serial: serial(der).unwrap_or_default().into(),
        fingerprint: hex(digest(&SHA256, der).as_ref()).into(),
    }
}

/// Returns the serial number without leading zero bytes.
fn serial(der: &[u8]) -> Option<String> {
    let signed = first(first(der, SEQUENCE)?, SEQUENCE)?;
    let mut number = first(signed, INTEGER)?;
    while let [0, rest @ ..] = number
        && !rest.is_empty()
    {
        number = rest;
    }
    Some(hex(number))
}

/// Returns the subject as RFC 4514 writes it: the last part of the name first.
fn subject(der: &[u8]) -> Option<String> {
    let signed = first(first(der, SEQUENCE)?, SEQUENCE)?;
    // The signature algorithm, the issuer and the validity period, also sequences, precede it.
    let mut sequences = elements(signed).filter(|(tag, _)| *tag == SEQUENCE);
    let (_, subject) = sequences.nth(3)?;
    let sets: Vec<_> = elements(subject).filter(|(tag, _)| *tag == SET).collect();
    let parts = sets.iter().rev().map(|(_, set)| {
        let attributes = elements(set).filter_map(|(_, attribute)| self::attribute(attribute));
        attributes.collect::<Vec<_>>().join("+")
    });
    Some(parts.collect::<Vec<_>>().join(","))
}

fn attribute(attribute: &[u8]) -> Option<String> {
    let mut elements = elements(attribute);
    let (_, kind) = elements
        .next()
        .filter(|(tag, _)| *tag == OBJECT_IDENTIFIER)?;
    let (tag, value) = elements.next()?;
    let short = SHORT_NAMES.iter().find(|(oid, _)| *oid == kind);
    let text = short.and_then(|(_, name)| Some((name, text(tag, value)?)));
    Some(match text {
        Some((name, text)) => format!("{name}={}", escaped(&text)),
        // RFC 4514, section 2.4: a value of an unknown type is written as its DER.
        None => format!("{}=#{}", dotted(kind)?, hex(&encoded(tag, value))),
    })
}

/// Returns the text of a string. `None` for other types.
fn text(tag: u8, value: &[u8]) -> Option<String> {
    match tag {
        UTF8_STRING | NUMERIC_STRING | PRINTABLE_STRING | IA5_STRING => {
            String::from_utf8(value.to_vec()).ok()
        }
        BMP_STRING => {
            let (pairs, []) = value.as_chunks::<2>() else {
                return None;
            };
            let units: Vec<u16> = pairs.iter().map(|pair| u16::from_be_bytes(*pair)).collect();
            String::from_utf16(&units).ok()
        }
        _ => None,
    }
}

/// Escapes the characters that have a meaning in a name (RFC 4514, section 2.4), and control characters.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let last = text.chars().count().saturating_sub(1);
    for (at, char) in text.chars().enumerate() {
        match char {
            '"' | '+' | ',' | ';' | '<' | '>' | '\\' => out.extend(['\\', char]),
            ' ' if at == 0 || at == last => out.push_str("\\ "),
            '#' if at == 0 => out.push_str("\\#"),
            char if char.is_control() => {
                let mut bytes = [0; 4];
                for byte in char.encode_utf8(&mut bytes).bytes() {
                    // Writing to a string does not fail.
                    let _ = write!(out, "\\{byte:02x}");
                }
            }
            char => out.push(char),
        }
    }
    out
}

/// Returns the decimal form of an OBJECT IDENTIFIER (X.690, section 8.19). `None` if it is malformed.
fn dotted(oid: &[u8]) -> Option<String> {
    let mut out = String::new();
    let mut number = 0_u64;
    for &byte in oid {
        number = number.checked_mul(128)? + u64::from(byte & 0x7f);
        if byte & 0x80 != 0 {
            continue;
        }
        if out.is_empty() {
            let root = (number / 40).min(2);
            let _ = write!(out, "{root}.{}", number - 40 * root);
        } else {
            let _ = write!(out, ".{number}");
        }
        number = 0;
    }
    (!out.is_empty() && oid.last()? & 0x80 == 0).then_some(out)
}

/// Returns the DER of a value.
fn encoded(tag: u8, value: &[u8]) -> Vec<u8> {
    let length = value.len().to_be_bytes();
    let start = length.iter().take_while(|byte| **byte == 0).count();
    let length = length.get(start..).unwrap_or_default();
    let mut out = vec![tag];
    match length {
        [] => out.push(0),
        [short @ ..0x80] => out.push(*short),
        long => {
            // At most eight bytes.
            out.push(0x80 | u8::try_from(long.len()).unwrap_or(8));
            out.extend_from_slice(long);
        }
    }
    out.extend_from_slice(value);
    out
}

/// Returns a subject alternative name with its kind, as OpenSSL writes it. `None` for other kinds.
fn name((tag, body): (u8, &[u8])) -> Option<String> {
    let text = || std::str::from_utf8(body).ok();
    Some(match tag {
        0x81 => format!("email:{}", text()?),
        0x82 => format!("DNS:{}", text()?),
        0x86 => format!("URI:{}", text()?),
        0x87 => format!("IP:{}", address(body).as_ref().map(IpAddr::to_string)?),
        _ => return None,
    })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

#[cfg(test)]
mod tests;
