//! Lists: what their values are, where one does not fit, and large ones.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;

use super::super::set::{IntSet, IpSet, StringSet};
use super::super::{ExprEnv, ListEntry, NamedList, NamedLists, predicate};
use super::{Small, request};

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

#[test]
fn digits_are_integers_and_strings() {
    let list = NamedList::from_texts(["64500", "-2", "0x10", "7..9"]);
    let ints = list.ints().unwrap();
    for int in [64500, -2, 16, 7, 8, 9] {
        assert!(ints.contains(int), "{int}");
    }
    assert!(!ints.contains(10));
    let strings = list.strings().unwrap();
    for text in ["64500", "-2", "0x10", "7..9"] {
        assert!(strings.contains(text.as_bytes()), "{text}");
    }
    assert!(!strings.contains(b"16"));
    assert_eq!(
        list.ips().unwrap_err().to_string(),
        "`64500` (list:1) and 3 more that do not fit"
    );
    // An identifier, but no integer.
    let list = NamedList::from_texts(["1", "007"]);
    assert!(list.strings().unwrap().contains(b"007"));
    assert_eq!(list.ints().unwrap_err().to_string(), "`007` (list:2)");
}

#[test]
fn addresses_networks_and_ranges() {
    let texts = [
        "192.0.2.1..192.0.2.9",
        "::ffff:198.51.100.0/120",
        "2001:db8::/48",
        "2001:db9::1",
    ];
    let ips = NamedList::from_texts(texts).ips().unwrap();
    for inside in [
        "192.0.2.1",
        "192.0.2.9",
        "198.51.100.77",
        "2001:db8::5",
        "2001:db9::1",
        "::ffff:192.0.2.4",
    ] {
        assert!(ips.contains(ip(inside)), "{inside}");
    }
    for outside in [
        "192.0.2.0",
        "192.0.2.10",
        "198.51.101.0",
        "2001:db8:1::",
        "2001:db9::2",
    ] {
        assert!(!ips.contains(ip(outside)), "{outside}");
    }
    for wrong in [
        "192.0.2.9..192.0.2.1",
        "192.0.2.1..::1",
        "10.0.0.0/33",
        "10.0.0",
        "x",
    ] {
        let misfit = NamedList::from_texts(["192.0.2.1", wrong])
            .ips()
            .unwrap_err();
        assert_eq!(misfit.to_string(), format!("`{wrong}` (list:2)"));
    }
}

#[test]
fn addresses_in_a_list_of_hosts_are_strings_too() {
    let hosts = NamedList::from_texts(["example.com", "192.0.2.1", "10.0.0.0/8"]);
    assert!(hosts.strings().unwrap().contains(b"192.0.2.1"));
    assert!(
        NamedList::from_texts(["192.0.2.1", "::1"])
            .strings()
            .is_ok()
    );
    // A list of only networks: a comparison with a string is a mistake.
    let networks = NamedList::from_texts(["192.0.2.1", "10.0.0.0/8"]);
    assert_eq!(networks.strings().unwrap_err().text, "10.0.0.0/8");
}

#[test]
fn rules_share_the_values_of_a_list() {
    let list = NamedList::from_texts(["curl", "wget"]);
    let (one, other) = (list.strings().unwrap(), list.clone().strings().unwrap());
    assert_eq!(one.few().unwrap().as_ptr(), other.few().unwrap().as_ptr());
}

#[test]
fn an_empty_list_has_every_type_and_contains_nothing() {
    let nobody = NamedList::from_texts([]);
    assert!(!nobody.strings().unwrap().contains(b""));
    assert!(!nobody.ints().unwrap().contains(0));
    assert!(!nobody.ips().unwrap().contains(ip("::")));
}

#[test]
fn a_value_of_the_wrong_type_is_reported_with_its_line() {
    let entries = [("192.0.2.1", 3), ("curl", 17), ("wget", 18)];
    let entries = entries.map(|(text, line)| ListEntry {
        text: text.into(),
        line,
    });
    let mut lists = NamedLists::new();
    lists.insert(
        "office",
        NamedList::from_file("office.txt", entries.to_vec()),
    );
    let env = ExprEnv {
        scheme: &Small,
        lists: &lists,
        allow_response: true,
    };
    let errors = predicate("ip.src in $office", &env).unwrap_err();
    let [error] = errors.as_slice() else {
        panic!("{errors:?}")
    };
    assert_eq!(
        error.message,
        "`ip.src` is an address; `$office` holds `curl` (office.txt:17) and 1 more that does not fit"
    );
    let help = "write each value as `192.0.2.1`, `192.0.2.0/24` or `192.0.2.1..192.0.2.9`";
    assert_eq!(error.help.as_deref(), Some(help));
    assert!(
        !predicate("http.host in $office", &env)
            .unwrap()
            .test(&request())
    );
}

#[test]
fn a_hundred_thousand_networks_are_distinguished() {
    let v4 =
        |n: u32| u32::from_be_bytes([10, (n >> 14) as u8, (n >> 6) as u8, ((n & 63) * 4) as u8]);
    let v6 = |n: u32| 0x2001_0db8_u128 << 96 | u128::from(n) << 72;
    let blocks = (0..100_000u32).flat_map(|n| {
        [
            format!("{}/31", Ipv4Addr::from_bits(v4(n))),
            format!("{}/64", Ipv6Addr::from_bits(v6(n))),
        ]
    });
    let texts: Vec<String> = blocks.collect();
    let set = NamedList::from_texts(texts.iter().map(|text| &**text))
        .ips()
        .unwrap();
    for n in (0..100_000u32).step_by(97) {
        for (inside, offset) in [(true, 0), (true, 1), (false, 2)] {
            let ip = Ipv4Addr::from_bits(v4(n) + offset);
            assert_eq!(set.contains(ip.into()), inside, "{ip}");
        }
        let last = v6(n) + (1 << 64) - 1;
        for (inside, bits) in [
            (true, v6(n)),
            (true, last),
            (false, last + 1),
            (false, v6(n) - 1),
        ] {
            let ip = Ipv6Addr::from_bits(bits);
            assert_eq!(set.contains(ip.into()), inside, "{ip}");
        }
    }
}

/// The last address of such a block looks like IPv4, and the block has more than that.
#[test]
fn a_network_that_ends_among_mapped_addresses_contains_the_unmapped_ones() {
    for prefix in 80..96 {
        let high = Ipv6Addr::from_bits(0xffff_ffff_ffff);
        let low = Ipv6Addr::from_bits(high.to_bits() & u128::MAX << (128 - prefix));
        let set = IpSet::new([(low.into(), high.into())]);
        assert!(set.contains(low.into()), "{low}/{prefix}");
        assert!(set.contains(ip("::fffe:255.255.255.255")));
        assert!(!set.contains(ip("192.0.2.1")));
        assert!(!set.contains(ip("::1:0:0:0")));
    }
}

#[test]
fn a_hundred_thousand_strings_are_distinguished() {
    let value = |n: u32| format!("agent/{n:x}").into_bytes().into_boxed_slice();
    let set = StringSet::new((0..100_000).map(value));
    for n in (0..100_000).step_by(97) {
        assert!(set.contains(&value(n)));
        assert!(!set.contains(&value(n + 100_000)));
    }
    assert!(!set.contains(&[b'a'; 70_000]));
}

proptest! {
    #[test]
    fn large_sets_contain_what_their_ranges_contain(
        ranges in prop::collection::vec((any::<i64>(), any::<u16>(), 0u32..64), 9..200),
        probes in prop::collection::vec(any::<i64>(), 20),
    ) {
        // Crowded and scattered at once: each low end is shifted by its own amount.
        let ranges: Vec<(i64, i64)> = ranges.into_iter()
            .map(|(low, width, shift)| (low >> shift, (low >> shift).saturating_add(width.into())))
            .collect();
        let edges = ranges.iter().flat_map(|&(low, high)| {
            [low, high, low.saturating_sub(1), high.saturating_add(1)]
        });
        let probes: Vec<i64> = edges.chain(probes).collect();
        let holds = |probe: i64| ranges.iter().any(|(low, high)| (*low..=*high).contains(&probe));
        let ints = IntSet::new(ranges.iter().copied());
        // The same order among addresses.
        let address = |value: i64| {
            let bits = u128::from(value.cast_unsigned() ^ 1 << 63) << 60 | 1 << 127;
            IpAddr::from(Ipv6Addr::from_bits(bits))
        };
        let ips = IpSet::new(ranges.iter().map(|&(low, high)| (address(low), address(high))));
        for probe in probes {
            prop_assert_eq!(ints.contains(probe), holds(probe), "{}", probe);
            prop_assert_eq!(ips.contains(address(probe)), holds(probe), "{}", probe);
        }
    }

    #[test]
    fn large_sets_of_strings_contain_their_values(
        values in prop::collection::btree_set(prop::collection::vec(any::<u8>(), 0..20), 0..60),
        probe in prop::collection::vec(any::<u8>(), 0..20),
    ) {
        let set = StringSet::new(values.iter().map(|value| value.as_slice().into()));
        prop_assert!(values.iter().all(|value| set.contains(value)));
        prop_assert_eq!(set.contains(&probe), values.contains(&probe));
    }
}
