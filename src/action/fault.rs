//! Responses to requests that cannot be served: malformed, too large, without a route.

use http::{Response, StatusCode};

use super::RequestInfo;
use super::format::Form;
use crate::body::Body;

/// Why a request cannot be served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
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
    /// An unknown transfer coding.
    UnknownCoding,
    /// The connection's certificate is not for this host.
    Misdirected,
    /// The origin cannot be reached or does not speak HTTP.
    BadGateway,
    /// No server is available, or the gateway is shutting down.
    Unavailable,
    /// The origin is too slow.
    GatewayTimeout,
}

/// For the log: the client disconnected before its response. 499 is the status nginx logs.
pub fn client_left() -> Response<Body> {
    unsent(499)
}

/// For the log: the gateway stopped before the response.
pub fn cut_off() -> Response<Body> {
    unsent(503)
}

/// For the log: a rule closed the connection. 444 is the status nginx logs.
pub fn unanswered() -> Response<Body> {
    unsent(444)
}

/// A response that is logged and never sent.
fn unsent(status: u16) -> Response<Body> {
    let mut response = Response::new(Body::Empty);
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or_default();
    response
}

// === impl Fault ===

impl Fault {
    /// The status code.
    pub const fn status(self) -> StatusCode {
        match self {
            Fault::Malformed => StatusCode::BAD_REQUEST,
            Fault::NoRoute => StatusCode::NOT_FOUND,
            Fault::BodyTooSlow => StatusCode::REQUEST_TIMEOUT,
            Fault::BodyTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Fault::HeadTooLarge => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            Fault::UnknownCoding => StatusCode::NOT_IMPLEMENTED,
            Fault::Misdirected => StatusCode::MISDIRECTED_REQUEST,
            Fault::BadGateway => StatusCode::BAD_GATEWAY,
            Fault::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            Fault::GatewayTimeout => StatusCode::GATEWAY_TIMEOUT,
        }
    }

    /// The response.
    pub fn answer(self, asked: &RequestInfo<'_>) -> Response<Body> {
        let status = self.status();
        let (code, title) = (status.as_u16(), status.canonical_reason().unwrap_or(""));
        let form = Form::negotiate(&asked.accept());
        let body = match form {
            Form::Problem => format!("{{\"title\":\"{title}\",\"status\":{code}}}\n"),
            Form::Html => format!(
                "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
                 <title>{code} {title}</title></head><body><h1>{title}</h1></body></html>\n"
            ),
            Form::Text => format!("{code} {title}\n"),
        };
        asked.answer(status, &form.content_type(), body)
    }
}
