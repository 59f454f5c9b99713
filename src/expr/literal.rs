//! Literals as written: strings in quotes with their escapes, and integers, addresses, blocks and
//! ranges without quotes.
//!
//! The valid escapes depend on the use of the string: a regex has its own, and only `wildcard` has
//! `\*`. IPv4-mapped IPv6 addresses (RFC 4291 §2.5.5.2) become IPv4 here, as they do in a field.

use std::net::IpAddr;

use ipnet::{IpNet, Ipv4Net};

use super::ExprError;
use super::lex::Span;

/// A literal that needs no quotes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum UnquotedLiteral {
    Int(i64),
    IntRange(i64, i64),
    Ip(IpAddr),
    IpRange(IpAddr, IpAddr),
    Net(IpNet),
}

/// The use of a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LiteralUse {
    /// A comparison or a function.
    Plain,
    /// `matches`: all escapes but `\"` stay for the regex.
    Regex,
    /// `wildcard`: `\*` stays for the pattern.
    Wildcard,
}

// === impl UnquotedLiteral ===

impl UnquotedLiteral {
    /// The first and last integer. `None` for addresses.
    pub(super) fn ints(self) -> Option<(i64, i64)> {
        match self {
            UnquotedLiteral::Int(int) => Some((int, int)),
            UnquotedLiteral::IntRange(low, high) => Some((low, high)),
            UnquotedLiteral::Ip(_) | UnquotedLiteral::IpRange(..) | UnquotedLiteral::Net(_) => None,
        }
    }

    /// The first and last address. `None` for integers.
    pub(super) fn ips(self) -> Option<(IpAddr, IpAddr)> {
        match self {
            UnquotedLiteral::Ip(ip) => Some((ip, ip)),
            UnquotedLiteral::IpRange(low, high) => Some((low, high)),
            UnquotedLiteral::Net(net) => Some((net.network(), net.broadcast())),
            UnquotedLiteral::Int(_) | UnquotedLiteral::IntRange(..) => None,
        }
    }
}

/// A reason and a suggestion.
type Refusal = (String, Option<&'static str>);

/// Parses one literal.
pub(super) fn atom(word: &str) -> Result<UnquotedLiteral, Refusal> {
    match word.split_once("..") {
        Some((low, high)) => range(word, single(low)?, single(high)?),
        None => single(word),
    }
}

fn range(
    word: &str,
    low: UnquotedLiteral,
    high: UnquotedLiteral,
) -> Result<UnquotedLiteral, Refusal> {
    match (low, high) {
        (UnquotedLiteral::Int(low), UnquotedLiteral::Int(high)) if low <= high => {
            Ok(UnquotedLiteral::IntRange(low, high))
        }
        (UnquotedLiteral::Ip(low), UnquotedLiteral::Ip(high))
            if low.is_ipv4() != high.is_ipv4() =>
        {
            Err((format!("the range `{word}` mixes IPv4 and IPv6"), None))
        }
        (UnquotedLiteral::Ip(low), UnquotedLiteral::Ip(high)) if low <= high => {
            Ok(UnquotedLiteral::IpRange(low, high))
        }
        (UnquotedLiteral::Int(_), UnquotedLiteral::Int(_))
        | (UnquotedLiteral::Ip(_), UnquotedLiteral::Ip(_)) => Err((
            format!("the range `{word}` is empty"),
            Some("the smaller end comes first"),
        )),
        _ => Err((
            format!("`{word}` is not a range"),
            Some("write `1..5` or `192.0.2.1..192.0.2.9`"),
        )),
    }
}

fn single(word: &str) -> Result<UnquotedLiteral, Refusal> {
    if word.starts_with('/') {
        let message = format!("strings need double quotes: write `\"{word}\"`");
        return Err((message, None));
    }
    if word.contains('/') {
        let help = Some("write `192.0.2.0/24` or `2001:db8::/32`");
        let block = word.parse::<IpNet>();
        return block
            .map(|block| UnquotedLiteral::Net(canonical_network(block)))
            .map_err(|_| (format!("`{word}` is not an address block"), help));
    }
    if word.contains([':', '.']) {
        let help = Some("write `192.0.2.1` or `2001:db8::1`");
        let ip = word.parse::<IpAddr>();
        return ip
            .map(|ip| UnquotedLiteral::Ip(ip.to_canonical()))
            .map_err(|_| (format!("`{word}` is not an address"), help));
    }
    int(word).map(UnquotedLiteral::Int)
}

fn int(word: &str) -> Result<i64, Refusal> {
    let digits = word.strip_prefix('-').unwrap_or(word);
    let (radix, digits) = match digits.strip_prefix("0x") {
        Some(digits) => (16, digits),
        None => (10, digits),
    };
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
        return Err((format!("`{word}` is not an integer"), None));
    }
    if radix == 10 && digits.len() > 1 && digits.starts_with('0') {
        // Cloudflare reads a leading zero as octal; either interpretation would be wrong for some users.
        let help = Some("write it without the zero");
        return Err((format!("`{word}` starts with a zero"), help));
    }
    let sign = if word.starts_with('-') { "-" } else { "" };
    let help = Some("integers have 64 bits");
    i64::from_str_radix(&format!("{sign}{digits}"), radix)
        .map_err(|_| (format!("`{word}` is too big"), help))
}

/// The network without host bits. A network of IPv4-mapped addresses becomes the IPv4 one:
/// `::ffff:10.0.0.0/104` is `10.0.0.0/8`.
pub fn canonical_network(network: IpNet) -> IpNet {
    let network = network.trunc();
    let IpNet::V6(v6) = network else {
        return network;
    };
    let prefix = v6.prefix_len().checked_sub(96);
    let v4 = v6.network().to_ipv4_mapped().zip(prefix);
    let v4 = v4.and_then(|(ip, prefix)| Ipv4Net::new(ip, prefix).ok());
    v4.map_or(network, IpNet::V4)
}

/// Decodes the text at `body`.
pub(super) fn decode(source: &str, body: Span, reader: LiteralUse) -> Result<Box<[u8]>, ExprError> {
    let mut out = Vec::with_capacity(body.len());
    let mut at = body.start;
    while let Some(rest) = source.get(at..body.end).filter(|rest| !rest.is_empty()) {
        let plain = rest.find('\\').unwrap_or(rest.len());
        out.extend_from_slice(rest.get(..plain).unwrap_or("").as_bytes());
        at += plain;
        if let Some(rest) = rest.get(plain..).filter(|rest| !rest.is_empty()) {
            at += escape(rest, reader, &mut out).map_err(|len| unknown(rest, at, len))?;
        }
    }
    Ok(out.into())
}

/// Decodes the escape at the start of `rest` and returns its length; the error is the length of the
/// invalid part.
fn escape(rest: &str, reader: LiteralUse, out: &mut Vec<u8>) -> Result<usize, usize> {
    let next = rest.chars().nth(1).ok_or(1usize)?;
    let len = 1 + next.len_utf8();
    match (next, reader) {
        ('"', _) => out.push(b'"'),
        (_, LiteralUse::Regex) | ('*', LiteralUse::Wildcard) => {
            out.extend_from_slice(rest.get(..len).unwrap_or("").as_bytes());
        }
        ('\\', _) => out.push(b'\\'),
        ('x', _) => return number(rest, 2, 16, 2, out),
        ('0'..='7', _) => return number(rest, 1, 8, 3, out),
        _ => return Err(len),
    }
    Ok(len)
}

fn number(
    rest: &str,
    from: usize,
    radix: u32,
    digits: usize,
    out: &mut Vec<u8>,
) -> Result<usize, usize> {
    let text = rest.get(from..from + digits).ok_or(from)?;
    if !text.chars().all(|c| c.is_digit(radix)) {
        return Err(from);
    }
    out.push(u8::from_str_radix(text, radix).map_err(|_| from + digits)?);
    Ok(from + digits)
}

fn unknown(rest: &str, at: usize, len: usize) -> ExprError {
    let text = rest.get(..len).unwrap_or("\\");
    ExprError {
        span: at..at + len,
        message: format!("unknown escape `{text}`"),
        help: Some("escapes are `\\\"`, `\\\\`, `\\xHH` and `\\OOO`; r\"…\" has none".into()),
    }
}
