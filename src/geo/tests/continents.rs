//! Which continent: of a country, of an override, of a database.

use std::collections::BTreeSet;

use maxminddb::{PathElement, Reader};

use super::super::continent;
use super::{COUNTRY, GeoLookup, GeoOverride, Written, data, geo, ip, said};
use crate::facts::GeoSource;

#[test]
fn the_table_is_sorted_and_has_no_duplicate_country() {
    let countries: Vec<_> = continent::TABLE
        .iter()
        .map(|(country, _)| *country)
        .collect();
    assert!(countries.is_sorted_by(|a, b| a < b));
    // The 249 of ISO 3166-1, and two.
    assert_eq!(countries.len(), 251);
    for (country, continent) in continent::TABLE {
        assert!([b"AF", b"AN", b"AS", b"EU", b"NA", b"OC", b"SA"].contains(continent));
        assert_eq!(continent::of(**country), Some(**continent));
    }
}

#[test]
fn codes_without_a_territory_have_no_continent() {
    for code in [b"T1", b"ZZ", b"A1", b"AP", b"de", b"\0\0"] {
        assert_eq!(continent::of(*code), None);
    }
    assert_eq!(continent::of(*b"XK"), Some(*b"EU"));
}

#[test]
fn the_table_agrees_with_every_record_of_the_database() {
    let bytes = std::fs::read(data(COUNTRY)).unwrap();
    let reader = Reader::from_source(bytes).unwrap();
    let mut seen = BTreeSet::new();
    for network in reader.networks(Default::default()).unwrap() {
        let network = network.unwrap();
        let code = |place, key| {
            let path = [PathElement::Key(place), PathElement::Key(key)];
            network.decode_path::<&str>(&path).unwrap()
        };
        let found = (code("country", "iso_code"), code("continent", "code"));
        if let (Some(country), Some(continent)) = found {
            seen.insert((country.to_owned(), continent.to_owned()));
        }
    }
    assert!(seen.len() >= 10, "{seen:?}");
    for (country, expected) in seen {
        let code = country.as_bytes().try_into().unwrap();
        let found = continent::of(code).map(|code| String::from_utf8(code.to_vec()).unwrap());
        assert_eq!(found, Some(expected), "{country}");
    }
}

#[test]
fn an_override_sets_the_continent_or_derives_it_from_its_country() {
    let only = |continent: &[u8; 2]| GeoOverride {
        continent: Some(*continent),
        ..GeoOverride::default()
    };
    let geo = geo(&[
        // In the database all of it is GB, EU.
        ("2.125.160.0/24", said(None, Some(b"US"))),
        ("2.125.160.216/30", said(Some(5), None)),
        ("2.125.160.228/30", only(b"OC")),
        ("2.125.160.240/30", said(None, Some(b"ZZ"))),
    ]);
    let at = |last: u8| ip(&format!("2.125.160.{last}"));
    assert_eq!(
        (geo.country(at(1)), geo.continent(at(1))),
        (Some(*b"US"), Some(*b"NA"))
    );
    // An inner network without a continent inherits that of the outer one.
    assert_eq!(geo.continent(at(216)), Some(*b"NA"));
    assert_eq!(
        (geo.country(at(228)), geo.continent(at(228))),
        (Some(*b"US"), Some(*b"OC"))
    );
    // A country of no continent: the one of the database would contradict it.
    assert_eq!(
        (geo.country(at(240)), geo.continent(at(240))),
        (Some(*b"ZZ"), None)
    );
}

#[test]
fn the_lookup_knows_which_fields_it_can_provide() {
    let knows = |geo: &GeoLookup| (geo.knows_asn(), geo.knows_country(), geo.knows_continent());
    let with = |said: GeoOverride| {
        let net = "192.0.2.0/24".parse().unwrap();
        GeoLookup::open(None, None, vec![(net, said)]).unwrap()
    };
    assert_eq!(knows(&GeoLookup::default()), (false, false, false));
    assert_eq!(knows(&geo(&[])), (true, true, true));
    assert_eq!(knows(&with(said(Some(1), None))), (true, false, false));
    assert_eq!(knows(&with(said(None, Some(b"DE")))), (false, true, true));
    assert_eq!(knows(&with(said(None, Some(b"ZZ")))), (false, true, false));
    let eu = GeoOverride {
        continent: Some(*b"EU"),
        ..GeoOverride::default()
    };
    assert_eq!(knows(&with(eu)), (false, false, true));
    let file = Written::new("c.tsv", b"1.0.0.0\t1.0.0.255\tAU\n");
    let geo = GeoLookup::open(None, Some(&file.0), Vec::new()).unwrap();
    assert_eq!(knows(&geo), (false, true, true));
}
