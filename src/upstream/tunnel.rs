//! WebSockets: the gateway's own part in a handshake (RFC 6455, section 4.1), for a client whose
//! version of HTTP has no such part, and the bytes of an upgraded connection. Never looks at what
//! flows through the connection.

use std::io::Cursor;

use aws_lc_rs::digest::{self, SHA1_FOR_LEGACY_USE_ONLY};
use base64::prelude::{BASE64_STANDARD, Engine};
use bytes::Bytes;
use http::header::{HeaderMap, HeaderValue, SEC_WEBSOCKET_ACCEPT};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, join, split};

use super::connection::OriginStream;
use super::server::ServerInFlight;

/// What a server appends to the key: RFC 6455, section 1.3.
const SUFFIX: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// The key of a handshake, which the origin's response must prove that it has read.
#[derive(Debug)]
pub struct WebSocketKey(String);

/// An upgraded connection to an origin: in flight until it is dropped.
pub struct OriginTunnel {
    /// The bytes to and from the origin.
    pub io: Box<dyn Duplex>,
    _in_flight: ServerInFlight,
}

/// A stream of bytes in both directions.
pub trait Duplex: AsyncRead + AsyncWrite + Unpin {}

impl<T: AsyncRead + AsyncWrite + Unpin> Duplex for T {}

// === impl WebSocketKey ===

impl WebSocketKey {
    /// A random key.
    pub fn draw() -> Self {
        let mut nonce = [0; 16];
        // It prevents mistakes of caches and protects nothing, so zeros do no harm.
        let _ = getrandom::fill(&mut nonce);
        Self(BASE64_STANDARD.encode(nonce))
    }

    /// The value of `sec-websocket-key`. Never `None`, because Base64 is a valid value.
    pub fn value(&self) -> Option<HeaderValue> {
        HeaderValue::from_str(&self.0).ok()
    }

    /// Whether the headers of a response belong to this key: RFC 6455, section 4.2.2.
    pub fn is_accepted_by(&self, headers: &HeaderMap) -> bool {
        let mut digest = digest::Context::new(&SHA1_FOR_LEGACY_USE_ONLY);
        digest.update(self.0.as_bytes());
        digest.update(SUFFIX);
        let expected = BASE64_STANDARD.encode(digest.finish());
        let mut accepts = headers.get_all(SEC_WEBSOCKET_ACCEPT).iter();
        accepts.next().is_some_and(|value| value == &expected) && accepts.next().is_none()
    }
}

// === impl OriginTunnel ===

impl OriginTunnel {
    /// `early` is what the origin sent right behind its 101.
    pub(super) fn new(stream: OriginStream, early: Bytes, in_flight: ServerInFlight) -> Self {
        let (from, to) = split(stream);
        Self {
            io: Box::new(join(Cursor::new(early).chain(from), to)),
            _in_flight: in_flight,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_rfc() {
        let key = WebSocketKey(BASE64_STANDARD.encode(b"the sample nonce"));
        assert_eq!(key.0, "dGhlIHNhbXBsZSBub25jZQ==");
        let accept = HeaderValue::from_static("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        let mut headers = HeaderMap::new();
        assert!(!key.is_accepted_by(&headers));
        headers.append(SEC_WEBSOCKET_ACCEPT, accept.clone());
        assert!(key.is_accepted_by(&headers));
        assert!(!WebSocketKey::draw().is_accepted_by(&headers));
        headers.append(SEC_WEBSOCKET_ACCEPT, accept);
        assert!(!key.is_accepted_by(&headers));
    }
}
