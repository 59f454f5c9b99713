//! Tests of exemptions.

use super::*;
use crate::store::fixture::at;

const HOUR: u64 = 60 * 60;

fn entry(network: &str, until: u64) -> ExemptionEntry {
    let ip = network.parse::<IpAddr>().map(IpNet::from);
    ExemptionEntry {
        network: ip.unwrap_or_else(|_| network.parse().unwrap()),
        since: at(0),
        until: at(until),
        note: AdminNote::default(),
        scope: ChangeScope::Fleet,
    }
}

fn is_exempt(table: &ExemptionTable, ip: &str, secs: u64) -> bool {
    table.until(ip.parse().unwrap(), at(secs)).is_some()
}

#[test]
fn an_address_and_a_network_are_exempt_until_their_end() {
    let table = ExemptionTable::default();
    assert!(!is_exempt(&table, "203.0.113.7", 0));
    for (network, until) in [
        ("203.0.113.7", 60),
        ("198.51.100.0/24", 90),
        ("2001:db8::/32", 90),
    ] {
        table.add(entry(network, until), at(0)).unwrap();
    }
    for ip in [
        "203.0.113.7",
        "::ffff:203.0.113.7",
        "198.51.100.200",
        "2001:db8:1::1",
    ] {
        assert!(is_exempt(&table, ip, 59), "{ip}");
    }
    assert!(!is_exempt(&table, "203.0.113.8", 0));
    assert!(!is_exempt(&table, "203.0.113.7", 60));
    assert!(is_exempt(&table, "198.51.100.1", 60));
    assert_eq!(table.list(at(60)).len(), 2);
}

#[test]
fn an_exemption_replaces_that_of_the_same_network() {
    let table = ExemptionTable::default();
    table.add(entry("10.1.2.3/8", 60), at(0)).unwrap();
    table.add(entry("::ffff:10.0.0.0/104", 90), at(0)).unwrap();
    let listed = table.list(at(0));
    assert_eq!(listed, [entry("10.0.0.0/8", 90)]);
    let removed = table.remove("10.9.9.9/8".parse().unwrap(), at(0)).unwrap();
    assert_eq!(removed, listed[0]);
    assert!(!is_exempt(&table, "10.1.1.1", 0));
    let again = table.remove("10.0.0.0/8".parse().unwrap(), at(0));
    assert_eq!(again, Err(AdminError::NotFound));
}

#[test]
fn exemptions_are_few_and_end_within_a_day() {
    let table = ExemptionTable::default();
    let ended = table.add(entry("10.0.0.1", 5), at(5));
    assert_eq!(ended, Err(AdminError::AlreadyEnded));
    let long = table.add(entry("10.0.0.1", 25 * HOUR), at(0));
    assert_eq!(long, Err(AdminError::TooLong));
    for n in 0..MAX_EXEMPTIONS {
        let network = format!("10.0.{}.{}", n / 250, n % 250);
        table.add(entry(&network, 10 + n as u64), at(0)).unwrap();
    }
    let full = table.add(entry("192.0.2.1", 60), at(0));
    assert_eq!(full, Err(AdminError::ListFull));
    // One of those that exist can change, and an ended one leaves its place.
    table.add(entry("10.0.0.0", 70), at(0)).unwrap();
    table.add(entry("192.0.2.1", 60), at(11)).unwrap();
}

#[test]
fn those_of_the_fleet_are_replaced_and_those_of_this_node_stay() {
    let table = ExemptionTable::default();
    let own = ExemptionEntry {
        scope: ChangeScope::Node,
        ..entry("10.0.0.1", 60)
    };
    table.add(own.clone(), at(0)).unwrap();
    table.add(entry("10.0.0.2", 60), at(0)).unwrap();
    let of_fleet = [entry("10.0.0.3", 70), entry("10.0.0.4", 1)];
    table.replace_fleet(of_fleet, at(5));
    assert_eq!(table.list(at(5)), [entry("10.0.0.3", 70), own]);
}
