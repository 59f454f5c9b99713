//! Responses of the gateway itself: the only place that makes status codes. It never reads a body and
//! never talks to an origin server.

mod fault;
mod format;
pub mod imitate;
mod quota;
mod refusal;
pub mod template;
#[cfg(test)]
mod tests;

use http::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE, LOCATION};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, Uri, Version};

pub use self::fault::{GatewayError, client_left, cut_off, unanswered};
pub use self::quota::{QuotaNames, add_quota_headers};
pub use self::refusal::{RefusingRule, block, shadow};
pub use self::template::{HeaderTemplate, ResponseTemplate, Template};
use crate::body::Body;
use crate::clock::Timestamp;

const GRPC: &str = "application/grpc";
/// The types of gRPC-Web, which browsers send and expect back.
const GRPC_WEB: [&str; 6] = [
    "application/grpc-web",
    "application/grpc-web+proto",
    "application/grpc-web+json",
    "application/grpc-web+thrift",
    "application/grpc-web-text",
    "application/grpc-web-text+proto",
];

/// What a response depends on in its request.
pub struct RequestInfo<'a> {
    /// The method: HEAD gets no body.
    pub method: &'a Method,
    /// The target.
    pub uri: &'a Uri,
    /// The version.
    pub version: Version,
    /// The request's headers: `accept`, `content-type`.
    pub headers: &'a HeaderMap,
    /// The request's id.
    pub id: &'a str,
    /// When the request arrived.
    pub now: Timestamp,
}

/// The fixed response of a route with `respond`.
#[derive(Clone, Debug)]
pub struct FixedResponse {
    /// The status code.
    pub status: StatusCode,
    /// The `content-type`.
    pub content_type: HeaderValue,
    /// The body, as it is.
    pub body: String,
}

/// The response of a route with `redirect`, to a known target.
pub struct RedirectResponse(pub HeaderValue);

// === impl RequestInfo ===

impl<'a> RequestInfo<'a> {
    /// What a response depends on in the request with these parts.
    pub fn of(parts: &'a Parts, id: &'a str, now: Timestamp) -> Self {
        Self {
            method: &parts.method,
            uri: &parts.uri,
            version: parts.version,
            headers: &parts.headers,
            id,
            now,
        }
    }

    /// The lines of `accept`.
    fn accept(&self) -> Vec<&[u8]> {
        let lines = self.headers.get_all(ACCEPT).iter();
        lines.map(HeaderValue::as_bytes).collect()
    }

    /// Whether the client speaks gRPC, which carries its status elsewhere.
    pub fn is_grpc(&self) -> bool {
        self.grpc().is_some()
    }

    /// The `content-type` of a response to a gRPC client; gRPC-Web has its own. Every call is a POST.
    fn grpc(&self) -> Option<&'static str> {
        if self.method != Method::POST {
            return None;
        }
        let value = self.headers.get(CONTENT_TYPE)?.as_bytes();
        let media = value.split(|byte| *byte == b';').next()?.trim_ascii();
        let (start, rest) = media.split_at_checked(GRPC.len())?;
        let speaks = start.eq_ignore_ascii_case(GRPC.as_bytes())
            && matches!(rest.first(), None | Some(b'+' | b'-'));
        let mut known = GRPC_WEB.into_iter();
        let own = known.find(|kind| media.eq_ignore_ascii_case(kind.as_bytes()));
        speaks.then_some(own.unwrap_or(GRPC))
    }

    /// A response with this body. For HEAD, only the length of the body is sent.
    fn to_response(
        &self,
        status: StatusCode,
        content_type: &HeaderValue,
        body: String,
    ) -> Response<Body> {
        let mut response = Response::new(Body::Empty);
        *response.status_mut() = status;
        let headers = response.headers_mut();
        // A 205 has a length, which must be zero (RFC 9110, section 15.3.6).
        let bare = status == StatusCode::RESET_CONTENT;
        let body = if bare { String::new() } else { body };
        if status != StatusCode::NO_CONTENT && status != StatusCode::NOT_MODIFIED {
            if !content_type.is_empty() {
                headers.insert(CONTENT_TYPE, content_type.clone());
            }
            headers.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
            if self.method != Method::HEAD {
                *response.body_mut() = Body::from(body);
            }
        }
        response
    }
}

// === impl FixedResponse ===

impl FixedResponse {
    /// The response.
    pub fn to_response(&self, asked: &RequestInfo<'_>) -> Response<Body> {
        asked.to_response(self.status, &self.content_type, self.body.clone())
    }
}

// === impl RedirectResponse ===

impl RedirectResponse {
    /// 308: the client repeats the same method and body there (RFC 9110, 15.4.9).
    pub fn to_response(self, asked: &RequestInfo<'_>) -> Response<Body> {
        let nothing = HeaderValue::from_static("");
        let mut response =
            asked.to_response(StatusCode::PERMANENT_REDIRECT, &nothing, String::new());
        response.headers_mut().insert(LOCATION, self.0);
        response
    }
}
