//! Answers for requests that cannot be served: malformed, too large, nowhere to go.

use http::{Response, StatusCode};

use super::Asked;
use super::format::Form;
use crate::body::Body;

/// Why the gateway answers by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The request has no meaning, or two.
    Malformed,
    /// No route matches.
    NoRoute,
    /// The body comes too slowly.
    BodyTooSlow,
    /// The body is larger than allowed.
    BodyTooLarge,
    /// The head has more fields than allowed.
    HeadTooLarge,
    /// A transfer coding that nobody here knows.
    UnknownCoding,
    /// The connection's certificate is not for this host.
    Misdirected,
    /// The origin cannot be reached or does not speak HTTP.
    BadGateway,
    /// No server to send it to, or the gateway is going away.
    Unavailable,
    /// The origin is too slow.
    GatewayTimeout,
}

/// What stands in the log for a client that left before its answer: it has no official status,
/// and nobody is sent this one.
pub fn client_left() -> Response<Body> {
    let mut response = Response::new(Body::Empty);
    *response.status_mut() = StatusCode::from_u16(499).unwrap_or(StatusCode::REQUEST_TIMEOUT);
    response
}

/// What stands in the log for a request that the gateway cut off when it stopped: nobody is sent it.
pub fn cut_off() -> Response<Body> {
    let mut response = Response::new(Body::Empty);
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    response
}

/// What stands in the log for a request that a rule left without an answer: nginx's number for
/// it, and nobody is sent this one.
pub fn unanswered() -> Response<Body> {
    let mut response = Response::new(Body::Empty);
    *response.status_mut() = StatusCode::from_u16(444).unwrap_or(StatusCode::FORBIDDEN);
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

    /// The answer.
    pub fn answer(self, asked: &Asked<'_>) -> Response<Body> {
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
