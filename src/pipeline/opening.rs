//! A WebSocket that an HTTP/2 client opens on a stream (RFC 8441), read as the handshake of
//! HTTP/1.1 that it stands for: rules, routes and the origin see the same request, whatever the
//! client speaks. Never touches what flows through it.

use http::header::{
    CONNECTION, CONTENT_LENGTH, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, UPGRADE,
};
use http::request::Parts;
use http::{HeaderMap, Method, Response, StatusCode};
use hyper::ext::Protocol;

use crate::facts::{Malformed, Upgrade};
use crate::upstream::Key;

/// Makes a GET of a CONNECT that opens a WebSocket, and gives the key that the origin has to
/// answer. `None`: another request, and nothing is changed.
pub fn read(parts: &mut Parts) -> Result<Option<Key>, Malformed> {
    let Some(protocol) = parts.extensions.remove::<Protocol>() else {
        return Ok(None);
    };
    if parts.method != Method::CONNECT || speaks_of_connection(&parts.headers) {
        return Err(Malformed::ConnectionField);
    }
    // RFC 9220, section 3 and RFC 9110, section 16.7: the names have no case.
    if !protocol.as_str().eq_ignore_ascii_case("websocket") {
        return Err(Malformed::Protocol);
    }
    let key = Key::draw();
    parts.method = Method::GET;
    parts.extensions.insert(Upgrade::WebSocket);
    let fields = &mut parts.headers;
    fields.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    fields.insert(UPGRADE, HeaderValue::from_static("websocket"));
    if let Some(value) = key.value() {
        fields.insert(SEC_WEBSOCKET_KEY, value);
    }
    Ok(Some(key))
}

/// The answer as HTTP/2 spells it: RFC 8441, section 5. Any 2xx says that the stream is open and
/// has no body; where nobody has opened it, hyper ends it at once.
pub fn answer<B>(mut response: Response<B>) -> Response<B> {
    let status = response.status();
    if status != StatusCode::SWITCHING_PROTOCOLS && !status.is_success() {
        return response;
    }
    *response.status_mut() = StatusCode::OK;
    for name in [CONNECTION, UPGRADE, SEC_WEBSOCKET_ACCEPT, CONTENT_LENGTH] {
        response.headers_mut().remove(name);
    }
    response
}

/// h2 refuses such fields, and what is written here must not be taken for the client's.
fn speaks_of_connection(headers: &HeaderMap) -> bool {
    headers.contains_key(CONNECTION) || headers.contains_key(UPGRADE)
}
