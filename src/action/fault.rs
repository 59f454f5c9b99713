//! Responses to requests that cannot be served: malformed, too large, without a route.

use http::{Response, StatusCode};

use super::error_pages::error_page;
use super::format::ResponseFormat;
use super::{RefusingRule, RequestInfo};
use crate::body::Body;

/// Why a request cannot be served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GatewayError {
    /// The request is malformed or ambiguous.
    Malformed,
    /// No route matches.
    NoRoute,
    /// The body arrives too slowly.
    BodyTooSlow,
    /// The body is larger than allowed.
    BodyTooLarge,
    /// The head has more headers than allowed.
    HeadTooLarge,
    /// The transfer coding is unknown.
    UnknownCoding,
    /// The connection's certificate is not for this host.
    Misdirected,
    /// The origin server cannot be reached or does not speak HTTP.
    BadGateway,
    /// No server is available, or the gateway is shutting down.
    Unavailable,
    /// The origin server did not respond before the timeout.
    GatewayTimeout,
}

/// Returns the logged response for a client that disconnected before its response; nginx logs 499 too.
pub fn client_left() -> Response<Body> {
    unsent(499)
}

/// Returns the logged response for a request that the shutdown cancelled.
pub fn cut_off() -> Response<Body> {
    unsent(503)
}

/// Returns the logged response for a connection that a rule closed; nginx logs 444 too.
pub fn unanswered() -> Response<Body> {
    unsent(444)
}

/// Creates a response that is logged and never sent.
fn unsent(status: u16) -> Response<Body> {
    let mut response = Response::new(Body::Empty);
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or_default();
    response
}

// === impl GatewayError ===

impl GatewayError {
    /// Why the gateway refuses a request that no rule stopped, for `explain`.
    pub const fn reason(self) -> &'static str {
        match self {
            GatewayError::NoRoute => "no route matches",
            GatewayError::Misdirected => "the certificate of the connection is not for this host",
            GatewayError::BodyTooLarge => "the body is larger than `limits.max_body_bytes`",
            _ => "the gateway cannot serve the request",
        }
    }

    /// The name in the access log.
    pub const fn name(self) -> &'static str {
        match self {
            GatewayError::Malformed => "malformed",
            GatewayError::NoRoute => "no_route",
            GatewayError::BodyTooSlow => "body_too_slow",
            GatewayError::BodyTooLarge => "body_too_large",
            GatewayError::HeadTooLarge => "head_too_large",
            GatewayError::UnknownCoding => "transfer_coding",
            GatewayError::Misdirected => "misdirected",
            GatewayError::BadGateway => "bad_gateway",
            GatewayError::Unavailable => "unavailable",
            GatewayError::GatewayTimeout => "gateway_timeout",
        }
    }

    /// The status code.
    pub const fn status(self) -> StatusCode {
        match self {
            GatewayError::Malformed => StatusCode::BAD_REQUEST,
            GatewayError::NoRoute => StatusCode::NOT_FOUND,
            GatewayError::BodyTooSlow => StatusCode::REQUEST_TIMEOUT,
            GatewayError::BodyTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            GatewayError::HeadTooLarge => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            GatewayError::UnknownCoding => StatusCode::NOT_IMPLEMENTED,
            GatewayError::Misdirected => StatusCode::MISDIRECTED_REQUEST,
            GatewayError::BadGateway => StatusCode::BAD_GATEWAY,
            GatewayError::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            GatewayError::GatewayTimeout => StatusCode::GATEWAY_TIMEOUT,
        }
    }

    /// Builds the configured response for the error, or else one in the format that the client prefers.
    pub fn to_response(self, request: &RequestInfo<'_>) -> Response<Body> {
        let status = self.status();
        if let Some(page) = error_page(request, status, &RefusingRule::NO_RULE) {
            return page;
        }
        let (code, title) = (status.as_u16(), status.canonical_reason().unwrap_or(""));
        let form = ResponseFormat::negotiate(&request.accept());
        let body = match form {
            ResponseFormat::Problem => format!("{{\"title\":\"{title}\",\"status\":{code}}}\n"),
            ResponseFormat::Html => format!(
                "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
                 <title>{code} {title}</title></head><body><h1>{title}</h1></body></html>\n"
            ),
            ResponseFormat::Text => format!("{code} {title}\n"),
        };
        request.to_response(status, &form.content_type(), body)
    }
}
