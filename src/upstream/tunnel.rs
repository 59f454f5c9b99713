//! WebSockets: the key of a handshake that the gateway starts itself (RFC 6455, section 4.1), for HTTP/2
//! clients, which send no key, and the bytes of an upgraded connection. Never reads the tunnelled data.

use std::io::Cursor;

use aws_lc_rs::digest::{self, SHA1_FOR_LEGACY_USE_ONLY};
use base64::prelude::{BASE64_STANDARD, Engine};
use bytes::Bytes;
use http::header::{HeaderMap, HeaderValue, SEC_WEBSOCKET_ACCEPT};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, join, split};

use super::connection::OriginStream;
use super::server::ServerInFlight;

/// The suffix that a server appends to the key (RFC 6455, section 1.3).
const SUFFIX: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// The key of a handshake. The origin server's response must contain a value derived from it.
#[derive(Debug)]
pub struct WebSocketKey(String);

/// A tunnel to an origin server. It counts as a request in flight until dropped.
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
    /// Creates a random key.
    pub fn draw() -> Self {
        let mut nonce = [0; 16];
        // The key only detects wrong caches and is not a secret, so zeros are acceptable.
        let _ = getrandom::fill(&mut nonce);
        Self(BASE64_STANDARD.encode(nonce))
    }

    /// Returns the value of `sec-websocket-key`. Never `None`, because Base64 is a valid header value.
    pub fn value(&self) -> Option<HeaderValue> {
        HeaderValue::from_str(&self.0).ok()
    }

    /// Returns whether the response headers accept this key (RFC 6455, section 4.2.2).
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
    /// Creates a tunnel. `early` holds the bytes that the origin server sent right after its 101 response.
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
    fn the_accept_key_matches_the_rfc_example() {
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
