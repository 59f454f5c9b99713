//! What [`Certificate`] reads and refuses, and the names it finds.

use super::*;

/// Certificate and key as PEM.
fn pems(names: &[&str]) -> (String, String) {
    let names: Vec<String> = names.iter().map(|&name| name.into()).collect();
    let made = rcgen::generate_simple_self_signed(names).unwrap();
    (made.cert.pem(), made.signing_key.serialize_pem())
}

fn refusal(certificate: &str, key: &str) -> String {
    let read = from_pem(certificate.as_bytes(), key.as_bytes());
    read.unwrap_err().to_string()
}

#[test]
fn a_chain_and_its_key_may_be_in_one_file() {
    let (own, key) = pems(&["a.example", "*.b.example", "192.0.2.7", "2001:db8::1"]);
    let (issuer, _) = pems(&["issuer.example"]);
    let text = [&*key, &own, &issuer].concat();
    let read = from_pem(text.as_bytes(), text.as_bytes()).unwrap();
    assert_eq!(
        read.names(),
        [
            CertificateName::Dns("a.example".into()),
            CertificateName::Dns("*.b.example".into()),
            CertificateName::Ip([192, 0, 2, 7].into()),
            CertificateName::Ip("2001:db8::1".parse().unwrap()),
        ]
    );
    assert_eq!(read.key.cert.len(), 2);
}

#[test]
fn the_debug_form_hides_the_key() {
    let shown = format!("{:?}", certificate(&["localhost"]));
    assert_eq!(shown, "Certificate { names: [Dns(\"localhost\")], .. }");
}

#[test]
fn invalid_certificates_are_refused_with_the_reason() {
    let (own, key) = pems(&["localhost"]);
    let (_, other) = pems(&["localhost"]);
    assert_eq!(refusal("", &key), "there is no `CERTIFICATE` section");
    assert_eq!(refusal(&key, &key), "there is no `CERTIFICATE` section");
    assert_eq!(refusal(&own, &own), "there is no `PRIVATE KEY` section");
    assert_eq!(
        refusal(&own, &other),
        "the private key does not belong to the certificate"
    );
    let cut = &own[..own.len() / 2];
    assert!(refusal(cut, &key).starts_with("the certificate is not PEM: missing section end"));
    let hollow = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    assert_eq!(refusal(hollow, &key), "the certificate is damaged");
    let hollow = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
    assert!(refusal(&own, hollow).starts_with("the private key cannot be used: "));
}

#[test]
fn a_terminator_needs_a_certificate() {
    let made = TlsTerminator::new(settings(&[]));
    let error = made.unwrap_err().to_string();
    assert_eq!(error, "TLS needs at least one certificate");
}

#[test]
fn no_damaged_certificate_causes_a_panic() {
    let der = certificate(&["localhost", "*.example.com", "::1"]).key.cert[0].to_vec();
    assert_eq!(x509::names_of(&der).len(), 3);
    for at in 0..der.len() {
        let _ = x509::names_of(&der[..at]);
        for value in [0, 0x7f, 0x80, 0x84, 0x88, 0xff] {
            let mut changed = der.clone();
            changed[at] = value;
            let _ = x509::names_of(&changed);
        }
    }
}

#[test]
fn warming_up_succeeds() {
    warm_up().unwrap();
}
