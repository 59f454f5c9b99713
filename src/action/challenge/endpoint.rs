//! The responses of the challenge path, which the gateway serves itself.

use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_MAX_AGE, ALLOW, CACHE_CONTROL, RETRY_AFTER,
    SET_COOKIE, VARY,
};
use http::{HeaderName, HeaderValue, Response, StatusCode};

use super::{allow_origin, listed_origin, problem_type};
use crate::action::RequestInfo;
use crate::body::Body;

const CORP: HeaderName = HeaderName::from_static("cross-origin-resource-policy");
const MODULE: &str = concat!(include_str!("solver.js"), include_str!("module.js"));

/// A response of the challenge path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EndpointResponse {
    /// The solution is correct; the value is the `Set-Cookie` header with the clearance.
    Solved(HeaderValue),
    /// The solution was refused.
    Refused(RefusedSolution),
    /// The JavaScript module.
    Module,
    /// The response to a CORS preflight.
    Preflight,
    /// The path is not one of the gateway's.
    NotFound,
    /// The path does not support the method; the value lists those that it supports.
    MethodNotAllowed(&'static str),
}

/// Why a solution was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusedSolution {
    /// A page of a foreign origin sent it.
    ForeignOrigin,
    /// It is not `application/json`.
    MediaType,
    /// It is longer than 1 KiB.
    TooLarge,
    /// It is not the expected JSON document.
    Malformed,
    /// It is wrong, or its token is.
    Wrong,
    /// Its token has expired.
    Expired,
    /// The core has verified enough solutions for now.
    Busy,
}

// === impl EndpointResponse ===

impl EndpointResponse {
    /// Builds the response. Pages of `origins` may read it.
    pub fn to_response(
        &self,
        request: &RequestInfo<'_>,
        origins: &[HeaderValue],
    ) -> Response<Body> {
        match self {
            EndpointResponse::Solved(cookie) => {
                let mut response = empty(StatusCode::NO_CONTENT);
                response.headers_mut().insert(SET_COOKIE, cookie.clone());
                uncached(response, request, origins)
            }
            EndpointResponse::Refused(refused) => {
                uncached(refused.to_response(request), request, origins)
            }
            EndpointResponse::Module => module(request),
            EndpointResponse::Preflight => preflight(request, origins),
            EndpointResponse::NotFound => {
                let detail = "The path is reserved for challenges.";
                let response = problem(request, StatusCode::NOT_FOUND, "not_found", detail);
                uncached(response, request, origins)
            }
            EndpointResponse::MethodNotAllowed(allowed) => {
                let status = StatusCode::METHOD_NOT_ALLOWED;
                let mut response = problem(request, status, "method", "Use another method.");
                let headers = response.headers_mut();
                headers.insert(ALLOW, HeaderValue::from_static(allowed));
                uncached(response, request, origins)
            }
        }
    }
}

/// Completes a response that depends on the solution.
fn uncached(
    mut response: Response<Body>,
    request: &RequestInfo<'_>,
    origins: &[HeaderValue],
) -> Response<Body> {
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    allow_origin(request, origins, headers);
    response
}

fn module(request: &RequestInfo<'_>) -> Response<Body> {
    let media = HeaderValue::from_static("text/javascript");
    let mut response = request.to_response(StatusCode::OK, &media, MODULE.to_owned());
    let headers = response.headers_mut();
    let hour = HeaderValue::from_static("public, max-age=3600");
    headers.insert(CACHE_CONTROL, hour);
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    headers.insert(CORP, HeaderValue::from_static("cross-origin"));
    response
}

fn preflight(request: &RequestInfo<'_>, origins: &[HeaderValue]) -> Response<Body> {
    let Some(origin) = listed_origin(request, origins) else {
        return uncached(
            RefusedSolution::ForeignOrigin.to_response(request),
            request,
            origins,
        );
    };
    let mut response = empty(StatusCode::NO_CONTENT);
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
    for (name, value) in [
        (ACCESS_CONTROL_ALLOW_CREDENTIALS, "true"),
        (ACCESS_CONTROL_ALLOW_METHODS, "POST"),
        (ACCESS_CONTROL_ALLOW_HEADERS, "content-type"),
        (ACCESS_CONTROL_MAX_AGE, "600"),
        (VARY, "Origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

fn empty(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::Empty);
    *response.status_mut() = status;
    response
}

/// Builds a problem document with a reason for programs and a sentence for developers.
fn problem(
    request: &RequestInfo<'_>,
    status: StatusCode,
    reason: &str,
    detail: &str,
) -> Response<Body> {
    let (code, title) = (status.as_u16(), status.canonical_reason().unwrap_or(""));
    let body = format!(
        "{{\"type\":\"about:blank\",\"title\":\"{title}\",\"status\":{code},\"detail\":\"{detail}\",\
         \"reason\":\"{reason}\"}}\n"
    );
    request.to_response(status, &problem_type(), body)
}

// === impl RefusedSolution ===

impl RefusedSolution {
    fn to_response(self, request: &RequestInfo<'_>) -> Response<Body> {
        let (status, reason, detail) = self.parts();
        let mut response = problem(request, status, reason, detail);
        if self == RefusedSolution::Busy {
            let second = HeaderValue::from_static("1");
            response.headers_mut().insert(RETRY_AFTER, second);
        }
        response
    }

    const fn parts(self) -> (StatusCode, &'static str, &'static str) {
        match self {
            RefusedSolution::ForeignOrigin => (
                StatusCode::FORBIDDEN,
                "origin",
                "The origin of the page is not allowed.",
            ),
            RefusedSolution::MediaType => (
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "media_type",
                "Send the solution as application/json.",
            ),
            RefusedSolution::TooLarge => (
                StatusCode::PAYLOAD_TOO_LARGE,
                "length",
                "A solution is at most 1 KiB long.",
            ),
            RefusedSolution::Malformed => (
                StatusCode::BAD_REQUEST,
                "malformed",
                "Send a token and a solution of eight integers.",
            ),
            RefusedSolution::Wrong => (
                StatusCode::FORBIDDEN,
                "wrong",
                "The token or the solution is wrong.",
            ),
            RefusedSolution::Expired => (
                StatusCode::FORBIDDEN,
                "expired",
                "The challenge has expired. Request a new one.",
            ),
            RefusedSolution::Busy => (
                StatusCode::SERVICE_UNAVAILABLE,
                "busy",
                "Too many solutions at once. Try again in a second.",
            ),
        }
    }
}
