//! The head of a request to an origin, written in one pass over the client's fields. Nothing is
//! cloned, and nothing that a client says decides where the head ends. Never sends.

use std::io::Write;
use std::net::IpAddr;

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Version};

use super::Outbound;
use super::headers::{Forwarding, Named, named, stays_here};
use super::upload::Framing;
use crate::route::edit::Fields;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const X_REAL_IP: HeaderName = HeaderName::from_static("x-real-ip");
const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The room that most heads need; an allocator is fastest below it.
const USUAL: usize = 1024;

/// A head while it is written.
struct Writer<'a> {
    out: Vec<u8>,
    /// What `Connection` names.
    named: Named,
    /// Which fields of the gateway's own a trusted proxy has set already.
    kept: Kept,
    wants_trailers: bool,
    host: &'a [u8],
    outbound: &'a Outbound<'a>,
}

#[derive(Default)]
struct Kept {
    host: bool,
    proto: bool,
    id: bool,
    cookies: bool,
}

/// The bytes of a head, up to and with the empty line.
pub(super) fn write(outbound: &Outbound<'_>, framing: Framing) -> Vec<u8> {
    let lines = outbound.headers.get_all(header::CONNECTION).iter();
    let mut writer = Writer {
        out: Vec::with_capacity(USUAL),
        named: named(lines.map(HeaderValue::as_bytes)),
        kept: Kept::default(),
        wants_trailers: false,
        host: text(outbound.forwarding.host).unwrap_or_default(),
        outbound,
    };
    writer.line();
    for (name, value) in outbound.headers {
        writer.pass(name, value);
    }
    writer.connection();
    let own = writer.out.len();
    writer.forwarding(&outbound.forwarding);
    if let Some(edits) = outbound.edits {
        writer.edit(edits, own);
    }
    writer.framing(framing);
    writer.out.extend_from_slice(b"\r\n");
    writer.out
}

/// Whether a target is a path that ends where it seems to: RFC 9112, section 3.2.1.
pub(super) fn is_path(target: &str) -> bool {
    let plain = |b: u8| b > b' ' && b != b'#' && b != 0x7f;
    target.starts_with('/') && all(target, plain)
}

// === impl Writer ===

impl Writer<'_> {
    fn line(&mut self) {
        self.put(self.outbound.method.as_str().as_bytes());
        self.put(b" ");
        self.put(self.outbound.target.as_bytes());
        self.put(b" HTTP/1.1\r\nhost: ");
        let set = self.outbound.edits.and_then(Fields::host);
        self.put(set.map_or(self.host, str::as_bytes));
        self.put(b"\r\n");
    }

    /// Passes one field of the client's on, if it may pass.
    fn pass(&mut self, name: &HeaderName, value: &HeaderValue) {
        if self.outbound.edits.is_some_and(|edits| edits.replace(name)) {
            return;
        }
        let trusted = self.outbound.forwarding.trusted_peer;
        match *name {
            // Written by the gateway in any case.
            header::HOST | header::CONTENT_LENGTH => return,
            header::TE => self.wants_trailers |= names_trailers(value),
            header::COOKIE if self.outbound.version == Version::HTTP_2 => return self.cookies(),
            _ => {}
        }
        if stays_here(name, trusted) || self.named.contains(name) || self.is_replaced(name) {
            return;
        }
        self.field(name.as_str().as_bytes(), value.as_bytes());
    }

    /// Whether the gateway writes a field itself. What a trusted proxy says stands, and is noted.
    fn is_replaced(&mut self, name: &HeaderName) -> bool {
        let text = name.as_str();
        if !text.starts_with("x-") {
            return false;
        }
        let trusted = self.outbound.forwarding.trusted_peer;
        if *name == X_REQUEST_ID {
            self.kept.id |= trusted;
            return !trusted;
        }
        // Of an untrusted peer the rest did not come so far.
        if *name == X_FORWARDED_HOST {
            self.kept.host = true;
        } else if *name == X_FORWARDED_PROTO {
            self.kept.proto = true;
        }
        *name == X_FORWARDED_FOR || *name == X_REAL_IP
    }

    /// RFC 9113, section 8.2.3: the crumbs of HTTP/2 are one field in HTTP/1.1.
    fn cookies(&mut self) {
        if std::mem::replace(&mut self.kept.cookies, true) {
            return;
        }
        if self.named.contains(&header::COOKIE) {
            return;
        }
        self.put(b"cookie: ");
        let crumbs = self.outbound.headers.get_all(header::COOKIE);
        self.joined(crumbs.iter(), b"; ");
        self.put(b"\r\n");
    }

    fn connection(&mut self) {
        if self.outbound.upgrade {
            self.put(b"connection: upgrade\r\nupgrade: websocket\r\n");
        } else if self.wants_trailers {
            self.put(b"connection: te\r\nte: trailers\r\n");
        }
    }

    fn forwarding(&mut self, forwarding: &Forwarding<'_>) {
        self.put(b"x-forwarded-for: ");
        if forwarding.trusted_peer {
            let hops = self.outbound.headers.get_all(X_FORWARDED_FOR);
            if self.joined(hops.iter(), b", ") {
                self.put(b", ");
            }
        }
        let from = self.out.len();
        self.address(forwarding.peer);
        let peer = from..self.out.len();
        self.put(b"\r\nx-real-ip: ");
        match forwarding.client == forwarding.peer {
            true => self.out.extend_from_within(peer),
            false => self.address(forwarding.client),
        }
        self.put(b"\r\n");
        if !self.kept.host {
            self.field(b"x-forwarded-host", self.host);
        }
        if !self.kept.proto {
            self.put(match forwarding.https {
                true => b"x-forwarded-proto: https\r\n".as_slice(),
                false => b"x-forwarded-proto: http\r\n".as_slice(),
            });
        }
        if let (false, Some(id)) = (self.kept.id, text(forwarding.request_id)) {
            self.field(b"x-request-id", id);
        }
        if let (false, Some(rules)) = (forwarding.rules.is_empty(), text(forwarding.rules)) {
            self.field(b"x-lockgate-rule", rules);
        }
    }

    /// What the route changes: of the gateway's own fields, which begin at `own`, too.
    fn edit(&mut self, edits: &Fields, own: usize) {
        let lines = self.out.split_off(own.min(self.out.len()));
        for line in lines.split_inclusive(|&byte| byte == b'\n') {
            let name = line.split(|&byte| byte == b':').next().unwrap_or_default();
            let name = HeaderName::from_bytes(name);
            if !name.is_ok_and(|name| edits.replace(&name)) {
                self.put(line);
            }
        }
        for (name, value) in edits.set.iter().filter(|(name, _)| *name != header::HOST) {
            self.field(name.as_str().as_bytes(), value.as_bytes());
        }
    }

    fn framing(&mut self, framing: Framing) {
        match framing {
            // RFC 9110, section 8.6: a method that anticipates content says when there is none.
            Framing::Length(0) if !self.declares_nothing() => {}
            Framing::Length(length) => {
                let mut digits = itoa::Buffer::new();
                self.field(b"content-length", digits.format(length).as_bytes());
            }
            Framing::Chunked => self.put(b"transfer-encoding: chunked\r\n"),
        }
    }

    fn declares_nothing(&self) -> bool {
        let expected = [Method::POST, Method::PUT, Method::PATCH];
        expected.contains(self.outbound.method)
            || self.outbound.headers.contains_key(header::CONTENT_LENGTH)
    }

    /// Writes values side by side; `false` if there are none.
    fn joined<'v>(&mut self, values: impl Iterator<Item = &'v HeaderValue>, by: &[u8]) -> bool {
        let mut any = false;
        for value in values {
            if any {
                self.put(by);
            }
            self.put(value.as_bytes());
            any = true;
        }
        any
    }

    fn field(&mut self, name: &[u8], value: &[u8]) {
        self.out.reserve(name.len() + value.len() + 4);
        self.put(name);
        self.put(b": ");
        self.put(value);
        self.put(b"\r\n");
    }

    fn address(&mut self, ip: IpAddr) {
        match ip.to_canonical() {
            IpAddr::V4(ip) => {
                let mut digits = itoa::Buffer::new();
                for (i, octet) in ip.octets().into_iter().enumerate() {
                    if i > 0 {
                        self.put(b".");
                    }
                    self.put(digits.format(octet).as_bytes());
                }
            }
            // Writing to memory cannot fail.
            IpAddr::V6(ip) => drop(write!(self.out, "{ip}")),
        }
    }

    fn put(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }
}

/// A text that can stand in a field.
fn text(text: &str) -> Option<&[u8]> {
    let fits = |b: u8| b == b'\t' || (b >= b' ' && b != 0x7f);
    all(text, fits).then_some(text.as_bytes())
}

/// Without an early end, which would keep it from being done for many bytes at once.
fn all(text: &str, fits: impl Fn(u8) -> bool) -> bool {
    text.bytes().fold(true, |all, byte| all & fits(byte))
}

fn names_trailers(value: &HeaderValue) -> bool {
    let mut codings = value.as_bytes().split(|&b| b == b',');
    codings.any(|coding| coding.trim_ascii().eq_ignore_ascii_case(b"trailers"))
}

/// The fields that a request may send behind its body: those that its head announces.
pub(super) fn announced(headers: &HeaderMap) -> Named {
    let lines = headers.get_all(header::TRAILER).iter();
    named(lines.map(HeaderValue::as_bytes))
}
