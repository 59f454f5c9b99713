//! Any forwarding headers: the client is the peer or whom a trusted proxy named, and nothing that
//! stands in front of that changes it.

use std::net::{IpAddr, SocketAddr};

use http::header::FORWARDED;
use http::{HeaderMap, HeaderName, HeaderValue};
use ipnet::IpNet;
use lockgate::facts::{ClientIpResolver, HeaderKind};

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const SINGLE: HeaderName = HeaderName::from_static("cf-connecting-ip");

/// Takes the first line for the peer, the second for trusted networks, the others for the header.
pub fn forwarding(data: &[u8]) {
    let mut lines = data.split(|byte| *byte == b'\n');
    let mut words = || std::str::from_utf8(lines.next()?).ok();
    let (Some(peer), Some(networks)) = (words(), words()) else {
        return;
    };
    let Ok(peer) = peer.parse::<IpAddr>() else {
        return;
    };
    let trusted: Vec<IpNet> = networks
        .split(' ')
        .filter_map(|net| net.parse().ok())
        .collect();
    let lines: Vec<HeaderValue> = lines
        .filter_map(|line| HeaderValue::from_bytes(line).ok())
        .collect();
    for name in [X_FORWARDED_FOR, FORWARDED, SINGLE] {
        let asked = Asked {
            from: ClientIpResolver::new(trusted.iter().copied(), HeaderKind::named(name.clone())),
            peer: peer.to_canonical(),
            name,
        };
        asked.check(&lines);
    }
}

/// Who is asked for.
struct Asked {
    from: ClientIpResolver,
    peer: IpAddr,
    name: HeaderName,
}

// === impl Asked ===

impl Asked {
    fn check(&self, lines: &[HeaderValue]) {
        let client = self.client(lines.iter());
        assert_eq!(client, client.to_canonical());
        if !self.from.trusts(self.peer) {
            assert_eq!(client, self.peer, "an untrusted peer is believed");
        }
        assert!(client == self.peer || stands_in(client, lines), "{client}");
        if self.name == SINGLE && lines.len() > 1 {
            assert_eq!(client, self.peer);
        }
        // A trusted address may have more behind it.
        if self.name != SINGLE && !self.from.trusts(client) {
            self.in_front_is_nothing(client, lines);
            self.behind_is_a_proxy(client, lines);
        }
    }

    fn client<'l>(&self, lines: impl Iterator<Item = &'l HeaderValue>) -> IpAddr {
        let lines = lines.map(|line| (self.name.clone(), line.clone()));
        self.from.resolve(self.peer, &lines.collect::<HeaderMap>())
    }

    /// What a client writes before its own address.
    fn in_front_is_nothing(&self, client: IpAddr, lines: &[HeaderValue]) {
        let inventions = ["203.0.113.99", "for=203.0.113.99", "\"", "", "unknown, ,"];
        for invention in inventions.map(HeaderValue::from_static) {
            let all = [&invention].into_iter().chain(lines);
            assert_eq!(self.client(all), client, "behind {invention:?}");
        }
        let all = lines.iter().chain(lines);
        assert_eq!(self.client(all), client, "twice");
        if let [first, rest @ ..] = lines {
            let longer = [b"for=192.0.2.99, ", first.as_bytes()].concat();
            let longer = HeaderValue::from_bytes(&longer).expect("both can stand there");
            let all = [&longer].into_iter().chain(rest);
            assert_eq!(self.client(all), client, "{longer:?}");
        }
    }

    /// What a trusted proxy adds: here the peer's own address.
    fn behind_is_a_proxy(&self, client: IpAddr, lines: &[HeaderValue]) {
        // An untrusted peer is the client, whatever follows.
        let hop = match (self.name == FORWARDED, self.peer) {
            (true, IpAddr::V6(peer)) => format!("for=\"[{peer}]\""),
            (true, peer) => format!("for={peer}"),
            (false, peer) => peer.to_string(),
        };
        let own = HeaderValue::from_str(&hop).expect("an address");
        assert_eq!(self.client(lines.iter().chain([&own])), client);
        if let [rest @ .., last] = lines {
            let longer = [last.as_bytes(), b",", hop.as_bytes()].concat();
            let longer = HeaderValue::from_bytes(&longer).expect("both can stand there");
            assert_eq!(self.client(rest.iter().chain([&longer])), client);
        }
    }
}

/// Whether an address is written in the lines.
fn stands_in(ip: IpAddr, lines: &[HeaderValue]) -> bool {
    let part = |byte: &u8| !(byte.is_ascii_hexdigit() || b".:".contains(byte));
    lines.iter().any(|line| {
        let mut words = line.as_bytes().split(part);
        words.any(|word| address(word) == Some(ip))
    })
}

fn address(word: &[u8]) -> Option<IpAddr> {
    let word = std::str::from_utf8(word).ok()?;
    let bare = word.parse::<IpAddr>().ok();
    let ip = bare.or_else(|| Some(word.parse::<SocketAddr>().ok()?.ip()));
    ip.map(|ip| ip.to_canonical())
}
