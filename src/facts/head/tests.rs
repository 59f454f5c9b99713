//! Unambiguous request heads, and ambiguous ones.

use std::borrow::Cow;

use http::request::Parts;
use http::{HeaderValue, Method, Request, Version};
use proptest::prelude::*;

use super::{BodyLength, MalformedRequest, RequestHead, UpgradeProtocol};
use crate::facts::path::PathError;

/// A request with the given request line and headers; none are added.
fn request(method: &str, uri: &str, version: Version, fields: &[(&str, &str)]) -> Parts {
    let mut builder = Request::builder().method(method).uri(uri).version(version);
    for (name, value) in fields {
        builder = builder.header(*name, *value);
    }
    builder.body(()).unwrap().into_parts().0
}

fn h1(method: &str, uri: &str, fields: &[(&str, &str)]) -> Parts {
    request(method, uri, Version::HTTP_11, fields)
}

fn h2(uri: &str, fields: &[(&str, &str)]) -> Parts {
    request("GET", uri, Version::HTTP_2, fields)
}

fn refusal(parts: &Parts) -> Option<MalformedRequest> {
    RequestHead::read(parts, true).err()
}

/// The error for a GET with a valid host and one more header. `None` if it is accepted.
fn with(name: &str, value: &str) -> Option<MalformedRequest> {
    refusal(&h1("GET", "/", &[("host", "a.com"), (name, value)]))
}

const HOST: (&str, &str) = ("host", "a.com");

#[test]
fn a_plain_request_is_read_without_copies() {
    let parts = h1("POST", "/a/b?x=1", &[HOST, ("content-length", "12")]);
    let head = RequestHead::read(&parts, true).unwrap();
    assert_eq!((&*head.host, head.port), ("a.com", None));
    assert_eq!((&*head.path, head.query), ("/a/b", Some("x=1")));
    assert_eq!(head.body, BodyLength::Declared(12));
    assert_eq!(head.body_size(), Some(12));
    assert!(head.has_body());
    assert!(matches!(head.host, Cow::Borrowed(_)));
    assert!(matches!(head.path, Cow::Borrowed(_)));
    assert!(matches!(head.uri(), Cow::Borrowed("/a/b?x=1")));
}

#[test]
fn host_and_path_get_their_normal_form() {
    let parts = h1("GET", "//x/%6c?q=//", &[("host", "A.com.:8443")]);
    let head = RequestHead::read(&parts, true).unwrap();
    assert_eq!((&*head.host, head.port), ("a.com", Some(8443)));
    assert_eq!(head.authority(), "a.com:8443");
    assert_eq!((&*head.path, head.raw_path), ("/x/l", "//x/%6c"));
    assert_eq!(&*head.uri(), "/x/l?q=//");
}

#[test]
fn the_default_port_depends_on_the_transport() {
    let parts = h1("GET", "/", &[("host", "a.com:80")]);
    assert_eq!(RequestHead::read(&parts, false).unwrap().port, None);
    assert_eq!(RequestHead::read(&parts, true).unwrap().port, Some(80));
}

#[test]
fn connect_is_refused() {
    let parts = h1("CONNECT", "a.com:443", &[HOST]);
    assert_eq!(refusal(&parts), Some(MalformedRequest::Connect));
}

#[test]
fn targets_other_than_the_origin_form_are_read_or_refused() {
    let head = |method: &str, uri: &str| {
        let parts = h1(method, uri, &[HOST]);
        RequestHead::read(&parts, true).map(|head| head.uri().into_owned())
    };
    assert_eq!(head("OPTIONS", "*"), Ok("*".into()));
    assert_eq!(head("GET", "*"), Err(MalformedRequest::Target));
    assert_eq!(head("GET", "a.com:443"), Err(MalformedRequest::Target));
    assert_eq!(head("GET", "a.com"), Err(MalformedRequest::Target));
    assert_eq!(head("GET", "http://a.com/x?y"), Ok("/x?y".into()));
    assert_eq!(head("GET", "https://A.com.:443/x"), Ok("/x".into()));
    assert_eq!(head("GET", "http://a.com"), Ok("/".into()));
    assert_eq!(head("GET", "http://a.com?y"), Err(MalformedRequest::Target));
    assert_eq!(head("GET", "ftp://a.com/x"), Err(MalformedRequest::Target));
    assert_eq!(
        head("GET", "http://b.com/x"),
        Err(MalformedRequest::Authority)
    );
    assert_eq!(
        head("GET", "http://a.com:81/x"),
        Err(MalformedRequest::Authority)
    );
    assert_eq!(head("GET", "http://u@a.com/x"), Err(MalformedRequest::Host));
}

#[test]
fn exactly_one_valid_host_is_required() {
    assert_eq!(refusal(&h1("GET", "/", &[])), Some(MalformedRequest::Host));
    assert_eq!(
        refusal(&h1("GET", "/", &[HOST, HOST])),
        Some(MalformedRequest::Host)
    );
    for bad in ["", "a b", "a,b", "u@a", "a:b", "a/", "[::1", "127.1"] {
        let parts = h1("GET", "/", &[("host", bad)]);
        assert_eq!(refusal(&parts), Some(MalformedRequest::Host), "{bad:?}");
    }
    let absolute = h1("GET", "http://a.com/", &[]);
    assert_eq!(refusal(&absolute), Some(MalformedRequest::Host));
}

#[test]
fn http_1_0_does_not_need_a_host() {
    let parts = request("GET", "/", Version::HTTP_10, &[]);
    assert_eq!(RequestHead::read(&parts, true).unwrap().host, "");
    let parts = request("GET", "/", Version::HTTP_10, &[HOST, HOST]);
    assert_eq!(refusal(&parts), Some(MalformedRequest::Host));
}

#[test]
fn http_2_compares_host_with_its_authority() {
    let url = "https://a.com/";
    assert_eq!(refusal(&h2(url, &[])), None);
    assert_eq!(refusal(&h2(url, &[("host", "A.com:443")])), None);
    assert_eq!(
        refusal(&h2(url, &[("host", "b.com")])),
        Some(MalformedRequest::Authority)
    );
    assert_eq!(refusal(&h2("/", &[HOST])), None);
    assert_eq!(refusal(&h2("/", &[])), Some(MalformedRequest::Host));
}

#[test]
fn other_versions_are_refused() {
    let parts = request("GET", "/", Version::HTTP_09, &[HOST]);
    assert_eq!(refusal(&parts), Some(MalformedRequest::Version));
}

#[test]
fn transfer_encoding_must_be_exactly_chunked() {
    let coding = |value| with("transfer-encoding", value);
    assert_eq!(coding("chunked"), None);
    assert_eq!(coding("Chunked"), None);
    for unknown in [
        "gzip",
        "identity",
        "gzip, chunked",
        "xchunked",
        "gzip,deflate,chunked",
    ] {
        assert_eq!(
            coding(unknown),
            Some(MalformedRequest::UnknownCoding),
            "{unknown}"
        );
    }
    for bad in [
        "",
        ",",
        "chunked,",
        ",chunked",
        "chunked, chunked",
        "chunked, gzip",
        "gzip, chunked, chunked",
        "chunked;q=1",
        "\"chunked\"",
        "gzip, deflate",
        "chun ked",
    ] {
        assert_eq!(
            coding(bad),
            Some(MalformedRequest::TransferEncoding),
            "{bad:?}"
        );
    }
    assert_eq!(MalformedRequest::UnknownCoding.status(), 501);
    assert_eq!(MalformedRequest::TransferEncoding.status(), 400);
}

#[test]
fn two_transfer_encodings_are_refused() {
    let te = ("transfer-encoding", "chunked");
    let parts = h1("POST", "/", &[HOST, te, te]);
    assert_eq!(refusal(&parts), Some(MalformedRequest::TransferEncoding));
    let parts = request("POST", "/", Version::HTTP_10, &[HOST, te]);
    assert_eq!(refusal(&parts), Some(MalformedRequest::TransferEncoding));
}

#[test]
fn content_length_and_transfer_encoding_exclude_each_other() {
    let (te, cl) = (("transfer-encoding", "chunked"), ("content-length", "1"));
    for fields in [[HOST, te, cl], [HOST, cl, te]] {
        assert_eq!(
            refusal(&h1("POST", "/", &fields)),
            Some(MalformedRequest::Framing)
        );
    }
}

#[test]
fn content_length_must_be_one_number() {
    let length = |value| with("content-length", value);
    assert_eq!(length("0"), None);
    assert_eq!(length("18446744073709551615"), None);
    for bad in [
        "",
        "+1",
        "-1",
        "1 1",
        "1,1",
        "0x1",
        "1.0",
        "18446744073709551616",
    ] {
        assert_eq!(
            length(bad),
            Some(MalformedRequest::ContentLength),
            "{bad:?}"
        );
    }
    let cl = ("content-length", "1");
    let twice = h1("POST", "/", &[HOST, cl, cl]);
    assert_eq!(refusal(&twice), Some(MalformedRequest::ContentLength));
}

#[test]
fn white_space_around_a_value_is_refused() {
    for padded in [" 1", "1 ", "\t1", "1\t", " ", "\t"] {
        for name in ["content-length", "x-api-key", "host"] {
            let refused = with(name, padded);
            assert_eq!(
                refused,
                Some(MalformedRequest::Padding),
                "{name}: {padded:?}"
            );
        }
    }
    for kept in ["", "a b", "a\tb"] {
        assert_eq!(with("x-api-key", kept), None, "{kept:?}");
    }
}

#[test]
fn the_body_length_depends_on_the_version() {
    let get = |parts: &Parts| RequestHead::read(parts, true).unwrap().body;
    assert_eq!(get(&h1("GET", "/", &[HOST])), BodyLength::None);
    let chunked = h1("POST", "/", &[HOST, ("transfer-encoding", "chunked")]);
    assert_eq!(get(&chunked), BodyLength::Unknown);
    let stream = h2("https://a.com/", &[]);
    assert_eq!(get(&stream), BodyLength::Unknown);
    let head = RequestHead::read(&stream, true).unwrap().without_body();
    assert_eq!((head.has_body(), head.body_size()), (false, Some(0)));
}

#[test]
fn tabs_and_bytes_above_ascii_are_allowed_in_values() {
    assert_eq!(with("x-a", "tab\there"), None);
    let mut parts = h1("GET", "/", &[HOST]);
    let obs_text = HeaderValue::from_bytes(b"caf\xe9").unwrap();
    parts.headers.insert("x-a", obs_text);
    assert_eq!(refusal(&parts), None);
}

#[test]
fn underscore_aliases_are_refused() {
    for name in [
        "x_forwarded_for",
        "x-forwarded_proto",
        "x_real_ip",
        "content_length",
    ] {
        assert_eq!(with(name, "1"), Some(MalformedRequest::Twin), "{name}");
    }
    assert_eq!(with("my_field", "1"), None);
}

#[test]
fn http_2_refuses_connection_headers() {
    for (name, value) in [
        ("connection", "close"),
        ("keep-alive", "1"),
        ("proxy-connection", "close"),
        ("transfer-encoding", "chunked"),
        ("upgrade", "websocket"),
        ("te", "gzip"),
        ("te", "trailers, gzip"),
    ] {
        let parts = h2("https://a.com/", &[(name, value)]);
        assert_eq!(
            refusal(&parts),
            Some(MalformedRequest::ConnectionField),
            "{name}"
        );
    }
    let parts = h2("https://a.com/", &[("te", "trailers")]);
    assert_eq!(refusal(&parts), None);
}

#[test]
fn a_websocket_stream_may_carry_handshake_headers() {
    let handshake = [("connection", "upgrade"), ("upgrade", "websocket")];
    let opening = |more: &[(&str, &str)]| {
        let mut parts = h2("https://a.com/", &[&handshake[..], more].concat());
        parts.extensions.insert(UpgradeProtocol::WebSocket);
        parts
    };
    let parts = opening(&[]);
    let head = RequestHead::read(&parts, true).unwrap();
    assert_eq!(head.upgrade, Some(UpgradeProtocol::WebSocket));
    for (name, value) in [("keep-alive", "1"), ("te", "gzip")] {
        let refused = refusal(&opening(&[(name, value)]));
        assert_eq!(refused, Some(MalformedRequest::ConnectionField), "{name}");
    }
    let refused = refusal(&opening(&[("transfer-encoding", "chunked")]));
    assert_eq!(refused, Some(MalformedRequest::ConnectionField));
    assert_eq!(MalformedRequest::Protocol.status(), 501);
}

#[test]
fn only_a_get_with_both_upgrade_headers_requests_a_websocket() {
    let ask = |method: &str, fields: &[(&str, &str)]| {
        let parts = h1(method, "/", &[&[HOST], fields].concat());
        RequestHead::read(&parts, true).unwrap().upgrade
    };
    let (up, ws) = (
        ("connection", "keep-alive, Upgrade"),
        ("upgrade", "WebSocket"),
    );
    assert_eq!(ask("GET", &[up, ws]), Some(UpgradeProtocol::WebSocket));
    assert_eq!(ask("POST", &[up, ws]), None);
    assert_eq!(ask("GET", &[ws]), None);
    assert_eq!(ask("GET", &[up]), None);
    assert_eq!(ask("GET", &[up, ("upgrade", "h2c")]), None);
    assert_eq!(ask("GET", &[up, ws, ("upgrade", "h2c")]), None);
    assert_eq!(ask("GET", &[up, ws, ("content-length", "3")]), None);
}

#[test]
fn invalid_paths_are_refused_with_their_reason() {
    let path = |uri| refusal(&h1("GET", uri, &[HOST]));
    assert_eq!(path("/%00"), Some(MalformedRequest::Path(PathError::Nul)));
    assert_eq!(
        path("/..%2f"),
        Some(MalformedRequest::Path(PathError::HiddenDots))
    );
    assert_eq!(path("/?a=%00%zz"), None);
}

proptest! {
    #[test]
    fn no_head_causes_a_panic(
        uri in "(http://)?[a-z/%.:@*?\\[\\]0-9]{0,20}",
        name in "(host|te|connection|upgrade|content-length|transfer-encoding|x_real_ip)",
        value in "[ -~]{0,12}",
        version in 0usize..3,
    ) {
        let version = [Version::HTTP_10, Version::HTTP_11, Version::HTTP_2][version];
        let request = Request::builder().uri(uri).version(version).header(name, value);
        if let Ok(request) = request.header("host", "a").body(()) {
            let (parts, ()) = request.into_parts();
            if let Ok(head) = RequestHead::read(&parts, false) {
                prop_assert!(head.path.starts_with('/') || parts.method == Method::OPTIONS);
            }
        }
    }
}
