//! The head of a response: unambiguous, or an error. Headers that concern the connection alone are
//! left out. Never reads from a socket.

use std::mem::MaybeUninit;

use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode};
use httparse::{ParserConfig, Status};

use super::connection::ReadBuffer;
use super::response_body::{BodyEnd, ChunkedDecoder};
use crate::upstream::error::{UpstreamError, UpstreamErrorKind};
use crate::upstream::headers::{is_close, is_hop_by_hop, named};

/// The largest head that an origin may send.
pub(crate) const HEAD_BYTES: usize = 64 * 1024;
pub(crate) const FIELDS: usize = 100;

/// What matters of the request for the meaning of its response.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExpectedResponse {
    /// The response to a HEAD has no body, whatever its headers say.
    pub(crate) head: bool,
    /// A 101 may come back.
    pub(crate) upgrade: bool,
}

/// A head that was read.
#[derive(Debug)]
pub(crate) struct ResponseHead {
    pub(crate) status: StatusCode,
    /// As a client may see them.
    pub(crate) headers: HeaderMap,
    pub(crate) length: BodyEnd,
    /// Whether the origin takes another request on this connection.
    pub(crate) keeps: bool,
}

/// What the fields say beside what they are passed on for.
#[derive(Default)]
struct HeadMeaning {
    length: Option<u64>,
    chunked: bool,
    /// `Connection` may name fields.
    names: bool,
    close: bool,
    websocket: Option<bool>,
}

// === impl ExpectedResponse ===

impl ExpectedResponse {
    pub(crate) fn new(method: &Method, upgrade: bool) -> Self {
        Self {
            head: *method == Method::HEAD,
            upgrade,
        }
    }
}

// === impl ResponseHead ===

impl ResponseHead {
    /// Whether no other head follows it.
    pub(super) fn is_final(&self) -> bool {
        !self.status.is_informational() || self.status == StatusCode::SWITCHING_PROTOCOLS
    }
}

/// Takes a whole head; `None` if more bytes are needed.
pub(crate) fn read(
    buffer: &mut ReadBuffer,
    asked: ExpectedResponse,
) -> Result<Option<ResponseHead>, UpstreamError> {
    let mut fields = [const { MaybeUninit::uninit() }; FIELDS];
    let mut response = httparse::Response::new(&mut []);
    let bytes = buffer.bytes();
    // Strict by default: no folded lines, no space before a colon, no invalid fields.
    let config = ParserConfig::default();
    let parsed = config.parse_response_with_uninit_headers(&mut response, bytes, &mut fields);
    let length = match parsed {
        Ok(Status::Complete(length)) if length <= HEAD_BYTES => length,
        Ok(Status::Partial) if bytes.len() < HEAD_BYTES => return Ok(None),
        Ok(_) => return Err(UpstreamErrorKind::BadResponse.into()),
        Err(error) => return Err(not_http(bytes, error)),
    };
    let whole = Bytes::copy_from_slice(bytes.get(..length).unwrap_or_default());
    let head = understand(&response, bytes, &whole, asked).ok_or(UpstreamErrorKind::BadResponse)?;
    buffer.skip(length);
    Ok(Some(head))
}

/// An alert or a handshake message shows an origin that expects TLS (RFC 8446, section 5.1).
fn not_http(bytes: &[u8], error: httparse::Error) -> UpstreamError {
    let wrong = UpstreamError::from(UpstreamErrorKind::BadResponse);
    match bytes {
        [21 | 22, 3, ..] => wrong.because("it looks like TLS, which `tls = true` speaks"),
        _ => wrong.because(error),
    }
}

/// `whole` holds the same bytes as the head in `bytes`.
fn understand(
    response: &httparse::Response<'_, '_>,
    bytes: &[u8],
    whole: &Bytes,
    asked: ExpectedResponse,
) -> Option<ResponseHead> {
    let status = StatusCode::from_u16(response.code?).ok()?;
    let is_new = response.version == Some(1);
    let mut said = HeadMeaning::default();
    // No more than needed: an allocator is slow beyond its small sizes.
    let mut headers = HeaderMap::with_capacity(response.headers.len() + 1);
    for field in response.headers.iter() {
        let name = HeaderName::from_bytes(field.name.as_bytes()).ok()?;
        if said.passes(&name, field.value)? {
            headers.append(name, shared(field.value, bytes, whole)?);
        }
    }
    if said.names {
        said.close |= leave_out_named(&mut headers, response);
    }
    let length = said.framing(status, asked)?;
    if said.chunked && !is_new {
        return None;
    }
    finish(&mut headers, status);
    Some(ResponseHead {
        status,
        headers,
        length,
        // An HTTP/1.0 origin may not know chunks, so it gets one request a connection.
        keeps: is_new && !said.close && !said.promises_a_body(status),
    })
}

/// A value of the head in `bytes`, as the same place of its copy `whole`.
fn shared(value: &[u8], bytes: &[u8], whole: &Bytes) -> Option<HeaderValue> {
    if value.is_empty() {
        return Some(HeaderValue::from_static(""));
    }
    let from = (value.as_ptr() as usize).checked_sub(bytes.as_ptr() as usize)?;
    let to = from
        .checked_add(value.len())
        .filter(|&to| to <= whole.len())?;
    HeaderValue::from_maybe_shared(whole.slice(from..to)).ok()
}

/// Leaves out what `Connection` names; whether it says `close`.
fn leave_out_named(headers: &mut HeaderMap, response: &httparse::Response<'_, '_>) -> bool {
    let lines = || {
        let lines = response.headers.iter();
        lines
            .filter(|f| f.name.eq_ignore_ascii_case("connection"))
            .map(|f| f.value)
    };
    for name in named(lines()) {
        headers.remove(name);
    }
    let mut options = lines().flat_map(|line| line.split(|&b| b == b','));
    options.any(|option| is_close(option.trim_ascii()))
}

fn finish(headers: &mut HeaderMap, status: StatusCode) {
    match status {
        StatusCode::SWITCHING_PROTOCOLS => {
            headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
            headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
            headers.remove(header::CONTENT_LENGTH);
        }
        // RFC 9110, section 8.6: no length in a 204.
        StatusCode::NO_CONTENT => drop(headers.remove(header::CONTENT_LENGTH)),
        _ => {}
    }
}

// === impl HeadMeaning ===

impl HeadMeaning {
    /// Whether a client may see a field; `None` if it cannot stand in this head.
    fn passes(&mut self, name: &HeaderName, value: &[u8]) -> Option<bool> {
        match *name {
            header::CONTENT_LENGTH => {
                let length = plain_number(value)?;
                // RFC 9112, section 6.3: one length, whatever a second one says.
                self.length.replace(length).is_none().then_some(true)
            }
            header::TRANSFER_ENCODING => {
                let chunked = value.eq_ignore_ascii_case(b"chunked");
                let again = std::mem::replace(&mut self.chunked, true);
                (chunked && !again).then_some(false)
            }
            header::CONNECTION => {
                let close = is_close(value);
                self.close |= close;
                // Nearly every line says one word, and names no field.
                self.names |= !close && !value.eq_ignore_ascii_case(b"keep-alive");
                Some(false)
            }
            header::UPGRADE => {
                let websocket = value.eq_ignore_ascii_case(b"websocket");
                self.websocket.get_or_insert(websocket);
                Some(false)
            }
            _ => Some(!is_hop_by_hop(name)),
        }
    }

    /// Whether a 204 announces what it cannot have, and what an origin may send all the same.
    fn promises_a_body(&self, status: StatusCode) -> bool {
        status == StatusCode::NO_CONTENT && (self.chunked || self.length.is_some_and(|n| n > 0))
    }

    /// RFC 9112, section 6.3; `None` if two readers could take it for two things.
    fn framing(&self, status: StatusCode, asked: ExpectedResponse) -> Option<BodyEnd> {
        if status == StatusCode::SWITCHING_PROTOCOLS {
            let wanted = asked.upgrade && self.websocket == Some(true);
            return wanted.then_some(BodyEnd::Exact(0));
        }
        if self.chunked && self.length.is_some() {
            return None;
        }
        let empty = asked.head || status.is_informational();
        if empty || matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED) {
            return Some(BodyEnd::Exact(0));
        }
        Some(match (self.chunked, self.length) {
            (true, _) => BodyEnd::Chunked(ChunkedDecoder::default()),
            (false, Some(length)) => BodyEnd::Exact(length),
            (false, None) => BodyEnd::Close,
        })
    }
}

/// A length as RFC 9110, section 8.6 writes it: digits alone.
pub(crate) fn plain_number(digits: &[u8]) -> Option<u64> {
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}
