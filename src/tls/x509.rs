//! The names of a certificate (RFC 5280, section 4.2.1.6), its validity period (section 4.1.2.5), and the end of a
//! revocation list.
//!
//! Reads the DER (X.690) just far enough to find them. An unreadable certificate has no names and no period; its
//! validity is checked elsewhere. Reads no clock.

use std::fmt;
use std::net::IpAddr;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use crate::clock::Timestamp;

pub(super) const SEQUENCE: u8 = 0x30;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// A name in a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CertificateName {
    /// A DNS name in lower case without a trailing dot; the asterisk of `*.example.com` matches one label.
    Dns(Box<str>),
    /// An address.
    Ip(IpAddr),
}

/// The validity period of a certificate, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValidityPeriod {
    /// The certificate is not valid before this time.
    pub from: Timestamp,
    /// The certificate is not valid after this time.
    pub until: Timestamp,
}

/// Returns the DNS names and addresses among the subject alternative names of a DER certificate.
pub(super) fn names_of(der: &[u8]) -> Vec<CertificateName> {
    let names = alternative_names(der).unwrap_or_default();
    elements(names).filter_map(name).collect()
}

/// Returns when the next revocation list is issued: the end of this one (RFC 5280, section 5.1.2.5).
pub(super) fn next_update(crl: &[u8]) -> Option<Timestamp> {
    let signed = first(first(crl, SEQUENCE)?, SEQUENCE)?;
    let mut times = elements(signed).filter(|(tag, _)| [UTC_TIME, GENERALIZED_TIME].contains(tag));
    time(times.nth(1)?)
}

/// Normalizes a DNS name for comparison: lower case, no trailing dot.
pub(super) fn normal(name: &str) -> String {
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

// === impl CertificateName ===

impl fmt::Display for CertificateName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dns(name) => f.write_str(name),
            Self::Ip(address) => address.fmt(f),
        }
    }
}

/// Returns the content of the `GeneralNames` sequence.
pub(super) fn alternative_names(der: &[u8]) -> Option<&[u8]> {
    const OCTET_STRING: u8 = 0x04;
    /// `extensions [3] EXPLICIT` of `TBSCertificate` (section 4.1).
    const EXTENSIONS: u8 = 0xa3;
    /// id-ce-subjectAltName, 2.5.29.17, as an OBJECT IDENTIFIER.
    const OID: (u8, &[u8]) = (0x06, &[0x55, 0x1d, 0x11]);

    let signed = first(first(der, SEQUENCE)?, SEQUENCE)?;
    let extensions = first(first(signed, EXTENSIONS)?, SEQUENCE)?;
    let mut extensions = elements(extensions).map(|(_, extension)| extension);
    let extension = extensions.find(|extension| elements(extension).next() == Some(OID))?;
    first(first(extension, OCTET_STRING)?, SEQUENCE)
}

fn name((tag, body): (u8, &[u8])) -> Option<CertificateName> {
    const DNS_NAME: u8 = 0x82;
    const IP_ADDRESS: u8 = 0x87;
    match tag {
        DNS_NAME => {
            let name = normal(std::str::from_utf8(body).ok()?);
            Some(CertificateName::Dns(name.into()))
        }
        IP_ADDRESS => address(body).map(CertificateName::Ip),
        _ => None,
    }
}

pub(super) fn address(bytes: &[u8]) -> Option<IpAddr> {
    <[u8; 4]>::try_from(bytes)
        .map(IpAddr::from)
        .or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from))
        .ok()
}

// === impl ValidityPeriod ===

impl ValidityPeriod {
    /// Returns the periods of all readable certificates in a PEM text.
    pub fn all_in(pem: &[u8]) -> impl Iterator<Item = Self> {
        let certificates = CertificateDer::pem_slice_iter(pem).flatten();
        certificates.filter_map(|certificate| Self::of_certificate(&certificate))
    }

    pub(super) fn of_certificate(der: &[u8]) -> Option<Self> {
        let signed = first(first(der, SEQUENCE)?, SEQUENCE)?;
        // The signature algorithm and the issuer, also sequences, precede it.
        let mut sequences = elements(signed).filter(|(tag, _)| *tag == SEQUENCE);
        let (_, validity) = sequences.nth(2)?;
        let mut times = elements(validity);
        Some(Self {
            from: time(times.next()?)?,
            until: time(times.next()?)?,
        })
    }
}

/// Parses `YYMMDDHHMMSSZ` up to 2049, `YYYYMMDDHHMMSSZ` after.
fn time((tag, text): (u8, &[u8])) -> Option<Timestamp> {
    let (year, rest) = match tag {
        UTC_TIME => {
            let (year, rest) = text.split_at_checked(2)?;
            let year = number(year)?;
            (if year < 50 { 2000 + year } else { 1900 + year }, rest)
        }
        GENERALIZED_TIME => {
            let (year, rest) = text.split_at_checked(4)?;
            (number(year)?, rest)
        }
        _ => return None,
    };
    let rest = rest.strip_suffix(b"Z").filter(|rest| rest.len() == 10)?;
    let mut pairs = rest.chunks(2).map(number);
    let mut next = || pairs.next().flatten();
    let (month, day) = (next()?, next()?);
    let time = [next()?, next()?, next()?];
    Timestamp::from_utc([year, month, day], time)
}

fn number(digits: &[u8]) -> Option<u64> {
    let digit = |byte: &u8| byte.is_ascii_digit().then(|| u64::from(byte - b'0'));
    digits
        .iter()
        .try_fold(0, |number, byte| Some(number * 10 + digit(byte)?))
}

/// Returns the content of the first element with this tag.
pub(super) fn first(der: &[u8], tag: u8) -> Option<&[u8]> {
    elements(der)
        .find(|&(found, _)| found == tag)
        .map(|(_, body)| body)
}

/// Returns the tag and content of each element; ends at the first that cannot be read.
pub(super) fn elements(mut der: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    std::iter::from_fn(move || {
        let (&tag, rest) = der.split_first()?;
        let (length, rest) = length(rest)?;
        let (body, rest) = rest.split_at_checked(length)?;
        der = rest;
        Some((tag, body))
    })
}

/// Reads a definite length in the short or the long form (X.690, section 8.1.3).
fn length(der: &[u8]) -> Option<(usize, &[u8])> {
    let (&first, rest) = der.split_first()?;
    if first < 0x80 {
        return Some((first.into(), rest));
    }
    let (bytes, rest) = rest.split_at_checked((first & 0x7f).into())?;
    let length = bytes.iter().try_fold(0_usize, |length, &byte| {
        Some(length.checked_mul(256)? + usize::from(byte))
    })?;
    Some((length, rest))
}

#[cfg(test)]
mod tests {
    use super::{GENERALIZED_TIME, UTC_TIME, ValidityPeriod, time};
    use crate::clock::{Rfc3339, Timestamp};

    fn shown(tag: u8, text: &str) -> Option<String> {
        time((tag, text.as_bytes())).map(|time| Rfc3339(time).to_string())
    }

    #[test]
    fn both_time_formats_are_parsed() {
        let utc = |text| shown(UTC_TIME, text);
        assert_eq!(utc("240229123456Z").unwrap(), "2024-02-29T12:34:56.000Z");
        assert_eq!(utc("491231235959Z").unwrap(), "2049-12-31T23:59:59.000Z");
        assert_eq!(utc("700101000000Z").unwrap(), "1970-01-01T00:00:00.000Z");
        let long = shown(GENERALIZED_TIME, "20500101000000Z");
        assert_eq!(long.unwrap(), "2050-01-01T00:00:00.000Z");
        let end = time((GENERALIZED_TIME, b"99991231235959Z"));
        assert_eq!(end, Some(Timestamp::from_nanos(u64::MAX)));
        for wrong in [
            "",
            "Z",
            "240229123456",
            "240229",
            "24022912345xZ",
            "241301000000Z",
        ] {
            assert_eq!(utc(wrong), None, "{wrong}");
        }
        assert_eq!(shown(0x02, "240229123456Z"), None);
    }

    #[test]
    fn the_validity_period_of_a_certificate_is_read() {
        let mut params = rcgen::CertificateParams::new(vec!["a.test".to_owned()]).unwrap();
        params.not_before = rcgen::date_time_ymd(2020, 1, 2);
        params.not_after = rcgen::date_time_ymd(2051, 3, 4);
        let key = rcgen::KeyPair::generate().unwrap();
        let made = params.self_signed(&key).unwrap();
        let lifetime = ValidityPeriod::of_certificate(made.der()).unwrap();
        let shown = [lifetime.from, lifetime.until].map(|time| Rfc3339(time).to_string());
        assert_eq!(
            shown,
            ["2020-01-02T00:00:00.000Z", "2051-03-04T00:00:00.000Z"]
        );
        assert_eq!(ValidityPeriod::of_certificate(b"no certificate"), None);
    }
}
