//! Responses that the gateway generates itself. Only this module chooses status codes. It never reads a body and
//! never connects to an origin server.

mod challenge;
mod error_pages;
mod escape;
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

pub use self::challenge::{
    CHALLENGE_HEADER, ChallengeAudience, ChallengeResponse, EndpointResponse, PageOrigin,
    RefusedSolution, hidden_inputs, is_own_origin, page_origin,
};
pub use self::error_pages::ErrorPages;
pub use self::fault::{GatewayError, client_left, cut_off, unanswered};
pub use self::quota::{QuotaNames, add_quota_headers};
pub use self::refusal::{RefusingRule, block, shadow};
pub use self::template::{HeaderTemplate, ResponseTemplate, Template};
use crate::body::Body;
use crate::clock::Timestamp;

const GRPC: &str = "application/grpc";
/// The media types of gRPC-Web, which browsers send and expect in the response.
const GRPC_WEB: [&str; 6] = [
    "application/grpc-web",
    "application/grpc-web+proto",
    "application/grpc-web+json",
    "application/grpc-web+thrift",
    "application/grpc-web-text",
    "application/grpc-web-text+proto",
];

/// The parts of a request that its response depends on.
pub struct RequestInfo<'a> {
    /// The method. HEAD gets no body.
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
    /// The configured error pages. `None` if there are none.
    pub errors: Option<&'a ErrorPages>,
}

/// The fixed response of a route with `respond`.
#[derive(Clone, Debug)]
pub struct FixedResponse {
    /// The status code.
    pub status: StatusCode,
    /// The `content-type`.
    pub content_type: HeaderValue,
    /// The body, sent verbatim.
    pub body: String,
}

/// The response of a route with `redirect`.
pub struct RedirectResponse {
    /// The target.
    pub location: HeaderValue,
    /// The status code. After a 307 or 308, the client repeats the request with its method and body (RFC 9110, 15.4).
    pub status: StatusCode,
}

// === impl RequestInfo ===

impl<'a> RequestInfo<'a> {
    /// Collects the values from the request's parts.
    pub fn of(
        parts: &'a Parts,
        id: &'a str,
        now: Timestamp,
        errors: Option<&'a ErrorPages>,
    ) -> Self {
        Self {
            method: &parts.method,
            uri: &parts.uri,
            version: parts.version,
            headers: &parts.headers,
            id,
            now,
            errors,
        }
    }

    /// Returns the lines of `accept`.
    fn accept(&self) -> Vec<&[u8]> {
        let lines = self.headers.get_all(ACCEPT).iter();
        lines.map(HeaderValue::as_bytes).collect()
    }

    /// Returns whether the client speaks gRPC, which carries its status outside the HTTP status.
    pub fn is_grpc(&self) -> bool {
        self.grpc().is_some()
    }

    /// Returns the `content-type` of a gRPC response; gRPC-Web has other types. `None` if it is not a gRPC call.
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

    /// Builds a response with this body. For HEAD, only the length of the body is sent.
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
    /// Builds the response.
    pub fn to_response(&self, request: &RequestInfo<'_>) -> Response<Body> {
        request.to_response(self.status, &self.content_type, self.body.clone())
    }
}

// === impl RedirectResponse ===

impl RedirectResponse {
    /// Builds the response, without a body.
    pub fn to_response(self, request: &RequestInfo<'_>) -> Response<Body> {
        let nothing = HeaderValue::from_static("");
        let mut response = request.to_response(self.status, &nothing, String::new());
        response.headers_mut().insert(LOCATION, self.location);
        response
    }
}
