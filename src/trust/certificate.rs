//! Describes what is wrong with a certificate.

use std::fmt;

use rustls::CertificateError as Error;
use rustls::pki_types::{ServerName, UnixTime};

use super::TlsPeer;
use crate::clock::{Rfc3339, Timestamp};

/// The maximum number of a certificate's names in a message.
const MOST: usize = 5;

/// Writes why the certificate of `peer` is rejected.
pub(super) fn write(f: &mut fmt::Formatter<'_>, error: &Error, peer: TlsPeer) -> fmt::Result {
    f.write_str(peer.certificate())?;
    match error {
        Error::ExpiredContext { not_after, .. } => write!(f, " expired on {}", day(*not_after)),
        Error::NotValidYetContext { not_before, .. } => {
            write!(f, " is not valid before {}", day(*not_before))
        }
        Error::NotValidForNameContext {
            expected,
            presented,
        } => names(f, expected, presented, peer),
        Error::ExpiredRevocationListContext { next_update, .. } => write!(
            f,
            " cannot be checked: the revocation list of its issuer expired on {}",
            day(*next_update)
        ),
        Error::UnknownIssuer => write!(f, " is not signed by {}", authority(peer)),
        Error::InvalidPurpose | Error::InvalidPurposeContext { .. } => match peer {
            TlsPeer::Client => f.write_str(" is not for clients (extended key usage)"),
            _ => f.write_str(" is not for servers (extended key usage)"),
        },
        error => {
            let name = match error {
                Error::Other(other) => other.to_string(),
                error => error.to_string(),
            };
            match simple(error).or_else(|| of_library(&name, peer)) {
                Some(what) => write!(f, " {what}"),
                None => write!(f, " is refused: {name}"),
            }
        }
    }
}

fn simple(error: &Error) -> Option<&'static str> {
    Some(match error {
        Error::BadEncoding => "is damaged",
        Error::Expired => "has expired",
        Error::NotValidYet => "is not valid yet",
        Error::Revoked => "was revoked",
        Error::UnknownRevocationStatus => {
            "cannot be checked: `client_crl` has no revocation list of its issuer"
        }
        Error::ExpiredRevocationList => {
            "cannot be checked: the revocation list of its issuer has expired"
        }
        Error::UnhandledCriticalExtension => {
            "has a critical extension that the gateway does not know"
        }
        Error::BadSignature => "does not match the signature sent with it",
        Error::NotValidForName => "is for other names",
        Error::UnsupportedSignatureAlgorithmContext { .. }
        | Error::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => {
            "is signed with an algorithm that is not accepted, such as SHA-1"
        }
        _ => return None,
    })
}

/// Describes errors of the underlying library, which are only known by their names.
fn of_library(name: &str, peer: TlsPeer) -> Option<&'static str> {
    Some(match (name, peer) {
        ("CaUsedAsEndEntity", TlsPeer::Origin { .. }) => {
            "is a CA certificate; add a self-signed certificate to `ca`"
        }
        ("CaUsedAsEndEntity", _) => "is a CA certificate, which can only sign other certificates",
        ("EndEntityUsedAsCa", _) => "is signed by a certificate that is not a CA certificate",
        ("UnsupportedCertVersion", _) => "has an old version: it must be X.509 version 3",
        ("NameConstraintViolation", _) => "has a name that its CA is not allowed to sign",
        _ => return None,
    })
}

fn authority(peer: TlsPeer) -> &'static str {
    match peer {
        TlsPeer::Client => "an authority in `client_ca`",
        TlsPeer::Origin { ca: true } => "an authority in `ca`",
        TlsPeer::Origin { ca: false } => {
            "an authority that the system trusts: set `ca` to the file of its CA"
        }
        TlsPeer::Own => "a known authority",
    }
}

/// Writes the names of a certificate that is not valid for the requested name.
fn names(
    f: &mut fmt::Formatter<'_>,
    expected: &ServerName<'_>,
    presented: &[String],
    peer: TlsPeer,
) -> fmt::Result {
    let expected = expected.to_str();
    if presented.is_empty() {
        return write!(f, " has no names (subjectAltName is missing)");
    }
    let shown: Vec<&str> = presented.iter().take(MOST).map(|name| bare(name)).collect();
    let shown = shown.join(", ");
    write!(f, " is not for {expected}, but for other names: {shown}")?;
    if let more @ 1.. = presented.len().saturating_sub(MOST) {
        write!(f, " and {more} more")?;
    }
    match peer {
        TlsPeer::Origin { .. } => f.write_str("; `server_name` can name one of them"),
        _ => Ok(()),
    }
}

/// Removes the kind that the library writes around a name: `DnsName("a.example")`, `IpAddress(192.0.2.1)`.
fn bare(name: &str) -> &str {
    let inner = name.split_once('(').map_or(name, |(_, rest)| rest);
    inner
        .trim_end_matches(')')
        .trim_matches(|c| matches!(c, '"' | '\\'))
}

/// Formats a time to the second, because a certificate may expire while an operator investigates.
fn day(time: UnixTime) -> String {
    let shown = Rfc3339(Timestamp::from_secs(time.as_secs())).to_string();
    shown.replace(".000", "")
}
