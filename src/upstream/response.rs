//! Whether an origin's head has exactly one meaning. The codec accepts more than a gateway may
//! pass on; what it lets through is refused here. Never changes a head.

use http::header::{CONTENT_LENGTH, HeaderName, HeaderValue, TRANSFER_ENCODING, UPGRADE};
use http::{HeaderMap, StatusCode};

use super::error::{Error, Kind};

/// A field that may stand once stands several times.
#[derive(Debug)]
pub(super) struct Several;

/// Refuses a head that two readers could take for two things.
pub(super) fn check(status: StatusCode, headers: &HeaderMap, upgrade: bool) -> Result<(), Error> {
    let clear = match status {
        StatusCode::SWITCHING_PROTOCOLS => upgrade && switches_to_websocket(headers),
        _ => has_one_framing(headers),
    };
    if clear {
        Ok(())
    } else {
        Err(Kind::BadResponse.into())
    }
}

fn switches_to_websocket(headers: &HeaderMap) -> bool {
    headers
        .get(UPGRADE)
        .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"websocket"))
}

/// RFC 9112, section 6.3: at most one of the two, `chunked` alone, one plain length.
fn has_one_framing(headers: &HeaderMap) -> bool {
    let coding = sole(headers, TRANSFER_ENCODING);
    let length = sole(headers, CONTENT_LENGTH);
    match (coding, length) {
        (Ok(None), Ok(None)) => true,
        (Ok(Some(coding)), Ok(None)) => coding.as_bytes().eq_ignore_ascii_case(b"chunked"),
        (Ok(None), Ok(Some(length))) => plain_number(length).is_some(),
        _ => false,
    }
}

/// A length as RFC 9110, section 8.6 writes it: digits alone.
pub(super) fn plain_number(value: &HeaderValue) -> Option<u64> {
    let digits = value.as_bytes();
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// The only value of a field, if it is there; an error if there are several.
pub(super) fn sole(headers: &HeaderMap, name: HeaderName) -> Result<Option<&HeaderValue>, Several> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (first, None) => Ok(first),
        _ => Err(Several),
    }
}
