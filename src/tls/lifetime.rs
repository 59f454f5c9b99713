//! From when to when a certificate is valid (RFC 5280, section 4.1.2.5). Reads no clock.

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use super::der::{elements, first};
use crate::clock::Timestamp;

/// The time in which a certificate is valid, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetime {
    /// Not valid before.
    pub from: Timestamp,
    /// Not valid after.
    pub until: Timestamp,
}

const SEQUENCE: u8 = 0x30;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

// === impl Lifetime ===

impl Lifetime {
    /// Those of the certificates in a PEM text, as far as they can be read.
    pub fn all_in(pem: &[u8]) -> impl Iterator<Item = Self> {
        let certificates = CertificateDer::pem_slice_iter(pem).flatten();
        certificates.filter_map(|certificate| Self::of_certificate(&certificate))
    }

    pub(super) fn of_certificate(der: &[u8]) -> Option<Self> {
        let signed = first(first(der, SEQUENCE)?, SEQUENCE)?;
        // Before it stand the signature's algorithm and the issuer, sequences both.
        let mut sequences = elements(signed).filter(|(tag, _)| *tag == SEQUENCE);
        let (_, validity) = sequences.nth(2)?;
        let mut times = elements(validity);
        Some(Self {
            from: time(times.next()?)?,
            until: time(times.next()?)?,
        })
    }
}

/// `YYMMDDHHMMSSZ` up to 2049, `YYYYMMDDHHMMSSZ` after.
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

#[cfg(test)]
mod tests {
    use super::{GENERALIZED_TIME, Lifetime, UTC_TIME, time};
    use crate::clock::{Rfc3339, Timestamp};

    fn shown(tag: u8, text: &str) -> Option<String> {
        time((tag, text.as_bytes())).map(|time| Rfc3339(time).to_string())
    }

    #[test]
    fn both_forms_are_read() {
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
    fn a_real_certificate_says_it() {
        let mut params = rcgen::CertificateParams::new(vec!["a.test".to_owned()]).unwrap();
        params.not_before = rcgen::date_time_ymd(2020, 1, 2);
        params.not_after = rcgen::date_time_ymd(2051, 3, 4);
        let key = rcgen::KeyPair::generate().unwrap();
        let made = params.self_signed(&key).unwrap();
        let lifetime = Lifetime::of_certificate(made.der()).unwrap();
        let shown = [lifetime.from, lifetime.until].map(|time| Rfc3339(time).to_string());
        assert_eq!(
            shown,
            ["2020-01-02T00:00:00.000Z", "2051-03-04T00:00:00.000Z"]
        );
        assert_eq!(Lifetime::of_certificate(b"no certificate"), None);
    }
}
