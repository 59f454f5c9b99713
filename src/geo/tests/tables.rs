//! Tests of iptoasn.com tables, and of the error messages for damaged ones.

use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;

use super::super::database::unpack;
use super::super::tsv;
use super::{DatabaseError, DatabaseUse, GeoLookup, Written, ip, refused};
use crate::facts::GeoSource;

const SYSTEMS: &[u8] = b"1.0.0.0\t1.0.0.255\t13335\tUS\tCLOUDFLARENET\n\
    1.0.1.0\t1.0.3.255\t0\tNone\tNot routed\n\
    1.0.4.0\t1.0.7.255\t38803\tAU\tGTELECOM \xff\xfe Pty\n\
    2001:200::\t2001:200:5ff:ffff:ffff:ffff:ffff:ffff\t2500\tJP\tWIDE\tPROJECT\n";

fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// One file for both uses.
fn both(name: &str, bytes: &[u8]) -> GeoLookup {
    let file = Written::new(name, bytes);
    GeoLookup::open(Some(&file.0), Some(&file.0), Vec::new()).unwrap()
}

fn asn(text: &[u8], address: &str) -> Option<u32> {
    let file = Written::new("asn.tsv", text);
    let geo = GeoLookup::open(Some(&file.0), None, Vec::new()).unwrap();
    geo.asn(ip(address))
}

/// The error message for a damaged table, without the folder.
fn fault(text: &[u8]) -> String {
    let file = Written::new("asn.tsv", text);
    let said = refused(&file.0);
    said.split_once("asn.tsv").unwrap().1.to_owned()
}

#[test]
fn a_table_is_read_plain_and_compressed_under_any_name() {
    let marked = [b"\xef\xbb\xbf", SYSTEMS].concat();
    let members = [packed(&SYSTEMS[..60]), packed(&SYSTEMS[60..])].concat();
    for (name, bytes) in [
        ("asn.tsv", SYSTEMS.to_vec()),
        ("asn.tsv.gz", packed(SYSTEMS)),
        ("asn.tsv", packed(SYSTEMS)),
        ("asn.TSV.GZ", SYSTEMS.to_vec()),
        ("asn", SYSTEMS.to_vec()),
        ("asn.gz", members),
        ("asn.txt", marked),
        (
            "asn.tsv",
            String::from_utf8_lossy(SYSTEMS)
                .replace('\n', "\r\n")
                .into_bytes(),
        ),
    ] {
        let geo = both(name, &bytes);
        for (address, asn, country, continent) in [
            ("0.255.255.255", None, None, None),
            ("1.0.0.0", Some(13335), Some(b"US"), Some(b"NA")),
            ("1.0.0.255", Some(13335), Some(b"US"), Some(b"NA")),
            ("1.0.1.0", None, None, None),
            ("1.0.4.0", Some(38803), Some(b"AU"), Some(b"OC")),
            ("::ffff:1.0.7.255", Some(38803), Some(b"AU"), Some(b"OC")),
            ("1.0.8.0", None, None, None),
            ("2001:200:5ff::1", Some(2500), Some(b"JP"), Some(b"AS")),
            ("2001:200:600::", None, None, None),
            // 6to4 of 1.0.0.1: the database defines the owner of an IPv6 address.
            ("2002:100:1::1", None, None, None),
        ] {
            let ip = ip(address);
            assert_eq!(geo.asn(ip), asn, "{name} {address}");
            assert_eq!(geo.country(ip).as_ref(), country, "{name} {address}");
            assert_eq!(geo.continent(ip).as_ref(), continent, "{name} {address}");
        }
    }
}

#[test]
fn a_table_of_countries_and_addresses_as_numbers() {
    let text = b"16777216\t16777471\tau\n16777472\t16778239\tNone\n4294967040\t4294967295\tT1\n";
    let file = Written::new("countries.tsv", text);
    let geo = GeoLookup::open(None, Some(&file.0), Vec::new()).unwrap();
    assert_eq!(geo.country(ip("1.0.0.255")), Some(*b"AU"));
    assert_eq!(geo.country(ip("1.0.1.0")), None);
    assert_eq!(geo.country(ip("255.255.255.255")), Some(*b"T1"));
    assert_eq!(geo.continent(ip("255.255.255.255")), None);
    assert_eq!(geo.asn(ip("1.0.0.1")), None);
}

#[test]
fn one_file_for_both_uses_may_lack_one_of_them() {
    let file = Written::new("countries.tsv", b"1.0.0.0\t1.0.0.255\tAU\n");
    let errors = GeoLookup::open(Some(&file.0), Some(&file.0), Vec::new()).unwrap_err();
    let [error] = errors.as_slice() else {
        panic!("{errors:?}")
    };
    assert_eq!(error.wanted, DatabaseUse::Asn);
    let said = error.to_string();
    let expected = ": contains no autonomous system numbers; `ip2asn-combined.tsv` has them";
    assert!(said.ends_with(expected), "{said}");
}

#[test]
fn one_file_for_both_uses_is_opened_once() {
    let file = Written::new("asn.tsv", SYSTEMS);
    let link = Written(file.0.with_extension("link.tsv"));
    std::os::unix::fs::symlink(&file.0, &link.0).unwrap();
    let geo = GeoLookup::open(Some(&file.0), Some(&link.0), Vec::new()).unwrap();
    let (asn, country) = (geo.asn.unwrap(), geo.country.unwrap());
    assert!(Arc::ptr_eq(&asn, &country));
}

#[test]
fn a_damaged_file_for_both_uses_is_reported_once() {
    let file = Written::new("asn.tsv", b"x");
    let errors = GeoLookup::open(Some(&file.0), Some(&file.0), Vec::new()).unwrap_err();
    assert_eq!(errors.len(), 1);
}

#[test]
fn rows_may_be_in_any_order() {
    let text = b"1.0.4.0\t1.0.4.255\t4\tAU\tc\n1.0.0.0\t1.0.0.255\t1\tAU\ta\n\n\
        ::ffff:1.0.2.0\t::ffff:1.0.3.255\t2\tAU\tb\n::2\t2001::\t6\tAU\td\n";
    for (address, expected) in [
        ("1.0.0.9", Some(1)),
        ("1.0.1.0", None),
        ("1.0.3.255", Some(2)),
        ("1.0.4.0", Some(4)),
        ("::1", None),
        ("::2", Some(6)),
        // The last range goes through the mapped addresses, but says nothing about IPv4.
        ("9.9.9.9", None),
    ] {
        assert_eq!(asn(text, address), expected, "{address}");
    }
}

#[test]
fn an_invalid_line_is_reported_with_the_expected_format() {
    let good = "1.0.0.0\t1.0.0.255\t1\tAU\ta\n";
    let one_family = "both ends must be IPv4 or both IPv6";
    for (line, expected) in [
        (
            "1.0.1.0\t1.0.1.255\t1\tA\ta",
            ":2: `A` is not a country; write two letters, and `None` if there is none",
        ),
        (
            "1.0.1.0\t1.0.1.255\t1\tAU",
            ":2: 4 columns, where the first line has 5; the file may be cut off",
        ),
        (
            "1.0.1.0\t1.0.1.x\t1\tAU\ta",
            ":2: `1.0.1.x` is not an address; write `192.0.2.1`, `2001:db8::1` or an IPv4 address as a number",
        ),
        (
            "4294967296\t1.0.1.1\t1\tAU\ta",
            ":2: `4294967296` is not an address; write `192.0.2.1`, `2001:db8::1` or an IPv4 address as a number",
        ),
        (
            "1.0.1.9\t1.0.1.0\t1\tAU\ta",
            ":2: the range ends before it starts; write `1.0.1.0` first, then `1.0.1.9`",
        ),
        (
            "1.0.1.0\t2001::\t1\tAU\ta",
            ":2: the range goes from 1.0.1.0 to 2001::; both ends must be IPv4 or both IPv6",
        ),
        ("2001::\t1.0.1.0\t1\tAU\ta", one_family),
        (
            "1.0.1.0\t1.0.1.255\tAS1\tAU\ta",
            ":2: `AS1` is not an AS number; write digits, and 0 if there is none",
        ),
        (
            "1.0.1.0\t1.0.1.255\t4294967296\tAU\ta",
            ":2: `4294967296` is not an AS number; write digits, and 0 if there is none",
        ),
        (
            "1.0.0.255\t1.0.1.255\t1\tAU\ta",
            ":2: this range overlaps that of line 1; an address may be in one range only",
        ),
        (
            "0.0.0.0\t255.255.255.255\t0\tNone\ta",
            ":2: this range overlaps that of line 1; an address may be in one range only",
        ),
    ] {
        let said = fault(format!("{good}{line}").as_bytes());
        assert!(said.ends_with(expected), "{said}");
    }
    for (text, expected) in [
        ("", ":1: the table is empty; download it again"),
        ("\n\r\n", ":1: the table is empty; download it again"),
        ("<html>", ":1: no columns; they are separated by tabs: "),
        (
            "a\tb",
            ":1: 2 columns; a table has first address, last address, AS number",
        ),
    ] {
        let said = fault(text.as_bytes());
        assert!(said.starts_with(expected), "{said}");
    }
}

#[test]
fn a_file_extension_determines_the_format() {
    let file = Written::new("asn.mmdb", SYSTEMS);
    let said = refused(&file.0);
    assert!(
        said.contains("asn.mmdb: is not a MaxMind database or is damaged: "),
        "{said}"
    );
    let bytes = std::fs::read(super::data(super::ASN)).unwrap();
    let file = Written::new("asn.tsv", &bytes);
    assert!(refused(&file.0).contains("asn.tsv:1: "));
    for (name, bytes) in [("asn.db", bytes.clone()), ("asn.mmdb.gz", packed(&bytes))] {
        let file = Written::new(name, &bytes);
        let geo = GeoLookup::open(Some(&file.0), None, Vec::new()).unwrap();
        assert_eq!(geo.asn(ip("1.128.0.1")), Some(1221), "{name}");
    }
}

#[test]
fn a_truncated_or_changed_gzip_file_is_refused() {
    let whole = packed(SYSTEMS);
    for end in [3, 10, 20, whole.len() - 8, whole.len() - 1] {
        let said = fault(&whole[..end]);
        assert_eq!(
            said, ": is a damaged gzip file: it ends too early; download it again",
            "{end}"
        );
    }
    let mut changed = whole.clone();
    let checksum = changed.len() - 6;
    changed[checksum] ^= 1;
    let said = fault(&changed);
    assert!(said.starts_with(": is a damaged gzip file: "), "{said}");
    let longer = [whole, b"more".to_vec()].concat();
    assert!(fault(&longer).starts_with(": is a damaged gzip file: "));
}

#[test]
fn a_file_that_decompresses_to_too_much_is_refused() {
    let bomb = packed(&vec![0; 100_000]);
    assert!(bomb.len() < 2_000);
    assert!(matches!(
        unpack(&bomb, 99_999),
        Err(DatabaseError::TooLarge)
    ));
    assert_eq!(unpack(&bomb, 100_000).unwrap().len(), 100_000);
}

#[test]
fn a_row_uses_few_bytes() {
    let rows = 500_000u32;
    let mut text = String::new();
    for row in 0..rows / 2 {
        let (v4, v6) = (row << 12, u128::from(row) << 84);
        let (first, last) = (Ipv4Addr::from_bits(v4), Ipv4Addr::from_bits(v4 | 0xfff));
        let (first6, last6) = (
            Ipv6Addr::from_bits(v6 | 2 << 124),
            Ipv6Addr::from_bits(v6 | 2 << 124 | 0xffff),
        );
        text.push_str(&format!(
            "{first}\t{last}\t{}\tDE\tx\n{first6}\t{last6}\t{}\tUS\tx\n",
            row + 1,
            row + 2
        ));
    }
    let table = tsv::parse(text.as_bytes(), &[DatabaseUse::Asn, DatabaseUse::Country]).unwrap();
    let each = table.bytes() as f64 / f64::from(rows);
    eprintln!("{each} bytes a row of {rows}");
    // Half are IPv4 and touch: a step of 10 bytes. Half are IPv6 with gaps: two of 22.
    assert!(each < 27.1, "{each}");
    let last = IpAddr::from(Ipv4Addr::from_bits((rows / 2 - 1) << 12));
    assert_eq!(table.get(last).asn(), Some(rows / 2));
}

proptest! {
    #[test]
    fn a_table_agrees_with_a_linear_search(
        widths in proptest::collection::vec((0u32..4, 0u32..6, 0u32..3), 1..40),
        order in any::<prop::sample::Index>(),
    ) {
        let (mut rows, mut at) = (Vec::new(), 0u32);
        for (gap, width, asn) in widths {
            let (first, last) = (at + gap, at + gap + width);
            rows.push((first, last, asn));
            at = last + 1;
        }
        let turn = order.index(rows.len());
        rows.rotate_left(turn);
        let text: String = rows.iter().map(|(first, last, asn)| format!("{first}\t{last}\t{asn}\tNone\t\n")).collect();
        let table = tsv::parse(text.as_bytes(), &[DatabaseUse::Asn]).unwrap();
        for probe in 0..at + 3 {
            let row = rows.iter().find(|(first, last, _)| (*first..=*last).contains(&probe));
            let expected = row.map(|row| row.2).filter(|asn| *asn != 0);
            prop_assert_eq!(table.get(Ipv4Addr::from_bits(probe).into()).asn(), expected, "{}", probe);
        }
    }

    #[test]
    fn no_bytes_cause_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), pack in any::<bool>()) {
        let bytes = if pack { packed(&bytes) } else { [b"\x1f\x8b", &*bytes].concat() };
        let _ = unpack(&bytes, 1 << 20).map(|text| tsv::parse(&text, &[DatabaseUse::Asn]).is_ok());
    }

    #[test]
    fn no_damaged_table_causes_a_panic(
        flips in proptest::collection::vec((0..SYSTEMS.len(), any::<u8>()), 0..6),
    ) {
        let mut bytes = SYSTEMS.to_vec();
        for (at, value) in flips { bytes[at] = value; }
        let _ = tsv::parse(&bytes, &[DatabaseUse::Asn, DatabaseUse::Country]);
    }
}
