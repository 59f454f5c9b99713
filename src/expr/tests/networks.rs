//! Sets of networks: families, IPv4-mapped addresses, and a comparison with a plain search.

use std::net::IpAddr;

use ipnet::{IpNet, Ipv4Net};
use proptest::prelude::*;

use super::super::IpSet;

fn set(networks: &[&str]) -> IpSet {
    IpSet::of_networks(networks.iter().map(|n| n.parse().unwrap()))
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
    assert!(IpSet::of_networks([]).is_empty());
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
    fn a_set_of_networks_agrees_with_a_linear_search(
        nets in proptest::collection::vec((any::<u32>(), 0u8..=32), 0..20),
        ips in proptest::collection::vec(any::<u32>(), 20),
    ) {
        let nets: Vec<IpNet> = nets.into_iter()
            .map(|(ip, len)| Ipv4Net::new(ip.into(), len).unwrap().into())
            .collect();
        let set = IpSet::of_networks(nets.iter().copied());
        for ip in ips.into_iter().chain(nets.iter().map(|n| match n.addr() {
            IpAddr::V4(ip) => ip.to_bits(),
            IpAddr::V6(_) => 0,
        })) {
            let ip = IpAddr::V4(ip.into());
            prop_assert_eq!(set.contains(ip), nets.iter().any(|n| n.contains(&ip)));
        }
    }
}
