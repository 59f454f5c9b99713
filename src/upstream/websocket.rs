//! The gateway's own part in the handshake of a WebSocket (RFC 6455, section 4.1), for a client
//! whose version of HTTP has no such part. Never looks at what follows the handshake.

use aws_lc_rs::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY};
use http::header::{HeaderMap, HeaderValue, SEC_WEBSOCKET_ACCEPT};

/// What a server appends to the key: RFC 6455, section 1.3.
const SUFFIX: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// A key that an origin must answer to.
#[derive(Debug)]
pub struct Key(String);

// === impl Key ===

impl Key {
    /// A key that nobody can foresee.
    pub fn draw() -> Self {
        let mut nonce = [0; 16];
        // It keeps caches from mistakes, and guards nothing: zeros do no harm.
        let _ = getrandom::fill(&mut nonce);
        Self(base64(&nonce))
    }

    /// The value of `sec-websocket-key`; `None` cannot be, for it is Base64.
    pub fn value(&self) -> Option<HeaderValue> {
        HeaderValue::from_str(&self.0).ok()
    }

    /// Whether an origin's answer is one to this key: RFC 6455, section 4.2.2.
    pub fn is_answered(&self, headers: &HeaderMap) -> bool {
        let mut digest = Context::new(&SHA1_FOR_LEGACY_USE_ONLY);
        digest.update(self.0.as_bytes());
        digest.update(SUFFIX);
        let expected = base64(digest.finish().as_ref());
        let mut accepts = headers.get_all(SEC_WEBSOCKET_ACCEPT).iter();
        accepts.next().is_some_and(|value| value == &expected) && accepts.next().is_none()
    }
}

/// RFC 4648, section 4.
fn base64(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |n: usize| group.get(n).copied().map_or(0, u32::from);
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for n in 0..4 {
            let digit = DIGITS.get((bits >> (18 - 6 * n) & 0x3f) as usize);
            let digit = digit.filter(|_| n <= group.len());
            text.push(char::from(*digit.unwrap_or(&b'=')));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_rfc() {
        let key = Key(base64(b"the sample nonce"));
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

    #[test]
    fn base64_of_every_length() {
        for (bytes, text) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v")] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }
}
