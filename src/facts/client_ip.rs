//! Finds the client's address: the peer, or the address that trusted proxies forward.
//!
//! Headers from untrusted peers are ignored. A forwarding header is read from its end, as far as
//! trusted proxies wrote it.

use std::net::{IpAddr, SocketAddr};

use http::header::FORWARDED;
use http::{HeaderMap, HeaderName};
use ipnet::IpNet;

use super::ClientConnection;
use crate::expr::IpSet;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// The longest accepted request id.
const LONGEST_ID: usize = 128;

/// The settings for finding the client's address.
#[derive(Clone, Debug)]
pub struct ClientIpResolver {
    trusted: IpSet,
    header: HeaderKind,
}

/// The header in which trusted proxies forward the client's address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum HeaderKind {
    /// `X-Forwarded-For`, a list.
    #[default]
    XForwardedFor,
    /// `Forwarded` (RFC 7239), a list.
    Forwarded,
    /// A header that holds one address.
    Single(HeaderName),
}

/// The prefix lengths by which an address becomes a counter key: its network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpPrefixes {
    /// Bits of an IPv4 address that count; 32 or more means all.
    pub v4: u8,
    /// Bits of an IPv6 address that count; 128 or more means all.
    pub v6: u8,
}

// === impl ClientIpResolver ===

impl ClientIpResolver {
    /// A resolver that reads `header` from peers in `trusted`.
    pub fn new(trusted: impl IntoIterator<Item = IpNet>, header: HeaderKind) -> Self {
        let trusted = IpSet::of_networks(trusted);
        Self { trusted, header }
    }

    /// Whether `ip` is a trusted proxy.
    pub fn trusts(&self, ip: IpAddr) -> bool {
        self.trusted.contains(ip)
    }

    /// The address of the client behind `peer`.
    pub fn resolve(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let peer = peer.to_canonical();
        if self.trusted.is_empty() || !self.trusts(peer) {
            return peer;
        }
        match &self.header {
            HeaderKind::XForwardedFor => {
                self.walk(peer, lines(headers, &X_FORWARDED_FOR).flat_map(hops))
            }
            HeaderKind::Forwarded => {
                self.walk(peer, lines(headers, &FORWARDED).flat_map(forwarded_hops))
            }
            HeaderKind::Single(name) => single(headers, name).unwrap_or(peer),
        }
    }

    /// The request id from a trusted `peer`. `None` unless there is exactly one, of 1 to 128
    /// visible characters.
    pub fn request_id<'h>(&self, peer: IpAddr, headers: &'h HeaderMap) -> Option<&'h str> {
        if self.trusted.is_empty() || !self.trusts(peer.to_canonical()) {
            return None;
        }
        let mut lines = headers.get_all(X_REQUEST_ID).iter();
        let only = lines.next().filter(|_| lines.next().is_none())?.to_str();
        let is_id = |id: &&str| (1..=LONGEST_ID).contains(&id.len()) && is_visible(id);
        only.ok().filter(is_id)
    }

    /// Whether the connection of the client is secure: to the gateway, or to a trusted proxy that says so.
    pub fn is_secure(&self, connection: &ClientConnection, headers: &HeaderMap) -> bool {
        let mut protocols = headers.get_all(X_FORWARDED_PROTO).iter();
        let is_https =
            protocols.next().is_some_and(|one| one == "https") && protocols.next().is_none();
        let peer = connection.peer.ip().to_canonical();
        connection.tls.is_some() || (is_https && self.trusts(peer))
    }

    /// The first hop from the end that is not trusted; otherwise the last one that is an address.
    fn walk(&self, peer: IpAddr, hops: impl Iterator<Item = Option<IpAddr>>) -> IpAddr {
        let mut client = peer;
        for hop in hops {
            let Some(hop) = hop else { break };
            client = hop;
            if !self.trusts(hop) {
                break;
            }
        }
        client
    }
}

fn is_visible(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_graphic())
}

// === impl HeaderKind ===

impl HeaderKind {
    /// The kind of the header with this name.
    pub fn named(name: HeaderName) -> Self {
        match name {
            name if name == X_FORWARDED_FOR => Self::XForwardedFor,
            FORWARDED => Self::Forwarded,
            name => Self::Single(name),
        }
    }
}

// === impl IpPrefixes ===

impl Default for IpPrefixes {
    fn default() -> Self {
        Self { v4: 32, v6: 64 }
    }
}

impl IpPrefixes {
    /// The number of bits of `ip` that count.
    pub const fn length(&self, ip: IpAddr) -> u8 {
        match ip {
            IpAddr::V4(_) => self.v4,
            IpAddr::V6(_) => self.v6,
        }
    }

    /// The network of `ip`, as its first address. An IPv4-mapped address becomes IPv4.
    pub fn network(&self, ip: IpAddr) -> IpAddr {
        match ip.to_canonical() {
            IpAddr::V4(ip) => {
                let host = u32::MAX.checked_shr(self.v4.into()).unwrap_or(0);
                IpAddr::V4((ip.to_bits() & !host).into())
            }
            IpAddr::V6(ip) => {
                let host = u128::MAX.checked_shr(self.v6.into()).unwrap_or(0);
                IpAddr::V6((ip.to_bits() & !host).into())
            }
        }
    }
}

/// The values of a header, from the last to the first.
fn lines<'h>(
    headers: &'h HeaderMap,
    name: &HeaderName,
) -> impl Iterator<Item = &'h [u8]> + use<'h> {
    let lines = headers.get_all(name).iter().rev();
    lines.map(|line| line.as_bytes())
}

/// The addresses of a list, from the last to the first. `None` for an entry that is not an address.
fn hops(line: &[u8]) -> impl Iterator<Item = Option<IpAddr>> {
    line.rsplit(|byte| *byte == b',').map(address)
}

fn single(headers: &HeaderMap, name: &HeaderName) -> Option<IpAddr> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?;
    // With two values, it is unknown which one the proxy wrote.
    values.next().is_none().then(|| address(value.as_bytes()))?
}

/// Parses an address with or without a port, IPv6 with or without brackets.
fn address(text: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(text).ok()?.trim_matches([' ', '\t']);
    let bracketed = || text.strip_prefix('[')?.strip_suffix(']')?.parse().ok();
    let with_port = || text.parse().ok().map(|socket: SocketAddr| socket.ip());
    let bare = text.parse().ok();
    let ip = bare.or_else(bracketed).or_else(with_port);
    ip.map(|ip| ip.to_canonical())
}

/// The addresses of a `Forwarded` value (RFC 7239), from the last to the first. `None` for an entry
/// that is not an address. A value with an unpaired quote is not a list: a client must not be able
/// to hide what a proxy appends by leaving a quote open.
fn forwarded_hops(line: &[u8]) -> std::iter::Rev<std::vec::IntoIter<Option<IpAddr>>> {
    let hops = match split_unquoted(line, b',') {
        Some(elements) => elements.into_iter().map(forwarded_hop).collect(),
        None => vec![None],
    };
    hops.into_iter().rev()
}

/// The only `for` parameter of an element. With several, it is unknown which one applies.
fn forwarded_hop(element: &[u8]) -> Option<IpAddr> {
    let pairs = split_unquoted(element, b';')?;
    let mut nodes = pairs.into_iter().filter_map(forwarded_node);
    let node = nodes.next()?;
    nodes.next().is_none().then(|| address(unquoted(node)))?
}

fn forwarded_node(pair: &[u8]) -> Option<&[u8]> {
    let pair = pair.trim_ascii();
    let (name, value) = pair.split_at_checked(4)?;
    name.eq_ignore_ascii_case(b"for=").then_some(value)
}

fn unquoted(value: &[u8]) -> &[u8] {
    let inner = value
        .strip_prefix(b"\"")
        .and_then(|v| v.strip_suffix(b"\""));
    inner.unwrap_or(value)
}

/// Splits at separators outside quoted strings. `None` if a quote stays open.
fn split_unquoted(text: &[u8], separator: u8) -> Option<Vec<&[u8]>> {
    let (mut quoted, mut escaped) = (false, false);
    let parts = text.split(|byte| {
        let skip = std::mem::take(&mut escaped);
        match *byte {
            b'\\' if quoted && !skip => escaped = true,
            b'"' if !skip => quoted = !quoted,
            _ => {}
        }
        !quoted && *byte == separator
    });
    let parts = parts.collect();
    (!quoted).then_some(parts)
}

#[cfg(test)]
mod tests;
