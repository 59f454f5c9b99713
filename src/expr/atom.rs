//! Literals without quotes: integers, addresses, blocks and ranges. IPv4-mapped IPv6 addresses
//! (RFC 4291 §2.5.5.2) become IPv4 here, as they do in a field.

use std::net::IpAddr;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use super::token::Atom;

/// A reason and what would be right.
type Refusal = (String, Option<&'static str>);

/// Reads one literal.
pub(super) fn atom(word: &str) -> Result<Atom, Refusal> {
    match word.split_once("..") {
        Some((low, high)) => range(word, single(low)?, single(high)?),
        None => single(word),
    }
}

fn range(word: &str, low: Atom, high: Atom) -> Result<Atom, Refusal> {
    match (low, high) {
        (Atom::Int(low), Atom::Int(high)) if low <= high => Ok(Atom::IntRange(low, high)),
        (Atom::Ip(low), Atom::Ip(high)) if low.is_ipv4() != high.is_ipv4() => {
            Err((format!("the range `{word}` mixes IPv4 and IPv6"), None))
        }
        (Atom::Ip(low), Atom::Ip(high)) if low <= high => Ok(Atom::IpRange(low, high)),
        (Atom::Int(_), Atom::Int(_)) | (Atom::Ip(_), Atom::Ip(_)) => Err((
            format!("the range `{word}` is empty"),
            Some("the smaller end comes first"),
        )),
        _ => Err((
            format!("`{word}` is not a range"),
            Some("write `1..5` or `192.0.2.1..192.0.2.9`"),
        )),
    }
}

fn single(word: &str) -> Result<Atom, Refusal> {
    if word.starts_with('/') {
        let message = format!("strings stand in double quotes: write `\"{word}\"`");
        return Err((message, None));
    }
    if word.contains('/') {
        let help = Some("write `192.0.2.0/24` or `2001:db8::/32`");
        let block = word.parse::<IpNet>();
        return block
            .map(|block| Atom::Net(canonical(block)))
            .map_err(|_| (format!("`{word}` is not an address block"), help));
    }
    if word.contains([':', '.']) {
        let help = Some("write `192.0.2.1` or `2001:db8::1`");
        let ip = word.parse::<IpAddr>();
        return ip
            .map(|ip| Atom::Ip(ip.to_canonical()))
            .map_err(|_| (format!("`{word}` is not an address"), help));
    }
    int(word).map(Atom::Int)
}

fn int(word: &str) -> Result<i64, Refusal> {
    let (negative, digits) = match word.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, word),
    };
    let (radix, digits) = match digits.strip_prefix("0x") {
        Some(digits) => (16, digits),
        None => (10, digits),
    };
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
        return Err((format!("`{word}` is not an integer"), None));
    }
    if radix == 10 && digits.len() > 1 && digits.starts_with('0') {
        // Cloudflare reads a leading zero as octal; guessing either way would surprise someone.
        return Err((
            format!("`{word}` starts with a zero"),
            Some("write it without the zero"),
        ));
    }
    let signed = if negative {
        format!("-{digits}")
    } else {
        digits.to_owned()
    };
    i64::from_str_radix(&signed, radix).map_err(|_| {
        (
            format!("`{word}` is too big"),
            Some("integers have 64 bits"),
        )
    })
}

/// Masks host bits and turns a block of IPv4-mapped addresses into the IPv4 block.
fn canonical(block: IpNet) -> IpNet {
    match block.trunc() {
        IpNet::V6(v6) => mapped(v6).map_or(IpNet::V6(v6), IpNet::V4),
        v4 => v4,
    }
}

fn mapped(block: Ipv6Net) -> Option<Ipv4Net> {
    let v4 = block.network().to_ipv4_mapped()?;
    let prefix = block.prefix_len().checked_sub(96)?;
    Ipv4Net::new(v4, prefix).ok()
}
