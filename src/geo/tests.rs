//! Databases, overrides and what is not known.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use ipnet::IpNet;
use proptest::prelude::*;

use super::{DatabaseError, DatabaseUse, GeoLookup, GeoOverride};
use crate::facts::GeoSource;

mod continents;
mod tables;

const ASN: &str = "GeoLite2-ASN-Test.mmdb";
const COUNTRY: &str = "GeoLite2-Country-Test.mmdb";

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data/geo")
        .join(name)
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn geo(overrides: &[(&str, GeoOverride)]) -> GeoLookup {
    let overrides = overrides
        .iter()
        .map(|(net, said)| (net.parse::<IpNet>().unwrap(), *said));
    GeoLookup::open(Some(&data(ASN)), Some(&data(COUNTRY)), overrides.collect()).unwrap()
}

fn said(asn: Option<u32>, country: Option<&[u8; 2]>) -> GeoOverride {
    GeoOverride {
        asn,
        country: country.copied(),
        continent: None,
    }
}

#[test]
fn autonomous_systems_are_looked_up() {
    let geo = geo(&[]);
    for (address, asn) in [
        ("1.0.0.0", Some(15169)),
        ("1.0.0.255", Some(15169)),
        ("1.128.0.1", Some(1221)),
        ("12.81.92.1", Some(7018)),
        ("1.0.1.0", None),
        ("::ffff:1.128.0.1", Some(1221)),
        ("127.0.0.1", None),
        ("::1", None),
    ] {
        assert_eq!(geo.asn(ip(address)), asn, "{address}");
    }
    assert_eq!(geo.as_name(ip("1.0.0.1")).as_deref(), Some("Google Inc."));
    assert_eq!(geo.as_name(ip("127.0.0.1")), None);
}

#[test]
fn countries_and_continents_are_looked_up() {
    let geo = geo(&[]);
    assert_eq!(geo.country(ip("2.125.160.216")), Some(*b"GB"));
    assert_eq!(geo.continent(ip("2.125.160.216")), Some(*b"EU"));
    assert_eq!(geo.country(ip("::ffff:2.125.160.216")), Some(*b"GB"));
    assert_eq!(geo.country(ip("2001:218::1")), Some(*b"JP"));
    assert_eq!(geo.continent(ip("2001:218::1")), Some(*b"AS"));
    assert_eq!(geo.country(ip("127.0.0.1")), None);
}

#[test]
fn without_databases_every_lookup_is_none() {
    let geo = GeoLookup::open(None, None, Vec::new()).unwrap();
    assert_eq!(geo.asn(ip("1.0.0.1")), None);
    assert_eq!(geo.country(ip("2.125.160.216")), None);
    assert_eq!(geo.continent(ip("2.125.160.216")), None);
}

#[test]
fn the_most_specific_override_wins() {
    let geo = geo(&[
        ("1.0.0.0/8", said(Some(1), Some(b"AA"))),
        ("1.0.0.0/24", said(Some(3), None)),
        ("1.0.0.0/16", said(Some(2), Some(b"BB"))),
        ("2001:db8::/32", said(Some(64500), Some(b"ZZ"))),
        ("::ffff:203.0.113.0/120", said(Some(64501), None)),
        ("255.255.255.255/32", said(Some(9), None)),
        ("0.0.0.0/0", said(None, Some(b"XX"))),
    ]);
    assert_eq!(geo.asn(ip("255.255.255.255")), Some(9));
    assert_eq!(geo.country(ip("255.255.255.255")), Some(*b"XX"));
    assert_eq!(geo.country(ip("1.9.0.1")), Some(*b"AA"));
    assert_eq!(geo.country(ip("12.81.92.1")), Some(*b"XX"));
    assert_eq!(geo.asn(ip("1.0.0.1")), Some(3));
    assert_eq!(geo.country(ip("1.0.0.1")), Some(*b"BB"));
    assert_eq!(geo.asn(ip("::ffff:1.0.1.1")), Some(2));
    assert_eq!(geo.asn(ip("1.9.0.1")), Some(1));
    assert_eq!(geo.asn(ip("12.81.92.1")), Some(7018));
    assert_eq!(geo.country(ip("2001:db8::1")), Some(*b"ZZ"));
    assert_eq!(geo.asn(ip("203.0.113.9")), Some(64501));
}

#[test]
fn an_override_replaces_only_the_values_it_sets() {
    let geo = geo(&[
        ("2.125.160.0/24", said(Some(5), None)),
        ("1.0.0.0/24", said(Some(6), None)),
    ]);
    assert_eq!(geo.as_name(ip("1.0.0.1")), None);
    assert_eq!(geo.asn(ip("2.125.160.216")), Some(5));
    assert_eq!(geo.country(ip("2.125.160.216")), Some(*b"GB"));
}

#[test]
fn the_wrong_kind_of_database_is_refused() {
    let error = GeoLookup::open(Some(&data(COUNTRY)), None, Vec::new())
        .unwrap_err()
        .remove(0);
    let text = error.to_string();
    assert!(matches!(error.fault, DatabaseError::Foreign { .. }));
    assert!(
        text.ends_with(
            "contains no autonomous system numbers; it is a database of type `GeoLite2-Country`"
        ),
        "{text}"
    );
    let error = GeoLookup::open(None, Some(&data(ASN)), Vec::new())
        .unwrap_err()
        .remove(0);
    let text = error.to_string();
    assert!(
        text.ends_with("contains no countries; it is a database of type `GeoLite2-ASN`"),
        "{text}"
    );
}

#[test]
fn damaged_databases_are_refused() {
    for name in [
        "MaxMind-DB-test-broken-pointers-24.mmdb",
        "MaxMind-DB-test-broken-search-tree-24.mmdb",
    ] {
        for (asn, country) in [(Some(data(name)), None), (None, Some(data(name)))] {
            let error = GeoLookup::open(asn.as_deref(), country.as_deref(), Vec::new())
                .unwrap_err()
                .remove(0);
            assert!(matches!(error.fault, DatabaseError::Damaged(_)), "{error}");
            assert_eq!(error.path, data(name));
        }
    }
}

#[test]
fn a_file_of_unknown_format_is_refused() {
    let error = refused(&data("README.md"));
    assert!(
        error.ends_with("README.md: is neither a MaxMind database (.mmdb) nor a table of iptoasn.com (.tsv, .tsv.gz)"),
        "{error}"
    );
}

/// The error message for a file that is configured for autonomous systems.
fn refused(path: &Path) -> String {
    let mut errors = GeoLookup::open(Some(path), None, Vec::new()).unwrap_err();
    assert_eq!(errors.len(), 1);
    errors.remove(0).to_string()
}

#[test]
fn a_missing_file_is_named() {
    let error = GeoLookup::open(Some(Path::new("/nowhere/asn.mmdb")), None, Vec::new())
        .unwrap_err()
        .remove(0);
    assert!(
        error
            .to_string()
            .starts_with("/nowhere/asn.mmdb: cannot be read: "),
        "{error}"
    );
}

/// A file that is gone with its guard.
struct Written(PathBuf);

impl Written {
    fn new(name: &str, bytes: &[u8]) -> Self {
        use std::sync::atomic::{AtomicU32, Ordering};
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("lockgate-geo-{}-{number}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, bytes).unwrap();
        Self(path)
    }
}

impl Drop for Written {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn overrides_agree_with_a_linear_search(
        nets in proptest::collection::vec((any::<u8>(), 24u8..=32, 0u32..4, any::<bool>()), 0..30),
    ) {
        let mut said: Vec<(IpNet, GeoOverride)> = Vec::new();
        for (last, prefix, asn, has_country) in nets {
            let net = IpNet::new(IpAddr::from([192, 0, 2, last]), prefix).unwrap().trunc();
            let asn = Some(asn).filter(|asn| *asn > 0);
            let country = has_country.then_some([b'A' + last % 26, b'B']);
            if said.iter().all(|(other, _)| *other != net) {
                said.push((net, GeoOverride { asn, country, continent: None }));
            }
        }
        let geo = GeoLookup::open(None, None, said.clone()).unwrap();
        said.sort_by_key(|(net, _)| std::cmp::Reverse(net.prefix_len()));
        for ip in (0..=255).map(|last| IpAddr::from([192, 0, 2, last])) {
            let around = || said.iter().filter(|(net, _)| net.contains(&ip)).map(|(_, said)| said);
            prop_assert_eq!(geo.asn(ip), around().find_map(|said| said.asn));
            prop_assert_eq!(geo.country(ip), around().find_map(|said| said.country));
        }
        prop_assert_eq!(geo.asn(ip("192.0.3.0")), None);
        prop_assert_eq!(geo.asn(ip("192.0.1.255")), None);
    }

    #[test]
    fn no_damaged_database_causes_a_panic(
        cut in any::<prop::sample::Index>(),
        flips in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        truncate in any::<bool>(),
    ) {
        let mut bytes = std::fs::read(data(ASN)).unwrap();
        for (at, value) in flips {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if truncate {
            bytes.truncate(cut.index(bytes.len()));
        }
        let file = Written::new("asn.mmdb", &bytes);
        if let Ok(geo) = GeoLookup::open(Some(&file.0), None, Vec::new()) {
            for address in ["1.0.0.1", "1.128.0.1", "2001:db8::1", "255.255.255.255", "::"] {
                let _ = geo.asn(ip(address));
            }
        }
    }
}
