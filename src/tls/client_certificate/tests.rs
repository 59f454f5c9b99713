//! Fields of generated and of damaged certificates.

use rcgen::string::{BmpString, Ia5String, TeletexString};
use rcgen::{
    CertificateParams, DistinguishedName, DnType, DnValue, KeyPair, SanType, SerialNumber,
};

use super::{dotted, fields_of};

fn certificate(change: impl FnOnce(&mut CertificateParams)) -> Vec<u8> {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    change(&mut params);
    let key = KeyPair::generate().unwrap();
    params.self_signed(&key).unwrap().der().to_vec()
}

fn subject(parts: &[(DnType, DnValue)]) -> String {
    let der = certificate(|params| {
        for (kind, value) in parts {
            params.distinguished_name.push(kind.clone(), value.clone());
        }
    });
    fields_of(&der).subject.into()
}

fn text(text: &str) -> DnValue {
    DnValue::Utf8String(text.to_owned())
}

#[test]
fn the_subject_is_written_as_in_rfc_4514() {
    let uid = DnType::CustomDnType(vec![0, 9, 2342, 19_200_300, 100, 1, 1]);
    let parts = [
        (DnType::CountryName, text("DE")),
        (DnType::OrganizationName, text("Example, Inc.")),
        (DnType::OrganizationalUnitName, text("R+D")),
        (uid, text("42")),
        (DnType::CommonName, text("Jürgen \"J\" <j>;\\")),
    ];
    assert_eq!(
        subject(&parts),
        r#"CN=Jürgen \"J\" \<j\>\;\\,UID=42,OU=R\+D,O=Example\, Inc.,C=DE"#
    );
    assert_eq!(subject(&[]), "");
    for (value, expected) in [
        (text(" a b "), r"CN=\ a b\ "),
        (text(" "), r"CN=\ "),
        (text("#1"), r"CN=\#1"),
        (text("a\r\nb\0\u{85}"), r"CN=a\0d\0ab\00\c2\85"),
        (text(""), "CN="),
        (
            DnValue::BmpString(BmpString::try_from("bmp").unwrap()),
            "CN=bmp",
        ),
        (
            DnValue::Ia5String(Ia5String::try_from("ia5").unwrap()),
            "CN=ia5",
        ),
        // A type whose encoding is not certain is written as its DER.
        (
            DnValue::TeletexString(TeletexString::try_from("old").unwrap()),
            "2.5.4.3=#14036f6c64",
        ),
    ] {
        assert_eq!(subject(&[(DnType::CommonName, value)]), expected);
    }
    let own = DnType::CustomDnType(vec![1, 3, 6, 1, 4, 1, 99_999, 1]);
    assert_eq!(subject(&[(own, text("x"))]), "1.3.6.1.4.1.99999.1=#0c0178");
}

#[test]
fn names_serial_and_fingerprint_are_read() {
    let der = certificate(|params| {
        params.serial_number = Some(SerialNumber::from_slice(&[0, 0xa1, 0x0b]));
        params.subject_alt_names = vec![
            SanType::DnsName("App.example".try_into().unwrap()),
            SanType::URI("spiffe://example.org/billing".try_into().unwrap()),
            SanType::Rfc822Name("a@example.org".try_into().unwrap()),
            SanType::IpAddress("2001:db8::1".parse().unwrap()),
        ];
    });
    let fields = fields_of(&der);
    let names: Vec<&str> = fields.names.iter().map(|name| &**name).collect();
    let expected = [
        "DNS:App.example",
        "URI:spiffe://example.org/billing",
        "email:a@example.org",
        "IP:2001:db8::1",
    ];
    assert_eq!(names, expected);
    assert_eq!(&*fields.serial, "a10b");
    assert_eq!(fields.fingerprint.len(), 64);
    assert_ne!(fields.fingerprint, fields_of(&der[1..]).fingerprint);
}

#[test]
fn damaged_certificates_have_fields_missing() {
    let der = certificate(|params| {
        params.distinguished_name.push(DnType::CommonName, "a");
        params.subject_alt_names = vec![SanType::DnsName("a.test".try_into().unwrap())];
    });
    for end in 0..der.len() {
        fields_of(&der[..end]);
    }
    for at in 0..der.len() {
        for byte in [0, 0x7f, 0x80, 0x84, 0xff] {
            let mut damaged = der.clone();
            damaged[at] = byte;
            fields_of(&damaged);
        }
    }
    let nothing = fields_of(b"");
    assert_eq!((&*nothing.subject, &*nothing.serial), ("", ""));
    assert!(nothing.names.is_empty());
}

#[test]
fn object_identifiers_are_decimal() {
    assert_eq!(dotted(&[0x55, 4, 3]).unwrap(), "2.5.4.3");
    assert_eq!(dotted(&[0x88, 0x37, 3]).unwrap(), "2.999.3");
    assert_eq!(dotted(&[]), None);
    assert_eq!(dotted(&[0x55, 0x84]), None);
    assert_eq!(dotted(&[0xff; 12]), None);
}
