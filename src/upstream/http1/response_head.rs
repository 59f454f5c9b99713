//! Parses the head of a response. An ambiguous head is an error. Headers that concern only the connection
//! are removed. Never reads from a socket.

use std::mem::MaybeUninit;
use std::time::Duration;

use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode};
use httparse::{ParserConfig, Status};
use hyper::ext::ReasonPhrase;

use super::connection::ReadBuffer;
use super::response_body::{BodyEnd, ChunkedDecoder};
use crate::upstream::error::{UpstreamError, UpstreamErrorKind};
use crate::upstream::headers::{is_close, is_hop_by_hop, named};
use crate::upstream::{HeadLimits, Upstream};

/// The number of headers that need no allocation.
const FIELDS: usize = 100;

/// The properties of a request that affect the meaning of its response, and the limits of the response head.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExpectedResponse {
    /// Whether the method is HEAD: the response then has no body, whatever its headers contain.
    pub(crate) head: bool,
    /// Whether a 101 response is allowed.
    pub(crate) upgrade: bool,
    /// The timeout for the head.
    pub(crate) timeout: Duration,
    /// The limits of the head.
    pub(crate) limits: HeadLimits,
}

/// A parsed head.
#[derive(Debug)]
pub(crate) struct ResponseHead {
    pub(crate) status: StatusCode,
    /// The reason phrase of a status that has no registered one. `None` if it is empty or registered.
    pub(crate) reason: Option<ReasonPhrase>,
    /// The headers for the client.
    pub(crate) headers: HeaderMap,
    pub(crate) length: BodyEnd,
    /// Whether the origin server accepts another request on this connection.
    pub(crate) keeps: bool,
}

/// The meaning of the headers for framing and connection reuse.
#[derive(Default)]
struct HeadMeaning {
    length: Option<u64>,
    chunked: bool,
    /// Whether `Connection` may list headers.
    names: bool,
    close: bool,
    websocket: Option<bool>,
}

// === impl ExpectedResponse ===

impl ExpectedResponse {
    pub(crate) fn new(method: &Method, upgrade: bool, upstream: &Upstream) -> Self {
        Self {
            head: *method == Method::HEAD,
            upgrade,
            timeout: upstream.response_timeout,
            limits: upstream.response_head,
        }
    }
}

// === impl ResponseHead ===

impl ResponseHead {
    /// Returns whether no other head follows.
    pub(super) fn is_final(&self) -> bool {
        !self.status.is_informational() || self.status == StatusCode::SWITCHING_PROTOCOLS
    }
}

/// Takes a complete head. `None` if more bytes are needed.
pub(crate) fn read(
    buffer: &mut ReadBuffer,
    expected: ExpectedResponse,
) -> Result<Option<ResponseHead>, UpstreamError> {
    let mut fields = [const { MaybeUninit::uninit() }; FIELDS];
    let most = expected.limits.headers;
    let read = match parse(buffer.bytes(), &mut fields, expected) {
        Err(error) if error.is_too_many_headers() && most > FIELDS => {
            let mut fields = vec![MaybeUninit::uninit(); most];
            parse(buffer.bytes(), &mut fields, expected)
        }
        read => read,
    };
    let Some((head, length)) = read? else {
        return Ok(None);
    };
    buffer.skip(length);
    Ok(Some(head))
}

/// Parses a head with space for as many headers as `fields` has. Returns the head and its length.
fn parse<'b>(
    bytes: &'b [u8],
    fields: &mut [MaybeUninit<httparse::Header<'b>>],
    expected: ExpectedResponse,
) -> Result<Option<(ResponseHead, usize)>, UpstreamError> {
    let limits = expected.limits;
    let mut response = httparse::Response::new(&mut []);
    // httparse is strict by default: no folded lines, no space before a colon, no invalid headers.
    let config = ParserConfig::default();
    let parsed = config.parse_response_with_uninit_headers(&mut response, bytes, fields);
    let length = match parsed {
        Ok(Status::Complete(length)) if length <= limits.bytes => length,
        Ok(Status::Partial) if bytes.len() < limits.bytes => return Ok(None),
        Ok(_) => return Err(UpstreamErrorKind::HeadTooLarge.into()),
        Err(httparse::Error::TooManyHeaders) => {
            return Err(UpstreamErrorKind::TooManyHeaders.into());
        }
        Err(error) => return Err(not_http(bytes, error)),
    };
    if response.headers.len() > limits.headers {
        return Err(UpstreamErrorKind::TooManyHeaders.into());
    }
    let whole = Bytes::copy_from_slice(bytes.get(..length).unwrap_or_default());
    let head =
        understand(&response, bytes, &whole, expected).ok_or(UpstreamErrorKind::BadResponse)?;
    Ok(Some((head, length)))
}

/// Explains a TLS record: the origin server expects TLS (RFC 8446, section 5.1).
fn not_http(bytes: &[u8], error: httparse::Error) -> UpstreamError {
    let wrong = UpstreamError::from(UpstreamErrorKind::BadResponse);
    match bytes {
        [21 | 22, 3, ..] => wrong.because("it looks like TLS: set `tls = true`"),
        _ => wrong.because(error),
    }
}

/// Interprets a parsed head. `whole` is a copy of the head in `bytes`.
fn understand(
    response: &httparse::Response<'_, '_>,
    bytes: &[u8],
    whole: &Bytes,
    expected: ExpectedResponse,
) -> Option<ResponseHead> {
    let status = StatusCode::from_u16(response.code?).ok()?;
    let is_new = response.version == Some(1);
    let mut meaning = HeadMeaning::default();
    // The exact capacity, because allocators are slower for larger sizes.
    let mut headers = HeaderMap::with_capacity(response.headers.len() + 1);
    for field in response.headers.iter() {
        let name = HeaderName::from_bytes(field.name.as_bytes()).ok()?;
        if meaning.passes(&name, field.value)? {
            headers.append(name, shared(field.value, bytes, whole)?);
        }
    }
    if meaning.names {
        meaning.close |= leave_out_named(&mut headers, response);
    }
    let length = meaning.framing(status, expected)?;
    if meaning.chunked && !is_new {
        return None;
    }
    finish(&mut headers, status);
    let unregistered = response
        .reason
        .filter(|_| status.canonical_reason().is_none());
    Some(ResponseHead {
        status,
        reason: unregistered.and_then(|reason| ReasonPhrase::try_from(reason.as_bytes()).ok()),
        headers,
        length,
        // An HTTP/1.0 origin server may not know chunked bodies, so it gets one request per connection.
        keeps: is_new && !meaning.close && !meaning.promises_a_body(status),
    })
}

/// Returns a value in `bytes` as a slice of the copy `whole`.
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

/// Removes the headers that `Connection` lists. Returns whether it contains `close`.
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
    /// Returns whether a header is forwarded to the client. `None` if it makes the head invalid.
    fn passes(&mut self, name: &HeaderName, value: &[u8]) -> Option<bool> {
        match *name {
            header::CONTENT_LENGTH => {
                let length = plain_number(value)?;
                // RFC 9112, section 6.3: exactly one length, even if a second one is equal.
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
                // Nearly every `Connection` header has one option and lists no header.
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

    /// Returns whether a 204 declares a body, which the origin server may send although it is not allowed.
    fn promises_a_body(&self, status: StatusCode) -> bool {
        status == StatusCode::NO_CONTENT && (self.chunked || self.length.is_some_and(|n| n > 0))
    }

    /// Returns the end of the body (RFC 9112, section 6.3). `None` if the framing is ambiguous.
    fn framing(&self, status: StatusCode, expected: ExpectedResponse) -> Option<BodyEnd> {
        if status == StatusCode::SWITCHING_PROTOCOLS {
            let wanted = expected.upgrade && self.websocket == Some(true);
            return wanted.then_some(BodyEnd::Exact(0));
        }
        if self.chunked && self.length.is_some() {
            return None;
        }
        let empty = expected.head || status.is_informational();
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

/// Parses a length as in RFC 9110, section 8.6: only digits.
pub(crate) fn plain_number(digits: &[u8]) -> Option<u64> {
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}
