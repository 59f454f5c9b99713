//! One pass over the headers: reads framing, host and connection.

use http::header::{self, HeaderName};
use http::{HeaderMap, HeaderValue, Version};

use super::{BodyLength, CookieLines, MalformedRequest, UpgradeProtocol};

/// Headers that identify the client or define where a message ends.
const GUARDED: &[&str] = &[
    "cf-connecting-ip",
    "cf-connecting-ipv6",
    "client-ip",
    "connection",
    "content-length",
    "fastly-client-ip",
    "forwarded",
    "host",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "true-client-ip",
    "upgrade",
    "via",
    "x-client-ip",
    "x-cluster-client-ip",
    "x-real-ip",
    "x-rewrite-url",
];

/// Prefixes of such headers.
const GUARDED_FAMILIES: &[&str] = &["x-forwarded-", "x-lockgate-", "x-original-"];

/// The headers that determine how a request is read.
#[derive(Default)]
pub struct HeadHeaders<'r> {
    /// The only `Host`.
    pub host: Option<&'r str>,
    /// Whether `Connection` contains `upgrade`.
    pub connection_upgrade: bool,
    /// The first `User-Agent`.
    pub agent: Option<&'r HeaderValue>,
    /// The `Cookie` headers.
    pub cookies: CookieLines<'r>,
    length: Option<u64>,
    chunked: bool,
}

// === impl HeadHeaders ===

impl<'r> HeadHeaders<'r> {
    /// Reads all headers; the first invalid one is the error. `opens`: the protocol of an HTTP/2 tunnel.
    pub fn read(
        headers: &'r HeaderMap,
        version: Version,
        opens: Option<UpgradeProtocol>,
    ) -> Result<Self, MalformedRequest> {
        if !matches!(
            version,
            Version::HTTP_10 | Version::HTTP_11 | Version::HTTP_2
        ) {
            return Err(MalformedRequest::Version);
        }
        let mut fields = HeadHeaders::default();
        for (name, value) in headers {
            check_value(value)?;
            let of_handshake = opens.is_some() && is_of_handshake(name);
            if version == Version::HTTP_2 && !of_handshake {
                check_connection_field(name, value)?;
            }
            fields.take(name, value, version)?;
        }
        if fields.chunked && fields.length.is_some() {
            Err(MalformedRequest::Framing)
        } else {
            Ok(fields)
        }
    }

    /// The declared length of the body.
    pub fn body(&self, version: Version) -> BodyLength {
        match self.length {
            Some(length) => BodyLength::Declared(length),
            None if self.chunked || version == Version::HTTP_2 => BodyLength::Unknown,
            None => BodyLength::None,
        }
    }

    fn take(
        &mut self,
        name: &HeaderName,
        value: &'r HeaderValue,
        version: Version,
    ) -> Result<(), MalformedRequest> {
        match *name {
            header::HOST => self.take_host(value)?,
            header::CONTENT_LENGTH => self.take_length(value)?,
            header::TRANSFER_ENCODING => self.take_coding(value, version)?,
            header::CONNECTION => self.connection_upgrade |= has_token(value, b"upgrade"),
            header::USER_AGENT => _ = self.agent.get_or_insert(value),
            header::COOKIE => self.cookies.take(value),
            _ if is_underscore_alias(name.as_str()) => return Err(MalformedRequest::Twin),
            _ => {}
        }
        Ok(())
    }

    fn take_host(&mut self, value: &'r HeaderValue) -> Result<(), MalformedRequest> {
        let host = value.to_str().map_err(|_| MalformedRequest::Host)?;
        match self.host.replace(host) {
            None => Ok(()),
            Some(_) => Err(MalformedRequest::Host),
        }
    }

    fn take_length(&mut self, value: &HeaderValue) -> Result<(), MalformedRequest> {
        let length = digits(value.as_bytes()).ok_or(MalformedRequest::ContentLength)?;
        match self.length.replace(length) {
            None => Ok(()),
            Some(_) => Err(MalformedRequest::ContentLength),
        }
    }

    /// Reads `Transfer-Encoding` (RFC 9112, section 6.1). HTTP/1.0 has no transfer codings, and
    /// parsers disagree on a list of them.
    fn take_coding(
        &mut self,
        value: &HeaderValue,
        version: Version,
    ) -> Result<(), MalformedRequest> {
        if version != Version::HTTP_11 || self.chunked {
            return Err(MalformedRequest::TransferEncoding);
        }
        check_coding(value.as_bytes())?;
        self.chunked = true;
        Ok(())
    }
}

/// Accepts exactly `chunked`. Another coding, alone or before it, is unknown; anything that is not
/// a list of codings is malformed.
fn check_coding(value: &[u8]) -> Result<(), MalformedRequest> {
    let mut codings = value.rsplit(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    let last = codings.next().unwrap_or_default();
    let others = codings.try_fold(0, |count, coding| is_unknown(coding).then_some(count + 1));
    match others {
        Some(0) if is_chunked(last) => Ok(()),
        Some(0) if is_unknown(last) => Err(MalformedRequest::UnknownCoding),
        Some(_) if is_chunked(last) => Err(MalformedRequest::UnknownCoding),
        _ => Err(MalformedRequest::TransferEncoding),
    }
}

fn is_chunked(coding: &[u8]) -> bool {
    coding.eq_ignore_ascii_case(b"chunked")
}

fn is_unknown(coding: &[u8]) -> bool {
    is_token(coding) && !is_chunked(coding)
}

/// RFC 9113, section 8.2.2.
fn check_connection_field(name: &HeaderName, value: &HeaderValue) -> Result<(), MalformedRequest> {
    let bad = match *name {
        header::CONNECTION | header::TRANSFER_ENCODING | header::UPGRADE => true,
        header::TE => value.as_bytes() != b"trailers",
        _ => matches!(name.as_str(), "keep-alive" | "proxy-connection"),
    };
    if bad {
        Err(MalformedRequest::ConnectionField)
    } else {
        Ok(())
    }
}

/// Whether a header is one that the gateway itself adds to a stream that becomes a tunnel.
fn is_of_handshake(name: &HeaderName) -> bool {
    matches!(*name, header::CONNECTION | header::UPGRADE)
}

fn check_value(value: &HeaderValue) -> Result<(), MalformedRequest> {
    if has_control(value.as_bytes()) {
        return Err(MalformedRequest::FieldValue);
    }
    if is_padded(value.as_bytes()) {
        Err(MalformedRequest::Padding)
    } else {
        Ok(())
    }
}

/// RFC 9113, section 8.2.1. HTTP/1 trims values, so an origin server would see one value where a
/// rule sees several.
fn is_padded(value: &[u8]) -> bool {
    let is_space = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    is_space(value.first()) || is_space(value.last())
}

/// Whether there is a control character other than HTAB. It reads every byte without branches, so
/// that the compiler can vectorise it.
fn has_control(value: &[u8]) -> bool {
    let control = |byte: u8| (byte < b' ') & (byte != b'\t') | (byte == 0x7f);
    value
        .iter()
        .fold(false, |found, byte| found | control(*byte))
}

fn digits(value: &[u8]) -> Option<u64> {
    if value.is_empty() {
        return None;
    }
    value.iter().try_fold(0u64, |number, byte| {
        let digit = char::from(*byte).to_digit(10)?;
        number.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

fn has_token(value: &HeaderValue, token: &[u8]) -> bool {
    let mut tokens = value.as_bytes().split(|byte| *byte == b',');
    tokens.any(|part| part.trim_ascii().eq_ignore_ascii_case(token))
}

/// RFC 9110, section 5.6.2.
fn is_token(text: &[u8]) -> bool {
    let may = |b: &u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(b);
    !text.is_empty() && text.iter().all(may)
}

/// Whether `name`, in lower case, is another spelling of a guarded header: an origin server that
/// turns both `x_forwarded_for` and `x-forwarded-for` into `HTTP_X_FORWARDED_FOR` would accept a
/// client's value as the gateway's.
fn is_underscore_alias(name: &str) -> bool {
    name.contains('_') && is_guarded(name)
}

fn is_guarded(name: &str) -> bool {
    GUARDED
        .iter()
        .any(|field| field.len() == name.len() && begins(name, field))
        || GUARDED_FAMILIES.iter().any(|family| begins(name, family))
}

fn begins(name: &str, with: &str) -> bool {
    let same = |(a, b): (u8, u8)| a == b || (a == b'_' && b == b'-');
    name.len() >= with.len() && name.bytes().zip(with.bytes()).all(same)
}

#[cfg(test)]
mod tests {
    use super::{has_control, is_underscore_alias};

    // No safe constructor accepts a value with one, but hyper trusts its parser and checks nothing
    // in a release build.
    #[test]
    fn every_control_character_is_detected() {
        for byte in 0..=u8::MAX {
            let control = (byte < 0x20 && byte != b'\t') || byte == 0x7f;
            for at in [0, 7, 40] {
                let mut value = *b"a value that is longer than one register holds";
                value[at] = byte;
                assert_eq!(has_control(&value), control, "{byte:#x}");
            }
        }
    }

    #[test]
    fn underscore_aliases_are_detected() {
        for name in [
            "x_forwarded_for",
            "x-forwarded_for",
            "x_forwarded-proto",
            "x_forwarded_host",
            "x_real_ip",
            "x_lockgate_rule",
            "x_original_url",
            "x_rewrite_url",
            "transfer_encoding",
            "content_length",
            "keep_alive",
        ] {
            assert!(is_underscore_alias(name), "{name}");
        }
    }

    #[test]
    fn canonical_and_unrelated_names_are_not_underscore_aliases() {
        for name in [
            "x-forwarded-for",
            "x-real-ip",
            "forwarded",
            "my_header",
            "x_forwarded",
            "content_type",
            "_",
        ] {
            assert!(!is_underscore_alias(name), "{name}");
        }
    }
}
