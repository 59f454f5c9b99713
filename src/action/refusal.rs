//! Responses to mitigated requests: 429, the rule's configured response, or a shadow response.

use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};

use super::error_pages::error_page;
use super::format::ResponseFormat;
use super::{RequestInfo, ResponseTemplate};
use crate::body::Body;

/// The RFC 9457 problem type of an exceeded quota.
const QUOTA_EXCEEDED: &str = "https://iana.org/assignments/http-problem-types#quota-exceeded";

/// The rule that refused a request, with the values that its response shows.
pub struct RefusingRule<'a> {
    /// The rule's name.
    pub rule: &'a str,
    /// The rule's configured response.
    pub response: Option<&'a ResponseTemplate>,
    /// The whole seconds to wait. `None` if waiting does not help.
    pub retry_after: Option<u64>,
}

// === impl RefusingRule ===

impl RefusingRule<'_> {
    /// For a response that names no rule.
    pub(in crate::action) const NO_RULE: RefusingRule<'static> = RefusingRule {
        rule: "",
        response: None,
        retry_after: None,
    };
}

/// Builds the response of `action = "block"`.
pub fn block(request: &RequestInfo<'_>, refused: &RefusingRule<'_>) -> Response<Body> {
    if let Some(content_type) = request.grpc() {
        return grpc(content_type, refused.retry_after);
    }
    let mut response = match refused.response {
        Some(template) => template.to_response(request, refused),
        None => error_page(request, StatusCode::TOO_MANY_REQUESTS, refused)
            .unwrap_or_else(|| too_many(request, refused)),
    };
    if let Some(seconds) = refused.retry_after {
        response
            .headers_mut()
            .insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// Builds the response of `action = "shadow"`, which names neither a rule nor a limit. gRPC has no shadow
/// response and is blocked.
pub fn shadow(request: &RequestInfo<'_>, response: Option<&ResponseTemplate>) -> Response<Body> {
    match response {
        Some(template) => template.to_response(request, &RefusingRule::NO_RULE),
        None => plain_success(request),
    }
}

fn too_many(request: &RequestInfo<'_>, refused: &RefusingRule<'_>) -> Response<Body> {
    let form = ResponseFormat::negotiate(&request.accept());
    let wait = match refused.retry_after {
        Some(1) => "Try again in 1 second.".to_owned(),
        Some(seconds) => format!("Try again in {seconds} seconds."),
        None => "This request is not allowed.".to_owned(),
    };
    let body = match form {
        ResponseFormat::Problem => format!(
            "{{\"type\":\"{QUOTA_EXCEEDED}\",\"title\":\"Too Many Requests\",\"status\":429,\
             \"detail\":\"{wait}\",\"violated-policies\":[\"{}\"]}}\n",
            refused.rule
        ),
        ResponseFormat::Html => format!(
            "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
             <title>Too many requests</title></head>\
             <body><h1>Too many requests</h1><p>{wait}</p></body></html>\n"
        ),
        ResponseFormat::Text => format!("Too many requests. {wait}\n"),
    };
    request.to_response(StatusCode::TOO_MANY_REQUESTS, &form.content_type(), body)
}

fn plain_success(request: &RequestInfo<'_>) -> Response<Body> {
    let (content_type, body) = match ResponseFormat::negotiate(&request.accept()) {
        ResponseFormat::Html => (
            "text/html; charset=utf-8",
            "<!doctype html><html><head><title></title></head><body></body></html>\n",
        ),
        ResponseFormat::Text => ("text/plain; charset=utf-8", "ok\n"),
        ResponseFormat::Problem => ("application/json", "{\"ok\":true}\n"),
    };
    let content_type = HeaderValue::from_static(content_type);
    request.to_response(StatusCode::OK, &content_type, body.to_owned())
}

/// Builds a gRPC response. gRPC reads its status from trailers, which a response without a body has in its head.
/// A negative pushback means not to retry (gRFC A6).
fn grpc(content_type: &'static str, retry_after: Option<u64>) -> Response<Body> {
    let mut response = Response::new(Body::Empty);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert("grpc-status", HeaderValue::from_static("8"));
    headers.insert("grpc-message", HeaderValue::from_static("quota exceeded"));
    let pushback = retry_after.map_or(HeaderValue::from_static("-1"), |seconds| {
        HeaderValue::from(seconds.saturating_mul(1000))
    });
    headers.insert("grpc-retry-pushback-ms", pushback);
    response
}
