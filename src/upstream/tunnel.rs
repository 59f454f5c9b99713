//! WebSockets: the gateway's own part in a handshake (RFC 6455, section 4.1), for a client whose
//! version of HTTP has no such part, and the bytes of an upgraded connection. Never looks at what
//! flows through the connection.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use aws_lc_rs::digest::{self, SHA1_FOR_LEGACY_USE_ONLY};
use base64::prelude::{BASE64_STANDARD, Engine};
use bytes::{Buf, Bytes};
use http::header::{HeaderMap, HeaderValue, SEC_WEBSOCKET_ACCEPT};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::connection::Stream;
use super::server::InFlight;

/// What a server appends to the key: RFC 6455, section 1.3.
const SUFFIX: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// The key of a handshake, which the origin's response must prove that it has read.
#[derive(Debug)]
pub struct Key(String);

/// An upgraded connection to an origin: in flight until it is dropped.
#[derive(Debug)]
pub struct Tunnel {
    early: Bytes,
    stream: Stream,
    _in_flight: InFlight,
}

// === impl Key ===

impl Key {
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
    pub fn is_answered(&self, headers: &HeaderMap) -> bool {
        let mut digest = digest::Context::new(&SHA1_FOR_LEGACY_USE_ONLY);
        digest.update(self.0.as_bytes());
        digest.update(SUFFIX);
        let expected = BASE64_STANDARD.encode(digest.finish());
        let mut accepts = headers.get_all(SEC_WEBSOCKET_ACCEPT).iter();
        accepts.next().is_some_and(|value| value == &expected) && accepts.next().is_none()
    }
}

// === impl Tunnel ===

impl Tunnel {
    /// `early` is what the origin sent right behind its 101.
    pub(super) fn new(stream: Stream, early: Bytes, in_flight: InFlight) -> Self {
        Self {
            early,
            stream,
            _in_flight: in_flight,
        }
    }
}

impl AsyncRead for Tunnel {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.early.is_empty() {
            return Pin::new(&mut self.stream).poll_read(cx, buf);
        }
        let n = self.early.len().min(buf.remaining());
        buf.put_slice(self.early.get(..n).unwrap_or_default());
        self.early.advance(n);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Tunnel {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_rfc() {
        let key = Key(BASE64_STANDARD.encode(b"the sample nonce"));
        assert_eq!(key.0, "dGhlIHNhbXBsZSBub25jZQ==");
        let accept = HeaderValue::from_static("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        let mut headers = HeaderMap::new();
        assert!(!key.is_answered(&headers));
        headers.append(SEC_WEBSOCKET_ACCEPT, accept.clone());
        assert!(key.is_answered(&headers));
        assert!(!Key::draw().is_answered(&headers));
        headers.append(SEC_WEBSOCKET_ACCEPT, accept);
        assert!(!key.is_answered(&headers));
    }
}
