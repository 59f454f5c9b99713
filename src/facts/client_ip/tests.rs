//! The client's address, with and without proxies.

use std::net::IpAddr;

use http::{HeaderMap, HeaderName, HeaderValue};
use proptest::prelude::*;

use super::{ClientIpResolver, HeaderKind, IpPrefixes};

const PROXIES: [&str; 3] = ["10.0.0.0/8", "2001:db8::/32", "192.0.2.1/32"];

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// The client behind the trusted peer 10.0.0.1, given lines of one header.
fn client(header: &str, lines: &[&str]) -> String {
    client_of("10.0.0.1", header, lines)
}

fn client_of(peer: &str, header: &str, lines: &[&str]) -> String {
    let name: HeaderName = header.parse().unwrap();
    let mut headers = HeaderMap::new();
    for line in lines {
        headers.append(&name, HeaderValue::from_str(line).unwrap());
    }
    let trusted = PROXIES.iter().map(|net| net.parse().unwrap());
    let client_ip = ClientIpResolver::new(trusted, HeaderKind::named(name));
    client_ip.resolve(ip(peer), &headers).to_string()
}

fn xff(lines: &[&str]) -> String {
    client("x-forwarded-for", lines)
}

fn forwarded(lines: &[&str]) -> String {
    client("forwarded", lines)
}

#[test]
fn an_untrusted_peer_is_the_client() {
    assert_eq!(
        client_of("203.0.113.9", "x-forwarded-for", &["1.1.1.1"]),
        "203.0.113.9"
    );
    assert_eq!(
        client_of("::ffff:203.0.113.9", "x-forwarded-for", &[]),
        "203.0.113.9"
    );
}

#[test]
fn the_last_untrusted_address_is_the_client() {
    assert_eq!(xff(&["1.1.1.1"]), "1.1.1.1");
    assert_eq!(xff(&["6.6.6.6, 1.1.1.1"]), "1.1.1.1");
    assert_eq!(xff(&["6.6.6.6, 1.1.1.1, 10.2.2.2"]), "1.1.1.1");
    assert_eq!(xff(&["1.1.1.1,10.2.2.2,192.0.2.1"]), "1.1.1.1");
    assert_eq!(
        client_of("::ffff:10.0.0.1", "x-forwarded-for", &["1.1.1.1"]),
        "1.1.1.1"
    );
}

#[test]
fn if_all_addresses_are_trusted_the_first_is_the_client() {
    assert_eq!(xff(&["10.9.9.9, 10.2.2.2"]), "10.9.9.9");
    assert_eq!(xff(&[]), "10.0.0.1");
}

#[test]
fn lines_are_joined_in_order() {
    assert_eq!(xff(&["1.1.1.1", "2.2.2.2"]), "2.2.2.2");
    assert_eq!(xff(&["1.1.1.1", "10.2.2.2", "10.3.3.3"]), "1.1.1.1");
    assert_eq!(xff(&["6.6.6.6, 1.1.1.1", "10.2.2.2"]), "1.1.1.1");
}

#[test]
fn ports_are_dropped() {
    assert_eq!(xff(&["1.1.1.1:4711"]), "1.1.1.1");
    assert_eq!(xff(&["[2001:db9::1]:4711"]), "2001:db9::1");
    assert_eq!(xff(&["[2001:db9::1]"]), "2001:db9::1");
    assert_eq!(xff(&["2001:db9::1"]), "2001:db9::1");
    assert_eq!(xff(&["1.1.1.1, [2001:db8::7]:1"]), "1.1.1.1");
}

#[test]
fn an_invalid_address_ends_the_walk_at_the_previous_hop() {
    for bad in [
        "unknown",
        "",
        "1.1.1",
        "1.1.1.1:99999",
        "1.1.1.1;",
        "[1.1.1.1]x",
        "01.1.1.1",
    ] {
        assert_eq!(xff(&[&format!("1.1.1.1, {bad}")]), "10.0.0.1", "{bad:?}");
        let line = format!("1.1.1.1, {bad}, 10.7.7.7");
        assert_eq!(xff(&[&line]), "10.7.7.7", "{bad:?}");
    }
}

#[test]
fn mapped_addresses_are_ipv4() {
    assert_eq!(xff(&["::ffff:1.1.1.1"]), "1.1.1.1");
    assert_eq!(xff(&["1.1.1.1, ::ffff:10.0.0.7"]), "1.1.1.1");
    assert_eq!(xff(&["[::ffff:1.1.1.1]:80"]), "1.1.1.1");
}

#[test]
fn the_forwarded_header_is_walked_like_x_forwarded_for() {
    assert_eq!(forwarded(&["for=1.1.1.1"]), "1.1.1.1");
    assert_eq!(
        forwarded(&["for=6.6.6.6, For=\"1.1.1.1:99\";proto=https;by=10.1.1.1"]),
        "1.1.1.1"
    );
    assert_eq!(
        forwarded(&["proto=http;for=\"[2001:db9::1]:1\""]),
        "2001:db9::1"
    );
    assert_eq!(
        forwarded(&["for=1.1.1.1, for=10.2.2.2", "for=10.3.3.3"]),
        "1.1.1.1"
    );
    assert_eq!(
        forwarded(&["for=1.1.1.1;host=\"a,b;for=6.6.6.6\""]),
        "1.1.1.1"
    );
}

#[test]
fn forwarded_that_names_no_address_ends_the_walk() {
    for bad in [
        "for=unknown",
        "for=_hidden",
        "proto=https",
        "for=1.1.1.1;for=2.2.2.2",
        "for=",
    ] {
        assert_eq!(
            forwarded(&[&format!("for=1.1.1.1, {bad}")]),
            "10.0.0.1",
            "{bad}"
        );
    }
}

#[test]
fn an_unclosed_quote_does_not_hide_later_elements() {
    assert_eq!(forwarded(&["for=\"6.6.6.6, for=1.1.1.1"]), "10.0.0.1");
    assert_eq!(forwarded(&["for=6.6.6.6;x=\"\\", "for=1.1.1.1"]), "1.1.1.1");
    assert_eq!(
        forwarded(&["for=6.6.6.6;x=\"a\\\"", "for=10.2.2.2"]),
        "10.2.2.2"
    );
}

#[test]
fn a_single_address_header() {
    assert_eq!(client("true-client-ip", &["1.1.1.1"]), "1.1.1.1");
    assert_eq!(client("true-client-ip", &["1.1.1.1, 2.2.2.2"]), "10.0.0.1");
    assert_eq!(
        client("true-client-ip", &["1.1.1.1", "2.2.2.2"]),
        "10.0.0.1"
    );
    assert_eq!(client("true-client-ip", &[]), "10.0.0.1");
}

#[test]
fn an_address_is_masked_to_its_network() {
    let network = |v4, v6, address| IpPrefixes { v4, v6 }.network(ip(address)).to_string();
    assert_eq!(
        IpPrefixes::default().network(ip("192.0.2.77")),
        ip("192.0.2.77")
    );
    assert_eq!(
        IpPrefixes::default().network(ip("2001:db8:1:2:3::4")),
        ip("2001:db8:1:2::")
    );
    assert_eq!(network(24, 64, "192.0.2.77"), "192.0.2.0");
    assert_eq!(network(24, 64, "::ffff:192.0.2.77"), "192.0.2.0");
    assert_eq!(network(0, 0, "192.0.2.77"), "0.0.0.0");
    assert_eq!(network(0, 0, "2001:db8::1"), "::");
    assert_eq!(network(255, 255, "2001:db8::1"), "2001:db8::1");
    assert_eq!(network(32, 48, "2001:db8:1:2::"), "2001:db8:1::");
}

proptest! {
    #[test]
    fn a_forged_prefix_never_changes_the_proxys_entry(forged in "[ -~]{0,40}") {
        prop_assert_eq!(xff(&[&format!("{forged}, 1.1.1.1")]), "1.1.1.1");
        let client = forwarded(&[&format!("{forged}, for=1.1.1.1")]);
        prop_assert!(client == "1.1.1.1" || client == "10.0.0.1", "{}", client);
    }
}

#[test]
fn a_trusted_proxys_request_id_is_used_if_its_characters_are_safe() {
    let id = |peer: &str, lines: &[&str]| {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append("x-request-id", HeaderValue::from_str(line).unwrap());
        }
        let trusted = PROXIES.iter().map(|net| net.parse().unwrap());
        let client_ip = ClientIpResolver::new(trusted, HeaderKind::XForwardedFor);
        client_ip.request_id(ip(peer), &headers).map(str::to_owned)
    };
    let longest = "x".repeat(128);
    for given in ["01J-a/b=", &longest] {
        assert_eq!(id("10.0.0.1", &[given]).as_deref(), Some(given));
        assert_eq!(id("::ffff:10.0.0.1", &[given]).as_deref(), Some(given));
        assert_eq!(id("203.0.113.7", &[given]), None);
    }
    let longer = "x".repeat(129);
    for lines in [
        &[][..],
        &[""],
        &["a b"],
        &["\u{e9}"],
        &["a", "b"],
        &[&longer],
    ] {
        assert_eq!(id("10.0.0.1", lines), None, "{lines:?}");
    }
}
