//! The names that a certificate is for: its subject alternative names (RFC 5280, section 4.2.1.6).
//!
//! Walks the DER just far enough to list them; whether the certificate is sound is checked
//! elsewhere. What cannot be read has no names.

use std::fmt;
use std::net::IpAddr;

use super::der::{elements, first};

/// A name in a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Name {
    /// A DNS name in lower case without a trailing dot; `*.example.com` stands for one label.
    Dns(Box<str>),
    /// An address.
    Ip(IpAddr),
}

/// The subject alternative names of a DER certificate that are DNS names or addresses.
pub(super) fn of_certificate(der: &[u8]) -> Vec<Name> {
    let names = alternative_names(der).unwrap_or_default();
    elements(names).filter_map(name).collect()
}

/// A DNS name as it is compared: lower case, no trailing dot.
pub(super) fn normal(name: &str) -> String {
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

// === impl Name ===

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dns(name) => f.write_str(name),
            Self::Ip(address) => address.fmt(f),
        }
    }
}

/// The inside of the `GeneralNames` sequence.
fn alternative_names(der: &[u8]) -> Option<&[u8]> {
    const SEQUENCE: u8 = 0x30;
    const OCTET_STRING: u8 = 0x04;
    /// `extensions [3] EXPLICIT` of `TBSCertificate` (section 4.1).
    const EXTENSIONS: u8 = 0xa3;
    /// id-ce-subjectAltName, 2.5.29.17, as an OBJECT IDENTIFIER.
    const OID: (u8, &[u8]) = (0x06, &[0x55, 0x1d, 0x11]);

    let certificate = first(der, SEQUENCE)?;
    let signed = first(certificate, SEQUENCE)?;
    let extensions = first(first(signed, EXTENSIONS)?, SEQUENCE)?;
    let extension = elements(extensions)
        .find(|&(_, extension)| elements(extension).next() == Some(OID))
        .map(|(_, extension)| extension)?;
    first(first(extension, OCTET_STRING)?, SEQUENCE)
}

fn name((tag, body): (u8, &[u8])) -> Option<Name> {
    const DNS_NAME: u8 = 0x82;
    const IP_ADDRESS: u8 = 0x87;
    match tag {
        DNS_NAME => {
            let name = normal(std::str::from_utf8(body).ok()?);
            Some(Name::Dns(name.into()))
        }
        IP_ADDRESS => address(body).map(Name::Ip),
        _ => None,
    }
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    <[u8; 4]>::try_from(bytes)
        .map(IpAddr::from)
        .or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from))
        .ok()
}
