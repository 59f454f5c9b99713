//! Tests of the exact error messages. Real handshakes are tested in `tests/it`.

use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::{ServerName, UnixTime};
use rustls::{AlertDescription, CertificateError, OtherError, PeerMisbehaved};

use super::*;

const ORIGIN: TlsPeer = TlsPeer::Origin { ca: true };

fn of_certificate(error: CertificateError, peer: TlsPeer) -> String {
    PlainError(&Error::InvalidCertificate(error), peer).to_string()
}

/// As the library below says it: by the name of its error.
fn other(name: &'static str) -> CertificateError {
    let inner: Box<dyn std::error::Error + Send + Sync> = name.into();
    CertificateError::Other(OtherError(Arc::from(inner)))
}

#[test]
fn an_unknown_issuer_is_described() {
    let said = |peer| of_certificate(CertificateError::UnknownIssuer, peer);
    assert_eq!(
        said(ORIGIN),
        "the origin server's certificate is not signed by an authority in `ca`"
    );
    assert_eq!(
        said(TlsPeer::Origin { ca: false }),
        "the origin server's certificate is not signed by an authority that the system trusts: set \
         `ca` to the file of its CA"
    );
    assert_eq!(
        said(TlsPeer::Client),
        "the client's certificate is not signed by an authority in `client_ca`"
    );
}

#[test]
fn a_name_mismatch_is_described() {
    let said = |names: &[&str]| {
        let error = CertificateError::NotValidForNameContext {
            expected: ServerName::try_from("a.example").unwrap(),
            presented: names.iter().map(|name| (*name).to_owned()).collect(),
        };
        of_certificate(error, ORIGIN)
    };
    assert_eq!(
        said(&["DnsName(\"b.example\")", "IpAddress(192.0.2.1)"]),
        "the origin server's certificate is not for a.example, but for other names: b.example, \
         192.0.2.1; `server_name` can name one of them"
    );
    assert_eq!(
        said(&[]),
        "the origin server's certificate has no names (subjectAltName is missing)"
    );
    let many = said(&["DnsName(\"x\")"; 7]);
    assert!(many.contains("x, x, x, x, x and 2 more;"), "{many}");
}

#[test]
fn an_expired_or_not_yet_valid_certificate_is_described() {
    let at = |secs| UnixTime::since_unix_epoch(Duration::from_secs(secs));
    let expired = CertificateError::ExpiredContext {
        time: at(1_800_000_000),
        not_after: at(1_767_323_045),
    };
    assert_eq!(
        of_certificate(expired, ORIGIN),
        "the origin server's certificate expired on 2026-01-02T03:04:05Z"
    );
    let early = CertificateError::NotValidYetContext {
        time: at(0),
        not_before: at(1_767_323_045),
    };
    assert_eq!(
        of_certificate(early, TlsPeer::Client),
        "the client's certificate is not valid before 2026-01-02T03:04:05Z"
    );
}

#[test]
fn a_certificate_of_the_wrong_kind_is_described() {
    assert_eq!(
        of_certificate(other("CaUsedAsEndEntity"), ORIGIN),
        "the origin server's certificate is a CA certificate; add a self-signed certificate to `ca`"
    );
    assert_eq!(
        of_certificate(other("UnsupportedCertVersion"), TlsPeer::Own),
        "the certificate has an old version: it must be X.509 version 3"
    );
    assert_eq!(
        of_certificate(CertificateError::InvalidPurpose, TlsPeer::Client),
        "the client's certificate is not for clients (extended key usage)"
    );
    assert_eq!(
        of_certificate(other("SomethingNew"), TlsPeer::Client),
        "the client's certificate is refused: SomethingNew"
    );
}

#[test]
fn protocol_errors_of_the_peer_are_described() {
    let said = |error: Error, peer| PlainError(&error, peer).to_string();
    assert_eq!(
        said(InvalidMessage::InvalidContentType.into(), ORIGIN),
        "the origin server does not speak TLS on this port"
    );
    assert_eq!(
        said(PeerIncompatible::Tls12NotOffered.into(), TlsPeer::Client),
        "the client supports neither TLS 1.2 nor TLS 1.3"
    );
    assert_eq!(
        said(
            Error::AlertReceived(AlertDescription::UnknownCA),
            TlsPeer::Client
        ),
        "the client ended the handshake: it does not trust the CA of the gateway's certificate \
         (alert 48)"
    );
    let asks = "the origin server ended the handshake: it requires a client certificate, which the \
                gateway does not send (alert 116)";
    assert_eq!(
        said(
            Error::AlertReceived(AlertDescription::CertificateRequired),
            ORIGIN
        ),
        asks
    );
    assert_eq!(
        said(Error::AlertReceived(AlertDescription::DecodeError), ORIGIN),
        "the origin server ended the handshake with the alert DecodeError"
    );
    assert_eq!(
        said(
            PeerMisbehaved::TooMuchEarlyDataReceived.into(),
            TlsPeer::Client
        ),
        "the client violated the TLS protocol (TooMuchEarlyDataReceived)"
    );
    assert_eq!(
        said(Error::HandshakeNotComplete, ORIGIN),
        Error::HandshakeNotComplete.to_string(),
        "what is not known here is left as it is"
    );
}

#[test]
fn a_tls_error_inside_an_io_error_is_described() {
    let inside = io::Error::other(Error::NoCertificatesPresented);
    assert_eq!(
        handshake(&inside, ORIGIN),
        "the origin server has no certificate"
    );
    let end = io::Error::from(io::ErrorKind::UnexpectedEof);
    assert_eq!(
        handshake(&end, ORIGIN),
        "the origin server closed the connection during the handshake"
    );
    let other = io::Error::from(io::ErrorKind::ConnectionReset);
    assert_eq!(handshake(&other, ORIGIN), "connection reset");
}
