//! The PROXY protocol header, versions 1 and 2 (haproxy.org, proxy-protocol.txt): the client behind
//! the proxy that opened a connection.
//!
//! Only the strict syntax is accepted: no second space, no leading zero, no field that exceeds its
//! length. The crate `proxy-header` 0.1.3 is not used because it accepts malformed lines of version
//! 1 (`PROXYxTCP4`, `UNKNOWNgarbage`, a port `+80`, lines of any length), refuses a LOCAL header of
//! version 2 that names a family without addresses, and does not verify checksums. Never reads from
//! a socket, and does not know which peers are trusted.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The longest header of version 1, including its line end.
const LONGEST_V1: usize = 107;
/// The longest accepted header of version 2; proxies send a few hundred bytes.
pub const LONGEST: usize = 4096;

const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";
const WORD: &[u8] = b"PROXY ";
/// The number of bytes before the addresses in version 2.
const FIXED: usize = 16;

/// The type of the checksum extension of version 2.
const CRC32C: u8 = 0x03;

/// The content of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyHeader {
    /// The client's address.
    Source(SocketAddr),
    /// No client address: the connection is the proxy's own, or the client is unknown. The peer stays.
    Nothing,
}

/// Why bytes are not a valid header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyHeaderError {
    /// They do not begin like a header.
    NoHeader,
    /// They are longer than a header may be.
    TooLong,
    /// They begin like a header but are malformed.
    Malformed,
    /// The version, command, family or protocol is not one of a TCP connection.
    Unknown,
    /// The checksum does not match.
    Checksum,
}

/// Parses a header at the start of `bytes`; returns its content and length. `None` if more bytes
/// are needed.
pub fn parse(bytes: &[u8]) -> Result<Option<(ProxyHeader, usize)>, ProxyHeaderError> {
    if begins(bytes, SIGNATURE) {
        version_2(bytes)
    } else if begins(bytes, WORD) {
        version_1(bytes)
    } else {
        Err(ProxyHeaderError::NoHeader)
    }
}

/// Whether `bytes` begin with `start`, or are a prefix of it.
fn begins(bytes: &[u8], start: &[u8]) -> bool {
    bytes.iter().zip(start).all(|(byte, wanted)| byte == wanted)
}

fn version_1(bytes: &[u8]) -> Result<Option<(ProxyHeader, usize)>, ProxyHeaderError> {
    let longest = bytes.get(..LONGEST_V1).unwrap_or(bytes);
    let Some(end) = longest.windows(2).position(|pair| pair == b"\r\n") else {
        return if bytes.len() < LONGEST_V1 {
            Ok(None)
        } else {
            Err(ProxyHeaderError::TooLong)
        };
    };
    let line = bytes
        .get(WORD.len()..end)
        .ok_or(ProxyHeaderError::Malformed)?;
    let line = std::str::from_utf8(line).map_err(|_| ProxyHeaderError::Malformed)?;
    let parsed = match line.split_once(' ').unwrap_or((line, "")) {
        // The rest of the line must be ignored.
        ("UNKNOWN", _) => ProxyHeader::Nothing,
        ("TCP4", rest) => source::<Ipv4Addr>(rest)?,
        ("TCP6", rest) => source::<Ipv6Addr>(rest)?,
        _ => return Err(ProxyHeaderError::Unknown),
    };
    Ok(Some((parsed, end + 2)))
}

/// `source destination port port`.
fn source<A: std::str::FromStr + Into<IpAddr>>(
    line: &str,
) -> Result<ProxyHeader, ProxyHeaderError> {
    let mut words = line.split(' ');
    let mut next = || words.next().ok_or(ProxyHeaderError::Malformed);
    let address = |word: &str| word.parse::<A>().map_err(|_| ProxyHeaderError::Malformed);
    let (from, _to) = (address(next()?)?, address(next()?)?);
    let (port, _) = (port(next()?)?, port(next()?)?);
    match words.next() {
        None => Ok(ProxyHeader::Source(SocketAddr::new(from.into(), port))),
        Some(_) => Err(ProxyHeaderError::Malformed),
    }
}

fn port(word: &str) -> Result<u16, ProxyHeaderError> {
    let digits = word.bytes().all(|byte| byte.is_ascii_digit());
    let plain = digits && (word == "0" || !word.starts_with('0'));
    let port = word.parse().ok().filter(|_| plain);
    port.ok_or(ProxyHeaderError::Malformed)
}

fn version_2(bytes: &[u8]) -> Result<Option<(ProxyHeader, usize)>, ProxyHeaderError> {
    let Some([command, family, high, low]) = bytes.get(SIGNATURE.len()..FIXED) else {
        return Ok(None);
    };
    let length = usize::from(u16::from_be_bytes([*high, *low]));
    if FIXED + length > LONGEST {
        return Err(ProxyHeaderError::TooLong);
    }
    let Some(header) = bytes.get(..FIXED + length) else {
        return Ok(None);
    };
    let rest = header.get(FIXED..).unwrap_or_default();
    let parsed = match command {
        // A LOCAL header is skipped as a whole.
        0x20 => return Ok(Some((ProxyHeader::Nothing, header.len()))),
        0x21 => addresses(*family, rest)?,
        _ => return Err(ProxyHeaderError::Unknown),
    };
    let (parsed, extensions) = parsed;
    check_extensions(header, extensions)?;
    Ok(Some((parsed, header.len())))
}

/// Parses the addresses; returns the client and the bytes after them.
fn addresses(family: u8, bytes: &[u8]) -> Result<(ProxyHeader, &[u8]), ProxyHeaderError> {
    let (parsed, rest) = match family {
        // Unspecified, or a Unix socket.
        0x00 => (ProxyHeader::Nothing, Some(bytes)),
        0x31 => (ProxyHeader::Nothing, bytes.get(216..)),
        0x11 => match bytes.split_first_chunk::<12>() {
            Some((&[a, b, c, d, _, _, _, _, high, low, _, _], rest)) => {
                let ip = Ipv4Addr::new(a, b, c, d);
                (at(ip.into(), [high, low]), Some(rest))
            }
            None => (ProxyHeader::Nothing, None),
        },
        0x21 => match bytes.split_first_chunk::<16>() {
            Some((ip, rest)) => {
                let ip = Ipv6Addr::from(*ip);
                let port = rest.get(16..18).and_then(|port| port.try_into().ok());
                let parsed = port.map_or(ProxyHeader::Nothing, |port| at(ip.into(), port));
                (parsed, rest.get(20..))
            }
            None => (ProxyHeader::Nothing, None),
        },
        _ => return Err(ProxyHeaderError::Unknown),
    };
    rest.map(|rest| (parsed, rest))
        .ok_or(ProxyHeaderError::Malformed)
}

fn at(ip: IpAddr, port: [u8; 2]) -> ProxyHeader {
    ProxyHeader::Source(SocketAddr::new(ip, u16::from_be_bytes(port)))
}

/// Checks the lengths of the extensions, which are not used otherwise, and the checksum.
fn check_extensions(header: &[u8], mut rest: &[u8]) -> Result<(), ProxyHeaderError> {
    while !rest.is_empty() {
        let (&[kind, high, low], after) = rest
            .split_first_chunk()
            .ok_or(ProxyHeaderError::Malformed)?;
        let length = usize::from(u16::from_be_bytes([high, low]));
        let (value, after) = after
            .split_at_checked(length)
            .ok_or(ProxyHeaderError::Malformed)?;
        if kind == CRC32C {
            let checksum = value.try_into().map_err(|_| ProxyHeaderError::Malformed)?;
            let start = header.len() - after.len() - value.len();
            if crc32c_without(header, start) != u32::from_be_bytes(checksum) {
                return Err(ProxyHeaderError::Checksum);
            }
        }
        rest = after;
    }
    Ok(())
}

/// The checksum of a header with four zeros in its own position, `start`.
fn crc32c_without(header: &[u8], start: usize) -> u32 {
    const CASTAGNOLI: u32 = 0x82f6_3b78;
    let own = start..start + 4;
    let mut sum = u32::MAX;
    for (at, &byte) in header.iter().enumerate() {
        sum ^= u32::from(if own.contains(&at) { 0 } else { byte });
        for _ in 0..8 {
            sum = (sum >> 1) ^ (CASTAGNOLI & (sum & 1).wrapping_neg());
        }
    }
    !sum
}

// === impl ProxyHeaderError ===

impl ProxyHeaderError {
    /// A description without a full stop.
    pub const fn reason(self) -> &'static str {
        match self {
            ProxyHeaderError::NoHeader => "the connection does not begin with a PROXY header",
            ProxyHeaderError::TooLong => "the PROXY header is too long",
            ProxyHeaderError::Malformed => "the PROXY header is malformed",
            ProxyHeaderError::Unknown => "the PROXY header has an unsupported version or protocol",
            ProxyHeaderError::Checksum => "the checksum of the PROXY header is wrong",
        }
    }
}

#[cfg(test)]
mod tests;
