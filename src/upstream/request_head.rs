//! Writes the head of a request to an origin server in one pass over the client's headers. No bytes from a
//! client can end the head early. Never sends.
//!
//! Decides which headers an origin server gets, in both HTTP versions. A [`HeaderSpelling`] encodes them.

use std::net::IpAddr;

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Version};
use smallvec::SmallVec;

use super::OutboundRequest;
use super::headers::{CredentialHeaders, ForwardedHeaders, Named, named, stays_here};
use super::http1::upload::BodyFraming;
use super::own_cookies::without_own_cookies;
use crate::route::edit::HeaderChanges;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const X_REAL_IP: HeaderName = HeaderName::from_static("x-real-ip");
const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The buffer capacity that most heads need. Allocators are fastest up to this size.
const USUAL: usize = 1024;

/// How an HTTP version encodes headers.
pub(super) trait HeaderSpelling {
    /// Whether all cookies are joined in one header (RFC 9113, section 8.2.3).
    const JOINS_COOKIES: bool;
    /// Writes a header set by the gateway.
    fn field(&mut self, name: &'static str, value: &[u8]);
    /// Writes a header unchanged.
    fn pass(&mut self, name: &HeaderName, value: &HeaderValue);
    /// Writes the headers that concern the connection.
    fn connection(&mut self, upgrade: bool, trailers: bool);
    /// Writes the framing of a body of unknown length.
    fn endless(&mut self);
}

/// A header value composed by the gateway. Most are no longer than an address.
type Value = SmallVec<[u8; 64]>;

/// A head being written.
struct HeadWriter<'a, F> {
    form: F,
    /// The headers that `Connection` lists.
    named: Named,
    /// The headers of the gateway that a trusted proxy has already set.
    kept: KeptHeaders,
    wants_trailers: bool,
    host: &'a [u8],
    outbound: &'a OutboundRequest<'a>,
}

#[derive(Default)]
struct KeptHeaders {
    host: bool,
    proto: bool,
    cookies: bool,
}

/// Returns the bytes of a head, including the empty line.
pub(super) fn write(outbound: &OutboundRequest<'_>, framing: BodyFraming) -> Vec<u8> {
    let mut out = Vec::with_capacity(USUAL);
    out.extend_from_slice(outbound.method.as_str().as_bytes());
    out.extend_from_slice(b" ");
    out.extend_from_slice(outbound.target.as_bytes());
    out.extend_from_slice(b" HTTP/1.1\r\n");
    out.field("host", host(outbound));
    let mut out = fields(out, outbound, framing);
    out.extend_from_slice(b"\r\n");
    out
}

/// Adds all headers of a head to `form`, except those that contain the target.
pub(super) fn fields<F: HeaderSpelling>(
    form: F,
    outbound: &OutboundRequest<'_>,
    framing: BodyFraming,
) -> F {
    let lines = outbound.headers.get_all(header::CONNECTION).iter();
    let mut writer = HeadWriter {
        form,
        named: named(lines.map(HeaderValue::as_bytes)),
        kept: KeptHeaders::default(),
        wants_trailers: false,
        host: text(outbound.forwarding.host).unwrap_or_default(),
        outbound,
    };
    for (name, value) in outbound.headers {
        writer.pass(name, value);
    }
    let (upgrade, trailers) = (outbound.upgrade, writer.wants_trailers);
    writer.form.connection(upgrade, trailers);
    writer.forwarding(&outbound.forwarding);
    let set = outbound.edits.map_or(&[][..], |edits| &edits.set);
    for (name, value) in set.iter().filter(|(name, _)| *name != header::HOST) {
        writer.form.pass(name, value);
    }
    writer.framing(framing);
    writer.form
}

/// Returns the host for the origin server. Empty if it contains bytes that are invalid in a head.
pub(super) fn host<'a>(outbound: &'a OutboundRequest<'_>) -> &'a [u8] {
    let set = outbound.edits.and_then(HeaderChanges::host);
    let host = set.or(outbound.host.as_deref());
    text(host.unwrap_or(outbound.forwarding.host)).unwrap_or_default()
}

/// Returns whether a target is valid: a path, or `*` (RFC 9112, section 3.2.4).
pub(super) fn is_target(outbound: &OutboundRequest<'_>) -> bool {
    let is_server = *outbound.method == Method::OPTIONS && outbound.target == "*";
    is_server || is_path(outbound.target)
}

/// Returns whether a target is a path without spaces, control characters or `#` (RFC 9112, section 3.2.1).
pub(super) fn is_path(target: &str) -> bool {
    let plain = |b: u8| b > b' ' && b != b'#' && b != 0x7f;
    target.starts_with('/') && all(target, plain)
}

/// Encodes headers as lines of HTTP/1.1.
impl HeaderSpelling for Vec<u8> {
    const JOINS_COOKIES: bool = true;

    fn field(&mut self, name: &'static str, value: &[u8]) {
        write_line(self, name, value);
    }

    fn pass(&mut self, name: &HeaderName, value: &HeaderValue) {
        write_line(self, name.as_str(), value.as_bytes());
    }

    fn connection(&mut self, upgrade: bool, trailers: bool) {
        if upgrade {
            self.extend_from_slice(b"connection: upgrade\r\nupgrade: websocket\r\n");
        } else if trailers {
            self.extend_from_slice(b"connection: te\r\nte: trailers\r\n");
        }
    }

    fn endless(&mut self) {
        self.extend_from_slice(b"transfer-encoding: chunked\r\n");
    }
}

/// Appends an HTTP/1.1 header line.
pub(super) fn write_line(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    out.reserve(name.len() + value.len() + 4);
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

// === impl HeadWriter ===

impl<F: HeaderSpelling> HeadWriter<'_, F> {
    /// Forwards one client header if it is allowed.
    fn pass(&mut self, name: &HeaderName, value: &HeaderValue) {
        if self.outbound.edits.is_some_and(|edits| edits.replace(name)) {
            return;
        }
        let trusted = self.outbound.forwarding.trusted_peer;
        match *name {
            // The gateway always writes these headers itself.
            header::HOST | header::CONTENT_LENGTH => return,
            header::TE => self.wants_trailers |= names_trailers(value),
            header::COOKIE if F::JOINS_COOKIES && self.outbound.version == Version::HTTP_2 => {
                return self.cookies();
            }
            header::COOKIE if self.outbound.forwarding.credentials.is_some() => {
                return self.cookie(value);
            }
            _ => {}
        }
        if stays_here(name, trusted) || self.named.contains(name) || self.is_replaced(name) {
            return;
        }
        self.form.pass(name, value);
    }

    /// Returns whether the gateway writes a header itself. Records those that a trusted proxy has set.
    fn is_replaced(&mut self, name: &HeaderName) -> bool {
        let text = name.as_str();
        if !text.starts_with("x-") {
            return false;
        }
        // `stays_here` has already removed these headers if the peer is not trusted.
        if *name == X_FORWARDED_HOST {
            self.kept.host = true;
        } else if *name == X_FORWARDED_PROTO {
            self.kept.proto = true;
        }
        *name == X_FORWARDED_FOR || *name == X_REAL_IP || *name == X_REQUEST_ID
    }

    /// Joins the cookie headers of HTTP/2 in one header for HTTP/1.1 (RFC 9113, section 8.2.3).
    fn cookies(&mut self) {
        let written = std::mem::replace(&mut self.kept.cookies, true);
        if !written && !self.named.contains(&header::COOKIE) {
            let crumbs = self.outbound.headers.get_all(header::COOKIE);
            let all = joined(crumbs.iter(), b"; ");
            self.write_cookies(&all);
        }
    }

    /// Forwards one cookie header without the gateway's cookies.
    fn cookie(&mut self, value: &HeaderValue) {
        if !self.named.contains(&header::COOKIE) {
            self.write_cookies(value.as_bytes());
        }
    }

    fn write_cookies(&mut self, all: &[u8]) {
        if self.outbound.forwarding.credentials.is_none() {
            self.form.field("cookie", all);
        } else if let Some(cookies) = without_own_cookies(all) {
            self.form.field("cookie", &cookies);
        }
    }

    /// Writes the gateway's headers, except those that the route replaces.
    fn forwarding(&mut self, forwarding: &ForwardedHeaders<'_>) {
        let peer = address(forwarding.peer);
        if forwarding.trusted_peer {
            let hops = self.outbound.headers.get_all(X_FORWARDED_FOR).iter();
            let mut hops = joined(hops, b", ");
            if !hops.is_empty() {
                hops.extend_from_slice(b", ");
            }
            hops.extend_from_slice(&peer);
            self.field("x-forwarded-for", &hops);
        } else {
            self.field("x-forwarded-for", &peer);
        }
        if forwarding.client == forwarding.peer {
            self.field("x-real-ip", &peer);
        } else {
            self.field("x-real-ip", &address(forwarding.client));
        }
        if !self.kept.host {
            self.field("x-forwarded-host", self.host);
        }
        if !self.kept.proto {
            let proto: &[u8] = if forwarding.https { b"https" } else { b"http" };
            self.field("x-forwarded-proto", proto);
        }
        if let Some(id) = text(forwarding.request_id) {
            self.field("x-request-id", id);
        }
        if let (false, Some(rules)) = (forwarding.rules.is_empty(), text(forwarding.rules)) {
            self.field("x-lockgate-rule", rules);
        }
        if let Some(credentials) = &forwarding.credentials {
            self.credentials(credentials);
        }
    }

    fn credentials(&mut self, proven: &CredentialHeaders<'_>) {
        if let Some(client) = proven.client {
            self.field("x-lockgate-client", client.as_bytes());
        }
        if let (false, Some(rule)) = (proven.challenge.is_empty(), text(proven.challenge)) {
            self.field("x-lockgate-challenge", rule);
        }
    }

    fn framing(&mut self, framing: BodyFraming) {
        match framing {
            // RFC 9110, section 8.6: methods that anticipate content send a length of 0.
            BodyFraming::Length(0) if !self.declares_nothing() => {}
            BodyFraming::Length(length) => {
                let mut digits = itoa::Buffer::new();
                self.field("content-length", digits.format(length).as_bytes());
            }
            BodyFraming::Chunked => self.form.endless(),
        }
    }

    fn declares_nothing(&self) -> bool {
        let expected = [Method::POST, Method::PUT, Method::PATCH];
        expected.contains(self.outbound.method)
            || self.outbound.headers.contains_key(header::CONTENT_LENGTH)
    }

    /// Writes a header of the gateway, unless the route replaces it.
    fn field(&mut self, name: &'static str, value: &[u8]) {
        if !self.outbound.edits.is_some_and(|edits| edits.replace(name)) {
            self.form.field(name, value);
        }
    }
}

/// Joins the values with the separator `by`.
fn joined<'v>(values: impl Iterator<Item = &'v HeaderValue>, by: &[u8]) -> Value {
    let mut all = Value::new();
    for (number, value) in values.enumerate() {
        if number > 0 {
            all.extend_from_slice(by);
        }
        all.extend_from_slice(value.as_bytes());
    }
    all
}

fn address(ip: IpAddr) -> Value {
    match ip.to_canonical() {
        IpAddr::V4(ip) => {
            let [first, rest @ ..] = ip.octets();
            let mut digits = itoa::Buffer::new();
            let mut text = Value::from_slice(digits.format(first).as_bytes());
            for octet in rest {
                text.push(b'.');
                text.extend_from_slice(digits.format(octet).as_bytes());
            }
            text
        }
        IpAddr::V6(ip) => Value::from_vec(ip.to_string().into_bytes()),
    }
}

/// Returns the text if it is a valid header value.
fn text(text: &str) -> Option<&[u8]> {
    let fits = |b: u8| b == b'\t' || (b >= b' ' && b != 0x7f);
    all(text, fits).then_some(text.as_bytes())
}

/// Has no early exit, so that the compiler can vectorize it.
fn all(text: &str, fits: impl Fn(u8) -> bool) -> bool {
    text.bytes().fold(true, |all, byte| all & fits(byte))
}

fn names_trailers(value: &HeaderValue) -> bool {
    let mut codings = value.as_bytes().split(|&b| b == b',');
    codings.any(|coding| coding.trim_ascii().eq_ignore_ascii_case(b"trailers"))
}

/// Returns the trailers that a request may send: those listed in its `Trailer` header.
pub(super) fn announced(headers: &HeaderMap) -> Named {
    let lines = headers.get_all(header::TRAILER).iter();
    named(lines.map(HeaderValue::as_bytes))
}
