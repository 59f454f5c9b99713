//! 429, a shadow response, an error, a fixed response, gRPC, HEAD and statuses without a body.

use http::{HeaderName, HeaderValue, Method, StatusCode};

use super::super::{
    FixedResponse, GatewayError, HeaderTemplate, RedirectResponse, ResponseTemplate, Template,
    block, shadow,
};
use super::{Request, header, refused, text};

#[test]
fn a_refusal_in_each_format() {
    let cases = [
        (
            "application/json",
            "application/problem+json",
            "{\"type\":\"https://iana.org/assignments/http-problem-types#quota-exceeded\",\
             \"title\":\"Too Many Requests\",\"status\":429,\
             \"detail\":\"Try again in 42 seconds.\",\"violated-policies\":[\"login-stuffing\"]}\n",
        ),
        (
            "text/html",
            "text/html; charset=utf-8",
            "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
             <title>Too many requests</title></head>\
             <body><h1>Too many requests</h1><p>Try again in 42 seconds.</p></body></html>\n",
        ),
        (
            "text/plain",
            "text/plain; charset=utf-8",
            "Too many requests. Try again in 42 seconds.\n",
        ),
    ];
    for (accept, content_type, body) in cases {
        let request = Request::get(&[("accept", accept)]);
        let answer = block(&request.asked(), &refused(Some(42)));
        assert_eq!(answer.status(), StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(header(&answer, "content-type"), Some(content_type));
        assert_eq!(header(&answer, "retry-after"), Some("42"));
        let length = body.len().to_string();
        assert_eq!(header(&answer, "content-length"), Some(length.as_str()));
        assert_eq!(text(answer), body);
    }
}

#[test]
fn the_wait_is_described_and_omitted_if_no_wait_helps() {
    let request = Request::get(&[("accept", "text/plain")]);
    let one = block(&request.asked(), &refused(Some(1)));
    assert_eq!(text(one), "Too many requests. Try again in 1 second.\n");
    let never = block(&request.asked(), &refused(None));
    assert_eq!(header(&never, "retry-after"), None);
    assert_eq!(
        text(never),
        "Too many requests. This request is not allowed.\n"
    );
}

#[test]
fn a_head_request_gets_the_length_and_no_body() {
    let get = Request::get(&[]);
    let head = Request::new(Method::HEAD, &[]);
    let whole = block(&get.asked(), &refused(Some(5)));
    let empty = block(&head.asked(), &refused(Some(5)));
    assert_eq!(whole.headers(), empty.headers());
    assert_eq!(text(empty), "");
    assert_eq!(text(shadow(&head.asked(), None)), "");
}

#[test]
fn grpc_carries_its_status_in_the_head() {
    for content_type in [
        "application/grpc",
        "application/grpc+proto",
        "application/grpc-web+json",
    ] {
        let request = Request::new(Method::POST, &[("content-type", content_type)]);
        let kind = if content_type.contains("web") {
            content_type
        } else {
            "application/grpc"
        };
        let mut refused = refused(Some(42));
        let canned = canned(StatusCode::IM_A_TEAPOT, "text/plain", "never");
        refused.response = Some(&canned);
        let answer = block(&request.asked(), &refused);
        assert_eq!(answer.status(), StatusCode::OK);
        assert_eq!(header(&answer, "content-type"), Some(kind));
        assert_eq!(header(&answer, "grpc-status"), Some("8"));
        assert_eq!(header(&answer, "grpc-message"), Some("quota exceeded"));
        assert_eq!(header(&answer, "grpc-retry-pushback-ms"), Some("42000"));
        assert_eq!(text(answer), "");
    }
    for (asked, answered) in [
        ("Application/gRPC; charset=utf-8", Some("application/grpc")),
        ("application/grpc+evil", Some("application/grpc")),
        ("application/grpcevil", None),
        ("application/gRP", None),
    ] {
        let request = Request::new(Method::POST, &[("content-type", asked)]);
        let answer = block(&request.asked(), &refused(Some(1)));
        let grpc = header(&answer, "grpc-status").is_some();
        let content_type = header(&answer, "content-type").filter(|_| grpc);
        assert_eq!(content_type, answered, "{asked}");
    }
    for (method, content_type) in [
        (Method::POST, "application/json"),
        (Method::GET, "application/grpc"),
        (Method::PUT, "application/grpc-web"),
    ] {
        let request = Request::new(method, &[("content-type", content_type)]);
        let answer = block(&request.asked(), &refused(Some(1)));
        assert_eq!(header(&answer, "grpc-status"), None);
        assert_eq!(answer.status(), StatusCode::TOO_MANY_REQUESTS);
    }
}

#[test]
fn grpc_without_a_wait_gets_a_pushback_that_forbids_retries() {
    let request = Request::new(Method::POST, &[("content-type", "application/grpc")]);
    let answer = block(&request.asked(), &refused(None));
    assert_eq!(header(&answer, "grpc-retry-pushback-ms"), Some("-1"));
}

#[test]
fn a_shadow_response_in_each_format_reveals_nothing() {
    let cases = [
        ("*/*", "application/json", "{\"ok\":true}\n"),
        ("text/plain", "text/plain; charset=utf-8", "ok\n"),
        (
            "text/html",
            "text/html; charset=utf-8",
            "<!doctype html><html><head><title></title></head><body></body></html>\n",
        ),
    ];
    for (accept, content_type, body) in cases {
        let request = Request::get(&[("accept", accept)]);
        let answer = shadow(&request.asked(), None);
        assert_eq!(answer.status(), StatusCode::OK);
        let names: Vec<&str> = answer.headers().keys().map(HeaderName::as_str).collect();
        assert_eq!(names, ["content-type", "content-length"]);
        assert_eq!(header(&answer, "content-type"), Some(content_type));
        assert_eq!(text(answer), body);
    }
}

#[test]
fn a_named_response_keeps_its_status_and_headers() {
    let canned = canned(StatusCode::IM_A_TEAPOT, "text/plain", "tea");
    let mut refused = refused(Some(7));
    refused.response = Some(&canned);
    let answer = block(&Request::get(&[]).asked(), &refused);
    assert_eq!(answer.status(), StatusCode::IM_A_TEAPOT);
    assert_eq!(header(&answer, "x-a"), Some("b"));
    assert_eq!(header(&answer, "retry-after"), Some("7"));
    assert_eq!(text(answer), "tea");
    let answer = shadow(&Request::get(&[]).asked(), Some(&canned));
    assert_eq!(header(&answer, "retry-after"), None);
}

#[test]
fn a_status_without_a_body_has_no_framing() {
    for status in [StatusCode::NO_CONTENT, StatusCode::NOT_MODIFIED] {
        let canned = canned(status, "text/plain", "ignored");
        let answer = shadow(&Request::get(&[]).asked(), Some(&canned));
        assert_eq!(answer.status(), status);
        assert_eq!(header(&answer, "content-length"), None);
        assert_eq!(header(&answer, "content-type"), None);
        assert_eq!(text(answer), "");
    }
}

#[test]
fn a_reset_of_content_has_a_length_of_zero() {
    let canned = canned(StatusCode::RESET_CONTENT, "text/plain", "ignored");
    let answer = shadow(&Request::get(&[]).asked(), Some(&canned));
    assert_eq!(header(&answer, "content-length"), Some("0"));
    assert_eq!(text(answer), "");
}

#[test]
fn faults_have_their_status_in_each_format() {
    let faults = [
        (GatewayError::Malformed, 400, "Bad Request"),
        (GatewayError::NoRoute, 404, "Not Found"),
        (GatewayError::BodyTooLarge, 413, "Payload Too Large"),
        (GatewayError::Misdirected, 421, "Misdirected Request"),
        (GatewayError::UnknownCoding, 501, "Not Implemented"),
        (GatewayError::BadGateway, 502, "Bad Gateway"),
        (GatewayError::Unavailable, 503, "Service Unavailable"),
        (GatewayError::GatewayTimeout, 504, "Gateway Timeout"),
    ];
    for (fault, code, title) in faults {
        let machine = fault.to_response(&Request::get(&[]).asked());
        assert_eq!(machine.status().as_u16(), code);
        let expected = format!("{{\"title\":\"{title}\",\"status\":{code}}}\n");
        assert_eq!(text(machine), expected);
        let request = Request::get(&[("accept", "text/plain")]);
        let plain = fault.to_response(&request.asked());
        assert_eq!(text(plain), format!("{code} {title}\n"));
        let request = Request::get(&[("accept", "text/html")]);
        let page = fault.to_response(&request.asked());
        assert!(text(page).contains(&format!("<h1>{title}</h1>")));
    }
}

#[test]
fn routes_with_fixed_responses() {
    let reply = FixedResponse {
        status: StatusCode::UNAUTHORIZED,
        content_type: HeaderValue::from_static("text/plain"),
        body: "wrong password".to_owned(),
    };
    let answer = reply.to_response(&Request::get(&[]).asked());
    assert_eq!(answer.status(), StatusCode::UNAUTHORIZED);
    assert_eq!(header(&answer, "content-length"), Some("14"));
    assert_eq!(text(answer), "wrong password");
    let redirect = RedirectResponse {
        location: HeaderValue::from_static("https://example.com/"),
        status: StatusCode::PERMANENT_REDIRECT,
    };
    let answer = redirect.to_response(&Request::get(&[]).asked());
    assert_eq!(answer.status(), StatusCode::PERMANENT_REDIRECT);
    assert_eq!(header(&answer, "location"), Some("https://example.com/"));
    assert_eq!(header(&answer, "content-length"), Some("0"));
    assert_eq!(header(&answer, "content-type"), None);
}

fn canned(status: StatusCode, content_type: &'static str, body: &str) -> ResponseTemplate {
    ResponseTemplate {
        status,
        content_type: HeaderValue::from_static(content_type),
        headers: vec![(
            HeaderName::from_static("x-a"),
            HeaderTemplate::Fixed(HeaderValue::from_static("b")),
        )],
        body: Template::parse(body).unwrap(),
        html: None,
        json: None,
        imitate: false,
    }
}
