//! A request head with exactly one meaning.
//!
//! Checks the head after hyper has parsed it, and refuses everything that two parsers could read
//! differently: framing, host, target, path. It never repairs a head and does not use routes.
//!
//! In HTTP/1, hyper handles some things before this module sees them: it removes a fragment from
//! the target and accepts lines that end in LF alone. It would also drop a `Content-Length` next to
//! `Transfer-Encoding`, merge equal `Content-Length` lines and respond with 400 to a coding other
//! than `chunked`, so the gateway checks the bytes before hyper parses them.

use std::borrow::Cow;

use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Version};

use super::{host, path};
use fields::HeadHeaders;

mod fields;

/// A valid request head.
#[derive(Clone, Debug)]
pub struct RequestHead<'r> {
    /// The method.
    pub method: &'r Method,
    /// The version.
    pub version: Version,
    /// Whether the request uses TLS.
    pub secure: bool,
    /// The host in normal form, without a port; empty if an HTTP/1.0 request has none.
    pub host: Cow<'r, str>,
    /// The port that the client sent. `None` if it is the default port.
    pub port: Option<u16>,
    /// The path in normal form, or `*`.
    pub path: Cow<'r, str>,
    /// The path as sent.
    pub raw_path: &'r str,
    /// The query as sent, without `?`. `None` if there is none.
    pub query: Option<&'r str>,
    /// The declared length of the body.
    pub body: BodyLength,
    /// The protocol that the client requests an upgrade to. `None` if the gateway does not support it.
    pub upgrade: Option<UpgradeProtocol>,
    /// The first `User-Agent` header.
    pub agent: Option<&'r HeaderValue>,
    /// The `Cookie` headers.
    pub cookies: CookieLines<'r>,
    with_port: Option<Cow<'r, str>>,
    target: &'r str,
}

/// The declared length of a request body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyLength {
    /// The request has no body.
    None,
    /// The length in `Content-Length`.
    Declared(u64),
    /// Chunked, or an HTTP/2 stream without `content-length`.
    Unknown,
}

/// The `Cookie` headers of a head.
#[derive(Clone, Copy, Debug, Default)]
pub enum CookieLines<'r> {
    /// The request has no `Cookie` header.
    #[default]
    None,
    /// The only `Cookie` header, the usual case in HTTP/1.
    One(&'r HeaderValue),
    /// There are several `Cookie` headers.
    Several,
}

/// A protocol that a connection can upgrade to. As an extension of an HTTP/2 request, it marks a stream
/// that becomes a tunnel, with handshake headers that are the gateway's and not the client's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpgradeProtocol {
    /// RFC 6455.
    WebSocket,
}

/// Why a request head is refused; [`MalformedRequest::reason`] is the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "see `reason`")]
pub enum MalformedRequest {
    Version,
    Connect,
    Protocol,
    Target,
    Host,
    Authority,
    ContentLength,
    TransferEncoding,
    UnknownCoding,
    Framing,
    TooManyFields,
    FieldValue,
    Padding,
    /// A header that some origin servers read as one that the gateway sets (`x_forwarded_for`).
    Twin,
    ConnectionField,
    Path(path::PathError),
    Query,
}

// === impl RequestHead ===

impl<'r> RequestHead<'r> {
    /// Checks and reads the head of a request.
    pub fn read(parts: &'r Parts, over_tls: bool) -> Result<Self, MalformedRequest> {
        let opens = parts.extensions.get().copied();
        let fields = HeadHeaders::read(&parts.headers, parts.version, opens)?;
        let target = target(parts)?;
        let host = host(parts, fields.host, if over_tls { 443 } else { 80 })?;
        let (raw_path, query) = split_query(target);
        let body = fields.body(parts.version);
        Ok(RequestHead {
            method: &parts.method,
            version: parts.version,
            secure: over_tls,
            host: host.name,
            port: host.port,
            with_port: host.with_port,
            path: normal_path(&parts.method, raw_path)?,
            raw_path,
            query: check_query(query)?,
            body,
            upgrade: opens.or_else(|| upgrade(parts, &fields, body)),
            agent: fields.agent,
            cookies: fields.cookies,
            target,
        })
    }

    /// Marks the request as having no body, for an HTTP/2 stream that has ended.
    pub fn without_body(mut self) -> Self {
        self.body = BodyLength::None;
        self
    }

    /// Whether the request may have a body.
    pub fn has_body(&self) -> bool {
        !matches!(self.body, BodyLength::None | BodyLength::Declared(0))
    }

    /// The declared size of the body. `None` if it is not declared.
    pub fn body_size(&self) -> Option<u64> {
        match self.body {
            BodyLength::None => Some(0),
            BodyLength::Declared(size) => Some(size),
            BodyLength::Unknown => None,
        }
    }

    /// The host with its port, unless that is the default port.
    pub fn authority(&self) -> &str {
        self.with_port.as_deref().unwrap_or(&self.host)
    }

    /// The path and the query as sent.
    pub fn raw_uri(&self) -> &'r str {
        self.target
    }

    /// The normal form of the path, and the query.
    pub fn uri(&self) -> Cow<'_, str> {
        match (&self.path, self.query) {
            (Cow::Borrowed(_), _) => Cow::Borrowed(self.target),
            (Cow::Owned(path), None) => Cow::Borrowed(path),
            (Cow::Owned(path), Some(query)) => Cow::Owned(format!("{path}?{query}")),
        }
    }
}

// === impl CookieLines ===

impl<'r> CookieLines<'r> {
    #[inline]
    fn take(&mut self, line: &'r HeaderValue) {
        *self = match self {
            CookieLines::None => CookieLines::One(line),
            _ => CookieLines::Several,
        };
    }
}

// === impl MalformedRequest ===

impl MalformedRequest {
    /// The status of the response.
    pub const fn status(self) -> u16 {
        match self {
            MalformedRequest::UnknownCoding | MalformedRequest::Protocol => 501,
            MalformedRequest::TooManyFields => 431,
            _ => 400,
        }
    }

    /// A description without a full stop.
    pub const fn reason(self) -> &'static str {
        match self {
            MalformedRequest::Version => "the HTTP version is not supported",
            MalformedRequest::Connect => "CONNECT is only for forward proxies",
            MalformedRequest::Protocol => {
                "CONNECT requests a protocol that the gateway does not support"
            }
            MalformedRequest::Target => {
                "the target is not a path, or has a character that needs escaping"
            }
            MalformedRequest::Host => {
                "the host is missing, duplicated, or neither a name nor an address"
            }
            MalformedRequest::Authority => "`Host` differs from the host of the target",
            MalformedRequest::ContentLength => "`Content-Length` is duplicated or not a number",
            MalformedRequest::TransferEncoding => "`Transfer-Encoding` is not exactly `chunked`",
            MalformedRequest::UnknownCoding => "the transfer coding is unknown",
            MalformedRequest::Framing => {
                "the request has both `Content-Length` and `Transfer-Encoding`"
            }
            MalformedRequest::TooManyFields => "there are more headers than `limits.max_headers`",
            MalformedRequest::FieldValue => "a header has a control character",
            MalformedRequest::Padding => "a header value starts or ends with white space",
            MalformedRequest::Twin => {
                "a header name looks like one that the gateway sets, such as `x_forwarded_for`"
            }
            MalformedRequest::ConnectionField => {
                "a header about the connection is not allowed in HTTP/2"
            }
            MalformedRequest::Path(bad) => bad.reason(),
            MalformedRequest::Query => "the query has a space or a control character",
        }
    }
}

/// The target in origin form, or `*`.
fn target(parts: &Parts) -> Result<&str, MalformedRequest> {
    if parts.method == Method::CONNECT {
        return Err(MalformedRequest::Connect);
    }
    let uri = &parts.uri;
    let known = matches!(uri.scheme_str(), None | Some("http" | "https"));
    // An authority without a scheme is the authority form, which only CONNECT may use.
    let absolute = uri.authority().is_some() == uri.scheme().is_some();
    if !known || !absolute {
        return Err(MalformedRequest::Target);
    }
    match uri.path_and_query().map(|target| target.as_str()) {
        Some("*") if parts.method != Method::OPTIONS => Err(MalformedRequest::Target),
        Some("") | None if uri.authority().is_some() => Ok("/"),
        // `http://host?query` is valid, but has no path, so its bytes contain no origin form.
        Some(target) if target.starts_with('?') => Err(MalformedRequest::Target),
        Some(target) => Ok(target),
        None => Err(MalformedRequest::Target),
    }
}

/// RFC 9112, section 3.2 and RFC 9113, section 8.3.1.
fn host<'r>(
    parts: &'r Parts,
    field: Option<&'r str>,
    default_port: u16,
) -> Result<host::NormalHost<'r>, MalformedRequest> {
    let read = |text| host::parse(text, default_port).ok_or(MalformedRequest::Host);
    let authority = parts
        .uri
        .authority()
        .map(|a| read(a.as_str()))
        .transpose()?;
    let field = field.map(read).transpose()?;
    match (authority, field) {
        (Some(authority), Some(field)) if authority == field => Ok(authority),
        (Some(_), Some(_)) => Err(MalformedRequest::Authority),
        (Some(_), None) if parts.version == Version::HTTP_11 => Err(MalformedRequest::Host),
        (Some(host), None) | (None, Some(host)) => Ok(host),
        (None, None) if parts.version == Version::HTTP_10 => Ok(host::NormalHost {
            name: Cow::Borrowed(""),
            port: None,
            with_port: None,
        }),
        (None, None) => Err(MalformedRequest::Host),
    }
}

fn split_query(target: &str) -> (&str, Option<&str>) {
    match target.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (target, None),
    }
}

fn normal_path<'r>(method: &Method, path: &'r str) -> Result<Cow<'r, str>, MalformedRequest> {
    match path {
        "*" if method == Method::OPTIONS => Ok(Cow::Borrowed(path)),
        _ => path::normalise(path).map_err(MalformedRequest::Path),
    }
}

fn check_query(query: Option<&str>) -> Result<Option<&str>, MalformedRequest> {
    let control = |query: &str| query.bytes().any(|b| b <= b' ' || b == 0x7f);
    match query {
        Some(query) if control(query) => Err(MalformedRequest::Query),
        _ => Ok(query),
    }
}

/// The upgrade that the head requests. `None` if anything but the tunnel could follow the head.
fn upgrade(parts: &Parts, fields: &HeadHeaders<'_>, body: BodyLength) -> Option<UpgradeProtocol> {
    let asked = fields.connection_upgrade && is_websocket(&parts.headers);
    let alone = matches!(body, BodyLength::None | BodyLength::Declared(0));
    let may = parts.version == Version::HTTP_11 && parts.method == Method::GET;
    (asked && alone && may).then_some(UpgradeProtocol::WebSocket)
}

fn is_websocket(headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(http::header::UPGRADE).iter();
    let first = values.next().map(|value| value.as_bytes());
    first.is_some_and(|value| value.eq_ignore_ascii_case(b"websocket")) && values.next().is_none()
}

#[cfg(test)]
mod tests;
