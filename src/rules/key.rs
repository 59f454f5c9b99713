//! The key of a rule, as bytes that differ whenever the values differ.

use std::fmt::Write as _;
use std::hash::Hasher as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use sha2::{Digest, Sha256};
use siphasher::sip::SipHasher13;

use super::key_buffer::KeyBuffer;
use super::key_text::{CUT, show_string};
use crate::expr::{EvalContext, FieldFacts, PlainRead, Scalar, ScalarValue};
use crate::facts::client_ip::IpPrefixes;

/// A string longer than this enters a key as its first bytes and a digest, so that a client cannot
/// fill the ban table's memory with long headers.
const LONGEST: usize = 256;
/// The bytes of a long string that stay readable.
const READABLE: usize = 64;

/// The values that select a counter. Without parts, all requests share one counter.
#[derive(Default)]
pub struct Key {
    /// The parts, in order.
    pub parts: Vec<KeyPart>,
    /// What a missing part means.
    pub missing: MissingPart,
}

/// One part of a key.
pub struct KeyPart {
    /// The expression that reads the value.
    pub scalar: Scalar,
    /// The prefix lengths by which an address is counted as its network. `None` for values that are no address.
    pub prefixes: Option<IpPrefixes>,
    /// Whether the value is secret, so that logs show its hash.
    pub secret: bool,
}

/// What a missing key part means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MissingPart {
    /// All requests without it share one counter.
    #[default]
    Group,
    /// A request without it is neither counted nor acted on.
    Skip,
}

/// A tag before each part, so that different keys have different bytes.
mod tag {
    pub const MISSING: u8 = 0;
    pub const BYTES: u8 = 1;
    pub const INT: u8 = 2;
    pub const V4: u8 = 3;
    pub const V6: u8 = 4;
    pub const BOOL: u8 = 5;
    pub const LONG: u8 = 6;
}

// === impl Key ===

impl Key {
    /// Appends the key's bytes to `out`. `false` if a part is missing and the request is skipped.
    pub fn write(&self, facts: &dyn FieldFacts, out: &mut KeyBuffer) -> bool {
        self.write_at(&EvalContext::of(facts), out)
    }

    /// [`Key::write`] with a context that other expressions of the request share.
    #[inline]
    pub(super) fn write_at(&self, context: &EvalContext<'_>, out: &mut KeyBuffer) -> bool {
        for part in &self.parts {
            match part.write_at(context, out) {
                Some(()) => {}
                None if self.missing == MissingPart::Skip => return false,
                None => out.push(tag::MISSING),
            }
        }
        true
    }

    /// Whether this key and `other` have equal bytes for every request.
    pub(super) fn is_written_as(&self, other: &Key) -> bool {
        let same = |(a, b): (&KeyPart, &KeyPart)| {
            a.scalar.source() == b.scalar.source() && a.prefixes == b.prefixes
        };
        let parts = self.parts.len() == other.parts.len();
        parts && self.missing == other.missing && self.parts.iter().zip(&other.parts).all(same)
    }

    /// Splits the first part off the bytes of a key, with its tag. `None` at the end, or if the part was cut.
    pub fn split_part(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
        let (tag, rest) = bytes.split_first()?;
        let length = match *tag {
            tag::MISSING => 0,
            tag::BYTES => 4 + u32::from_le_bytes(*rest.first_chunk()?) as usize,
            tag::LONG => READABLE + 32,
            tag::INT => 8,
            tag::V4 => 4,
            tag::V6 => 16,
            tag::BOOL => 1,
            _ => return None,
        };
        bytes.split_at_checked(length + 1)
    }

    /// A number that requests with equal keys share. It has no secret, because every gateway must
    /// compute an equal number.
    pub fn digest(&self, facts: &dyn FieldFacts) -> u64 {
        let mut bytes = KeyBuffer::new();
        self.write(facts, &mut bytes);
        let mut hasher = SipHasher13::new();
        hasher.write(&bytes);
        hasher.finish()
    }

    /// Formats the key's bytes for logs and listings. Secrets go through `hash`.
    pub fn describe(&self, bytes: &[u8], hash: &dyn Fn(&[u8]) -> String) -> String {
        let mut rest = bytes;
        let mut text = String::new();
        for part in &self.parts {
            if !text.is_empty() {
                text.push(' ');
            }
            if part
                .describe(&mut rest, hash, show_string, &mut text)
                .is_none()
            {
                text.push('?');
                break;
            }
        }
        text
    }

    /// Each part for logs, as written in the rule and as counted. `None` if the part is missing.
    /// Secrets go through `hash`.
    pub fn parts(
        &self,
        facts: &dyn FieldFacts,
        hash: &dyn Fn(&[u8]) -> String,
    ) -> Vec<(&str, Option<String>)> {
        let show = |part: &KeyPart| {
            let (mut bytes, mut text) = (KeyBuffer::new(), String::new());
            part.write(part.scalar.eval(facts)?, &mut bytes);
            part.describe(&mut &*bytes, hash, quote, &mut text)?;
            Some(text)
        };
        let parts = self.parts.iter();
        parts
            .map(|part| (part.scalar.source(), show(part)))
            .collect()
    }
}

// === impl KeyPart ===

impl KeyPart {
    /// Appends the part's bytes. `None` if it has no value.
    #[inline(always)]
    fn write_at(&self, context: &EvalContext<'_>, out: &mut KeyBuffer) -> Option<()> {
        let facts = context.facts();
        match self.scalar.plain() {
            Some(PlainRead::Ip(field)) => self.write_ip(facts.ip(*field)?.to_canonical(), out),
            Some(PlainRead::Text(field)) => write_bytes(&context.text(*field)?, out),
            Some(PlainRead::Entry { field, name, index }) => {
                write_bytes(&facts.element(*field, name.as_deref(), *index)?, out);
            }
            None => self.write(self.scalar.get(context)?, out),
        }
        Some(())
    }

    #[inline(never)]
    pub(super) fn write(&self, value: ScalarValue<'_>, out: &mut KeyBuffer) {
        match value {
            ScalarValue::Bytes(bytes) => write_bytes(&bytes, out),
            ScalarValue::Int(int) => {
                out.push(tag::INT);
                out.extend_from_slice(&int.to_le_bytes());
            }
            ScalarValue::Ip(ip) => self.write_ip(ip, out),
            ScalarValue::Bool(truth) => out.extend_from_slice(&[tag::BOOL, u8::from(truth)]),
        }
    }

    #[inline]
    fn write_ip(&self, ip: IpAddr, out: &mut KeyBuffer) {
        write_ip(self.prefixes.map_or(ip, |p| p.network(ip)), out);
    }

    /// Writes that the part has no value.
    pub(super) fn write_missing(&self, out: &mut KeyBuffer) {
        out.push(tag::MISSING);
    }

    /// Takes this part's bytes off `rest` and formats them, strings in clear by `show`.
    fn describe(
        &self,
        rest: &mut &[u8],
        hash: &dyn Fn(&[u8]) -> String,
        show: fn(&[u8], &mut String),
        text: &mut String,
    ) -> Option<()> {
        match take::<1>(rest)? {
            [tag::MISSING] => text.push('-'),
            [tag::BYTES] => {
                let length = u32::from_le_bytes(take(rest)?);
                let bytes = split(rest, length as usize)?;
                if self.secret {
                    text.push_str(&hash(bytes));
                } else {
                    show(bytes, text);
                }
            }
            [tag::LONG] => {
                let kept = split(rest, READABLE)?;
                let digest = split(rest, 32)?;
                if self.secret {
                    text.push_str(&hash(digest));
                } else {
                    show(kept, text);
                    text.push(CUT);
                }
            }
            [tag::INT] => {
                let int = i64::from_le_bytes(take(rest)?).to_string();
                if self.secret {
                    text.push_str(&hash(int.as_bytes()))
                } else {
                    text.push_str(&int)
                }
            }
            [tag::V4] => {
                let ip = IpAddr::V4(Ipv4Addr::from(take::<4>(rest)?));
                self.show_ip(ip, text);
            }
            [tag::V6] => {
                let ip = IpAddr::V6(Ipv6Addr::from(take::<16>(rest)?));
                self.show_ip(ip, text);
            }
            [tag::BOOL] => text.push_str(if take::<1>(rest)? == [1] {
                "true"
            } else {
                "false"
            }),
            _ => return None,
        }
        Some(())
    }

    fn show_ip(&self, ip: IpAddr, text: &mut String) {
        let _ = match self.prefixes {
            Some(prefixes) if prefixes.length(ip) < bits(ip) => {
                write!(text, "{ip}/{}", prefixes.length(ip))
            }
            _ => write!(text, "{ip}"),
        };
    }
}

#[inline(always)]
fn write_bytes(bytes: &[u8], out: &mut KeyBuffer) {
    if bytes.len() > LONGEST {
        return write_long(bytes, out);
    }
    let [a, b, c, d] = (bytes.len() as u32).to_le_bytes();
    out.extend_from_slice(&[tag::BYTES, a, b, c, d]);
    out.extend_from_slice(bytes);
}

#[inline(never)]
fn write_long(bytes: &[u8], out: &mut KeyBuffer) {
    out.push(tag::LONG);
    out.extend_from_slice(bytes.get(..READABLE).unwrap_or(bytes));
    out.extend_from_slice(&Sha256::digest(bytes));
}

#[inline]
fn write_ip(ip: IpAddr, out: &mut KeyBuffer) {
    match ip {
        IpAddr::V4(v4) => {
            let [a, b, c, d] = v4.octets();
            out.extend_from_slice(&[tag::V4, a, b, c, d]);
        }
        IpAddr::V6(v6) => {
            out.push(tag::V6);
            out.extend_from_slice(&v6.octets());
        }
    }
}

/// Appends a string in quotes.
fn quote(bytes: &[u8], text: &mut String) {
    let _ = write!(text, "{:?}", String::from_utf8_lossy(bytes));
}

/// The length of the address in bits.
const fn bits(ip: IpAddr) -> u8 {
    match ip {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    }
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (head, tail) = rest.split_first_chunk::<N>()?;
    *rest = tail;
    Some(*head)
}

fn split<'a>(rest: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (head, tail) = rest.split_at_checked(length)?;
    *rest = tail;
    Some(head)
}
