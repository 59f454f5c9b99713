//! The one normal form of a host: lower case, no trailing dot, no default port.
//!
//! Stricter than RFC 3986: a registered name contains only letters, digits, `-`, `_` and dots,
//! because parsers disagree on a host with escapes or delimiters. Names are never resolved here.

use std::borrow::Cow;
use std::net::{Ipv4Addr, Ipv6Addr};

/// The longest name in DNS, written with dots.
const MAX_NAME: usize = 253;

/// A host in normal form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NormalHost<'a> {
    /// The name or address; an IPv6 address has its brackets.
    pub name: Cow<'a, str>,
    /// The port. `None` if it is the default port.
    pub port: Option<u16>,
    /// Name and port. `None` if there is no port.
    pub with_port: Option<Cow<'a, str>>,
}

/// Parses `host[:port]`. `None` if it is not exactly that.
pub fn parse(text: &str, default_port: u16) -> Option<NormalHost<'_>> {
    let (name, written) = split_port(text)?;
    let port = read_port(written)?.filter(|port| *port != default_port);
    let name = match name.strip_prefix('[') {
        Some(rest) => Cow::Owned(ipv6(rest.strip_suffix(']')?)?),
        None => registered(name)?,
    };
    let with_port = port.map(|port| match &name {
        // Borrows the text if it is already in normal form.
        Cow::Borrowed(name) if text.len() == name.len() + 1 + digits(port) => text.into(),
        _ => format!("{name}:{port}").into(),
    });
    Some(NormalHost {
        name,
        port,
        with_port,
    })
}

/// The number of digits of a port without leading zeros.
const fn digits(port: u16) -> usize {
    match port.checked_ilog10() {
        Some(log) => log as usize + 1,
        None => 1,
    }
}

fn split_port(text: &str) -> Option<(&str, &str)> {
    let end = if text.starts_with('[') {
        text.find(']')? + 1
    } else {
        text.find(':').unwrap_or(text.len())
    };
    let (name, rest) = text.split_at_checked(end)?;
    match rest.strip_prefix(':') {
        Some(port) => Some((name, port)),
        None => rest.is_empty().then_some((name, "")),
    }
}

/// An empty port is no port (RFC 3986, section 3.2.3).
fn read_port(port: &str) -> Option<Option<u16>> {
    if port.is_empty() {
        return Some(None);
    }
    let digits = port.len() <= 5 && port.bytes().all(|b| b.is_ascii_digit());
    let number = port.parse().ok().filter(|number| *number != 0);
    (digits && number.is_some()).then_some(number)
}

fn ipv6(text: &str) -> Option<String> {
    text.parse::<Ipv6Addr>().ok().map(|ip| format!("[{ip}]"))
}

fn registered(text: &str) -> Option<Cow<'_, str>> {
    let name = text.strip_suffix('.').unwrap_or(text);
    let upper = check_name(name.as_bytes())?;
    if ends_in_number(name) && name.parse::<Ipv4Addr>().is_err() {
        return None;
    }
    Some(if upper {
        Cow::Owned(name.to_ascii_lowercase())
    } else {
        Cow::Borrowed(name)
    })
}

/// Whether `name` contains capitals. `None` if it is not a valid name.
fn check_name(name: &[u8]) -> Option<bool> {
    let mut upper = false;
    let mut last = b'.';
    for &byte in name {
        match byte {
            b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' => {}
            b'A'..=b'Z' => upper = true,
            b'.' if last != b'.' => {}
            _ => return None,
        }
        last = byte;
    }
    (last != b'.' && name.len() <= MAX_NAME).then_some(upper)
}

/// Resolvers and browsers read such a name as an address, but disagree on which one (`127.1`).
fn ends_in_number(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or(name);
    let hexadecimal = last.get(..2).is_some_and(|p| p.eq_ignore_ascii_case("0x"))
        && last.bytes().skip(2).all(|b| b.is_ascii_hexdigit());
    hexadecimal || last.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests;
