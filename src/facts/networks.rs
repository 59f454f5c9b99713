//! A set of networks that answers quickly whether it holds an address.
//!
//! Kept as sorted ranges that do not touch, one list for each family; an IPv4-mapped IPv6 address
//! or network is the IPv4 one.

use std::net::{IpAddr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net};

/// A set of networks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Networks {
    v4: Vec<(u32, u32)>,
    v6: Vec<(u128, u128)>,
}

// === impl Networks ===

impl Networks {
    /// The set of all addresses in `networks`.
    pub fn new(networks: impl IntoIterator<Item = IpNet>) -> Self {
        let (mut v4, mut v6) = (Vec::new(), Vec::new());
        for network in networks {
            match unmapped(network) {
                IpNet::V4(n) => v4.push((n.network().to_bits(), n.broadcast().to_bits())),
                IpNet::V6(n) => v6.push((n.network().to_bits(), n.broadcast().to_bits())),
            }
        }
        Self {
            v4: merged(v4),
            v6: merged(v6),
        }
    }

    /// Whether `ip` is in one of the networks.
    pub fn contains(&self, ip: IpAddr) -> bool {
        match ip.to_canonical() {
            IpAddr::V4(ip) => holds(&self.v4, ip.to_bits()),
            IpAddr::V6(ip) => holds(&self.v6, ip.to_bits()),
        }
    }

    /// Whether there is no network at all.
    pub fn is_empty(&self) -> bool {
        self.v4.is_empty() && self.v6.is_empty()
    }
}

/// `::ffff:10.0.0.0/104` is `10.0.0.0/8`.
pub fn unmapped(network: IpNet) -> IpNet {
    let mapped = |ip: Ipv6Addr, length: u8| {
        let net = Ipv4Net::new(ip.to_ipv4_mapped()?, length.checked_sub(96)?);
        net.ok().map(IpNet::V4)
    };
    match network {
        IpNet::V6(net) => mapped(net.network(), net.prefix_len()).unwrap_or(network),
        IpNet::V4(_) => network,
    }
}

/// The same addresses, as sorted ranges that do not overlap.
fn merged<T: Ord + Copy>(mut ranges: Vec<(T, T)>) -> Vec<(T, T)> {
    ranges.sort_unstable();
    ranges.dedup_by(|next, kept| {
        let overlaps = next.0 <= kept.1;
        if overlaps {
            kept.1 = kept.1.max(next.1);
        }
        overlaps
    });
    ranges
}

fn holds<T: Ord + Copy>(ranges: &[(T, T)], value: T) -> bool {
    let after = ranges.partition_point(|range| range.0 <= value);
    let last = after.checked_sub(1).and_then(|at| ranges.get(at));
    last.is_some_and(|range| value <= range.1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn set(networks: &[&str]) -> Networks {
        Networks::new(networks.iter().map(|n| n.parse().unwrap()))
    }

    fn holds(networks: &[&str], ip: &str) -> bool {
        set(networks).contains(ip.parse().unwrap())
    }

    #[test]
    fn addresses_are_found_in_their_family() {
        let nets = [
            "10.0.0.0/8",
            "192.0.2.0/24",
            "2001:db8::/32",
            "192.0.2.128/25",
        ];
        for ip in [
            "10.0.0.0",
            "10.255.255.255",
            "192.0.2.200",
            "2001:db8::1",
            "::ffff:10.1.1.1",
        ] {
            assert!(holds(&nets, ip), "{ip}");
        }
        for ip in [
            "9.255.255.255",
            "11.0.0.0",
            "192.0.3.0",
            "2001:db9::",
            "::10.0.0.1",
        ] {
            assert!(!holds(&nets, ip), "{ip}");
        }
        assert!(Networks::default().is_empty());
    }

    #[test]
    fn mapped_networks_are_ipv4_networks() {
        assert!(holds(&["::ffff:10.0.0.0/104"], "10.1.2.3"));
        assert!(holds(&["0.0.0.0/0"], "255.255.255.255"));
        assert!(holds(&["::/0"], "ffff::"));
        assert!(!holds(&["::/0"], "1.2.3.4"));
    }

    proptest! {
        #[test]
        fn agrees_with_a_plain_search(
            nets in proptest::collection::vec((any::<u32>(), 0u8..=32), 0..20),
            ips in proptest::collection::vec(any::<u32>(), 20),
        ) {
            let nets: Vec<IpNet> = nets.into_iter()
                .map(|(ip, len)| Ipv4Net::new(ip.into(), len).unwrap().into())
                .collect();
            let set = Networks::new(nets.iter().copied());
            for ip in ips.into_iter().chain(nets.iter().map(|n| match n.addr() {
                IpAddr::V4(ip) => ip.to_bits(),
                IpAddr::V6(_) => 0,
            })) {
                let ip = IpAddr::V4(ip.into());
                prop_assert_eq!(set.contains(ip), nets.iter().any(|n| n.contains(&ip)));
            }
        }
    }
}
