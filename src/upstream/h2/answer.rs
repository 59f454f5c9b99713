//! The head of an answer that came over HTTP/2, as a client may see it. The library has refused
//! what is malformed already: fields about the connection, several lengths that differ, a body
//! that is not as long as declared.

use http::header::{self, HeaderMap};
use http::response::Parts;
use http::{Method, StatusCode};

use super::super::answer::{FIELDS, plain_number};
use super::super::error::{Error, Kind};
use super::super::headers::{is_hop_by_hop, remove_all};

/// A head that was read.
pub(super) struct Head {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    /// How long the body says it is.
    pub(super) length: Option<u64>,
    /// Nothing may follow: RFC 9110, section 6.4.1.
    pub(super) bodiless: bool,
}

/// What a head means; an error if it means nothing.
pub(super) fn read(parts: Parts, method: &Method) -> Result<Head, Error> {
    let (status, mut headers) = (parts.status, parts.headers);
    let mut lengths = headers.get_all(header::CONTENT_LENGTH).iter();
    let length = match (lengths.next(), lengths.next()) {
        (None, _) => None,
        (Some(length), None) => Some(plain_number(length.as_bytes()).ok_or(Kind::BadResponse)?),
        (Some(_), Some(_)) => return Err(Kind::BadResponse.into()),
    };
    if status.is_informational() || headers.len() > FIELDS {
        return Err(Kind::BadResponse.into());
    }
    remove_all(&mut headers, is_hop_by_hop);
    if status == StatusCode::NO_CONTENT {
        headers.remove(header::CONTENT_LENGTH);
    }
    let empty = matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
    Ok(Head {
        status,
        headers,
        length,
        bodiless: empty || method == Method::HEAD,
    })
}
